"""Assertions for a user's own module: what holds passes, what does not is told with its rows."""

from __future__ import annotations

import copy
import inspect
import random

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnlab import testing
from attnlab.errors import PropertyFailed, Refused
from attnlab.testing import (
    assert_batch_independent,
    assert_causal,
    assert_deterministic,
    assert_finite,
    assert_gradients_correct,
    assert_gradients_finite,
    assert_mask_effective,
    assert_matches,
    assert_padding_invariant,
    assert_permutation_equivariant,
    assertions,
)

D = {"D": 12}
X, MASK = "x: B S D", "mask: B S S bool forbids optional"


class Net(nn.Module):
    """Attention with a switch for each thing that can be wrong."""

    def __init__(self, wrong="", causal=False, width=12, heads=3):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wrong, self.causal, self.heads = wrong, causal, heads

    def forward(self, x, mask=None):
        B, S, width = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / (1.0 if self.wrong == "scale" else q.shape[-1] ** 0.5)
        if self.causal:
            future = torch.ones(S, S, dtype=torch.bool).triu(2 if self.wrong == "leak" else 1)
            scores = scores.masked_fill(future, -torch.inf)
        if mask is not None and self.wrong != "no mask":
            scores = scores.masked_fill(mask[:, None], -torch.inf)
        weights = scores.softmax(-1)
        if self.wrong == "detached":
            weights = weights.detach()
        out = (weights @ v).transpose(1, 2).reshape(B, S, width)
        return self.spoiled(self.out(out))

    def spoiled(self, out):
        if self.wrong == "batch":
            out = out - out.mean(0, keepdim=True)
        if self.wrong == "noise":
            out = out + torch.randn_like(out)
        if self.wrong == "nan":
            out = out / (out - out)
        if self.wrong == "root":
            out = out + (0 * out).square().sum(-1, keepdim=True).sqrt()
        if self.wrong == "places":
            out = out + torch.arange(out.shape[1])[:, None]
        if self.wrong == "mean":
            out = out - out.mean(1, keepdim=True)
        return (out, None) if self.wrong == "tuple" else out


HOLDS = [
    (assert_causal, {"causal": True}, (X,), "leak"),
    (assert_batch_independent, {}, (X,), "batch"),
    (assert_padding_invariant, {}, (X, MASK), "mean"),
    (assert_permutation_equivariant, {}, (X, MASK), "places"),
    (assert_mask_effective, {}, (X, MASK), "no mask"),
    (assert_deterministic, {}, (X,), "noise"),
    (assert_finite, {}, (X,), "nan"),
    (assert_gradients_finite, {}, (X,), "root"),
    (assert_gradients_correct, {}, (X,), "detached"),
]


@pytest.mark.parametrize(("check", "init", "inputs", "wrong"), HOLDS)
def test_what_holds_passes_and_what_does_not_is_found(check, init, inputs, wrong):
    """The same module, right and wrong in one thing."""
    check(Net(**init), *inputs, sizes=D, seed=1)
    with pytest.raises(PropertyFailed):
        check(Net(wrong, **init), *inputs, sizes=D, seed=1)


def test_a_failure_is_a_page():
    """Finding, place, sizes, seed, rows of the trace and what to do next; and a plain assertion."""
    with pytest.raises(AssertionError) as caught:
        assert_causal(Net("leak", causal=True), X, sizes=D, seed=7)
    error = caught.value
    assert error.finding.startswith("causality: inputs changed from position")
    assert str(error) == f"{error.finding}\n\n{error.page}"
    head, gap, titles, first, *_ = error.page.splitlines()
    line = inspect.getsourcelines(Net.forward)[1]
    assert head == f"Net.forward, tests/testing/test_assertions.py:{line}  B=3 S=7 D=12  seed 7"
    assert (gap, titles.split()[:3]) == ("", ["line", "op", "axes"])
    assert first.split()[1:5] == ["linear", "B", "S", "3*D"]
    assert "softmax" in error.page
    assert "\nnext: Change one position" in error.page


def test_a_crash_names_its_line():
    """At other sizes than those it was written for."""

    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(3, -1, 12) if len(x) == 3 else x.view(3, 7, 12)

    with pytest.raises(PropertyFailed) as caught:
        assert_finite(Fixed(), X, sizes=D)
    assert "finite: the call raised RuntimeError: shape '[3, 7, 12]' is invalid" in str(
        caught.value
    )
    line = inspect.getsourcelines(Fixed.forward)[1] + 1
    head, _, _, row, *_, last = caught.value.page.splitlines()
    assert head.startswith(f"tests/testing/test_assertions.py:{line}  B=")
    assert row.split()[:3] == ["✗", str(line), "view"]
    assert last == "next: Look at the last operations before the crash."


def test_the_most_basic_failure_is_told():
    """Noise looks like a leak; the sentence names the noise and what it makes fail."""
    with pytest.raises(PropertyFailed) as caught:
        assert_causal(Net("noise", causal=True), X, sizes=D)
    assert caught.value.finding.startswith("no-hidden-state: ")
    assert caught.value.finding.endswith("; causality fails too, and may follow from it")


def test_a_seed_repeats_a_run():
    """Sizes, weights and inputs are drawn from it; without one they are fresh."""

    def page(**options):
        with pytest.raises(PropertyFailed) as caught:
            assert_batch_independent(net, X, sizes=D, **options)
        return str(caught.value)

    net = Net("batch")
    assert page(seed=3) == page(seed=3)
    assert page() != page()


def test_the_environment_names_a_seed(monkeypatch):
    """As the option of the pytest plugin does."""
    monkeypatch.setenv("ATTNLAB_SEED", "11")
    with pytest.raises(PropertyFailed) as caught:
        assert_finite(Net("nan"), X, sizes=D)
    assert caught.value.seed == 11
    monkeypatch.setenv("ATTNLAB_SEED", "eleven")
    with pytest.raises(Refused, match="ATTNLAB_SEED=eleven is no seed"):
        assert_finite(Net(), X, sizes=D)


def test_the_module_is_left_alone():
    """Weights, gradients, mode and buffers are those of before."""
    net = Net().train()
    before = copy.deepcopy(net.state_dict())
    assert_matches(net, Net(), X, MASK, sizes=D)
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())


# ---------------------------------------------------------------- inputs


def test_example_tensors_say_the_axes():
    """A float tensor of three axes is B S D, an integer one is tokens; functions work as well."""
    assert_batch_independent(Net(), torch.randn(2, 5, 12))
    assert_deterministic(nn.Embedding(9, 4), torch.zeros(1, 2, dtype=torch.long), sizes={"V": 9})

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    heads = torch.randn(2, 3, 5, 8)
    assert_causal(attend, heads, heads, heads)
    with pytest.raises(PropertyFailed, match="causality"):
        assert_causal(F.scaled_dot_product_attention, heads, heads, heads)


def test_the_output_is_picked():
    """What forward returns beside it is of no interest."""
    with pytest.raises(
        Refused, match=r"forward returned a tuple with .* and None, not one tensor"
    ) as caught:
        assert_finite(Net("tuple"), X, sizes=D)
    assert "pick=lambda out: out[0]" in caught.value.hint
    assert_finite(Net("tuple"), X, sizes=D, pick=lambda out: out[0])


def test_dropout_is_seen():
    """Train mode of a module with dropout is random on purpose."""

    class Dropped(Net):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x, mask=None):
            return self.drop(super().forward(x, mask))

    assert_matches(Dropped(), Net(), X, sizes=D)


def test_lengths_stay_within_the_longest():
    """`M` says how long a sequence may be."""

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.pe = nn.Parameter(torch.randn(10, 12))

        def forward(self, x):
            return x + self.pe[: x.shape[1]]

    with pytest.raises(PropertyFailed, match="must match the size of tensor b"):
        assert_finite(Table(), X, sizes=D)
    assert_finite(Table(), X, sizes={**D, "M": 10})


@pytest.mark.parametrize(
    ("inputs", "options", "message", "hint"),
    [
        ((), {}, "no input is said", '"x: B S D"'),
        ((X,), {}, "the size of D is not said", 'sizes={"D": 16}'),
        (("x B S D",), {}, "names no argument of forward", "x: B S D"),
        ((torch.zeros(1, 1, 1, 1, 1),), {}, "x has 5 axes", "Say its axes"),
        ((X, torch.zeros(2, 2, dtype=torch.bool)), {"sizes": D}, "mask is a mask", "forbids"),
        ((3,), {}, "x is a int", "or a tensor"),
        ((X,), {"sizes": D, "sed": 3}, '"sed" is no keyword', "Did you mean seed?"),
        ((), {"x": "B S D"}, '"x" is no keyword', 'an input is a text without keyword: "x: B S D"'),
        ((X,), {"sizes": D, "promises": ("dropot",)}, '"dropot" is no promise', "dropout"),
        ((X,), {"sizes": D, "promises": ("?",)}, '"?" is no promise', "Promises are causal"),
        ((X,), {"sizes": {"D": "12"}}, "sizes has 'D': '12'", "whole numbers"),
        ((X,), {"sizes": {"D": 0}}, "sizes has 'D': 0", "whole numbers"),
        ((X,), {"sizes": ["D"]}, "is no mapping", "whole numbers"),
        ((X,), {"sizes": D, "output": ["B"]}, "is no text", 'output="B S D"'),
        ((X,), {"sizes": D, "output": "B S E"}, "the size of E in output", "B, S, "),
        ((X,), {"sizes": D, "pick": "logits"}, "cannot be called", "lambda out"),
        ((X,), {"sizes": D, "seed": "abc"}, "seed=abc is no seed", "whole number"),
        ((X,), {"sizes": D, "seed": 10**30}, "is no seed", "2**63"),
        ((torch.zeros(2, 3, 12) * 1j,), {"sizes": D}, "complex64", "real"),
        ((torch.zeros(2, 3, 12),), {"sizes": {"D": 16}}, "D is 16 in sizes and 12 in x", "one of"),
    ],
)
def test_what_cannot_be_fed_is_refused(inputs, options, message, hint):
    """The sentence says what is missing, the hint how to say it."""
    with pytest.raises(Refused) as caught:
        assert_finite(Net(), *inputs, **options)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_ids_are_below_those_that_are_known():
    """By an example, or by V; a text alone leaves 16."""

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 4)

        def forward(self, ids):
            return self.table(ids)

    assert_finite(Tokens(), torch.tensor([[0, 4]]))
    assert_finite(Tokens(), "ids: B S int", sizes={"V": 5})
    with pytest.raises(PropertyFailed, match="index out of range"):
        assert_finite(Tokens(), "ids: B S int")


def test_random_numbers_of_the_process_go_on():
    """An assertion between two draws of a test changes neither."""
    net, drawn = Net(), []
    for between in (lambda: None, lambda: assert_finite(net, X, sizes=D, seed=1)):
        torch.manual_seed(3)
        random.seed(5)
        between()
        drawn.append((torch.randn(3).tolist(), random.random()))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("width", [3, 4, 7])
def test_a_width_that_is_a_batch_by_accident_is_a_width(width):
    """Axes of the output are read off two calls: what stays is no batch and no length."""

    class Classes(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(12, width)

        def forward(self, x):
            return self.out(x)

    assert_finite(Classes(), X, sizes=D)
    assert_batch_independent(Classes(), X, sizes=D)


class Decoder(nn.Module):
    """Causal by itself, with a padding mask for keys."""

    def __init__(self, rows=slice(None), own=False):
        super().__init__()
        self.qkv, self.rows, self.own = nn.Linear(12, 36), rows, own

    def forward(self, x, hide):
        q, k, v = self.qkv(x).chunk(3, -1)
        S = x.shape[1]
        future = torch.ones(S, S, dtype=torch.bool).triu(1)
        hidden = (hide[self.rows, None] | future) & ~torch.eye(S, dtype=torch.bool)
        if self.own:
            hidden = ~torch.eye(S, dtype=torch.bool)
        return (q @ k.mT / 12**0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v


HIDE = "hide: B S bool forbids"


def test_a_decoder_with_a_padding_mask_needs_no_promise():
    """A first query whose only key is hidden is nobody's fault."""
    for check in (assert_mask_effective, assert_finite, assert_gradients_finite):
        check(Decoder(), X, HIDE, sizes=D)


def test_a_mask_of_the_first_sample_for_all_is_seen():
    """By each of the two that look at masks and at samples."""
    for check in (assert_batch_independent, assert_mask_effective):
        with pytest.raises(PropertyFailed):
            check(Decoder(rows=slice(0, 1)), X, HIDE, sizes=D)


def test_what_a_mask_allows_has_influence():
    """A module that looks at no other key honours every mask."""
    with pytest.raises(PropertyFailed, match="reach"):
        assert_mask_effective(Decoder(own=True), X, HIDE, sizes=D)
    assert_mask_effective(Decoder(own=True), X, HIDE, sizes=D, promises=("local",))


def test_gradients_of_ids_are_those_of_the_weights():
    """A token model has no other."""

    class Tokens(nn.Module):
        def __init__(self, power):
            super().__init__()
            self.table, self.power = nn.Embedding(16, 4), power

        def forward(self, ids):
            return (self.table(ids) * 0).abs() ** self.power

    assert_gradients_finite(Tokens(2), "ids: B S int")
    with pytest.raises(PropertyFailed, match=r"table\.weight"):
        assert_gradients_finite(Tokens(0.5), "ids: B S int")


class Cube(torch.autograd.Function):
    """x**3 with a backward of its own, as the interviews of hand-written gradients ask (row C8)."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.factor * x**2 * grad, None


@pytest.mark.parametrize("factor", [3, 2])
def test_a_backward_of_ones_own_is_compared_with_slopes(factor):
    """Also of a plain function; where a factor is missing, both numbers are told."""

    def cube(x):
        return Cube.apply(x, factor)

    if factor == 3:
        return assert_gradients_correct(cube, X, sizes=D, seed=3)
    with pytest.raises(PropertyFailed, match=r"a step of x changes .* the gradient says"):
        assert_gradients_correct(cube, X, sizes=D, seed=3)
    return None


def test_gradients_that_no_input_has_cannot_be_checked():
    """Ids have no slope: that is not a pass."""
    with pytest.raises(Refused):
        assert_gradients_correct(nn.Embedding(16, 4), "input: B S int", sizes={"V": 16})


def test_a_hint_is_a_note():
    """Python shows it below the message where no test framework does."""
    with pytest.raises(Refused) as caught:
        assert_finite(Net(), X)
    assert caught.value.__notes__ == [caught.value.hint]


class Patches(nn.Module):
    """A small vision transformer, for images of 16 x 16 alone."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 8, 8)
        self.positions = nn.Parameter(torch.randn(4, 12))
        self.net = Net()

    def forward(self, images):
        return self.net(self.patches(images).flatten(2).mT + self.positions).mean(1)


def test_the_size_of_images_is_fixed():
    """Of an example image only the batch is drawn; of queries by head, the length as well."""
    assert_batch_independent(Patches(), torch.randn(2, 3, 16, 16))
    assert_batch_independent(lambda q: q.softmax(-1), torch.randn(2, 3, 5, 4))


@pytest.mark.parametrize("assertion", [assert_padding_invariant, assert_mask_effective])
def test_a_mask_says_what_true_means(assertion):
    """A boolean input alone is not known to forbid or to allow."""
    with pytest.raises(
        Refused, match="mask is boolean, and nothing says what True means"
    ) as caught:
        assertion(Net(), X, "mask: B S S bool", sizes=D)
    assert '"mask: B S S bool forbids"' in caught.value.hint


def test_what_does_not_apply_is_no_pass():
    """A mask cannot be effective where none is taken; a module must be callable."""
    with pytest.raises(Refused, match="no input is a mask"):
        assert_mask_effective(Net(), X, sizes=D)
    with pytest.raises(Refused, match="a int cannot be called"):
        assert_finite(3, X, sizes=D)
    with pytest.raises(Refused, match="Net is a class") as caught:
        assert_finite(Net, X, sizes=D)
    assert "Net(...)" in caught.value.hint


def test_a_first_call_that_raises_is_a_failure():
    """The place is the user's own line."""

    class Broken(nn.Module):
        def forward(self, x):
            return self.gone(x)

    with pytest.raises(PropertyFailed, match="the call raised AttributeError: 'Broken'") as caught:
        assert_finite(Broken(), X, sizes=D)
    line = inspect.getsourcelines(Broken.forward)[1] + 1
    assert caught.value.page == f"tests/testing/test_assertions.py:{line}"


# ---------------------------------------------------------------- a reference


class Apart(nn.Module):
    """The same attention with a layer each for queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv = (nn.Linear(12, 12) for _ in range(3))
        self.proj = nn.Linear(12, 12)

    def forward(self, x, mask=None):
        q, k, v = (f(x).unflatten(-1, (3, 4)).transpose(1, 2) for f in (self.wq, self.wk, self.wv))
        keep = None if mask is None else ~mask[:, None]
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.proj(out.transpose(1, 2).flatten(2))


def test_other_names_and_layouts_match():
    """The reference's weights find their places by names and shapes, proven by equality."""
    assert_matches(Apart(), Net(), X, MASK, sizes=D)
    assert_matches(Net(), Apart(), X, MASK, sizes=D)


@pytest.mark.parametrize(
    ("wrong", "check"), [("scale", "matches-reference"), ("detached", "gradients-match")]
)
def test_what_does_not_match_is_told(wrong, check):
    """Values first, then gradients."""
    with pytest.raises(PropertyFailed, match=check):
        assert_matches(Net(wrong), Net(), X, MASK, sizes=D)


def test_a_map_can_be_said():
    """By the module's own names; then nothing needs to be proven."""

    class Named(nn.Module):
        def __init__(self, factor=1.0):
            super().__init__()
            self.map, self.factor = nn.Parameter(torch.zeros(12, 12)), factor

        def forward(self, x):
            return x @ self.map * self.factor

    reference, weights = nn.Linear(12, 12, bias=False), {"map": "t(weight)"}
    assert_matches(Named(), reference, X, sizes=D, weights=weights)
    with pytest.raises(PropertyFailed, match="matches-reference"):
        assert_matches(Named(2.0), reference, X, sizes=D, weights=weights)
    with pytest.raises(Refused, match="none of the 2 likely ways") as caught:
        assert_matches(Named(2.0), reference, X, sizes=D)
    assert 'weights="kept"' in caught.value.hint


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, "weights=None is no map"),
        (["a"], "is no map"),
        ({"proj.weight": 3}, "weights has 'proj.weight': 3"),
        ({"prj.weight": "proj.weight"}, "the module has no parameter prj.weight"),
        ({"proj.weight": "prj.weight"}, "the reference has no parameter prj.weight"),
        ({"proj.weight": "prt(proj.weight, 0, 3)"}, "prt is none of"),
        ({"proj.weight": "t(proj.weight"}, "lacks a closing bracket"),
    ],
)
def test_a_map_that_cannot_be_is_refused(weights, message):
    """Before another one is found that would hide it."""

    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(12, 12)

        def forward(self, x):
            return self.proj(x)

    with pytest.raises(Refused) as caught:
        assert_matches(Same(), Same(), X, sizes=D, weights=weights)
    assert message in caught.value.message
    with pytest.raises(Refused, match="Same is a class"):
        assert_matches(Same(), Same, X, sizes=D)


def test_weights_may_be_kept():
    """Two modules that share their weights already, or a function that has none."""
    net = Net()
    assert_matches(net, copy.deepcopy(net), X, sizes=D, weights="kept")
    with pytest.raises(PropertyFailed, match="matches-reference"):
        assert_matches(net, Net(), X, sizes=D, weights="kept")
    assert_matches(nn.ReLU(), torch.relu, X, sizes=D)
    with pytest.raises(Refused, match='weights="shared" is no way'):
        assert_matches(net, net, X, sizes=D, weights="shared")


def test_every_assertion_is_public_and_tested():
    """What the module offers is what stands in `__all__`."""
    made = {n for n in vars(assertions) if n.startswith("assert_")}
    assert made == {n for n in testing.__all__ if n.startswith("assert_")}
    assert {check.__name__ for check, *_ in HOLDS} | {"assert_matches"} == made
