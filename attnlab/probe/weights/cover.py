"""A map that uses every piece of the reference once, where there are too many to go through them
in the order of their cost: an exact cover, made cheaper by exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from attnlab.probe.weights.roles import Option

NODES = 4000  # of the search
MOST = 120  # ways to fill one parameter


class Way(NamedTuple):
    """What the parameters of one layer hold together."""

    cost: float
    pieces: frozenset[int]
    options: tuple[Option, ...]


def cover(layers: Sequence[Mapping[str, list[Option]]], count: int) -> dict[str, Option] | None:
    """What each parameter of each layer holds, so that all of so many pieces are used once; None
    where there is no way, or where none is found in time. A layer's parameters are chosen
    together: they hold what one layer of the reference has, where that is known."""
    ways = [_ways(layer) for layer in layers]
    chosen = _search(ways, count)
    if chosen is None:
        return None
    _exchange(chosen, ways)
    return {
        name: option
        for layer, way in zip(layers, chosen, strict=True)
        for name, option in zip(layer, way.options, strict=True)
    }


def _ways(layer: Mapping[str, list[Option]]) -> list[Way]:
    """The cheapest way for each set of pieces."""
    found: dict[frozenset[int], Way] = {}
    for options in product(*(each[:MOST] for each in layer.values())):
        pieces = frozenset().union(*(o.pieces for o in options))
        known = {o.layers for o in options if o.layers}
        if len(known) > 1 or len(pieces) < sum(len(o.pieces) for o in options):
            continue
        way = Way(sum(o.cost for o in options), pieces, options)
        if pieces not in found or way.cost < found[pieces].cost:
            found[pieces] = way
    return sorted(found.values(), key=lambda way: way.cost)


def _search(ways: list[list[Way]], count: int) -> list[Way] | None:
    """Fill first what can be filled in the fewest ways: a layer, or the place of a piece."""
    nodes = 0

    def extend(chosen: dict[int, Way], used: frozenset[int]) -> dict[int, Way] | None:
        nonlocal nodes
        nodes += 1
        if nodes > NODES:
            return None
        if len(chosen) == len(ways):
            return chosen if len(used) == count else None
        open_ways = [
            (at, way)
            for at, each in enumerate(ways)
            if at not in chosen
            for way in each
            if not way.pieces & used
        ]
        for at, way in _fewest(open_ways, range(count), used, len(ways), chosen):
            found = extend({**chosen, at: way}, used | way.pieces)
            if found is not None:
                return found
        return None

    found = extend({}, frozenset())
    return None if found is None else [found[at] for at in range(len(ways))]


def _fewest(
    open_ways: list[tuple[int, Way]],
    pieces: range,
    used: frozenset[int],
    many: int,
    chosen: Mapping[int, Way],
) -> list[tuple[int, Way]]:
    """The ways of the layer, or for the piece, that has the fewest; the cheapest first."""
    by_layer: dict[int, list[tuple[int, Way]]] = {at: [] for at in range(many) if at not in chosen}
    by_piece: dict[int, list[tuple[int, Way]]] = {p: [] for p in pieces if p not in used}
    for each in open_ways:
        by_layer[each[0]].append(each)
        for piece in each[1].pieces:
            by_piece[piece].append(each)
    columns = [*by_layer.values(), *by_piece.values()]
    fewest = min(columns, key=lambda column: sum(1 for _ in column))
    return sorted(fewest, key=lambda each: each[1].cost)


def _exchange(chosen: list[Way], ways: list[list[Way]]) -> None:
    """Let two layers take each other's pieces while that is cheaper."""
    cheapest = [{way.pieces: way for way in each} for each in ways]
    better = True
    while better:
        better = False
        for i, j in combinations(range(len(chosen)), 2):
            one = cheapest[i].get(chosen[j].pieces)
            other = cheapest[j].get(chosen[i].pieces)
            if one is None or other is None:
                continue
            if one.cost + other.cost < chosen[i].cost + chosen[j].cost - 1e-9:
                chosen[i], chosen[j], better = one, other, True
