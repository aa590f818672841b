"""Padding: a sample gives the same with padded positions at its end as without them."""

import torch
from torch import Tensor

from attnlab.candidate.live.batch import CannotTry, Output
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.masks import SHORTEST, Known, convolves, named_by, padding_mask
from attnlab.candidate.live.watching import Values

PADDED = 2  # positions at the end of a sample that is padded for a look


def padding_invariance(bench: Bench) -> None:
    """A sample that is padded at the end gives what it gives cut to its length."""
    layout, length = bench.layout, bench.layout.length
    ids = [leaf for leaf in layout.targets if leaf.role == "ids"]
    known = padding_mask(bench)
    if layout.turned or length < SHORTEST or not layout.targets:
        raise NotApplicable("no input has several positions")
    if not known and not (layout.pads and ids):
        raise NotApplicable("no mask over keys and no id of padding is known")
    if not known and any(leaf.role == "mask" for leaf in bench.live.leaves):
        raise CannotTry("the meaning of the mask is not known")
    if known and len(layout.sequences) > len(named_by(bench, known.leaf.name)) > 0:
        raise CannotTry(f"{known.leaf.name} hides positions of one input among several")
    linear = bool(known) and not bench.keys and not convolves(bench)
    if not linear and (bench.keys != {length} or convolves(bench)):
        raise CannotTry("not all that mixes positions is attention over them")
    real = length - PADDED
    changes = _padded(bench)
    full, part = Values(), Values()
    whole = _call(bench, changes, known, watch=full)
    short = _call(bench, changes, known, cut=real, watch=part)
    rows, few = _rows(bench, whole, length), _rows(bench, short, real)
    if rows is None or few is None or rows.shape[1:] != few.shape[1:]:
        raise CannotTry("shorter samples gave an output of another shape")
    if bench.moved(rows, few).any() and not _holds_in_front(bench, known):
        gap = (rows - few).abs().max().item()
        pad = f"id {min(layout.pads)}" if ids and layout.pads else "noise"
        how = f", hidden by {known.leaf.name}" if known else ""
        raise Broken(
            f"{PADDED} positions of padding ({pad}{how}) after {real} real ones changed the "
            f"output of the real ones by up to {gap:.2g}",
            bench.first_apart(full, part, 0),
        )


def _holds_in_front(bench: Bench, known: Known | None) -> bool:
    """Whether a sample that is padded in front gives what it gives without that: with positions
    that are counted from the end, padding belongs there."""
    layout = bench.layout
    if known is not None or not layout.pads:
        return False
    changes = {}
    for leaf in (leaf for leaf in layout.targets if leaf.role == "ids"):
        value = torch.where(leaf.value == min(layout.pads), _no_pad(layout.pads), leaf.value)
        value[:, :PADDED] = min(layout.pads)
        changes[leaf.key] = value
    cut = {
        leaf.key: changes.get(leaf.key, leaf.value).narrow(1, PADDED, layout.length - PADDED)
        for leaf in layout.sequences
        if layout.position_axis(leaf) == 1
    }
    whole, short = bench.live.call(changes).main, bench.live.call(cut).main
    by_position = layout.by_position(bench.before.main) is not None
    rows = whole[:, PADDED:] if by_position else whole
    return rows.shape == short.shape and not bool(bench.moved(rows, short).any())


def _padded(bench: Bench) -> dict[int, Tensor]:
    """The batch with its last positions padded."""
    layout, real = bench.layout, bench.layout.length - PADDED
    changes: dict[int, Tensor] = {}
    for leaf in layout.targets:
        value = leaf.value.clone()
        if leaf.role == "ids" and layout.pads:
            pad = min(layout.pads)
            head = value[:, :real]
            value[:, :real] = torch.where(head == pad, _no_pad(layout.pads), head)
            value[:, real:] = pad
        changes[leaf.key] = value
    return changes


def _no_pad(pads: frozenset[int]) -> Tensor:
    return torch.tensor(next(i for i in range(len(pads) + 1) if i not in pads))


def _call(
    bench: Bench,
    changes: dict[int, Tensor],
    known: Known | None,
    cut: int | None = None,
    watch: Values | None = None,
) -> Output:
    """A call with the last positions masked, or with all inputs cut to a length."""
    live, layout = bench.live, bench.layout
    given = dict(changes)
    if cut is not None:
        whole = [leaf for leaf in layout.sequences if leaf not in layout.targets]  # a context
        for leaf in (leaf for leaf in live.leaves if leaf not in whole):
            value = given.get(leaf.key, leaf.value)
            for axis in range(1 if leaf in layout.data else 0, value.dim()):
                feature = leaf.role == "floats" and axis != layout.position_axis(leaf)
                if value.shape[axis] == layout.length and not feature:
                    value = value.narrow(axis, 0, cut)
            given[leaf.key] = value
    if known is None:
        return live.call(given, watch=watch)
    dtype = live.dtype if known.form.dtype.is_floating_point else known.form.dtype
    mask = torch.full(tuple(known.leaf.value.shape), known.form.open, dtype=dtype)
    mask[..., layout.length - PADDED :] = known.form.hidden
    mask = mask[..., :cut]
    if known.leaf in live.leaves:
        return live.call({**given, known.leaf.key: mask}, watch=watch)
    leaf = live.add(known.leaf.name, mask)
    try:
        return live.call(given, watch=watch)
    finally:
        live.remove(leaf)


def _rows(bench: Bench, out: Output, length: int) -> Tensor | None:
    """The main output at the real positions; all of it where it has no positions."""
    layout, main = bench.layout, out.main
    if not main.dim() or main.shape[0] != layout.samples:
        return None
    positions = (
        main.dim() > 1
        and main.shape[1] == length
        and layout.by_position(bench.before.main) is not None
    )
    return main[:, : layout.length - PADDED] if positions else main
