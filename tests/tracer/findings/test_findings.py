"""What a trace gives away, and that it says nothing of correct modules."""

import math
from pathlib import Path

import pytest
import torch
from modules import (
    ATTENTION,
    FLAGSHIP,
    MASK,
    PLAIN,
    SIZES,
    X,
    line_of,
    local,
    module,
    randn,
    seen,
    traced,
)
from right_modules import RIGHT, contract
from torch import nn

from attnlab.catalogue.load import load
from attnlab.grading.pipeline import run_job
from attnlab.records import Contract
from attnlab.references.attention import MultiHeadSelfAttention
from attnlab.target.challenge_job import challenge_job

UNLESS = ", unless a weight or an input held one"
LAYER = "self.proj = nn.Linear(width, width)"


def rules(trace):
    return [f.rule for f in trace.findings]


def only(trace):
    (finding,) = trace.findings
    return finding


# ---------------------------------------------------------------- correct modules


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(
    "sizes", [SIZES, {"B": 4, "S": 4, "D": 4, "H": 2}, {"B": 1, "S": 2, "D": 4, "H": 2}]
)
def test_a_correct_module_raises_nothing(name, sizes):
    """In every style, at sizes that coincide as much as they can."""
    text, inputs = RIGHT[name]
    trace = traced(text, contract(inputs, sizes))
    assert trace.crash is None, trace.crash
    assert trace.findings == ()
    assert trace.ops


def shipped():
    """Each right file once: the challenges of a base share theirs."""
    seen = {}
    for challenge in load().challenges:
        for file in (challenge.solution, *challenge.alternatives):
            seen.setdefault(file, challenge)
    for file, challenge in seen.items():
        name = challenge.base or challenge.name
        yield pytest.param(challenge, file, id=f"{name}/{Path(file).stem}")


@pytest.mark.parametrize(("challenge", "file"), list(shipped()))
def test_solutions_and_alternatives_raise_nothing(challenge, file):
    """Nothing but notes: a NaN that a later mask replaces is worth one."""
    job = challenge_job(challenge, Path(file), stages=("trace",))
    report = run_job(job, local)
    assert report.outcome == "ok"
    assert report.trace.crash is None
    assert [f for f in report.trace.findings if f.severity != "note"] == []


@pytest.mark.parametrize("masked", [False, True])
def test_the_reference_raises_nothing(masked):
    """A1, with rows that may attend to nothing."""
    mask = torch.ones(2, 4, 4, dtype=torch.bool).triu(0) if masked else None
    net = MultiHeadSelfAttention(8, 2)
    trace = seen(lambda x: net(x, mask), randn(2, 4, 8), root=net)
    assert trace.findings == ()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: nn.MultiheadAttention(8, 2, batch_first=True).eval()(x, x, x),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        nn.TransformerEncoderLayer(8, 2, 16, norm_first=True),
        lambda x: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True).eval()(x, x),
        lambda x: nn.LSTM(8, 8, batch_first=True)(x)[0],
        nn.GroupNorm(2, 4),
    ],
)
def test_modules_of_pytorch_raise_nothing(call):
    """PyTorch's own attention, layers and norms."""
    trace = seen(call, randn(4, 4, 8))
    assert (trace.findings, trace.crash) == ((), None)


def test_a_legal_mask_of_minus_infinity_raises_nothing():
    """Scores of -inf are what a mask is for: written by any of the usual means."""

    def f(x, m):
        a = x.masked_fill(m, -math.inf)
        b = torch.where(m, -math.inf, x)
        c = x + torch.zeros(m.shape).masked_fill(m, -math.inf)
        d = x + (~m).float().log()
        e = x.clone()
        e[m] = -math.inf
        return sum(t.softmax(-1) for t in (a, b, c, d, e))

    assert seen(f, randn(2, 3, 3), torch.ones(2, 3, 3).triu(1).bool()).findings == ()


# ---------------------------------------------------------------- shapes


def test_the_flagship_is_found_at_its_cause():
    """The idle squeeze, the chunk that left an axis, the mask that grew the batch, in order."""
    trace = traced(FLAGSHIP, ATTENTION)
    chunk, fill = line_of(FLAGSHIP, "CHUNK"), line_of(FLAGSHIP, "FILL")
    assert [(f.rule, f.line, f.severity) for f in trace.findings] == [
        ("squeeze-did-nothing", chunk, "note"),
        ("leftover-axis", chunk, "warning"),
        ("silent-broadcast", fill, "warning"),
    ]
    squeeze, chunked, broadcast = (f.message for f in trace.findings)
    assert "squeeze left (B, 3, H, S, hd) as it was" in squeeze
    assert "each piece is (B, 1, H, S, hd)" in chunked
    assert broadcast.startswith(
        "silent broadcast: (B, 1, H, S, S') met (B, 1, S, S') and the result (B, B', H, S, S')"
    )
    assert "axis 1 grew from 1 to B" in broadcast


def test_the_flagship_is_found_without_a_mask_too():
    """Without a mask nothing broadcasts; the crash still leads back to the chunk."""
    bare = Contract(sizes=SIZES, init=ATTENTION.init, inputs=(X, MASK), example_mask="none")
    assert rules(traced(FLAGSHIP, bare)) == ["squeeze-did-nothing", "leftover-axis"]


def test_what_equal_sizes_hide_is_found_at_others():
    """At B = 1 and S = H the flagship has the right shape: other sizes give it away."""
    sizes = {"B": 1, "S": 4, "D": 8, "H": 4}
    hidden = Contract(sizes=sizes, init=ATTENTION.init, inputs=(X, MASK), output=("B", "S", "D"))
    trace = traced(FLAGSHIP, hidden)
    assert trace.crash is None
    assert rules(trace) == [
        *("squeeze-did-nothing", "leftover-axis", "silent-broadcast"),
        "size-coincidence",
    ]
    assert all("(at B=11, S=13, D=140, H=7, hd=20)" in f.message for f in trace.findings[1:])
    placed = [f for f in trace.findings if f.index is not None]
    assert [(trace.ops[f.index].op, trace.ops[f.index].line) for f in placed] == [
        (f.op, f.line) for f in placed
    ]


def test_an_equality_that_hides_a_finding_is_named():
    """One sequence, and the table of differences between sequences has the right shape."""
    single = Contract(sizes={"B": 1, "S": 4, "D": 8}, init={"width": "D"}, inputs=(X,))
    text = module("y = self.proj(x).mean(1)\nreturn y - x[:, 0, 0]",
                  "self.proj = nn.Linear(width, 1)")  # fmt: skip
    assert only(traced(text, single)).rule == "silent-broadcast"
    assert "; here B == 1 hides it (at B=11, S=13, D=120)" in only(traced(text, single)).message


def test_a_prediction_that_meets_its_target_one_axis_off():
    """(B, 1) - (B,) is a table of all differences, at any size."""
    trace = traced(module("y = self.proj(x).mean(1)\nreturn y - x[:, 0, 0]",
                          "self.proj = nn.Linear(width, 1)"))  # fmt: skip
    assert only(trace).rule == "silent-broadcast"
    assert "(B, 1) met (B) and the result (B, B')" in only(trace).message


def test_a_module_that_runs_only_because_sizes_coincide():
    """A linear layer over the wrong axis fits while S = D."""
    square = Contract(sizes={"B": 2, "S": 8, "D": 8}, init={"width": "D"}, inputs=(X,))
    trace = traced(module("return self.proj(x.mT)", LAYER), square)
    assert only(trace).rule == "size-coincidence"
    assert "elsewhere linear raises RuntimeError" in only(trace).message


def test_a_split_that_was_cleaned_up_is_not_blamed_for_a_later_crash():
    """Pieces of size 1 that were squeezed have nothing to do with what fails after them."""
    forward = (
        "a, b = self.proj(x).unflatten(-1, (2, -1)).chunk(2, 2)\na = a.squeeze(2)\nreturn a @ a"
    )
    trace = traced(module(forward, LAYER), Contract(
        sizes={"B": 2, "S": 4, "D": 12}, init={"width": "D"}, inputs=(X,)))  # fmt: skip
    assert trace.crash.op == "matmul"
    assert trace.findings == ()


# ---------------------------------------------------------------- NaN and infinity


def test_a_nan_comes_from_the_softmax_of_an_empty_row():
    """The operation, how many rows, and the first of them by its index and axes."""
    text = module(
        "s = (x @ x.mT).masked_fill(mask, float('-inf'))\nreturn s.softmax(-1) @ x",  # line 9, 10
        head="self, x, mask=None",
    )
    empty = Contract(sizes=SIZES, init={"width": "D"}, inputs=(X, MASK), example_mask="empty-rows")
    found = only(traced(text, empty))
    assert (found.rule, found.line, found.op, found.severity) == (
        *("nan-origin", 10, "softmax"),
        "error",
    )
    assert "over a row that is -inf everywhere is 0/0" in found.message
    assert "every key masked, the first is row [" in found.message
    assert found.message.endswith("] of (B, S, S')")


def test_only_the_first_nan_is_named():
    """What is NaN because its operand was is no finding of its own."""
    trace = seen(lambda x: ((x * 0) / 0).softmax(-1) + 1, randn(3))
    assert (only(trace).op, only(trace).severity) == ("div", "error")
    assert only(trace).message.startswith("first NaN: div made it from tensors that had none: ")


def test_a_nan_out_of_infinities_names_where_they_came_from():
    """inf - inf by hand: the operation and the line of the infinity."""

    def f(x):
        y = x.masked_fill(x < 9, -math.inf)
        return y - y

    trace = seen(f, randn(3))
    assert "sub took an infinity from masked_fill (line" in only(trace).message


def test_a_nan_in_a_weight_is_not_the_operations_fault():
    """A parameter that was never initialised is named."""
    text = module(
        "return F.linear(x, self.w)",
        "self.w = nn.Parameter(torch.full((3, width), float('nan')))",
    )
    message = only(traced(text)).message
    assert message == "first NaN: linear took it from w"


def test_without_a_second_look_both_possibilities_are_named():
    """A recorder alone cannot tell a NaN in a weight from one that the operation made."""
    weight = torch.full((3,), math.nan)
    message = only(seen(lambda x: x + weight, randn(3))).message
    assert message == "first NaN: add made it, or took it from a weight or an input"


def test_a_nan_that_is_replaced_is_only_a_note():
    """Where nothing of it is left at the end, it does no harm to the values."""
    found = only(seen(lambda x: ((x * 0) / 0).nan_to_num(0.0), randn(3)))
    assert (found.rule, found.severity) == ("nan-origin", "note")
    assert found.message.endswith("; nothing of it is left at the end of the trace")


def test_a_nan_before_a_crash_is_an_error():
    """A run that ended early replaced nothing."""
    found = only(seen(lambda x: (((x * 0) / 0).nan_to_num(0.0)) @ x, randn(3, 4)))
    assert found.severity == "error"


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: (x.half() + 60000) * 60000, "first infinity: mul made more than float16 holds"),
        (lambda x: (x * 1000).exp(), "first infinity: exp made more than float32 holds"),
        (lambda x: (x + 1) / (x - x), "first infinity: div divided by zero"),
        (
            lambda x: (x * 1e30) @ torch.ones(3).double().exp().float().mul(1e9),
            "first infinity: matmul made more than float32 holds",
        ),
        (lambda x: x.mul(1e39), f"first infinity: mul made more than float32 holds{UNLESS}"),
        (lambda x: (x - x).reciprocal() + 1, "first infinity: reciprocal divided by zero"),
    ],
)
def test_the_first_infinity_that_no_mask_put_there(f, message):
    """An overflow or a division by zero is named once, at its operation."""
    found = only(seen(f, torch.ones(3)))
    assert (found.rule, found.severity) == ("infinity-origin", "warning")
    assert found.message == message


def test_an_infinity_that_came_in_is_nobodys_overflow():
    """A view of an input that holds an infinity did not make it, nor did what follows."""
    x = torch.tensor([[1.0, math.inf]])
    assert seen(lambda x: x.view(-1) * 2, x).findings == ()


def test_findings_come_in_the_order_of_their_rows():
    """An overflow first, then the NaN that it became."""

    def f(x):
        y = (x * 1000).exp()
        return y - y

    trace = seen(f, torch.ones(3))
    assert rules(trace) == ["infinity-origin", "nan-origin"]
    assert [f.index for f in trace.findings] == [1, 2]


def test_nothing_is_found_in_nothing():
    """A module that computes nothing, and one that crashes at once."""
    assert seen(lambda x: x, randn(2)).findings == ()
    assert traced(module("return x @ x"), PLAIN).findings == ()


def test_a_softmax_over_one_entry_chooses_nothing():
    """Scores (B, S, 1) are to be weighed along S: along the last axis every weight is 1."""
    layer = "self.score = nn.Linear(width, 1)"
    told = traced(module("return (self.score(x).softmax(-1) * x).sum(1)", layer))
    assert "softmax-axis" in rules(told)
    right = traced(module("return (self.score(x).softmax(1) * x).sum(1)", layer))
    assert "softmax-axis" not in rules(right)
