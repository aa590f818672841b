"""Properties of a model on a batch of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.candidate.live_properties import PROPERTIES, Hints, live_properties
from attnlab.catalogue.finding_rules import PROPERTY_FINDINGS
from attnlab.records import LiveReport

V, D, M = 20, 12, 16


class LM(nn.Module):
    """A language model of one layer, with a bug by its name."""

    def __init__(self, bug: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bug = bug
        self.tok, self.wpe = nn.Embedding(V, D), nn.Embedding(M, D)
        drop = 0.1 * (bug != "train-branch")
        self.layer = nn.TransformerEncoderLayer(D, 3, 24, drop, batch_first=bug != "mixes")
        self.head = nn.Linear(D, V)
        self.kept: Tensor | None = None

    def forward(self, idx: Tensor) -> Tensor:
        length = idx.shape[1]
        x = self.tok(idx)
        if self.bug != "unordered":
            x = x + self.wpe(torch.arange(length))
        mask = torch.ones(length, length).triu(1).bool()
        if self.bug == "weak-fill":
            mask = mask.to(x.dtype)
        x = self.layer(x, src_mask=None if self.bug in ("bidirectional", "mixes") else mask)
        x = nn.functional.dropout(x, 0.1) if self.bug == "random" else x
        if self.bug == "keeps":
            self.kept = x[:1, :1] if self.kept is None else self.kept
            x = x + self.kept
        if self.bug == "train-branch" and self.training:
            x = 2 * x
        return self.head(torch.zeros_like(x) if self.bug == "constant" else x)


class Masked(nn.Module):
    """Self-attention with a mask over keys, hidden by `fill`; `mean` pools over all positions."""

    def __init__(
        self, forbids: bool = True, fill: float = float("-inf"), mean: bool = False
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.forbids, self.fill, self.mean = forbids, fill, mean
        self.qkv = nn.Linear(D, 3 * D)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT / D**0.5
        if key_padding_mask is not None:
            hidden = key_padding_mask if self.forbids else ~key_padding_mask
            scores = scores.masked_fill(hidden[:, None], self.fill)
        out: Tensor = scores.softmax(-1) @ v
        return out.mean(1) if self.mean else out


def outcomes(report: LiveReport) -> dict[str, str]:
    return {check.id: check.outcome for check in report.checks}


def broken(model: nn.Module, *args: Any, hints: Hints | None = None) -> set[str]:
    found = live_properties(model, args, hints=hints)
    return {id_ for id_, outcome in outcomes(found).items() if outcome == "failed"}


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(0, V, (3, 8), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def x() -> Tensor:
    return torch.randn(3, 7, D, generator=torch.Generator().manual_seed(0))


def test_a_right_model_keeps_its_promises(ids: Tensor) -> None:
    """Causality and order are promised by the mask and the table, and nothing is broken."""
    found = live_properties(LM(), (ids,))
    assert {p.name for p in found.promises} == {"causal", "ordered", "dropout"}
    assert "masks with a triangle" in found.promises[0].reason
    assert set(outcomes(found).values()) == {"passed", "skipped"}


@pytest.mark.parametrize(
    ("bug", "property_"),
    [
        ("weak-fill", "causality"),
        ("unordered", "position-sensitivity"),
        ("random", "deterministic-eval"),
        ("constant", "constant-output"),
        ("keeps", "second-call"),
        ("train-branch", "train-mode"),
        ("mixes", "batch-independence"),
    ],
)
def test_a_bug_breaks_its_property(bug: str, property_: str, ids: Tensor) -> None:
    """Each of these runs, trains and has the right shapes."""
    assert property_ in broken(LM(bug), ids)


class Keeping(nn.Module):
    """A layer inside a model that keeps its keys in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.way, self.key = way, nn.Linear(D, D)
        self.seen: Tensor | None = None
        self.kept: Tensor | None = None
        self.table: dict[str, Tensor] = {}
        self.stock: dict[str, Tensor] = {}
        self.reset()

    def reset(self) -> None:
        self.kept = None

    def forward(self, x: Tensor) -> Tensor:
        self.seen = x.detach()
        keys: Tensor = self.key(x)
        if self.way == "none" and self.kept is None:
            self.kept = keys  # none
        elif self.way == "dict" and "keys" not in self.table:
            self.table["keys"] = keys  # dict
        elif self.way == "lazy" and not hasattr(self, "held"):
            self.held = keys  # lazy
        elif self.way == "filled":
            keys = self.stock.setdefault("keys", keys)  # filled
        keys = keys if self.kept is None else self.kept
        keys = self.table.get("keys", getattr(self, "held", keys))
        return (x @ keys.mT).softmax(-1) @ keys


@pytest.mark.parametrize("way", ["none", "dict", "lazy", "filled"])
def test_the_line_that_keeps_what_changes_a_second_call_is_named(way: str, x: Tensor) -> None:
    """Not what is only noted down, nor a method that empties it; in all layers of one class."""
    model = nn.Sequential(Keeping(way), Keeping(way))
    check = next(c for c in live_properties(model, (x,)).checks if c.id == "second-call")
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert check.outcome == "failed"
    assert source[(check.line or 0) - 1].endswith(f"# {way}")
    assert "Keeping." in check.message
    assert "second-call" not in broken(Keeping("no"), x)


class Translator(nn.Module):
    """Reads a source and the words before each place of its labels, or later ones as well."""

    def __init__(self, leaks: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.leaks = leaks
        self.tok, self.head = nn.Embedding(V, D), nn.Linear(D, V)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        length = labels.shape[1]
        shifted = labels.roll(1, 1).clamp(min=0)
        shifted[:, 0] = 0
        hidden = torch.full((length, length), -torch.inf).triu(3 if self.leaks else 1)
        weights = torch.softmax(hidden, -1)
        return self.head(weights @ self.tok(shifted) + self.tok(ids).mean(1, keepdim=True))


def test_a_decoder_of_the_labels_is_causal_in_the_labels(ids: Tensor) -> None:
    """What it reads of another sequence of the same length, a source, is no future."""
    labels, hints = ids.flip(1), Hints(promised=("causal",))
    assert "causality" not in broken(Translator(), ids, labels, hints=hints)
    assert "causality" in broken(Translator(leaks=True), ids, labels, hints=hints)


def test_targets_that_are_the_next_inputs_promise_causality(ids: Tensor) -> None:
    """Without any mask nothing in the model says that it should be causal; its loss does."""
    model, given = LM("bidirectional"), ids[:, :-1]
    assert "causality" not in broken(model, given)
    assert "causality" in broken(model, given, hints=Hints(targets=ids[:, 1:].reshape(-1)))
    assert "causality" in broken(model, given, hints=Hints(promised=("causal",)))


def test_the_user_may_take_a_promise_back(ids: Tensor) -> None:
    """What is inferred is a guess, and the user knows better."""
    assert not broken(LM("weak-fill"), ids, hints=Hints(unpromised=("causal",)))
    assert not broken(LM("weak-fill"), ids, hints=Hints(unpromised=("causality",)))


def test_the_first_line_that_mixes_is_named(ids: Tensor) -> None:
    """A property that is broken comes with the line of the first operation at which it shows."""
    found = live_properties(LM("mixes"), (ids,))
    check = next(c for c in found.checks if c.id == "batch-independence")
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert check.line
    assert "self.layer(" in source[check.line - 1]


@pytest.mark.parametrize("forbids", [True, False])
def test_what_true_means_in_a_mask_is_found_by_experiment(forbids: bool, x: Tensor) -> None:
    """A mask that was not even given is tried, in both meanings."""
    found = outcomes(live_properties(Masked(forbids), (x,)))
    assert found["mask-effect"] == found["padding-invariance"] == "passed"


def test_a_mask_that_hides_nothing_is_broken(x: Tensor) -> None:
    """A fill of 0 leaves masked keys their weight, whatever True means: at the line that fills."""
    found = live_properties(Masked(fill=0.0), (x,)).checks
    check = next(c for c in found if c.id == "mask-effect")
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert check.outcome == "failed"
    assert "masked_fill" in source[(check.line or 0) - 1]


class LinearAttention(nn.Module):
    """Sums over keys without a softmax; padded ones are zeroed before or after the feature map."""

    def __init__(self, early: bool) -> None:
        super().__init__()
        self.early, self.qkv = early, nn.Linear(D, 3 * D)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        k = k * mask[..., None] if self.early else k
        q, k = nn.functional.elu(q) + 1, nn.functional.elu(k) + 1
        k = k if self.early else k * mask[..., None]
        v = v * mask[..., None]
        return q @ (k.mT @ v) / (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True)


@pytest.mark.parametrize("early", [True, False])
def test_padding_in_the_sums_of_linear_attention_is_broken(early: bool, x: Tensor) -> None:
    """A padded key that is zeroed before the feature map counts as 1 in the denominator."""
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    assert ("padding-invariance" in broken(LinearAttention(early), x, mask)) == early


def test_padding_that_is_counted_is_broken(x: Tensor) -> None:
    """A mean over all positions counts those that are masked in the attention."""
    assert broken(Masked(mean=True), x) == {"mask-effect"}


def test_layers_of_torch_that_take_the_sequence_first_are_read_so(x: Tensor) -> None:
    """(S, B, D) is no mistake where it is the layer's own."""
    found = live_properties(nn.TransformerEncoderLayer(D, 3), (x,))
    assert "sequence-first" in {p.name for p in found.promises}
    assert outcomes(found)["batch-independence"] == "passed"


@pytest.mark.parametrize("batch_first", [True, False])
def test_right_layers_of_torch_break_nothing(batch_first: bool, x: Tensor) -> None:
    """Attention, recurrence and convolution of PyTorch itself are right."""
    wide = torch.randn(5, 8, D)
    attention = nn.MultiheadAttention(D, 3, batch_first=batch_first)
    assert not broken(attention, wide, wide, wide)
    assert not broken(nn.LSTM(D, D, batch_first=batch_first), x)


def test_batch_norm_is_no_mix_of_samples() -> None:
    """In eval mode it is a fixed scale, and it explains that train mode differs."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
    assert not broken(model, torch.randn(4, 3, 8, 8))


def test_a_batch_of_one_is_made_into_one_of_several(ids: Tensor) -> None:
    """A mix of samples is seen though the demo has a single one."""
    assert "batch-independence" in broken(LM("mixes"), ids[:1])


def test_zero_initialised_layers_hide_nothing(ids: Tensor) -> None:
    """A head that begins at zero would make every output equal; the copy's gets a little noise."""
    model = LM()
    nn.init.zeros_(model.head.weight)
    nn.init.zeros_(model.wpe.weight)
    assert not broken(model, ids)
    assert not model.head.weight.any()


def test_the_model_stays_as_it_is(ids: Tensor) -> None:
    """Mode, weights and the random state of the process are those of before."""
    model = LM().train()
    before = {n: p.clone() for n, p in model.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    live_properties(model, (ids,))
    assert torch.equal(torch.rand(3), expected)
    assert model.training
    assert all(torch.equal(before[n], p) for n, p in model.state_dict().items())


def test_a_call_that_raises_leaves_all_unchecked(ids: Tensor) -> None:
    """What cannot be tried is told with the reason, and is not broken."""
    found = live_properties(LM(), (ids.double(),))
    assert set(outcomes(found).values()) == {"error"}
    assert "raised" in found.checks[0].message


def test_every_property_is_explained() -> None:
    """What is shown as broken needs its meaning and its experiment."""
    assert set(PROPERTIES) <= set(PROPERTY_FINDINGS)


class Pair(nn.Module):
    """Two sequences of one length, each with a mask of its own; a wrong one takes the other's."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.own = nn.MultiheadAttention(D, 2, batch_first=True)
        self.cross = nn.MultiheadAttention(D, 2, batch_first=True)

    def forward(self, text: Tensor, image: Tensor, text_mask: Tensor, image_mask: Tensor) -> Tensor:
        x = text + self.own(text, text, text, key_padding_mask=~text_mask)[0]
        hidden = ~image_mask if self.right else torch.zeros_like(image_mask)
        return x + self.cross(x, image, image, key_padding_mask=hidden)[0]


def test_a_mask_hides_positions_of_the_input_that_it_is_named_after() -> None:
    """The other sequence is not hidden by it, and nothing is claimed of padding in both."""
    text, image = torch.randn(2, 3, 8, D).unbind()
    report = live_properties(Pair(True), (text, image, *torch.ones(2, 3, 8).bool().unbind()))
    found = {check.id: check.outcome for check in report.checks}
    assert found["mask-effect"] == "passed"
    assert found["padding-invariance"] == "error"


def test_a_name_that_only_begins_like_a_position_promises_no_order() -> None:
    """`post_norm` is no table of positions."""
    model = nn.ModuleDict({"post_norm": nn.LayerNorm(D), "q": nn.Linear(D, D)})
    model.forward = lambda x: model["post_norm"](x + model["q"](x.mean(1, keepdim=True)))
    report = live_properties(model, (torch.randn(2, 6, D),))
    assert "ordered" not in {promise.name for promise in report.promises}


class Padded(nn.Module):
    """An encoder and a decoder that hide the padding of their ids."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.pad = 0
        self.src_emb, self.tgt_emb = nn.Embedding(V, D), nn.Embedding(V, D)
        self.layer = nn.Transformer(D, 2, 1, 1, 24, 0.0, batch_first=True)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        hidden = src == self.pad
        causal = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        return self.layer(
            *(self.src_emb(src), self.tgt_emb(tgt)),
            tgt_mask=causal,
            src_key_padding_mask=hidden,
            tgt_key_padding_mask=tgt == self.pad,
            memory_key_padding_mask=hidden,
        )


def test_a_source_is_not_cut_with_its_target() -> None:
    """Only the target is padded, so only that is cut to its real length."""
    ids = torch.randint(1, V, (2, 6))
    assert outcomes(live_properties(Padded(), (ids, ids.flip(1))))["padding-invariance"] == "passed"


class Classifier(nn.Module):
    """A number for each sequence of ids, read off one position behind causal attention."""

    def __init__(self, pooled: int = -1, causal: bool = True, hides: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tok = nn.Embedding(V, D, padding_idx=None if causal else 0)
        self.pos = nn.Embedding(M, D)
        self.attention = nn.MultiheadAttention(D, 3, batch_first=True)
        self.head = nn.Linear(D, 1)
        self.pooled, self.causal, self.hides = pooled, causal, hides

    def forward(self, idx: Tensor) -> Tensor:
        x = self.tok(idx) + self.pos.weight[: idx.shape[1]]
        ahead = torch.ones(2 * idx.shape[1:]).triu(1).bool() if self.causal else None
        pads = None if self.causal else idx.eq(0) if self.hides else idx.ne(0)
        x = self.attention(x, x, x, attn_mask=ahead, key_padding_mask=pads)[0]
        return self.head(x[:, self.pooled]).squeeze(-1)


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (Classifier(pooled=0), ["positions-read"]),
        (Classifier(pooled=-1), []),
        (Classifier(pooled=0, causal=False), []),
        (Classifier(pooled=0, causal=False, hides=False), ["padding-invariance"]),
    ],
)
def test_one_number_for_each_sequence_has_properties_too(
    model: nn.Module, broken: list[str]
) -> None:
    """The position that is pooled has met others, and padding is what is hidden."""
    ids = torch.randint(1, V, (4, 9))
    ids[:, 7:] = 0
    report = live_properties(model, (ids,))
    assert [c.id for c in report.checks if c.outcome == "failed"] == broken


class Nodes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(D, D)

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.out(x) + x.mean(0)


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        h = self.out(x)
        return (h @ h.T).softmax(-1) @ h


@pytest.mark.parametrize(("model", "more"), [(Nodes(), [torch.tensor([0, 0, 1, 1])]), (Rows(), [])])
def test_rows_that_are_no_samples_may_mix(model: nn.Module, more: list[Tensor]) -> None:
    """Nodes of graphs, and the tokens of one sequence without a batch."""
    report = live_properties(model, (torch.randn(4, D), *more))
    assert not [c.id for c in report.checks if c.outcome == "failed"]


def test_lengths_say_which_axis_is_the_batch() -> None:
    """A packed LSTM takes (S, B, D), and one length for each of B."""

    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(D, D, bidirectional=True)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
            return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])[0]

    report = live_properties(Packed(), (torch.randn(7, 3, D), torch.tensor([7, 6, 5])))
    assert not [c.id for c in report.checks if c.outcome == "failed"]


class MaskedLogits(nn.Module):
    """Log-probabilities of places, those of padding at minus infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(V, 1)

    def forward(self, ids: Tensor) -> Tensor:
        scores: Tensor = self.table(ids).squeeze(-1)
        return scores.masked_fill(ids == 0, float("-inf")).log_softmax(-1)


def test_equal_infinities_are_no_difference() -> None:
    """Their difference is NaN, and neither samples nor equal calls are apart by it."""
    ids = torch.randint(1, V, (3, 8))
    ids[:2, 5:] = 0
    found = outcomes(live_properties(MaskedLogits(), (ids,)))
    assert "failed" not in found.values()
    assert found["batch-independence"] == found["deterministic-eval"] == "passed"


class Sums(nn.Module):
    """Attention without a mask, of sums up to each position or over all."""

    def __init__(self, causal: bool, whole: bool = False) -> None:
        super().__init__()
        self.causal, self.whole = causal, whole
        self.out = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.out(x)
        return made.cumsum(1) / (1 + x.exp().sum(1, keepdim=True) if self.whole else 1)


@pytest.mark.parametrize(("layers", "told"), [
    ([Sums(True, whole=True)], True),
    ([Sums(True)], False),
    ([Sums(True), Sums(False, whole=True)], False),
])  # fmt: skip
def test_a_model_that_is_built_to_be_causal_is_tested_as_such(
    layers: list[nn.Module], told: bool, x: Tensor
) -> None:
    """Its attribute says so, where all layers that have it agree."""
    assert ("causality" in broken(nn.Sequential(*layers), x)) == told
