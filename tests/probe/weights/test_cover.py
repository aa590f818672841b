"""Maps of many parameters that use every piece of the reference once."""

from itertools import permutations

import pytest

from attnlab.probe.weights.cover import cover
from attnlab.probe.weights.roles import Option


def option(cost, *pieces, layer=""):
    return Option(cost, frozenset(pieces), f"{layer}{pieces}", (layer,) if layer else ())


def test_all_pieces_are_used_at_the_least_cost():
    """Against every assignment of four pieces to four parameters, one by one."""
    costs = [[3.0, 1.0, 2.0, 9.0], [1.0, 2.0, 9.0, 4.0], [2.0, 2.0, 1.0, 1.0], [5.0, 1.0, 2.0, 3.0]]
    layers = [{f"p{i}": [option(c, j) for j, c in enumerate(row)]} for i, row in enumerate(costs)]
    found = cover(layers, 4)
    least = min(sum(costs[i][j] for i, j in enumerate(way)) for way in permutations(range(4)))
    assert found is not None
    assert frozenset().union(*(o.pieces for o in found.values())) == set(range(4))
    assert sum(o.cost for o in found.values()) == least


def test_three_layers_exchange_what_they_hold():
    """One holds queries, keys and values of an attention, two others share those of another."""
    layers = [
        {"q": [option(0.1, 3), option(0.2, 0)]},
        {"kv": [option(0.1, 4, 5), option(0.2, 1, 2)]},
        {"own": [option(0.1, 3, 4, 5), option(0.6, 0, 1, 2)]},
    ]
    found = cover(layers, 6)
    assert found is not None
    assert sum(o.cost for o in found.values()) == pytest.approx(0.5)


def test_a_layer_holds_what_one_layer_has():
    """Its weight and its bias come together, though apart they were cheaper."""
    layers = [
        {"a.weight": [option(0, 0, layer="x"), option(1, 2, layer="y")],
         "a.bias": [option(0, 3, layer="y"), option(1, 1, layer="x")]},
        {"b.weight": [option(0, 0, layer="x"), option(1, 2, layer="y")],
         "b.bias": [option(0, 1, layer="x"), option(2, 3, layer="y")]},
    ]  # fmt: skip
    found = cover(layers, 4)
    assert found is not None
    assert {o.layers for n, o in found.items() if n.startswith("a")} in ({("x",)}, {("y",)})


def test_there_may_be_no_way():
    """Two parameters that can hold nothing but the same piece; a piece that nothing holds."""
    assert cover([{"a": [option(0, 0)]}, {"b": [option(0, 0)]}], 1) is None
    assert cover([{"a": [option(0, 0)]}], 2) is None
