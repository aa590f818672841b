"""What the arguments of a loss function are: probabilities, rows of the output, shifted ids."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.tracer.nested_tensors import tensors_in

MOST = 4096  # rows that are compared
SURE = 0.97  # of the targets must agree
FEWEST = 8  # targets
APART = 0.2  # how much less another distance must agree
SHIFTS = (1, 0, 2, -1)


class ModuleCall(NamedTuple):
    """One outermost call of a module."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


class Alignment(NamedTuple):
    """How targets stand against the ids that the model was given."""

    shift: int | None = None
    agreement: float = 0.0
    mixed: bool = False
    padding: int | None = None
    padded: float = 0.0


def rows_of(scores: Tensor) -> Tensor:
    """Scores as (N, C): of (B, C, ...) the class axis goes last."""
    return scores.movedim(1, -1).reshape(-1, scores.shape[1]) if scores.dim() > 2 else scores


def sum_to_one(scores: Tensor) -> bool:
    rows = rows_of(scores)
    near = (rows.sum(-1) - 1).abs() < 1e-3
    return bool(rows.shape[-1] > 1 and (rows >= 0).all() and near.all())


def are_log_probabilities(scores: Tensor) -> bool:
    rows = rows_of(scores)
    return bool(rows.shape[-1] > 1 and (rows.logsumexp(-1).abs() < 1e-3).all())


def align(scores: Tensor, target: Tensor, ignored: int, call: ModuleCall | None) -> Alignment:
    """Find each row of the scores in the model's output, and its target among the ids there."""
    if call is None or scores.dim() < 2 or target.dtype != torch.int64:
        return Alignment()
    rows, targets = rows_of(scores)[:MOST], target.reshape(-1)[:MOST]
    if len(rows) != len(targets):
        return Alignment()
    for output in tensors_in(call.output):
        if output.dim() != 3 or not output.is_floating_point():
            continue
        places = _places(rows, output)
        if places is None:
            if _same_numbers(scores, output):
                return Alignment(mixed=True)
            continue
        return _shifted(places, targets, ignored, output, call)
    return Alignment()


def _places(rows: Tensor, output: Tensor) -> Tensor | None:
    """Where each row stands in the output: an index into its first two axes; None if not there."""
    if output.shape[-1] != rows.shape[-1]:
        return None
    known = {
        tuple(row): number
        for number, row in enumerate(output.reshape(-1, output.shape[-1])[:MOST, :4].tolist())
    }
    found = [known.get(tuple(row), -1) for row in rows[:, :4].tolist()]
    missing = sum(place < 0 for place in found)
    return None if missing > 0.1 * len(found) else torch.tensor(found)


def _same_numbers(scores: Tensor, output: Tensor) -> bool:
    """Whether the scores are the output's numbers in another order."""
    if scores.numel() != output.numel() or scores.numel() > 1 << 22:
        return False
    return torch.equal(scores.flatten().sort().values, output.flatten().sort().values)


def _shifted(
    places: Tensor, targets: Tensor, ignored: int, output: Tensor, call: ModuleCall
) -> Alignment:
    best = Alignment()
    for ids in tensors_in((call.args, call.kwargs)):
        if ids.dtype != torch.int64 or ids.shape != output.shape[:2]:
            continue
        for axis in (1, 0):
            found = _at_axis(places, targets, ignored, ids, axis)
            if found.agreement > best.agreement or found.padding is not None:
                best = found
    return best


def _at_axis(places: Tensor, targets: Tensor, ignored: int, ids: Tensor, axis: int) -> Alignment:
    first, second = places // ids.shape[1], places % ids.shape[1]
    along, length = (second, ids.shape[1]) if axis else (first, ids.shape[0])
    counted = (targets != ignored) & (places >= 0)
    padding = _padding_id(ids if axis else ids.T)
    shares: dict[int, float] = {}
    for shift in SHIFTS:
        at = along + shift
        inside = counted & (at >= 0) & (at < length)
        if padding is not None:
            inside = inside & (targets != padding)
        if int(inside.sum()) < FEWEST:
            continue
        moved = at.clamp(0, length - 1)
        there = ids[first, moved] if axis else ids[moved, second]
        shares[shift] = float((there == targets)[inside].double().mean())
    padded = 0.0
    if padding is not None and bool(counted.any()):
        padded = float((targets == padding)[counted].double().mean())
    best = max(shares, key=lambda shift: shares[shift], default=0)
    rest = max((share for shift, share in shares.items() if shift != best), default=0.0)
    if not shares or shares[best] < SURE or shares[best] - rest < APART:
        return Alignment(padding=padding if padded else None, padded=padded)
    return Alignment(best, shares[best], padding=padding if padded else None, padded=padded)


def _padding_id(ids: Tensor) -> int | None:
    """The id that fills up rows of different lengths at their ends, and stands nowhere else."""
    if ids.shape[0] < 2 or ids.shape[1] < 4:
        return None
    last = ids[:, -1]
    for candidate in sorted(set(last.tolist())):
        same = ids == candidate
        tails = same.flip(1).long().cumprod(1).sum(1)  # the run at the end of each row
        inner = same.sum(1) - tails
        if int((tails >= 2).sum()) >= 2 and len(set(tails.tolist())) > 1 and int(inner.sum()) == 0:
            return int(candidate)
    return None
