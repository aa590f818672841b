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
RARE, MAJORITY = 0.02, 0.5
SHIFTS = (1, 0, 2, -1)


class ModuleCall(NamedTuple):
    """One outermost call of a module."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any
    ids: tuple[Tensor, ...] = ()  # what its embeddings were given


class Alignment(NamedTuple):
    """How targets stand against the ids that the model was given."""

    shift: int | None = None
    agreement: float = 0.0
    hides: bool = False  # no target counts where ids are hidden by one of them
    late: bool = False
    mixed: bool = False
    crossed: bool = False  # the rows of the targets are those of other positions
    padding: int | None = None
    padded: float = 0.0
    blank: bool = False  # that id is the blank of CTC, and stands before other labels
    fed: bool = False  # so it was step by step, and not in all of them


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
    """How targets stand against ids that the model was given, all at once or step by step."""
    found = _align(scores, target, ignored, call)
    if call is None or found.shift is not None or found.mixed or found.crossed:
        return found
    share = _fed_by_step(target.reshape(-1), call.ids) if target.dtype == torch.int64 else 0.0
    return found._replace(shift=0, agreement=share, fed=True) if share else found


def _fed_by_step(targets: Tensor, ids: tuple[Tensor, ...]) -> float:
    """The share of the steps whose own targets were all among the tokens that they began with."""
    tokens = [t.detach().reshape(-1) for t in ids if t.numel() == max(t.shape, default=1)]
    rows = len(tokens[-1]) if tokens else 0
    if rows < FEWEST // 2 or len(targets) % rows:
        return 0.0
    steps = len(targets) // rows
    last = [t for t in tokens if len(t) == rows][-steps:]
    if len(last) < steps or not steps:
        return 0.0
    given, most = torch.stack(last), 0
    for asked in (targets.reshape(rows, steps).T, targets.reshape(steps, rows)):
        same = (asked == given).all(1)
        several = torch.tensor([len(set(step.tolist())) > 2 for step in asked])
        most = max(most, int((same & several).sum()))
    return most / steps if most >= min(2, steps) else 0.0


def _align(scores: Tensor, target: Tensor, ignored: int, call: ModuleCall | None) -> Alignment:
    """Find each row of the scores in the model's output, and its target among the ids there.

    Inside of forward there is no output yet: `call.output` is what its layers returned last.
    """
    if call is None or scores.dim() < 2 or target.dtype != torch.int64:
        return Alignment()
    rows, targets = rows_of(scores)[:MOST], target.reshape(-1)[:MOST]
    if len(rows) != len(targets):
        return Alignment()
    given = call.ids or tuple(tensors_in((call.args, call.kwargs)))
    ids = [t.detach() for t in given if t.dtype == torch.int64 and t.dim() == 2]
    for output in tensors_in(call.output):
        if output.dim() != 3 or not output.is_floating_point():
            continue
        places = _places(rows, output)
        if places is not None:
            same = [i for i in ids if i.shape == output.shape[:2]]
            best = _best(places, targets, ignored, same)
            # Of states and actions in turn, a state knows its action no more than the one to come.
            in_turn = best.shift == 0 and _has_vectors_beside(call, output)
            return Alignment() if in_turn else best
        if scores.shape != output.shape and _same_numbers(scores, output):
            return Alignment(mixed=True)
    for one in ids:  # a head that is no layer: its rows in their natural order
        grid = torch.arange(one.numel()).reshape(one.shape)
        for places in (grid, grid[:, :-1]):
            if places.numel() == len(rows):
                return _best(places.reshape(-1), targets, ignored, ids)
    return Alignment()


def counted_blanks(targets: Tensor, lengths: Any, blank: int) -> Alignment:
    """Of the targets of ctc_loss: how many labels are the blank, but for those at the ends."""
    counts = torch.as_tensor(lengths).reshape(-1).tolist()
    whole = targets.dim() == 2
    rows = targets if whole else list(torch.split_with_sizes(targets, counts))
    found = total = 0
    for row, count in zip(rows, counts, strict=True):
        labels = row[:count].tolist()
        while labels and labels[-1] == blank:
            del labels[-1]
        found, total = found + labels.count(blank), total + len(labels)
    return Alignment(padding=blank, padded=found / max(total, 1), blank=found > 0)


def counted_tails(targets: Tensor, lengths: Any) -> Alignment:
    """Of the targets of ctc_loss, (B, S): the id that fills them up, where all of them count."""
    known = torch.as_tensor(lengths)
    whole = targets.dim() == 2 and known.numel() > 1 and bool((known == targets.shape[1]).all())
    padding = _padding_id(targets) if whole else None
    share = float((targets == padding).double().mean()) if padding is not None else 0.0
    return Alignment(padding=padding, padded=share)


def _places(rows: Tensor, output: Tensor) -> Tensor | None:
    """Where each row stands in the output: an index into its first two axes; None if not there."""
    if output.shape[-1] != rows.shape[-1]:
        return None
    grid = torch.arange(output.shape[0] * output.shape[1]).reshape(output.shape[:2])
    for cut in (grid, grid[:, :-1], grid[:, 1:], grid[:-1], grid[1:]):
        places = cut.reshape(-1)[:MOST]
        flat = output.reshape(-1, output.shape[-1])
        if len(places) == len(rows) and torch.equal(flat[places], rows):
            return places
    known = {
        tuple(row): number
        for number, row in enumerate(output.reshape(-1, output.shape[-1])[:MOST, :4].tolist())
    }
    found = [known.get(tuple(row), -1) for row in rows[:, :4].tolist()]
    missing = sum(place < 0 for place in found)
    return None if missing > 0.1 * len(found) else torch.tensor(found)


def _has_vectors_beside(call: ModuleCall, output: Tensor) -> bool:
    """Whether the model takes vectors, too, for each of the positions that it has scores for."""
    given = tensors_in((call.args, call.kwargs))
    floats = (t for t in given if t.is_floating_point() and t.dim() > 2)
    return any(t.shape[:2] == output.shape[:2] for t in floats)


def _same_numbers(scores: Tensor, output: Tensor) -> bool:
    """Whether the scores are the output's numbers in another order."""
    if scores.numel() != output.numel() or scores.numel() > 1 << 22:
        return False
    return torch.equal(scores.flatten().sort().values, output.flatten().sort().values)


def _best(places: Tensor, targets: Tensor, ignored: int, ids: list[Tensor]) -> Alignment:
    """Beside the ids that explain the targets best: those one ahead before all others."""
    found = [
        _at_axis(places, targets, ignored, one, axis)
        for one in ids
        if one.numel() > int(places.max())
        for axis in (1, 0)
    ]
    if not found:
        return Alignment()
    best = max(found, key=lambda a: (a.shift == 1, a.agreement, a.padding is not None))
    if best.shift is None:
        crossed = any(_is_crossed(places, targets, ignored, one) for one in ids)
        return Alignment(crossed=True) if crossed else best
    return best


def _is_crossed(places: Tensor, targets: Tensor, ignored: int, ids: Tensor) -> bool:
    """Whether the targets fit the ids one ahead, but in the order of the other axis."""
    if len(targets) != ids.numel():
        return False
    identity = torch.arange(ids.numel())
    orders = [identity.reshape(ids.shape).T.reshape(-1)]
    if not torch.equal(places, identity):
        orders.append(identity)
    return any(
        _at_axis(order, targets, ignored, ids, axis).shift in (0, 1)
        for order in orders
        for axis in (1, 0)
    )


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
        hidden = (ids[first, second] == padding) & (targets == padding)
        padded = float(hidden[counted].double().mean())
    best = max(shares, key=lambda shift: shares[shift], default=0)
    rest = max((share for shift, share in shares.items() if shift != best), default=0.0)
    if not shares or shares[best] < SURE or shares[best] - rest < APART:
        return Alignment(padding=padding if padded else None, padded=padded)
    late = bool(along[counted].min() > 0)
    hides = best == 0 and axis == 1 and _hides(second, first, counted, ids)
    return Alignment(
        best, shares[best], hides, late, padding=padding if padded else None, padded=padded
    )


def _hides(along: Tensor, rows: Tensor, counted: Tensor, ids: Tensor) -> bool:
    """Whether what is left out of a loss is what one id hides, between targets that count."""
    there, left = ids[rows, along], ~counted
    if not bool(left.any()):
        return False
    most = there[left].mode().values
    hidden = left & (there == most)
    ends = torch.zeros(2, ids.shape[0], dtype=along.dtype)
    ends[0].fill_(ids.shape[1]).scatter_reduce_(0, rows[counted], along[counted], "amin")
    ends[1].scatter_reduce_(0, rows[counted], along[counted], "amax")
    within = (along > ends[0][rows]) & (along < ends[1][rows])
    alone = float((there[counted] == most).double().mean()) < RARE
    enough = int(hidden.sum()) >= max(FEWEST, MAJORITY * int(left.sum()))
    return enough and alone and float(within[hidden].double().mean()) > MAJORITY


def _padding_id(ids: Tensor) -> int | None:
    """The id that fills up rows of different lengths at their ends, and stands nowhere else."""
    if ids.shape[0] < 2 or ids.shape[1] < 4:
        return None
    last = ids[:, -1]
    for candidate in sorted(set(last.tolist())):
        same = ids == candidate
        tails = same.flip(1).long().cumprod(1).sum(1)  # the run at the end of each row
        inner = same.sum(1) - tails
        partly = (tails >= 2) & (tails < ids.shape[1])  # a whole row may be one of one id
        if int(partly.sum()) >= 2 and len(set(tails.tolist())) > 1 and int(inner.sum()) == 0:
            return int(candidate)
    return None
