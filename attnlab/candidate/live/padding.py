"""Padding: a sample gives the same with padded positions at its end as without them."""

import ast
import linecache

import torch
from torch import Tensor

from attnlab.candidate.live.batch import CannotTry, Output
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable, largest_gap
from attnlab.candidate.live.masks import SHORTEST, Known, convolves, named_by, padding_mask
from attnlab.candidate.live.watching import Values
from attnlab.target.padding_findings import padded_in_front
from attnlab.tracer.class_source import class_source_of

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
    pad = f"id {min(layout.pads)}" if ids and layout.pads else "noise"
    how = f", hidden by {known.leaf.name}" if known else ""
    end, front = _apart(bench, known, 0), None
    if end is None and known and (said := _says_front(bench)):
        front = _apart(bench, known, PADDED)
        how += f"; the file pads in front, {said}"
    if end and known is None and layout.pads and _apart(bench, None, PADDED) is None:
        return  # with positions that are counted from the end, padding belongs in front
    if found := end or front:
        raise Broken(
            f"{PADDED} positions of padding ({pad}{how}) {'after' if end else 'before'} "
            f"{length - PADDED} real ones changed the output of the real ones by up to "
            f"{found[0]:.2g}",
            bench.first_apart(found[1], found[2], 0 if end else PADDED),
        )


def _says_front(bench: Bench) -> str:
    """How the file of the model says that it pads in front; "" where it does not."""
    source = class_source_of(bench.live.model)
    text = "".join(linecache.getlines(source.file)) if source.tree else ""
    return padded_in_front(ast.parse(text))


def _apart(bench: Bench, known: Known | None, start: int) -> tuple[float, Values, Values] | None:
    """How far padding moves what is real, which begins at `start`, with all values of a call that
    has it and of one that has not; None where nothing moves."""
    full, part = Values(), Values()
    changes = _padded(bench, start)
    whole = _call(bench, changes, known, start, watch=full)
    short = _call(bench, changes, known, start, cut=True, watch=part)
    rows, few = _rows(bench, whole, start), _rows(bench, short, 0)
    if rows is None or few is None or rows.shape[1:] != few.shape[1:]:
        raise CannotTry("shorter samples gave an output of another shape")
    return (largest_gap(rows, few), full, part) if bench.moved(rows, few).any() else None


def _padded(bench: Bench, start: int) -> dict[int, Tensor]:
    """The batch with its last positions padded, or its first where what is real starts later."""
    layout, real = bench.layout, bench.layout.length - PADDED
    changes: dict[int, Tensor] = {}
    for leaf in layout.targets:
        value = leaf.value.clone()
        if leaf.role == "ids" and layout.pads:
            pad = min(layout.pads)
            head = value[:, start : start + real]
            head = torch.where(head == pad, _no_pad(layout.pads), head)
            value.fill_(pad)[:, start : start + real] = head
        changes[leaf.key] = value
    return changes


def _no_pad(pads: frozenset[int]) -> Tensor:
    return torch.tensor(next(i for i in range(len(pads) + 1) if i not in pads))


def _call(
    bench: Bench,
    changes: dict[int, Tensor],
    known: Known | None,
    start: int,
    cut: bool = False,
    watch: Values | None = None,
) -> Output:
    """A call with padding masked, or with all inputs cut to what is real, from `start` on."""
    live, layout = bench.live, bench.layout
    given, real = dict(changes), layout.length - PADDED
    if cut:
        whole = [leaf for leaf in layout.sequences if leaf not in layout.targets]  # a context
        for leaf in (leaf for leaf in live.leaves if leaf not in whole):
            value = given.get(leaf.key, leaf.value)
            for axis in range(1 if leaf in layout.data else 0, value.dim()):
                feature = leaf.role == "floats" and axis != layout.position_axis(leaf)
                if value.shape[axis] == layout.length and not feature:
                    value = value.narrow(axis, start, real)
            given[leaf.key] = value
    if known is None:
        return live.call(given, watch=watch)
    dtype = live.dtype if known.form.dtype.is_floating_point else known.form.dtype
    mask = torch.full(tuple(known.leaf.value.shape), known.form.hidden, dtype=dtype)
    mask[..., start : start + real] = known.form.open
    mask = mask[..., start : start + real] if cut else mask
    if known.leaf in live.leaves:
        return live.call({**given, known.leaf.key: mask}, watch=watch)
    leaf = live.add(known.leaf.name, mask)
    try:
        return live.call(given, watch=watch)
    finally:
        live.remove(leaf)


def _rows(bench: Bench, out: Output, start: int) -> Tensor | None:
    """The main output at the real positions; all of it where it has no positions."""
    layout, main = bench.layout, out.main
    if not main.dim() or main.shape[0] != layout.samples:
        return None
    if main.dim() < 2 or layout.by_position(bench.before.main) is None:
        return main
    return main[:, start : start + layout.length - PADDED]
