"""Masks: what each hides is found by experiment, whatever True means in it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attnlab.candidate.live.batch import CannotTry, Leaf
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.watching import Place, Values, is_triangle, pairs

# Arguments that can only be masks over keys.
SURE = {
    *("attn_mask", "attention_mask", "key_padding_mask", "src_key_padding_mask", "padding_mask"),
    *("pad_mask", "src_mask", "key_mask"),
}
# Those that are tried where they were not given.
OPTIONAL = {*SURE, "mask", "valid_mask", "input_mask", "keep", "visible"}
MIXERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.RNNBase)  # of positions, by no mask
SHORTEST = 4  # positions of which one is hidden


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


def padding_mask(bench: Bench) -> Known | None:
    """The first mask over the keys of each sample whose meaning is known."""
    shape = (bench.layout.samples, bench.layout.length)
    known = (found for found, _ in _experiments(bench) if found)
    return next((one for one in known if tuple(one.leaf.value.shape) == shape), None)


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
    return None, _unknown(bench, mask, [found for _, _, found in tries])


def _tries(
    bench: Bench, mask: Leaf | str, samples: int, length: int
) -> Iterator[tuple[tuple[int, ...], Form, Hiding]]:
    """What each form of the mask did, of those that are taken."""
    for shape, forms in _forms(mask, samples, length):
        for form in forms:
            with suppress(Exception):  # another shape or dtype is wanted
                yield shape, form, _hides(bench, mask, shape, form)


def _is_installed(bench: Bench) -> bool:
    """Whether its code is a library's: there all models take the same arguments, used or not."""
    file = getattr(sys.modules.get(type(bench.live.model).__module__), "__file__", None) or ""
    return "site-packages" in file


def _unknown(bench: Bench, mask: Leaf | str, tries: list[Hiding]) -> Exception:
    """Why it is not known how a mask hides a key."""
    name = mask if isinstance(mask, str) else mask.name
    if tries and not any(found.seen for found in tries):
        return NotApplicable(f"{name}: no position moves the output of another one")
    if unsure := _doubt(bench, tries):
        return CannotTry(f"{name}: {unsure}")
    added, sure = isinstance(mask, str), name.rpartition(".")[2] in SURE
    says = "hides no key in the forms that were tried"
    place = next((found.place for found in tries if found.place), None)
    if not any(found.effect for found in tries):
        if any(found.own for found in tries):
            why = f"{name} hides queries and no keys: it moves the masked position alone"
            return Broken(why, place)
        says = "changes no output, whichever key it hides"
        sure = sure and not (added and _is_installed(bench))
        return Broken(f"{name} {says}", place) if sure else CannotTry(f"{name} {says}")
    if added and not sure:
        return CannotTry(f"{name} {says}")
    worst = max(found.gap for found in tries)
    return Broken(
        f"{name} hides no key: with position {bench.layout.length // 2} masked for all queries, by "
        f"True or by False, changing it moves other outputs by up to {worst:.2g}",
        place,
    )


def _doubt(bench: Bench, tries: list[Hiding]) -> str:
    """Why a mask that hides nothing may be right."""
    if not tries:
        return "no usual form of a mask is taken"
    if bench.keys != {bench.layout.length}:
        return "attention runs over something else than the positions"
    return "convolutions reach masked positions" if convolves(bench) else ""


def convolves(bench: Bench) -> bool:
    """Whether something mixes positions that takes no mask."""
    return any(isinstance(module, MIXERS) for module in bench.live.model.modules())


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
    their outputs, and whether they did not see what was hidden."""

    seen: bool
    effect: bool
    own: bool  # whether the mask changes the output of the position that it hides
    hidden: bool
    gap: float
    place: (
        Place | None
    )  # where the mask meets a floating-point value, else where others see the key


def _hides(bench: Bench, mask: Leaf | str, shape: tuple[int, ...], form: Form) -> Hiding:
    at = bench.layout.length // 2
    dtype = bench.live.dtype if form.dtype.is_floating_point else form.dtype
    opened = torch.full(shape, form.open, dtype=dtype)
    hidden = opened.clone()
    hidden[..., at] = form.hidden
    masked = named_by(bench, mask if isinstance(mask, str) else mask.name)
    other = bench.layout.change_positions(masked or bench.layout.targets, at, at + 1)
    outs, seen = [], [Values() for _ in range(4)]
    for value, watches in ((opened, seen[:2]), (hidden, seen[2:])):
        leaf = None if isinstance(mask, Leaf) else bench.live.add(mask, value)
        given = {mask.key: value} if isinstance(mask, Leaf) else {}
        try:
            for changes, watch in zip(({}, other), watches, strict=True):
                outs.append(bench.live.call({**changes, **given}, watch=watch))
        finally:
            if leaf:
                bench.live.remove(leaf)
    a, b, c, d = (o.main for o in outs)
    if not (c.isfinite() | (c == float("-inf"))).all():
        raise CannotTry("it gives NaN")
    gap = _elsewhere(bench, c, d, at)
    return Hiding(
        seen=bool(bench.moved(*_others(bench, a, b, at)).any()),
        effect=bool(bench.moved(*_others(bench, a, c, at)).any()),
        own=bool(bench.moved(a, c).any()),
        hidden=gap == 0.0,
        gap=gap,
        place=_meets(bench, seen, at) if gap else None,
    )


def _meets(bench: Bench, seen: list[Values], at: int) -> Place | None:
    """Where a mask that hides nothing first moves scores; else where others see the hidden key."""
    opened, _, hidden, changed = seen
    scores = (
        p.place
        for p in pairs(opened, hidden)
        if p.place.line and p.before.dim() > 2 and bench.moved(p.before, p.after).any()
    )
    mixed = (
        p.place
        for p in pairs(hidden, changed)
        if p.place.line
        and bench.layout.by_position(p.before) is not None
        and _elsewhere(bench, p.before, p.after, at) > 0
    )
    return next(scores, None) or next(mixed, None)


def named_by(bench: Bench, mask: str) -> list[Leaf]:
    """The inputs that a mask is named after: `question` of `question_mask`."""
    return [leaf for leaf in bench.layout.sequences if mask.startswith(f"{leaf.name}_")]


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
