"""A map that uses every piece of the reference once, where there are too many to go through them
in the order of their cost: an exact cover, made cheaper by exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from attnlab.probe.weights.roles import Option

NODES = 4000  # of the search
MOST = 120  # ways to fill one parameter
TOGETHER = 4  # layers that share what is left


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
    """Let a layer take what it rather holds, and those that held it share what is left, while that
    is cheaper."""
    better = True
    while better:
        better = False
        for at, each in enumerate(ways):
            for way in each:
                if way.cost >= chosen[at].cost:
                    break
                losers = [j for j, c in enumerate(chosen) if j != at and c.pieces & way.pieces]
                if len(losers) > TOGETHER:
                    continue
                left = chosen[at].pieces.union(*(chosen[j].pieces for j in losers)) - way.pieces
                before = chosen[at].cost + sum(chosen[j].cost for j in losers)
                found = _share([ways[j] for j in losers], left, before - way.cost - 1e-9)
                if found is not None:
                    chosen[at], better = way, True
                    for j, other in zip(losers, found, strict=True):
                        chosen[j] = other
                    break


def _share(ways: list[list[Way]], pieces: frozenset[int], below: float) -> list[Way] | None:
    """The cheapest ways for some layers to hold all of these pieces, if they cost less than that;
    else None."""
    if not ways:
        return None if pieces or below <= 0 else []
    best: list[Way] | None = None
    for way in ways[0]:
        if way.cost >= below:
            break
        if way.pieces <= pieces:
            rest = _share(ways[1:], pieces - way.pieces, below - way.cost)
            if rest is not None:
                best = [way, *rest]
                below = sum(each.cost for each in best)
    return best
