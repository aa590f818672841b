"""Properties of a model on a batch of its own, each a function that raises what is broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.live.batch import CannotTry, Changes, Leaf, LiveModel, Output
from attnlab.candidate.live.layout import Layout
from attnlab.candidate.live.watching import FirstMix, Place

POSITION = re.compile(
    r"(^|[._])(pos\w*|wpe|pe|rope\w*|rotary\w*|alibi\w*|inv_freq|freqs\w*|time_emb\w*)($|[._])"
)
STATE = re.compile(r"cache|past|state|step|memory|running|count|ema|avg|buffer")
SOME = 3  # samples or positions that are changed


class NotApplicable(Exception):
    """The property is not promised, or the model has nothing that it speaks of."""


class Broken(Exception):
    """The property does not hold; the message says by how much, `place` where."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


@dataclass
class Bench:
    """What the properties share: the model, the axes of its batch, and what it promises."""

    live: LiveModel
    layout: Layout
    promises: dict[str, str] = field(default_factory=dict)  # with the reason of each
    before: Output = field(default_factory=lambda: Output({}))
    masks: list[Any] | None = None  # what is known of the masks, once they were tried
    doubt: str = ""  # why nothing is said of samples: their axis is not known

    def moved(self, a: Tensor, b: Tensor) -> Tensor:
        """Where two outputs differ by more than rounding."""
        return ~((a - b).abs() <= self.live.tolerance(a))

    def promised(self, name: str, missing: str) -> str:
        if name not in self.promises:
            raise NotApplicable(missing)
        return self.promises[name]

    def main(self) -> Tensor:
        if not self.before.main.numel():
            raise NotApplicable("it returns no tensor of floating-point numbers with axes")
        return self.before.main

    def blame(self, changes: Changes, moved: Callable[[Tensor, Tensor], bool]) -> Place | None:
        """The line of the first operation at which something moved that should not have."""
        first = FirstMix()
        self.live.call({}, watch=first)
        second = FirstMix(first)
        self.live.call(changes, watch=second)
        return second.first(moved)


# ---------------------------------------------------------------- finite, repeatable


def finite(bench: Bench) -> None:
    for name, out in bench.before.tensors.items():
        bad = ~out.isfinite()
        masked = bool(out[bad].isinf().all()) and bool((out[bad] < 0).all())  # logits that are out
        if bad.any() and not masked:
            where = bad.nonzero()[0].tolist()
            raise Broken(
                f"{int(bad.sum())} of {out.numel()} values of {name} are NaN or infinite, "
                f"first at {where}"
            )


def deterministic(bench: Bench) -> None:
    torch.manual_seed(1)
    one, other = (bench.live.call({}, seed=None) for _ in range(2))
    for name, out in one.tensors.items():
        gap = _gap(out, other.tensors.get(name))
        if bench.moved(out, _like(out, other.tensors.get(name))).any():
            raise Broken(
                f"two equal calls in eval mode gave {name} that differ by up to {gap:.2g}",
                _random_place(bench),
            )


def _random_place(bench: Bench) -> Place | None:
    """The first operation with other values in a second call."""
    first = FirstMix()
    torch.manual_seed(1)
    bench.live.call({}, seed=None, watch=first)
    second = FirstMix(first)
    bench.live.call({}, seed=None, watch=second)
    return second.first(lambda a, b: bool(bench.moved(a, b).any()))


def second_call(bench: Bench) -> None:
    """A call gives the same after one with other inputs as it gives at first."""
    layout, live = bench.layout, bench.live
    if not layout.data:
        raise NotApplicable("no input has samples that could be changed")
    others = layout.change_samples(*range(layout.samples))
    live.forget()
    first = live.call(others)
    live.forget()
    state = {n: b.clone() for n, b in live.model.named_buffers()}
    live.call({})
    after = live.call(others)
    kept = [n for n, b in live.model.named_buffers() if _differs(state.get(n), b)]
    live.forget()
    for name, out in first.tensors.items():
        gap = _gap(out, after.tensors.get(name))
        if not gap <= live.tolerance(out):
            if any(STATE.search(n) for n in kept):
                raise NotApplicable(f"it keeps state from call to call: {', '.join(kept[:2])}")
            raise Broken(
                f"{name} differs by up to {gap:.2g} once a call with other inputs came before"
            )


def inputs_unchanged(bench: Bench) -> None:
    live = bench.live
    given: list[tuple[Leaf, Tensor]] = []

    def note(_: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        held = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        given.extend((t, t.clone()) for t in held)  # type: ignore[misc]

    hook = live.model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        live.call({})
    finally:
        hook.remove()
    for now, was in given:
        if not torch.equal(torch.nan_to_num(now), torch.nan_to_num(was)):  # type: ignore[arg-type]
            raise Broken(f"forward wrote into an argument of shape {tuple(was.shape)}")


# ---------------------------------------------------------------- samples


def batch_independence(bench: Bench) -> None:
    layout, before = bench.layout, bench.before
    if bench.doubt:
        raise CannotTry(bench.doubt)
    outs = {n: layout.by_sample(o) for n, o in before.tensors.items()}
    rows = {n: o for n, o in outs.items() if o is not None and not _pairwise(o, layout)}
    if layout.samples < 2 or not layout.data:
        raise NotApplicable("no input has samples that could be changed")
    if not rows:
        raise NotApplicable("no output has one entry for each sample")
    for sample in sorted({0, layout.samples - 1}):
        changes = layout.change_samples(sample)
        after = bench.live.call(changes)
        for name, old in rows.items():
            new = layout.by_sample(after.tensors[name]) if name in after.tensors else None
            gone = bench.moved(old, _like(old, new))
            gone[sample] = False
            if gone.any():
                others = sorted({i[0] for i in gone.nonzero().tolist()})
                gap = (old - _like(old, new)).abs()[others].max().item()
                raise Broken(
                    f"only sample {sample} of {layout.samples} was changed, and {name} of "
                    f"{_named('sample', others)} changed too, by up to {gap:.2g}",
                    bench.blame(changes, partial(_other_rows, bench, sample)),
                )


def _pairwise(out: Tensor, layout: Layout) -> bool:
    """An output that compares samples with each other, as contrastive losses take it."""
    return out.dim() == 2 and out.shape[0] == out.shape[1] == layout.samples != layout.length


def _other_rows(bench: Bench, sample: int, a: Tensor, b: Tensor) -> bool:
    rows, other = bench.layout.by_sample(a), bench.layout.by_sample(b)
    if rows is None or other is None:
        return False
    gone = bench.moved(rows, other)
    gone[sample] = False
    return bool(gone.any())


def alone(bench: Bench) -> None:
    """The last sample by itself gives what it gives in the batch."""
    layout = bench.layout
    whole = layout.by_sample(bench.main())
    if whole is None or layout.samples < 2 or not layout.data or _pairwise(whole, layout):
        raise NotApplicable("no output has one entry for each sample")
    at = layout.samples - 1
    one = _main_for(bench, layout.only(at), 1)
    if one is None or one.shape[1:] != whole.shape[1:]:
        raise CannotTry("one sample alone gave an output of another shape")
    if bench.moved(whole[at], one[0]).any():
        gap = (whole[at] - one[0]).abs().max().item()
        raise Broken(
            f"sample {at} alone gave another output than in the batch of "
            f"{layout.samples}, by up to {gap:.2g}"
        )


def _main_for(bench: Bench, changes: Changes, samples: int, length: int = 0) -> Tensor | None:
    """The main output of a call with another number of samples, samples first."""
    own = bench.layout
    other = Layout(own.live, samples, length or own.length, own.turned)
    return other.by_sample(bench.live.call(changes).main)


def constant(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    if not layout.data or not any(True for _ in bench.live.model.parameters()):
        raise NotApplicable("it has no parameters, or no input that could be changed")
    after = bench.live.call(layout.change_samples(*range(layout.samples))).main
    if after.shape == before.shape and torch.equal(before, after):
        if POSITION.search(f".{type(bench.live.model).__name__.lower()}."):
            raise NotApplicable("a table of positions does not depend on its input")
        raise Broken("other inputs in every sample gave exactly the same output")


# ---------------------------------------------------------------- order


def causality(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    why = bench.promised(
        "causal",
        "nothing says that it is causal: no triangular mask, no targets that are the next inputs",
    )
    rows = layout.by_position(before)
    if rows is None or layout.length < SOME:
        raise NotApplicable("no output has an entry for each of several positions")
    leaves = layout.targets
    groups = [[leaf] for leaf in leaves] if len(leaves) > 1 else [leaves]
    failures = []
    for group in [leaves, *groups] if len(groups) > 1 else groups:
        failure = _leak(bench, group, rows, why)
        if failure is None:
            return
        failures.append(failure)
    raise failures[0]


def _leak(bench: Bench, leaves: list[Leaf], rows: Tensor, why: str) -> Broken | None:
    layout, length = bench.layout, bench.layout.length
    for start in sorted({length - 1, length // 2, 1}, reverse=True):
        changes = layout.change_positions(leaves, start, length)
        after = layout.by_position(bench.live.call(changes).main)
        gone = bench.moved(rows, _like(rows, after))[:, :start]
        if not gone.any():
            continue
        seen = sorted({i[1] for i in gone.nonzero().tolist()})
        gap = (rows - _like(rows, after)).abs()[:, :start].max().item()
        place = bench.blame(changes, partial(_early_rows, bench, start))
        what = " and ".join(leaf.name for leaf in leaves)
        return Broken(
            f"{what} changed from position {start} on, and the output at "
            f"{_named('position', seen)} changed too, by up to {gap:.2g} (causal: {why})",
            place,
        )
    return None


def _early_rows(bench: Bench, start: int, a: Tensor, b: Tensor) -> bool:
    """Whether a value with one axis of positions moved before `start`."""
    axes = [i for i, n in enumerate(a.shape) if n == bench.layout.length]
    if len(axes) != 1 or a.dim() < 2:
        return False
    return bool(bench.moved(a, b).movedim(axes[0], 0)[:start].any())


def position_sensitivity(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    bench.promised("ordered", "nothing says that the order of positions matters")
    length, leaves = layout.length, layout.targets
    if length < SOME + 1 or not leaves:
        raise NotApplicable("no input has several positions")
    one, other = length - 3, length - 2
    after = bench.live.call(layout.swap_positions(leaves, one, other)).main
    rows, new = layout.by_position(before), layout.by_position(after)
    if rows is None or new is None:
        same = (
            layout.by_sample(before) is not None
            and not bench.moved(before, _like(before, after)).any()
        )
        where = "the output"
    else:
        order = torch.arange(length)
        order[one], order[other] = other, one
        turned = not bench.moved(rows.index_select(1, order), new).any()
        late = not bench.moved(rows[:, -1], new[:, -1]).any()
        same = turned or (late and "causal" in bench.promises)
        where = f"the output at position {length - 1}"
    if same:
        raise Broken(
            f"positions {one} and {other} were swapped, and {where} stayed the same: the "
            f"order of positions makes no difference ({bench.promises['ordered']})"
        )


# ---------------------------------------------------------------- modes


def train_mode(bench: Bench) -> None:
    live = bench.live
    before = {n: b.clone() for n, b in live.model.named_buffers()}
    one, other = (live.call({}, train=True, seed=seed) for seed in (1, 2))
    changed = [n for n, b in live.model.named_buffers() if _differs(before.get(n), b)]
    with torch.no_grad():
        for name, buffer in live.model.named_buffers():
            if name in changed:
                buffer.copy_(before[name])
    live.model.eval()
    name, out = next(iter(bench.before.tensors.items()), ("", Tensor()))
    mine = one.tensors.get(name)
    if mine is None or mine.shape != out.shape:
        raise CannotTry("in train mode it returns something else")
    norms = [m for m in live.model.modules() if isinstance(m, nn.modules.batchnorm._NormBase)]
    random = bench.moved(mine, _like(mine, other.tensors.get(name))).any()
    if not random and not changed and not norms and bench.moved(out, mine).any():
        gap = (out - mine).abs().max().item()
        raise Broken(
            f"train and eval mode differ by up to {gap:.2g}, and neither dropout nor "
            "batch norm explains it"
        )


# ---------------------------------------------------------------- comparing


def _gap(out: Tensor, other: Tensor | None) -> float:
    return (out - _like(out, other)).abs().max().item()


def _like(out: Tensor, other: Tensor | None) -> Tensor:
    """The other output, where it has the same shape; raises `CannotTry` where it has not."""
    if other is None or other.shape != out.shape:
        raise CannotTry("another call returned an output of another shape")
    return other


def _differs(before: Tensor | None, now: Tensor) -> bool:
    return before is None or before.shape != now.shape or not torch.equal(before, now)


def _named(noun: str, numbers: Sequence[int]) -> str:
    """`samples 1 to 3`, `position 4`."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return f"{noun} {first}"
    if list(numbers) == list(range(first, last + 1)):
        return f"{noun}s {first} to {last}"
    return f"{noun}s {', '.join(map(str, numbers[:5]))}"
