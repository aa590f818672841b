"""Which lines a trace shows: filters, calls of submodules, layers that are alike."""

from dataclasses import replace

import pytest
from sample_records import op

from attnlab.records import Finding, Trace
from attnlab.render.fold import Repeat, Step, View, arrange_rows, inside, levels


def layer(at, number, *, names=("norm", "attn.q", "attn", ""), line=1, between=0):
    """The rows of `h.number`, and `between` rows of the model itself after them."""
    rows = [
        op(at + i, line + i, f"op{i}", "x", "B S D", "2 5 12", module=f"h.{number}.{n}".rstrip("."))
        for i, n in enumerate(names)
    ]
    return rows + [op(at + len(rows), 99, "add", "x", "B S D", "2 5 12")] * between


def model(count, **more):
    rows = [op(0, 1, "embedding", "e", "B S D", "2 5 12", module="wte")]
    for number in range(count):
        rows += layer(len(rows), number, **more)
    rows.append(op(0, 2, "layer_norm", "e", "B S D", "2 5 12", module="ln"))
    return Trace(ops=tuple(replace(row, index=i) for i, row in enumerate(rows)))


def said(shown):
    """`(h.0-h.2 x3: op0 op1)` for a repeat; operations and calls by their names."""
    words = []
    for item in shown:
        if isinstance(item, Repeat):
            words.append(f"({item.first}-{item.last} x{item.times}: {said(item.steps)})")
        else:
            words.append(item.call or item.op.op)
    return " ".join(words)


def test_layers_alike_are_shown_once():
    """Twelve blocks are one block and a count."""
    shown = said(arrange_rows(model(12), View()))
    assert shown == "embedding (h.0-h.11 x12: op0 op1 op2 op3) layer_norm"


def loop(rounds, body, odd=-1, parents=(0,)):
    """`body` lines, run `rounds` times between two others; the round `odd` has another shape."""
    rows = [op(0, 1, "zeros", "z", "B D", "2 8")]
    for turn in range(rounds):
        rows += [
            replace(
                op(0, 5 + i, f"op{i}", "x", "B D", "2 9" if turn == odd else "2 8"), parents=parents
            )
            for i in range(body)
        ]
    rows.append(op(0, 9, "stack", "s", "B S D", "2 6 8"))
    return Trace(ops=tuple(replace(row, index=i) for i, row in enumerate(rows)))


def test_the_rounds_of_a_loop_are_shown_once():
    """Six hundred assignments of a Python loop are one, and a count."""
    assert said(arrange_rows(loop(600, 1), View())) == "zeros (- x600: op0) stack"
    _, repeat, _ = arrange_rows(loop(20, 3), View())
    assert (repeat.times, repeat.lines, said(repeat.steps)) == (20, (5, 7), "op0 op1 op2")


def test_a_round_that_differs_is_shown():
    """A loop of few rounds is no list worth folding, and one round of another shape ends it."""
    assert len(arrange_rows(loop(4, 3), View())) == 14
    shown = said(arrange_rows(loop(30, 1, odd=20), View()))
    assert shown.startswith("zeros (- x20: op0) op0 op0 ")


def test_tensors_made_of_data_are_alike_whatever_their_sizes():
    """A list of sentences is one line that says that they differ."""
    _, repeat, _ = arrange_rows(loop(30, 1, odd=20, parents=()), View())
    assert (repeat.times, repeat.sizes_differ) == (30, True)
    _, repeat, _ = arrange_rows(loop(30, 1, parents=()), View())
    assert not repeat.sizes_differ


def test_every_row_is_shown_on_demand():
    """`--all-rows` folds nothing."""
    shown = arrange_rows(model(12), View(fold=False))
    assert [step.op.index for step in shown] == list(range(50))


def test_rows_between_layers_belong_to_the_layer_before():
    """`x = x + layer(x)` in the model's own loop is part of what repeats."""
    shown = said(arrange_rows(model(4, between=1), View()))
    assert shown == "embedding (h.0-h.3 x4: op0 op1 op2 op3 add) layer_norm"


@pytest.mark.parametrize(
    "change",
    [{"shape": (2, 5, 24)}, {"line": 77}, {"op": "other"}, {"nan": True}, {"dtype": "float16"}],
)
def test_a_layer_that_differs_ends_the_fold(change):
    """Other shapes, lines, operations, or a NaN: what is special is seen."""
    ops = list(model(6).ops)
    ops[13] = replace(ops[13], **change)  # the first row of h.3
    shown = said(arrange_rows(Trace(ops=tuple(ops)), View()))
    assert "(h.0-h.2 x3:" in shown
    assert "(h.4-h.5 x2:" in shown
    assert shown.count("op1") == 3


def test_a_finding_in_one_layer_is_not_folded_away():
    """Only what the first of them has may be the finding of all, said once."""
    trace = model(4)
    finding = Finding(rule="r", file="f", line=1, op="o", severity="warning", message="m", index=6)
    shown = said(arrange_rows(replace(trace, findings=(finding,)), View()))
    assert shown.startswith("embedding op0 op1 op2 op3 (h.1-h.3 x3:")


def test_axes_may_be_called_otherwise():
    """The width of the first layer is the embedding's, that of the next the first layer's."""
    ops = tuple(replace(o, axes=("B", "S", "wte")) if o.index < 5 else o for o in model(3).ops)
    assert "(h.0-h.2 x3:" in said(arrange_rows(Trace(ops=ops), View()))


def test_layers_inside_layers_are_folded_too():
    """A mixture of experts in each of several blocks."""
    names = [f"e.{n}.{part}" for n in range(3) for part in ("up", "down")]
    trace = model(3, names=names)
    ops = [
        replace(o, op=o.module[-2:], line=5) if o.module.startswith("h") else o for o in trace.ops
    ]
    shown = said(arrange_rows(Trace(ops=tuple(ops)), View()))
    assert shown == "embedding (h.0-h.2 x3: (h.0.e.0-h.0.e.2 x3: up wn)) layer_norm"


def test_folding_must_save_lines():
    """Two layers of one row are clearer than one with a heading."""
    assert said(arrange_rows(model(2, names=("q",)), View())) == "embedding op0 op0 layer_norm"


# ---------------------------------------------------------------- depth


@pytest.mark.parametrize(
    ("depth", "shown"),
    [
        (0, "wte h.0 h.1 ln"),
        (1, "embedding h.0.norm h.0.attn op3 h.1.norm h.1.attn op3 layer_norm"),
        (9, "embedding op0 op1 op2 op3 op0 op1 op2 op3 layer_norm"),
    ],
)
def test_depth_makes_one_line_of_a_call(depth, shown):
    """A number is no level of its own: `h.0` is one step below the model."""
    assert said(arrange_rows(model(2), View(depth=depth, fold=False))) == shown


def test_calls_are_folded_as_well():
    """Depth and folding go together."""
    assert said(arrange_rows(model(6), View(depth=0))) == "wte (h.0-h.5 x6: h.0) ln"


def test_a_call_tells_what_came_in_and_what_went_out():
    """Its first operand from elsewhere, and its last row."""
    trace = model(1)
    ops = [replace(o, parents=(o.index - 1,)) for o in trace.ops]
    ops[4] = replace(ops[4], axes=("B", "S", "4*D"))
    step = arrange_rows(Trace(ops=tuple(ops)), View(depth=0, inputs=(("B", "S"),)))
    assert [s.took for s in step] == [("B", "S"), ("B", "S", "D"), ("B", "S", "4*D")]
    assert isinstance(step[1], Step)
    assert (step[1].rows, step[1].op.axes) == (4, ("B", "S", "4*D"))


def test_a_call_with_a_finding_inside_is_flagged():
    """Otherwise depth would hide it; a note flags nothing."""
    warned = Finding(rule="r", file="f", line=1, op="o", severity="warning", message="m", index=2)
    for finding, flagged in ((warned, True), (replace(warned, severity="note"), False)):
        steps = arrange_rows(replace(model(1), findings=(finding,)), View(depth=0))
        assert [s.flagged for s in steps] == [False, flagged, False]


def test_a_call_costs_what_its_rows_cost():
    """Together; nothing where nothing was measured."""
    trace = model(1)
    ops = [replace(o, seconds=0.5, bytes=8) if o.module == "h.0.attn" else o for o in trace.ops]
    steps = arrange_rows(Trace(ops=tuple(ops)), View(depth=0))
    assert [(s.seconds, s.bytes) for s in steps] == [(None, None), (0.5, 8), (None, None)]
    ops = [replace(o, seconds=0.5, bytes=8) for o in trace.ops]
    assert arrange_rows(Trace(ops=tuple(ops)), View(depth=0))[1].seconds == 2.0


@pytest.mark.parametrize(
    ("path", "parts"),
    [("", []), ("h", ["h"]), ("h.0", ["h.0"]), ("h.0.attn.q", ["h.0", "attn", "q"])],
)
def test_levels(path, parts):
    """Names are levels, numbers belong to the name before."""
    assert levels(path) == parts


# ---------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("path", "pattern", "meant"),
    [
        ("h.0.attn", "h.0.attn", True),
        ("h.0.attn.q", "h.0.attn", True),
        ("h.0.attn.q", "h.*.attn", True),
        ("h.0.mlp", "h.*.attn", False),
        ("", "h.*", False),
        ("h.10", "h.1", False),
    ],
)
def test_a_module_pattern_means_what_is_below_it(path, pattern, meant):
    """A submodule is a part of the ones around it."""
    assert inside(path, pattern) is meant


def test_filters_go_together():
    """Operation and submodule."""
    view = View(op="op[01]", module="h.1", fold=False)
    assert [s.op.module for s in arrange_rows(model(3), view)] == ["h.1.norm", "h.1.attn.q"]


def test_only_rows_with_findings():
    """Notes count: they are findings, too."""
    note = Finding(rule="r", file="f", line=1, op="o", severity="note", message="m", index=6)
    trace = replace(model(3), findings=(note,))
    assert [s.op.index for s in arrange_rows(trace, View(only_findings=True))] == [6]
