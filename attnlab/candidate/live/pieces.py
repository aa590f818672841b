"""Positions that are fed in pieces give what one pass gives: caches of the caller's own making, and
slots of a buffer that the positions beside the input choose."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.live.batch import Leaf, floats_in, fresh
from attnlab.candidate.live.bench import (
    Bench,
    Broken,
    NotApplicable,
    differs,
    largest_gap,
    numbered,
)
from attnlab.candidate.live.watching import Rectangles, Values
from attnlab.tracer.call_setup import uncompiled
from attnlab.tracer.decoding import TOLERANCE, cache_in

SHORTEST = 5  # positions: a piece of some, one of several more, and single ones
STEPS = 2  # single positions at the end


def equal_in_pieces(bench: Bench) -> None:
    """Steps with a cache equal one pass, and so does a piece of several positions behind others,
    where the model makes a mask for such a piece."""
    layout = bench.layout
    length, whole = layout.length, layout.by_position(bench.main())
    if length < SHORTEST or whole is None:
        raise NotApplicable("no output has an entry for each of several positions")
    start = length - STEPS
    steps = [(0, start), *((at, at + 1) for at in range(start, length))]
    _compare(bench, whole, steps)
    with Rectangles() as seen:
        pieces = list(_fed(bench, [(0, start // 2), (start // 2, start)]))
    if seen.found and len(pieces) > 1:
        _compare(bench, whole, [(0, start // 2), (start // 2, start)])


def _compare(bench: Bench, whole: Tensor, pieces: list[tuple[int, int]]) -> None:
    full, part = Values(), [Values() for _ in pieces]
    for (start, end), watch, out in zip(pieces, part, _fed(bench, pieces, part), strict=False):
        rows = whole[:, start:end]
        if out.shape != rows.shape:
            raise NotApplicable("it gives no output of each of the positions that it is fed")
        gap = largest_gap(rows, out)
        if gap <= TOLERANCE * rows.abs().max().item():  # a cache may be of fewer bits
            continue
        if not start:
            raise NotApplicable("the first positions alone give another output than among all")
        bench.live.forget()
        bench.live.call({}, watch=full)
        raise Broken(
            f"{numbered('position', range(start, end))}, fed behind a cache of {start}, gave an "
            f"output that differs by up to {gap:.2g} from one pass over all {bench.layout.length}",
            bench.first_apart(full, watch, start),
        )


def _fed(
    bench: Bench, pieces: list[tuple[int, int]], watches: Sequence[Values] = ()
) -> Iterator[Tensor]:
    """The outputs of calls with these positions, each given the cache that the one before left."""
    live, layout = bench.live, bench.layout
    function = live.model.forward
    name = next(
        (n for n in inspect.signature(function).parameters if n.endswith(("cache", "caches"))), ""
    )
    counted = [leaf for leaf in live.leaves if _counts(leaf, layout.length)]
    others = [leaf for leaf in live.leaves if leaf not in layout.targets and leaf not in counted]
    if not layout.targets or any(layout.length in leaf.value.shape for leaf in others):
        raise NotApplicable("not all of its inputs are known to be positions")
    if not name and not counted:
        raise NotApplicable("it takes no cache")
    cache: Any = None
    live.forget()
    held = {n: b.clone() for n, b in live.model.named_buffers()}
    for number, (start, end) in enumerate(pieces):
        axes = {leaf.key: layout.position_axis(leaf) or 0 for leaf in layout.targets}
        axes |= {leaf.key: 0 for leaf in counted}
        parts = {
            leaf.key: leaf.value.narrow(axes[leaf.key], start, end - start)
            for leaf in (*layout.targets, *counted)
        }
        args, kwargs = fresh(live.inputs, parts)
        bound = inspect.signature(function).bind(*args, **kwargs)
        if number and name:
            bound.arguments[name] = cache
        live.model.eval()
        with torch.no_grad(), uncompiled(), watches[number] if watches else nullcontext():
            returned = live.model(*bound.args, **bound.kwargs)
        if name:
            left = cache_in(returned, name)
            cache = left if left is not None else bound.arguments.get(name)
            if cache is None:
                raise NotApplicable(f"it returned nothing that could be given back as {name}")
        elif not any(differs(held.get(n), b) for n, b in live.model.named_buffers()):
            raise NotApplicable("it keeps nothing from call to call")
        yield next((t for _, t in floats_in(returned) if t.dim() > 1), torch.empty(0))


def _counts(leaf: Leaf, length: int) -> bool:
    """Whether an input tells the positions: 0, 1, 2, ..."""
    value = leaf.value
    return (
        value.dim() == 1
        and value.numel() == length
        and not value.is_floating_point()
        and bool((value == torch.arange(length)).all())
    )
