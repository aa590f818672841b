"""What stands around the steps of a script: schedules, loaders, copies that follow, seeds."""

from __future__ import annotations

import gc
import linecache
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from statistics import median_high as median
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, Subset

from attnlab.tracer.nested_tensors import tensors_in
from attnlab.training.log import Follower, Loader, Schedule
from attnlab.training.patches import Patches

HELD_OUT = re.compile(r"val|test|eval|dev|held", re.IGNORECASE)
FOLLOWED = 4  # copies
MOST = 1 << 22  # weights of a model whose copies are followed
LOW, LONGEST = 0.2, 4000  # of its top that a rate begins with; moves that are looked ahead
ROWS = 20_000  # rows of data sets that are compared
Place = tuple[str, int]
Tensors = dict[str, Tensor]


class Surroundings:
    """Watches them; `place` tells where the script is."""

    def __init__(self, patches: Patches, place: Callable[[], Place]) -> None:
        self.place, self.steps, self.active = place, 0, True
        self.started: Callable[[DataLoader[Any]], object] = lambda _: None
        self._moves: dict[int, list[Any]] = {}  # scheduler, place, moves, moves with a step each
        self._moved_at = -1
        self._loaders: dict[int, tuple[DataLoader[Any], Place]] = {}
        self._starts: dict[int, list[Place]] = defaultdict(list)
        self._seeds: list[tuple[int, Place]] = []  # after the first step
        # Of each copy: its kind, its tensors, and those that it is a copy of.
        self._copies: list[tuple[str, Tensors, Tensors]] | None = None
        self._before: list[tuple[Tensors, ...]] = []
        self._aliased = False  # what should be a copy is the model itself
        self._shares: dict[int, list[float]] = defaultdict(list)
        patches.put(DataLoader, "__init__", self._loading)
        patches.put(DataLoader, "__iter__", self._starting)
        patches.put(torch, "manual_seed", self._seeding)

    # ------------------------------------------------------------ what the script calls

    def know(self, scheduler: Any, place: Place) -> None:
        """A scheduler is being made, or is about to step."""
        if self.active:
            self._moves.setdefault(id(scheduler), [scheduler, place, 0, 0])

    def move(self, scheduler: Any, place: Place) -> None:
        """A scheduler is about to step."""
        if not self.active:
            return
        entry = self._moves[id(scheduler)]
        entry[1] = place
        entry[2] += 1
        entry[3] += self._moved_at != self.steps
        self._moved_at = self.steps

    def _loading(self, function: Callable[..., None]) -> Callable[..., None]:
        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            function(loader, *args, **kwargs)
            self._loaders[id(loader)] = (loader, self.place())

        return init

    def _starting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def iterate(loader: Any) -> Any:
            self.started(loader)
            if self.active:
                self._starts[id(loader)].append(self.place())
            return function(loader)

        return iterate

    def _seeding(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def seed(value: Any) -> Any:
            if self.steps and self.active:
                self._seeds.append((int(value), self.place()))
            return function(value)

        return seed

    # ------------------------------------------------------------ copies of the model

    def after_step(self, owned: set[int]) -> None:
        """Note how far each copy went towards what it is a copy of since the step before; `owned`
        are the ids of what optimizers move."""
        self.steps += 1
        if self._copies is None and self.steps == 2:
            found = list(islice(_copies(owned), 2 * FOLLOWED))
            self._copies = [copy for copy in found if copy[0] != "alias"]
            self._aliased = len(self._copies) < len(found)
        if not self._copies:
            return
        try:
            self._note_shares()
        except RuntimeError:  # a tensor of a transform that is over
            self._copies = []

    def _note_shares(self) -> None:
        now = [
            tuple({n: t.detach().clone() for n, t in held.items()} for held in pair)
            for _, *pair in self._copies or ()
        ]
        for number, (new, old) in enumerate(zip(now, self._before, strict=False)):
            share = _share(new[0], old[0], old[1])
            if share is not None:
                self._shares[number].append(share)
        self._before = now

    # ------------------------------------------------------------ what was seen

    def schedules(self) -> Iterator[Schedule]:
        for scheduler, place, moves, shared in self._moves.values():
            factors = _factors(scheduler)
            grows = factors[-1:] > factors[LONGEST // 2 :][:1]
            several = len(set(vars(scheduler).get("lr_lambdas", ()))) > 1  # one for each group
            yield Schedule(
                kind=type(scheduler).__name__,
                file=place[0],
                line=place[1],
                moves=moves,
                horizon=_horizon(scheduler),
                warm_up=_warm_up(scheduler),
                peak=0.0 if grows or several else max(factors, default=0.0),
                base=next(iter(getattr(scheduler, "base_lrs", ())), 0.0),
                shared=shared,
            )

    def loaders(self) -> Iterator[Loader]:
        known = list(self._loaders.values())
        rows = [_rows(loader.dataset) for loader, _ in known]
        for number, (loader, place) in enumerate(known):
            starts = self._starts[id(loader)]
            share, twin = 0.0, 0
            if HELD_OUT.search(linecache.getline(*place).partition("=")[0]):
                # Of those that one line made, as for each fold, the nearest belongs to it.
                order = sorted(range(len(known)), key=lambda o: (-abs(o - number), o < number))
                nearest = {known[other][1]: other for other in order}
                for other in nearest.values():
                    trained, at = known[other]
                    theirs = HELD_OUT.search(linecache.getline(*at).partition("=")[0])
                    trains = not theirs and bool(self._starts[id(trained)])
                    if rows[number] and other != number and trains:
                        both = len(rows[number] & rows[other]) / len(rows[number])
                        share, twin = max((share, twin), (both, at[1]))
            try:
                batches = len(loader)
            except TypeError:
                batches = 0
            yield Loader(
                file=place[0],
                line=place[1],
                batches=batches,
                starts=len(starts),
                started=starts[-1] if starts else ("", 0),
                shuffles=isinstance(loader.sampler, RandomSampler),
                shared=share,
                twin=twin,
            )

    def followers(self, model: nn.Module | None) -> Iterator[Follower]:
        for number, shares in self._shares.items():
            if self._copies and len(shares) > 1:
                share, kind = median(shares), self._copies[number][0]
                beside = kind != "buffers" or median(self._shares[number - 1] or [0.0]) > 0
                if beside:  # of a copy that follows
                    yield Follower(kind=kind, share=share)
        self._copies, self._before = [], []  # no later run takes them for copies of its own
        if self._aliased:
            yield Follower(kind="alias", share=1.0)
        if model is not None and any(_is_state(o, model) for o in gc.get_objects()):
            yield Follower(kind="reference", share=1.0)

    def seeded(self) -> tuple[str, int, int]:
        values = {value for value, _ in self._seeds}
        if len(values) != 1:
            return "", 0, 0
        return (*self._seeds[0][1], len(self._seeds))


def _share(
    new: Mapping[str, Tensor], old: Mapping[str, Tensor], online: Mapping[str, Tensor]
) -> float | None:
    """Of the way from a copy to the model, how much one update went; None where there is none."""
    way = went = 0.0
    for name, before in old.items():
        distance = (online[name] - before).double()
        way += float((distance * distance).sum())
        went += float(((new[name] - before).double() * distance).sum())
    return went / way if way > 1e-12 else None


def _copies(owned: set[int]) -> Iterator[tuple[str, Tensors, Tensors]]:
    """Modules that no optimizer moves beside alike ones that one moves, with the buffers of the
    largest, and dicts of tensors by the names of a module's parameters."""
    things = gc.get_objects()
    # By their types: an object may answer `isinstance` with code of its own.
    modules: list[nn.Module] = [t for t in things if issubclass(type(t), nn.Module)]
    moved: dict[Any, Tensors] = {}
    still: list[tuple[Any, Tensors]] = []
    buffers: dict[int, Tensors] = {}  # by the dict of the parameters beside them
    for module in modules:
        held: Tensors = dict(module.named_parameters())
        if len(held) < 2 or sum(t.numel() for t in held.values()) > MOST:
            continue
        key = (type(module), tuple((n, t.shape) for n, t in held.items()))
        mine = [id(t) in owned for t in held.values()]
        buffers[id(held)] = {n: t for n, t in module.named_buffers() if t.is_floating_point()}
        if all(mine):
            moved[key] = held
        elif not any(mine):
            still.append((key, held))
    pairs = [(held, moved[key]) for key, held in still if key in moved]
    pairs.sort(key=lambda pair: len(pair[0]))  # whole models last, before their parts the newest
    for copy, online in pairs[-FOLLOWED:]:
        yield "copy", copy, online
        if buffers[id(copy)]:
            yield "buffers", buffers[id(copy)], buffers[id(online)]
    most = max(map(len, moved.values()), default=0)
    for own in (held for held in moved.values() if len(held) == most):  # a model, and its only part
        yield from ((kind, kept, own) for kind, kept in _dicts_like(own, things))


def _dicts_like(own: Tensors, things: list[Any]) -> Iterator[tuple[str, Tensors]]:
    """Dicts of tensors that have the names of these, and their own memory; or, as an "alias", the
    memory of these themselves, as `p.data` has."""
    for thing in things:
        if type(thing) in (dict, OrderedDict) and own.keys() <= thing.keys():
            kept = {n: thing[n] for n in own}
            alike = (isinstance(t, Tensor) and t.shape == own[n].shape for n, t in kept.items())
            if all(alike):
                known = {_memory(t) for t in own.values()}
                shared = [_memory(t) in known for t in kept.values()]
                if not any(shared):
                    yield "dict", kept
                elif all(shared) and {type(t) for t in kept.values()} == {Tensor}:
                    yield from () if hasattr(thing, "_metadata") else (("alias", kept),)


def _memory(tensor: Tensor) -> int:
    """Where its numbers lie; wrappers of transforms have no such place."""
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        return id(tensor)


def _is_state(thing: object, model: nn.Module) -> bool:
    """A `state_dict()` that is kept, and changes as the model does."""
    if type(thing) is not OrderedDict or not hasattr(thing, "_metadata"):
        return False
    own = dict(model.named_parameters())
    names = own.keys() & thing.keys()
    return len(names) > 2 and all(
        isinstance(t := thing[n], Tensor) and _memory(t) == _memory(own[n]) for n in names
    )


def _horizon(scheduler: Any) -> int | None:
    """After how many moves a schedule is over; None where it does not say."""
    known = vars(scheduler)
    if milestones := known.get("milestones"):
        return int(max(milestones))
    for name in ("T_max", "total_steps", "total_iters", "T_0", "step_size"):
        if isinstance(known.get(name), int):
            return int(known[name])
    return None


def _factors(scheduler: Any) -> list[float]:
    """What the rate of the first group is multiplied with, move by move."""
    functions = [f for f in vars(scheduler).get("lr_lambdas", ())[:1] if callable(f)]
    try:
        return [float(f(n)) for f in functions for n in range(LONGEST)]
    except Exception:  # of a function of the script's own
        return []


def _warm_up(scheduler: Any) -> int:
    """After how many moves a rate that begins low comes near its top; 0 where it does not."""
    known = vars(scheduler)
    if "start_factor" in known and known["start_factor"] < LOW:
        return int(known["total_iters"])
    factors = _factors(scheduler)
    top = max(factors, default=0.0)
    if top <= 0 or factors[0] > LOW * top:
        return 0
    return next(n for n, factor in enumerate(factors) if factor > 0.9 * top)


def _windows_overlap(data: Any) -> bool:
    """Whether a row, moved on by one, is the row before it: windows of one text."""
    try:
        rows = [next(iter(tensors_in(data[index])), None) for index in (0, 1)]
    except Exception:
        return False
    first, second = rows
    if first is None or second is None or first.dim() != 1 or len(first) < 4:
        return False
    return first.shape == second.shape and torch.equal(first[1:], second[:-1])


def _rows(data: Any) -> frozenset[tuple[int, Any]]:
    """The rows of a data set, each by the object that it lies in and its index."""
    try:
        count = len(data)
    except TypeError:
        return frozenset()
    if isinstance(data, Subset):
        indices = [int(index) for index in list(data.indices)[:ROWS]]
        near = (-1, 0, 1) if _windows_overlap(data.dataset) else (0,)
        return frozenset((id(data.dataset), index + step) for index in indices for step in near)
    return frozenset((id(data), index) for index in range(min(count, ROWS)))
