"""One choice for all layers of a model, where module and reference have as many that are alike."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from attnlab.probe.weights.layouts import MEMBER
from attnlab.probe.weights.roles import Option, Piece


class TiedLayers(NamedTuple):
    """Choices for the slots of the first layer and for those outside layers; what they imply for
    the other layers is in `others`, by slot and expression."""

    choices: dict[str, list[Option]]
    others: dict[tuple[str, str], dict[str, str]]

    def expand(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """The expressions of all slots."""
        found = dict(chosen)
        for name, expression in chosen.items():
            found |= self.others.get((name, expression), {})
        return found


def tie_layers(choices: dict[str, list[Option]], parts: tuple[Piece, ...]) -> TiedLayers:
    """One choice for all layers, where module and reference have as many: what a weight of layer 0
    holds of the reference's layer 0, that of layer 1 holds of its layer 1."""
    theirs = _members(p.parameter for p in parts)
    counts = {tuple(members) for members in theirs.values()} - {("0",)}
    layers = counts.pop() if len(counts) == 1 else ()
    mine = [members for members in _members(choices).values() if tuple(members) == layers]
    if len(layers) < 2 or not mine:
        return TiedLayers(choices, {})
    of_layer = {name: members for members in theirs.values() for name in members.values()}
    tied, others = dict(choices), {}
    for members in mine:
        first, *rest = (tied.pop(members[layer]) for layer in layers)
        name = members[layers[0]]
        tied[name] = []
        for option in first:
            alike = [
                _in_layer(option, layer, layers, of_layer, parts, found)
                for layer, found in zip(layers[1:], rest, strict=True)
            ]
            if None in alike:
                continue
            found = [o for o in alike if o is not None]
            used = option.pieces.union(*(o.pieces for o in found))
            cost = option.cost + sum(o.cost for o in found)
            tied[name].append(option._replace(cost=cost, pieces=used))
            others[name, option.expression] = {
                members[layer]: o.expression for layer, o in zip(layers[1:], found, strict=True)
            }
        tied[name].sort(key=lambda o: o.cost)
    return TiedLayers(tied, others)


def _in_layer(
    option: Option,
    layer: str,
    layers: tuple[str, ...],
    of_layer: Mapping[str, Mapping[str, str]],
    parts: tuple[Piece, ...],
    options_there: list[Option],
) -> Option | None:
    """The option of a slot of this layer that is like one of the first layer."""
    expression, many = option.expression, len(layers)
    for parameter, part in {parts[order][1::-1] for order in option.pieces}:
        members = of_layer[parameter]
        if part == f"part({parameter}, 0, {many})":  # a matrix with a row for each layer
            there = f"part({parameter}, {layers.index(layer)}, {many})"
            expression = expression.replace(part, there)
            continue
        if members.get(layers[0]) != parameter or layer not in members:
            return None  # it is outside layers, or in another one
        name = rf"(?<![\w.]){re.escape(parameter)}(?![\w.])"
        expression = re.sub(name, members[layer], expression)
    return next((o for o in options_there if o.expression == expression), None)


def _members(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Names by their first number, under the name without it: `blocks.#.norm.weight`."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        number = re.search(r"(?<![^._])\d+(?![^._])", name)
        stem, at = (name, "0")
        if number:
            stem = f"{name[: number.start()]}{MEMBER}{name[number.end() :]}"
            at = number.group()
        found.setdefault(stem, {})[at] = name
    return found
