"""Masks and padding: what a mask hides is found by experiment, whatever True means in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.candidate.live.batch import CannotTry, Leaf, Output
from attnlab.candidate.live.properties import Bench, Broken, NotApplicable
from attnlab.candidate.live.watching import is_triangle

# Arguments that can only be masks over keys.
SURE = {
    *("attn_mask", "attention_mask", "key_padding_mask", "src_key_padding_mask", "padding_mask"),
    *("pad_mask", "src_mask", "key_mask", "encoder_attention_mask", "memory_key_padding_mask"),
}
OPTIONAL = {*SURE, "mask", "valid_mask", "input_mask"}  # that are tried where they were not given
SHORTEST = 4  # positions of which one is hidden
PADDED = 2  # positions at the end of a sample that is padded for a look


class Form(NamedTuple):
    """How a mask says that a key is open or hidden."""

    dtype: torch.dtype
    open: float
    hidden: float

    @property
    def words(self) -> str:
        if self.dtype.is_floating_point and self.hidden < 0:
            return "-inf hides a key"
        return (
            f"{bool(self.hidden)} hides a key"
            if self.dtype is torch.bool
            else (f"{int(self.hidden)} hides a key")
        )


BOOLEAN = (Form(torch.bool, 1, 0), Form(torch.bool, 0, 1))
COUNTED = (Form(torch.long, 1, 0), Form(torch.long, 0, 1))
FLOATS = (Form(torch.float64, 1, 0), Form(torch.float64, 0, 1))
ADDED = (Form(torch.float64, 0, float("-inf")),)


class Known(NamedTuple):
    """A mask that hides keys, and how."""

    leaf: Leaf
    form: Form


def mask_effect(bench: Bench) -> None:
    """Masked keys change nothing: a hidden position moves no output but its own."""
    tried = list(_experiments(bench))
    if not tried:
        raise NotApplicable("no argument of forward is a mask over keys")
    failures = [failure for known, failure in tried if known is None]
    if len(failures) == len(tried) or any(isinstance(f, Broken) for f in failures):
        raise next((f for f in failures if isinstance(f, Broken)), failures[0])


def _experiments(bench: Bench) -> Iterator[tuple[Known | None, Exception]]:
    cached = bench.masks
    if cached is None:
        cached = bench.masks = [_experiment(bench, leaf) for leaf in _masks(bench)]
    yield from cached


def _masks(bench: Bench) -> list[Leaf | str]:
    """The masks that were given, and the arguments for masks that were not."""
    given: list[Leaf | str] = [
        leaf
        for leaf in bench.live.leaves
        if leaf.role == "mask"
        and leaf.value.shape[-1] == bench.layout.length
        and not is_triangle(leaf.value)
    ]
    names = {leaf.name for leaf in bench.live.leaves}
    try:
        taken = inspect.signature(bench.live.model.forward).parameters.values()
    except (TypeError, ValueError):
        return given
    free = [
        p.name for p in taken if p.name in OPTIONAL and p.name not in names and p.default is None
    ]
    return [*given, *free]


def _experiment(bench: Bench, mask: Leaf | str) -> tuple[Known | None, Exception]:
    """How a mask hides a key, or why that is not known."""
    name = mask if isinstance(mask, str) else mask.name
    length, samples = bench.layout.length, bench.layout.samples
    if length < SHORTEST or not bench.layout.targets:
        return None, NotApplicable(f"{name}: no input has several positions")
    tries = list(_tries(bench, mask, samples, length))
    for shape, form, found in tries:
        if found.seen and found.hidden:
            leaf = mask if isinstance(mask, Leaf) else Leaf(name, torch.ones(shape), "mask")
            return Known(leaf, form), NotApplicable("")
    return None, _unknown(name, isinstance(mask, str), [found for _, _, found in tries], length)


def _tries(
    bench: Bench, mask: Leaf | str, samples: int, length: int
) -> Iterator[tuple[tuple[int, ...], Form, Hiding]]:
    """What each form of the mask did, of those that are taken."""
    for shape, forms in _forms(mask, samples, length):
        for form in forms:
            with suppress(Exception):  # another shape or dtype is wanted
                yield shape, form, _hides(bench, mask, shape, form)


def _unknown(name: str, added: bool, tries: list[Hiding], length: int) -> Exception:
    """Why it is not known how a mask hides a key."""
    sure = name.rpartition(".")[2] in SURE
    if not tries:
        return CannotTry(f"{name}: no usual form of a mask is taken")
    if not any(found.seen for found in tries):
        return NotApplicable(f"{name}: no position moves the output of another one")
    if not any(found.effect for found in tries):
        says = f"{name} changes no output, whichever key it hides"
        return Broken(says) if sure else CannotTry(says)
    if added and not sure:
        return CannotTry(f"{name} hides no key in the forms that were tried")
    worst = max(found.gap for found in tries)
    return Broken(
        f"{name} hides no key: with position {length // 2} masked for all queries, by True or by "
        f"False, changing it moves other outputs by up to {worst:.2g}"
    )


def _forms(
    mask: Leaf | str, samples: int, length: int
) -> Iterator[tuple[tuple[int, ...], tuple[Form, ...]]]:
    """Shapes and forms to try: those of the mask that was given, or the usual ones."""
    if isinstance(mask, Leaf):
        value = mask.value
        if value.dtype is torch.bool:
            yield tuple(value.shape), BOOLEAN
        elif not value.is_floating_point():
            yield tuple(value.shape), COUNTED
        else:
            yield tuple(value.shape), (*ADDED, *FLOATS) if (value < 0).any() else (*FLOATS, *ADDED)
        return
    if "padding" in mask or mask in ("attention_mask", "pad_mask"):
        shapes: tuple[tuple[int, ...], ...] = ((samples, length), (samples, 1, 1, length))
    else:
        shapes = (
            (samples, 1, 1, length),
            (samples, 1, length, length),
            (length, length),
            (samples, length, length),
            (samples, length),
        )
    for forms in (BOOLEAN, COUNTED, ADDED, FLOATS):
        for shape in shapes:
            yield shape, forms


class Hiding(NamedTuple):
    """What hiding a key did: whether others saw it while it was open, whether the mask changes
    anything, and whether what was hidden was not seen."""

    seen: bool
    effect: bool
    hidden: bool
    gap: float


def _hides(bench: Bench, mask: Leaf | str, shape: tuple[int, ...], form: Form) -> Hiding:
    at = bench.layout.length // 2
    dtype = bench.live.dtype if form.dtype.is_floating_point else form.dtype
    opened = torch.full(shape, form.open, dtype=dtype)
    hidden = opened.clone()
    hidden[..., at] = form.hidden
    other = bench.layout.change_positions(bench.layout.targets, at, at + 1)
    outs = []
    for value in (opened, hidden):
        if isinstance(mask, Leaf):
            given = {mask.key: value}
            outs += [bench.live.call(given), bench.live.call({**other, **given})]
        else:
            leaf = bench.live.add(mask, value)
            try:
                outs += [bench.live.call({}), bench.live.call(other)]
            finally:
                bench.live.remove(leaf)
    a, b, c, d = (o.main for o in outs)
    if not (c.isfinite() | (c == float("-inf"))).all():
        raise CannotTry("it gives NaN")
    gap = _elsewhere(bench, c, d, at)
    return Hiding(
        seen=bool(bench.moved(*_others(bench, a, b, at)).any()),
        effect=bool(bench.moved(*_others(bench, a, c, at)).any()),
        hidden=gap == 0.0,
        gap=gap,
    )


def _others(bench: Bench, a: Tensor, b: Tensor, at: int) -> tuple[Tensor, Tensor]:
    """Two outputs without position `at`."""
    one, other = bench.layout.by_position(a), bench.layout.by_position(b)
    if one is None or other is None:
        return a, b
    kept = [i for i in range(bench.layout.length) if i != at]
    return one[:, kept], other[:, kept]


def _elsewhere(bench: Bench, a: Tensor, b: Tensor, at: int) -> float:
    """The largest difference at other positions; 0 where rounding explains it."""
    one, other = _others(bench, a, b, at)
    gone = bench.moved(one, other)
    return (one - other).abs()[gone].nan_to_num(float("inf")).max().item() if gone.any() else 0.0


# ---------------------------------------------------------------- padding at the end


def padding_invariance(bench: Bench) -> None:
    """A sample that is padded at the end gives what it gives cut to its length."""
    layout, length = bench.layout, bench.layout.length
    ids = [leaf for leaf in layout.targets if leaf.role == "ids"]
    known = _padding_mask(bench)
    if layout.turned or length < SHORTEST or not layout.targets:
        raise NotApplicable("no input has several positions")
    if not known and not (layout.pads and ids):
        raise NotApplicable("no mask over keys and no id of padding is known")
    if not known and any(leaf.role == "mask" for leaf in bench.live.leaves):
        raise CannotTry("the meaning of the mask is not known")
    real = length - PADDED
    changes = _padded(bench)
    whole = _call(bench, changes, known)
    short = _call(bench, changes, known, cut=real)
    rows, few = _rows(bench, whole, length), _rows(bench, short, real)
    if rows is None or few is None or rows.shape[1:] != few.shape[1:]:
        raise CannotTry("shorter samples gave an output of another shape")
    if bench.moved(rows, few).any():
        gap = (rows - few).abs().max().item()
        pad = f"id {min(layout.pads)}" if ids and layout.pads else "noise"
        how = f", hidden by {known.leaf.name}" if known else ""
        raise Broken(
            f"{PADDED} positions of padding ({pad}{how}) after {real} real ones changed the "
            f"output of the real ones by up to {gap:.2g}"
        )


def _padding_mask(bench: Bench) -> Known | None:
    """The first mask over the keys of each sample whose meaning is known."""
    shape = (bench.layout.samples, bench.layout.length)
    known = (found for found, _ in _experiments(bench) if found)
    return next((one for one in known if tuple(one.leaf.value.shape) == shape), None)


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
    bench: Bench, changes: dict[int, Tensor], known: Known | None, cut: int | None = None
) -> Output:
    """A call with the last positions masked, or with all inputs cut to a length."""
    live, layout = bench.live, bench.layout
    given = dict(changes)
    if cut is not None:
        for leaf in live.leaves:
            value = given.get(leaf.key, leaf.value)
            for axis in range(1 if leaf in layout.data else 0, value.dim()):
                feature = leaf.role == "floats" and axis != layout.position_axis(leaf)
                if value.shape[axis] == layout.length and not feature:
                    value = value.narrow(axis, 0, cut)
            given[leaf.key] = value
    if known is None:
        return live.call(given)
    dtype = live.dtype if known.form.dtype.is_floating_point else known.form.dtype
    mask = torch.full(tuple(known.leaf.value.shape), known.form.open, dtype=dtype)
    mask[..., layout.length - PADDED :] = known.form.hidden
    mask = mask[..., :cut]
    if known.leaf in live.leaves:
        return live.call({**given, known.leaf.key: mask})
    leaf = live.add(known.leaf.name, mask)
    try:
        return live.call(given)
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
