"""The verbs of a check: what they draw, what they ask, and how answers become values."""

import pytest
import torch
from modules import ATTENTION, PLAIN, SIZES, hosted, module, randn

from attnlab.candidate.host import LocalHost, Raised, checked_answer
from attnlab.probe.answers import CannotTell
from attnlab.probe.decode import UnexpectedOutput
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext, Probe
from attnlab.probe.reference import BadReference, FileReference, UnitReference
from attnlab.records import Code, Contract, Input
from attnlab.sizes import with_head_dim

TWICE = module("return self.proj(x)", "self.proj = nn.Linear(width, width)")


def probe(text, contract=PLAIN, reference=None, sizes=None):
    host = hosted(text, contract)
    context = GradingContext(
        contract=contract, name="Net", host=host, renew=lambda: host, dice=Dice(0),
        reference=reference,
    )  # fmt: skip
    made = Probe(context, with_head_dim(sizes or contract.sizes))
    made.equip()
    return made


def file_reference(text):
    return FileReference(Code(file="solution.py", text=text, name="Net"), LocalHost())


# ---------------------------------------------------------------- drawing


def test_draws_inputs_at_the_sizes_of_its_round():
    """The contract's order and the round's sizes."""
    got = probe(TWICE, sizes={**SIZES, "S": 6}).draw()
    assert {n: tuple(t.shape) for n, t in got.items()} == {"x": (2, 6, 8)}


def test_noise_is_like_its_model():
    """Same shape and dtype; booleans and indices stay such."""
    made = probe(TWICE)
    for like in (randn(2, 3).double(), torch.zeros(4, dtype=torch.bool), torch.arange(5)):
        noise = made.noise(like)
        assert (noise.shape, noise.dtype) == (like.shape, like.dtype)
    assert made.noise(randn(99, 99), scale=5.0).std().item() == pytest.approx(5, rel=0.1)
    assert 0 <= made.noise(torch.arange(99)).min() <= made.noise(torch.arange(99)).max() < 16


def test_measure_and_pick():
    """Axes by the round's sizes; integers in a half-open range."""
    made = probe(TWICE)
    assert (made.measure("3*D"), made.measure("hd")) == (24, 4)
    assert {made.random_integer(2, 4) for _ in range(50)} == {2, 3}


# ---------------------------------------------------------------- asking


def test_call_gives_the_output():
    """A plain tensor comes back as it is."""
    made = probe(module("return x * 2"))
    inputs = made.draw()
    torch.testing.assert_close(made.call(inputs), inputs["x"] * 2)


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        ("(x, None)", "a tuple with a float32 tensor of shape (2, 4, 8) and None"),
        ("[x]", "a list with a float32 tensor of shape (2, 4, 8)"),
        ("None", "None"),
        ("torch.complex(x, x)", "a complex64 tensor of shape (2, 4, 8)"),
        ("x.to_sparse()", "a float32 sparse_coo tensor of shape (2, 4, 8)"),
        ("x.to('meta')", "a float32 tensor of shape (2, 4, 8) on the meta device"),
    ],
)
def test_what_is_no_plain_tensor_is_odd(returned, kind):
    """A tuple, a list, None, complex, sparse and meta tensors are named, not compared."""
    made = probe(module(f"return {returned}"))
    with pytest.raises(UnexpectedOutput) as caught:
        made.call(made.draw())
    assert str(caught.value) == f"forward returned {kind}, not one plain tensor"


def test_a_subclass_is_no_plain_tensor():
    """A subclass of Tensor is named; its own code is not run on this side."""
    text = module("return x.as_subclass(Sub)").replace(
        "class Net",
        "class Sub(torch.Tensor):\n    def abs(self): raise SystemExit\n\nclass Net",
    )
    made = probe(text)
    with pytest.raises(UnexpectedOutput, match="returned a Sub, a subclass of Tensor"):
        made.call(made.draw())


def test_a_parameter_that_is_returned_is_a_tensor():
    """nn.Parameter is a subclass too."""
    made = probe(module("return self.w", "self.w = nn.Parameter(torch.ones(width))"))
    assert torch.equal(made.call(made.draw()), torch.ones(8))


def test_raised_exceptions_come_with_their_bases():
    """A Raised has the class, the bases, the line; nothing of the candidate's objects."""
    made = probe(module("raise KeyError('x')"))
    with pytest.raises(Raised) as caught:
        made.call(made.draw())
    error = caught.value
    assert (error.error, error.line, error.memory) == ("KeyError", 9, False)
    assert error.kinds[:3] == ("KeyError", "LookupError", "Exception")
    assert str(error) == "KeyError: 'x'"


def test_gradients_are_those_of_a_random_cotangent():
    """Linear: the gradient of the bias is the sum of the cotangent over all positions."""
    made = probe(TWICE)
    grads = made.gradients(made.draw())
    assert set(grads.inputs) == {"x"}
    assert {n: tuple(g.shape) for n, g in grads.parameters.items()} == {
        "proj.weight": (8, 8),
        "proj.bias": (8,),
    }
    assert grads.parameters["proj.bias"].abs().min() > 0


def test_inputs_after_parameters_and_buffers():
    """The candidate's own word of what it holds and did."""
    text = module("x += 1\nreturn x", "self.register_buffer('pe', torch.ones(3))\nself.w = "
                  "nn.Parameter(torch.ones(2))")  # fmt: skip
    made = probe(text)
    inputs = made.draw()
    after = made.inputs_after_call(inputs)
    torch.testing.assert_close(after.inputs["x"], inputs["x"] + 1)
    assert (after.alias, after.learns, after.overwritten) == ("x", "", False)
    assert (set(made.parameters()), set(made.host.ask("buffers")["tensors"])) == ({"w"}, {"pe"})


LIMITED = module(
    """\
if x.shape[1] > 5:
    raise IndexError("too long")
return x""",
    "if width % 2: raise ValueError('odd')\nself.width = width",
)


def test_raised_tells_the_exception_and_restores_the_round():
    """Other sizes are built and called; then the module of this round stands again."""
    made = probe(LIMITED)
    assert made.exception_at({"S": 6})[:2] == ("IndexError", "LookupError")
    assert made.exception_at({"D": 7})[0] == "ValueError"
    assert made.exception_at({"S": 5}) is None
    assert made.host.host.session.target.width == 8


def test_raised_keeps_a_head_width_that_is_a_size_of_its_own():
    """Where hd is not D / H, refusing another S must not forget it."""
    contract = Contract(
        sizes={"S": 3, "hd": 4},
        init={"width": "hd"},
        inputs=(Input(name="x", axes=("S", "S", "hd")),),
    )
    made = probe(LIMITED, contract)
    assert made.exception_at({"S": 9})[0] == "IndexError"
    assert made.exception_at({"hd": 3})[0] == "ValueError"


# ---------------------------------------------------------------- weights and the reference

OTHER_NAMES = (
    "the module has no parameter proj.weight, proj.bias, which the reference has; "
    "it has lin.weight, lin.bias"
)


def test_the_reference_has_the_same_weights():
    """Weights are drawn for this run and copied into both: outputs agree to rounding."""
    made = probe(TWICE, reference=file_reference(TWICE))
    inputs = made.draw()
    expected = made.expected(inputs)
    assert expected.dtype is torch.float64
    assert (made.call(inputs) - expected).abs().max() <= made.tolerance(expected)


def test_a_unit_is_a_reference_in_float64():
    """A class of references/ is run here, in double precision, with the candidate's weights."""
    text = "from attnlab.references.attention import MultiHeadSelfAttention as Net\n"
    made = probe(text, ATTENTION, UnitReference("MultiHeadSelfAttention"))
    for mask in ("none", "causal", "random", "empty-rows"):
        inputs = made.draw(mask)
        expected = made.expected(inputs)
        assert (made.call(inputs) - expected).abs().max() <= made.tolerance(expected)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (
            "self.lin = nn.Linear(width, width)",
            OTHER_NAMES,
        ),
        (
            "self.proj = nn.Linear(width, 3)",
            "parameter proj.weight has shape (3, 8), the reference's (8, 8)",
        ),
        (
            "self.proj = nn.Linear(width, width)\nself.more = nn.Linear(2, 2)",
            "the module has parameters that the reference does not have: more.weight, more.bias",
        ),
    ],
)
def test_weights_that_do_not_fit_cannot_be_compared(init, message):
    """Missing names, other shapes, more parameters: said, with the names, and no failure.

    What follows says which maps were tried.
    """
    made = probe(module("return x", init), reference=file_reference(TWICE))
    with pytest.raises(CannotTell) as caught:
        made.expected(made.draw())
    assert str(caught.value).startswith(f"{message}; ")
    assert caught.value.reason == "no-weights"


def test_without_a_reference_nothing_is_expected():
    """CannotTell, not a pass."""
    made = probe(TWICE)
    with pytest.raises(CannotTell) as caught:
        made.expected(made.draw())
    assert caught.value.reason == "no-reference"


@pytest.mark.parametrize(
    "told",
    [
        {"shapes": {"w": 3}},
        {"shapes": {"w": [1, 2]}},
        {"shapes": {"w": None}},
        {"missing": [1, None]},
        {"extra": [{}]},
    ],
)
def test_a_lying_answer_about_weights_cannot_be_compared(told):
    """Whatever a candidate's process answers to `put`, it becomes a sentence."""
    made = probe(TWICE, reference=file_reference(TWICE))
    made.host.ask = lambda verb, **args: told if verb == "build" else {}
    made.equip()
    with pytest.raises(CannotTell):
        made.expected({"x": randn(1, 1, 8)})


@pytest.mark.parametrize("text", ["raise ValueError('no')", module("return self.gone(x)")])
def test_a_solution_that_raises_is_no_fault_of_the_candidate(text):
    """The challenge is broken, and that is what is raised."""

    def use():
        reference = file_reference(text)
        reference.equip({"width": 8}, Dice(0))
        reference.call({"x": randn(2)})

    with pytest.raises(BadReference, match=r"the reference solution\.py"):
        use()


def test_tolerance_grows_with_the_values():
    """What float32 rounding explains: relative to the largest value, and never below that of 1."""
    made = probe(TWICE)
    small = made.tolerance(torch.tensor([0.001]))
    assert made.tolerance(torch.tensor([1.0])) == small
    assert made.tolerance(torch.tensor([-100.0])) == pytest.approx(100 * small)
    assert made.tolerance(torch.empty(0)) == small


def test_answered_passes_answers_through():
    """Only `raised` becomes an exception, however odd its content is."""
    assert checked_answer({"output": 3}) == {"output": 3}
    for told in (None, 3, {}, {"error": None, "line": -1, "kinds": 7, "message": ["x"]}):
        with pytest.raises(Raised) as caught:
            checked_answer({"raised": told})
        assert (caught.value.line, caught.value.memory) == (None, False)
