"""Map the reference's weights to a module that lays its weights out in another way.

A map says of every parameter of the module how it is made of the reference's, by expressions such
as `cat(q.weight, k.weight, v.weight)` or `heads.#.key.weight = part(k.weight, #, H)`. They are
evaluated over the *indices* of the reference's elements, not over values: the same map then moves
weights one way and gradients the other, and shows whether an element is lost or used twice.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from attnlab.catalogue.weight_expressions import Misfit, Term, parse

Indices = dict[str, Tensor]  # of each parameter's elements, in all of the reference's, flattened
Shapes = Mapping[str, tuple[int, ...]]
MEMBER = "#"  # in a key and its expression: the number of a head that has parameters of its own


# ---------------------------------------------------------------- expressions


def _part(whole: Tensor, index: int, count: int, groups: int = 1) -> Tensor:
    """Block `index` of `count` equal ones along the first axis, or of those of each group."""
    if not 0 <= index < count or whole.shape[0] % (count * groups):
        raise Misfit(f"a tensor {tuple(whole.shape)} has no part {index} of {count}")
    return torch.unflatten(whole, 0, (groups, count, -1))[:, index].flatten(0, 1)


def _rows(whole: Tensor, start: int, stop: int, groups: int = 1) -> Tensor:
    """Rows `start` to `stop` where a tensor, or each of its groups, is cut into unequal parts."""
    if whole.shape[0] % groups or not 0 <= start < stop <= whole.shape[0] // groups:
        raise Misfit(f"a tensor {tuple(whole.shape)} has no rows {start} to {stop}")
    return torch.unflatten(whole, 0, (groups, -1))[:, start:stop].flatten(0, 1)


def _split(whole: Tensor, axis: int, count: int) -> Tensor:
    """An axis cut into `count` blocks: (H*hd, D) to (H, hd, D)."""
    return torch.unflatten(whole, axis, (count, -1))


def _interleave(count: int, *parts: Tensor) -> Tensor:
    """Block 0 of every part, then block 1 of every part: what some keep head by head."""
    return torch.stack([_split(p, 0, count) for p in parts], dim=1).flatten(0, 2)


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "cat": lambda *parts: torch.cat(parts),
    "stack": lambda *parts: torch.stack(parts),
    "part": _part,
    "rows": _rows,
    "flip": lambda whole, axis: torch.flip(whole, (axis,)),
    "t": lambda matrix: matrix.transpose(-2, -1),
    "split": _split,
    "permute": Tensor.permute,
    "unsqueeze": torch.unsqueeze,
    "squeeze": torch.squeeze,
    "flatten": torch.flatten,
    "interleave": _interleave,
}


def evaluate(term: Term, known: Mapping[str, Tensor | int]) -> Any:
    """The value of a parsed expression; `known` has parameters, sizes and perhaps "#"."""
    if isinstance(term, int):
        return term
    if isinstance(term, str):
        if term not in known:
            raise Misfit(f"the reference has no parameter {term}")
        return known[term]
    function, terms = term
    given = [evaluate(t, known) for t in terms]
    try:
        return FUNCTIONS[function](*given)
    except (RuntimeError, TypeError, IndexError, ValueError, AttributeError) as error:
        shapes = ", ".join(str(tuple(g.shape) if isinstance(g, Tensor) else g) for g in given)
        reason = str(error).partition("\n")[0]
        raise Misfit(f"{function} does not take {shapes}: {reason}") from None


# ---------------------------------------------------------------- maps


def element_indices(shapes: Shapes) -> Indices:
    """The index of every element: 0, 1, 2 ... through all parameters in their order."""
    made, start = {}, 0
    for name, shape in shapes.items():
        count = torch.Size(shape).numel()
        made[name] = torch.arange(start, start + count).reshape(shape)
        start += count
    return made


def weight_indices(
    entries: Mapping[str, str], mine: Shapes, theirs: Shapes, sizes: Mapping[str, int]
) -> Indices:
    """Of every parameter of mine, which elements of theirs it takes; raises `Misfit`."""
    found = evaluate_map(entries, mine, {**sizes, **element_indices(theirs)})
    _must_be_one_to_one(found, theirs)
    return found


def evaluate_map(
    entries: Mapping[str, str], mine: Shapes, known: Mapping[str, Tensor | int]
) -> Indices:
    """As `weight_indices`, for entries that are known to use every element once."""
    found = {}
    for name, shape in mine.items():
        text, member = _entry(entries, name)
        at = evaluate(parse(text), known if member is None else {**known, MEMBER: member})
        if not isinstance(at, Tensor) or tuple(at.shape) != tuple(shape):
            made = tuple(at.shape) if isinstance(at, Tensor) else at
            raise Misfit(f"parameter {name} has shape {tuple(shape)}, {text} gives {made}")
        found[name] = at
    return found


def _entry(entries: Mapping[str, str], name: str) -> tuple[str, int | None]:
    """The expression for a parameter, and which member of a family it is."""
    if name in entries:
        return entries[name], None
    for key, text in entries.items():
        if MEMBER in key:
            pattern = re.escape(key).replace(re.escape(MEMBER), r"(\d+)")
            if match := re.fullmatch(pattern, name):
                return text, int(match[1])
    raise Misfit(f"the map says nothing of the parameter {name}")


def _must_be_one_to_one(found: Indices, theirs: Shapes) -> None:
    """An element that is left out would not be tested; one that is used twice is not tied."""
    total = sum(torch.Size(s).numel() for s in theirs.values())
    used = torch.zeros(total, dtype=torch.long)
    for at in found.values():
        used.index_add_(0, at.flatten(), torch.ones_like(at.flatten()))
    for name, at in element_indices(theirs).items():
        times = used[at.flatten()]
        if times.numel() and times.min() < 1:
            raise Misfit(f"the module has no place for all of the reference's {name}")
        if times.numel() and times.max() > 1:
            raise Misfit(f"the reference's {name} is used more than once")


def map_weights(values: Mapping[str, Tensor], at: Indices) -> Indices:
    """The reference's weights as the module's parameters."""
    flat = torch.cat([v.flatten() for v in values.values()]) if values else torch.zeros(0)
    return {name: flat[place] for name, place in at.items()}


def invert_weights(
    parameters: Mapping[str, Tensor], at: Indices, theirs: Shapes
) -> dict[str, Tensor]:
    """The reference's weights that `map_weights` makes these parameters of."""
    places = element_indices(theirs)
    flat = torch.zeros(sum(p.numel() for p in places.values()), dtype=torch.float64)
    for name, place in at.items():
        flat[place.flatten()] = parameters[name].double().flatten()
    return {name: flat[place] for name, place in places.items()}


def map_gradients(gradients: Mapping[str, Tensor], at: Indices, theirs: Shapes) -> Indices:
    """The reference's gradients by the module's parameters; those that are missing are left out."""
    zeros = {n: torch.zeros(s, dtype=torch.float64) for n, s in theirs.items()}
    reached = {n: torch.full(s, n in gradients) for n, s in theirs.items()}
    live = map_weights(reached, at)
    moved = map_weights({n: gradients.get(n, zero) for n, zero in zeros.items()}, at)
    return {name: g for name, g in moved.items() if live[name].any().item()}
