"""Parameters of the reference that two parameters of the module may share, though no name says so:
the gate and what it opens, in one layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from attnlab.probe.weights.roles import Piece, Slot, layer_name

MOST = 2  # kinds of layers that are cut, each alone


def with_halves(parts: tuple[Piece, ...], places: Sequence[Slot]) -> Iterator[tuple[Piece, ...]]:
    """The pieces, where those of one kind of layer are cut in two: of a shape that more pieces have
    than parameters of the module, or none of these. A kind is the same name but for numbers."""
    there = Counter(_signature(place.shape) for place in places)
    given = Counter(_signature(piece.shape) for piece in parts)
    kinds: dict[str, list[Piece]] = {}
    for piece in parts:
        whole = piece.shape and piece.expression == piece.parameter and not piece.parsed.letters
        if not whole or len(piece.shape) < 2 or piece.shape[0] % 2:
            continue
        signature, half = _signature(piece.shape), (piece.shape[0] // 2, *piece.shape[1:])
        if given[signature] > there[signature] and there[_signature(half)] > 1:
            kinds.setdefault(re.sub(r"\d+", "#", _layer(piece)), []).append(piece)
    extra = {
        name: given[_signature(k[0].shape)] - there[_signature(k[0].shape)]
        for name, k in kinds.items()
    }
    for name in sorted(kinds, key=lambda name: abs(len(kinds[name]) - extra[name]))[:MOST]:
        kind = kinds[name]
        layers = {_layer(piece) for piece in kind}
        found: list[Piece] = []
        for piece in parts:
            inside = _layer(piece) in layers and piece.shape
            for each in _halves(piece) if inside else (piece,):
                found.append(each._replace(order=len(found)))
        yield tuple(found)


def _halves(piece: Piece) -> Iterator[Piece]:
    shape = (piece.shape[0] // 2, *piece.shape[1:])
    for half in (0, 1):
        yield piece._replace(expression=f"part({piece.expression}, {half}, 2)", shape=shape)


def _layer(piece: Piece) -> str:
    return layer_name(piece.parameter) or piece.parameter


def _signature(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(n for n in shape if n != 1))
