"""Layers of the reference that two layers of the module share."""

from attnlab.probe.weights.cut_layers import with_cuts
from attnlab.probe.weights.roles import pieces, slots

SIZES = {"B": 3, "S": 7, "D": 10, "F": 14}
GATED = {"w_in.weight": (28, 10), "w_in.bias": (28,), "w_out.weight": (10, 14)}


def expressions(theirs, mine):
    places = slots(mine, SIZES)
    return [[p.expression for p in cut] for cut in with_cuts(pieces(theirs), places, SIZES)]


def test_the_gate_and_what_it_opens_are_halves_of_one_layer():
    """With its bias; what fits as it is is not cut."""
    mine = {"gate.weight": (14, 10), "gate.bias": (14,), "up.weight": (14, 10), "up.bias": (14,),
            "down.weight": (10, 14)}  # fmt: skip
    assert expressions(GATED, mine) == [
        ["part(w_in.weight, 0, 2)", "part(w_in.weight, 1, 2)",
         "part(w_in.bias, 0, 2)", "part(w_in.bias, 1, 2)", "w_out.weight"]
    ]  # fmt: skip


def test_nothing_is_cut_where_all_fit():
    """As many parameters of each shape as there are in the reference."""
    assert expressions(GATED, GATED) == []


def test_layers_of_a_list_are_cut_together():
    """Those with the same name but for their number."""
    theirs = {f"blocks.{i}.{n}": s for i in range(2) for n, s in GATED.items()}
    names = "gate", "up", "down"
    mine = {f"blocks.{i}.{n}.weight": (14, 10) for i in range(2) for n in names}
    (found,) = expressions(theirs, mine)
    assert [e for e in found if "w_in.weight" in e] == [
        f"part(blocks.{i}.w_in.weight, {half}, 2)" for i in range(2) for half in range(2)
    ]


SCAN = {"x_proj.weight": (19, 14), "dt.weight": (14, 3), "enter.weight": (28, 10)}


def test_unequal_parts_lie_in_every_order():
    """A scan's projection holds steps, what is written and what is read; another layer is cut, too,
    first at the same time."""
    mine = {"down.weight": (3, 14), "write.weight": (8, 14), "read.weight": (8, 14),
            "up.weight": (14, 3), "gate.weight": (14, 10), "into.weight": (14, 10)}  # fmt: skip
    first, *others = expressions(SCAN, mine)
    assert first == [
        *(f"rows(x_proj.weight, {a}, {b})" for a, b in ((0, 3), (3, 11), (11, 19))),
        "dt.weight", "part(enter.weight, 0, 2)", "part(enter.weight, 1, 2)",
    ]  # fmt: skip
    assert any("rows(x_proj.weight, 16, 19)" in each for each in others)


def test_a_matrix_holds_a_scale_for_each_block():
    """(N, D), of which each block of the module has one row, also as a column."""
    mine = {f"blocks.{i}.scale": (10, 1) for i in range(3)}
    assert expressions({"scales": (3, 10)}, mine) == [[f"part(scales, {i}, 3)" for i in range(3)]]


def test_every_head_has_parts_of_its_own():
    """Some rows of each head are turned by the position, the others are not."""
    theirs = {"wq.weight": (3 * (4 + 6), 10)}
    places = slots({"q_plain": (3, 10, 6), "q_turned": (3, 10, 4)}, SIZES | {"H": 3})
    cuts = with_cuts(pieces(theirs), places, SIZES | {"H": 3})
    assert [p.expression for p in cuts[0]] == [
        "rows(wq.weight, 0, 4, H)",
        "rows(wq.weight, 4, 10, H)",
    ]
