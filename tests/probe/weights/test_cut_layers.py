"""Layers of the reference that two layers of the module share."""

from attnlab.probe.weights.cut_layers import with_halves
from attnlab.probe.weights.roles import pieces, slots

SIZES = {"B": 3, "S": 7, "D": 10, "F": 14}
GATED = {"w_in.weight": (28, 10), "w_in.bias": (28,), "w_out.weight": (10, 14)}


def expressions(theirs, mine):
    places = slots(mine, SIZES)
    return [[p.expression for p in cut] for cut in with_halves(pieces(theirs), places)]


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
    mine = {f"blocks.{i}.{n}.weight": (14, 10) for i in range(2) for n in ("gate", "up")}
    (found,) = expressions(theirs, mine)
    assert [e for e in found if "w_in.weight" in e] == [
        f"part(blocks.{i}.w_in.weight, {half}, 2)" for i in range(2) for half in range(2)
    ]
