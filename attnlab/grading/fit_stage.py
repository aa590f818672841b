"""The fit stage: find, by trying, what a forward takes whose source does not say it.

Calls are cheap at the sizes of an example. Each call that fails is told by how many operations it
came to, and by the numbers of its message; the inputs that came farthest are changed further, one
argument, axis or size at a time. What a layer took as it came is not changed any more.
"""

from __future__ import annotations

import heapq
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from attnlab.candidate.host import Host, checked_answer
from attnlab.catalogue.inputs import parse_input
from attnlab.catalogue.literals import Scalar
from attnlab.grading.example_run import SEED, build_example
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.source_text import numbers_in
from attnlab.records import Contract, Fit, Input, Job
from attnlab.sizes import UnknownSize, constructor_arguments, measure, with_head_dim
from attnlab.target.conventions import names_mask

TRIES = 400
SECONDS = 2.5  # of CPU
PATIENCE = 20.0  # seconds
MORE = 40  # tries after one that ran, though with axes to flatten that were not there
LARGEST = 4096  # of the numbers of a message that are tried as sizes
PICTURES = range(7, 225)  # pixels of a side
LENGTHS = ("S", "T", "L")
USUAL_LENGTHS = (16, 4, 64)  # squares, as of positions on a grid
DEFAULTS, OTHER = {"B": 2, "S": 5, "D": 12, "H": 3}, 7  # sizes of symbols that have none
# What an argument may be, the most usual first. Numbers are replaced by those that messages name.
FORMS = (
    *("B S D", "B D", "B S int", "B D S", "B 3 32 32", "B int", "B 3 S D", "B S S D", "B D 8 8"),
    *("B S S", "B S", "B S bool allows", "B int lengths", "B S S bool forbids", "S D", "B H S hd"),
    *("S int", "B 1 32 32", "B", "B S S int", "D", "B 3 8 32 32", "B 8 3 32 32"),
)
MASKS = ("B S", "B S S", "B 1 S S", "B 1 1 S", "S S")
FRAMES = range(2, 17)  # of a video
VALUES = (None, 1)  # of an argument that is no tensor
IDS = r"(^|_)(ids?|idx|index|cat|toks?|tokens|words|chars|items?|labels?)(_|$)"
NAMED = (
    (re.compile(r"mask|valid|keep|visible"), ("B S bool allows", "B S S bool allows")),
    (re.compile(r"len(gth)?s?$"), ("B int lengths",)),
    (re.compile(IDS), ("B S int", "B int")),
    (re.compile(r"feat|emb|vec|latent|style"), ("B D", "B S D", "B D 8 8")),
    (re.compile(r"img|image|pixel|frame|pic|patch"), ("B 3 32 32", "B D", "B S D")),
    (re.compile(r"video|clip"), ("B 3 8 32 32", "B 8 3 32 32")),
)
BEYOND = re.compile(r"index \d+ is out of bounds for dimension (\d+) with size (\d+)")
IDLE = "nothing to flatten"
THIN = "an axis of size 1, which fits by broadcasting"
Failure = tuple[int, str]  # after so many operations, what was raised


@dataclass(order=True)
class _Try:
    """Inputs that were tried: the farther they came, the sooner they are changed further."""

    key: tuple[int, int, int, int]  # less is better: operations, same failures, changes, order
    changes: int = field(compare=False)
    contract: Contract = field(compare=False)
    raised: str = field(compare=False)
    others: Iterator[Contract] = field(compare=False)  # what is tried next


def fit_inputs(job: Job, host: Host) -> Fit | None:
    """The inputs and sizes with which a call runs to its end; None where none were found. Free are
    the arguments in `job.guessed`, wholly those in `job.unknown`."""
    assert job.contract is not None
    build_example(job, host, job.contract, with_head_dim(job.contract.sizes))
    search, until = _Search(job, host), time.monotonic() + PATIENCE
    tried = search.attempt(job.contract, 0)
    waiting = [tried]
    while tried.raised and not search.over and time.monotonic() < until:
        other = next((c for c in waiting[0].others if _key(c) not in search.seen), None)
        if other is not None:
            tried = search.attempt(other, waiting[0].changes + 1)
            heapq.heappush(waiting, tried)
        elif len(waiting) > 1:
            heapq.heappop(waiting)
        else:
            break
    found = search.second_best if tried.raised else tried.contract
    if found is None:
        return None
    return Fit(inputs=found.inputs, arguments=found.arguments, sizes=found.sizes)


class _Search:
    """What was tried of one module, and how it failed."""

    def __init__(self, job: Job, host: Host) -> None:
        self.job, self.host = job, host
        self.seen: set[str] = set()
        self.failures: Counter[Failure] = Counter()
        self.spent = 0.0  # seconds of CPU
        self.second_best: Contract | None = None  # it ran, but as IDLE or THIN says
        self.tries = TRIES

    @property
    def over(self) -> bool:
        return self.spent > SECONDS or len(self.seen) > self.tries

    def attempt(self, contract: Contract, changes: int) -> _Try:
        """A call as the contract says."""
        self.seen.add(_key(contract))
        count, taken, idle, raised = self._call(contract)
        if raised in (IDLE, THIN) and self.second_best is None:
            self.second_best, self.tries = contract, min(len(self.seen) + MORE, TRIES)
        self.failures[count, raised] += 1
        far = 0 if raised == IDLE else count  # as far as it came, it went wrong at the start
        key = (-far, self.failures[count, raised], changes, len(self.seen))
        others = _changed(_State(self.job, contract, taken, idle, raised))
        return _Try(key, changes, contract, raised, others)

    def _call(self, contract: Contract) -> tuple[int, frozenset[str], frozenset[str], str]:
        """How many operations ran, what layers took, what had no axes to flatten, and what the call
        raised."""
        sizes = with_head_dim(contract.sizes)
        try:
            inputs = draw.inputs(contract, sizes, Dice(SEED), contract.example_mask)
        except (UnknownSize, IndexError, RuntimeError):
            return 0, frozenset(), frozenset(), "cannot be drawn"
        arguments = constructor_arguments(contract.arguments, sizes)
        drawn = list(inputs.items())
        answer = checked_answer(self.host.ask("attempt", inputs=drawn, arguments=arguments))
        taken, idle = (frozenset(map(str, answer.get(key, ()))) for key in ("taken", "idle"))
        self.spent += float(answer.get("seconds", 0.0))
        raised = str(answer.get("error", "")) or (IDLE if idle else "")
        raised = raised or (THIN if self._thin(contract) else "")
        return int(answer.get("count", 0)), taken, idle, raised

    def _thin(self, contract: Contract) -> list[str]:
        """Symbols of guessed axes whose size is 1 though nobody said so."""
        guessed = (i for i in contract.inputs if i.argument in self.job.guessed)
        axes = {axis for entry in guessed for axis in entry.axes}
        return [s for s, n in contract.sizes.items() if n == 1 and s in axes - set(self.job.stated)]


def _key(contract: Contract) -> str:
    return f"{contract.inputs} {sorted(contract.sizes.items())} {contract.arguments}"


# ---------------------------------------------------------------- what is tried next


@dataclass(frozen=True)
class _State:
    """A contract with which a call failed."""

    job: Job
    contract: Contract
    taken: frozenset[str]
    idle: frozenset[str]
    raised: str

    @property
    def numbers(self) -> list[int]:
        """The numbers of the message, which may be sizes, the last ones first."""
        found = [int(n) for n in re.findall(r"\d+", self.raised)]
        return [n for n in reversed(found) if 0 < n <= LARGEST]

    @property
    def free(self) -> list[Input]:
        """The inputs that may be changed."""
        job = self.job
        return [
            i
            for i in self.contract.inputs
            if i.argument in job.unknown or (i.argument in job.guessed and i.name not in self.taken)
        ]

    def size(self, axis: str) -> int:
        try:
            return measure(axis, with_head_dim(self.contract.sizes))
        except UnknownSize:
            return 0

    def with_input(self, entry: Input) -> Contract:
        """The contract with another input of that name, and sizes for its new symbols."""
        contract = self.contract
        inputs = tuple(entry if i.name == entry.name else i for i in contract.inputs)
        needed = set(re.findall(r"[A-Z]\w*|hd", " ".join(entry.axes)))
        needed = needed - {"hd"} | {"D", "H"} if "hd" in needed else needed
        fresh = {s: DEFAULTS.get(s, OTHER) for s in needed}
        return replace(contract, inputs=inputs, sizes={**fresh, **contract.sizes})

    def with_axis(self, entry: Input, place: int, size: int) -> Contract:
        axes = (*entry.axes[:place], str(size), *entry.axes[place + 1 :])
        return self.with_input(replace(entry, axes=axes))

    def with_size(self, symbol: str, size: int) -> Contract:
        return replace(self.contract, sizes={**self.contract.sizes, symbol: size})

    def with_value(self, name: str, value: Scalar | None) -> Contract:
        inputs = tuple(i for i in self.contract.inputs if i.name != name)
        return replace(
            self.contract, inputs=inputs, arguments={**self.contract.arguments, name: value}
        )


def _changed(state: _State) -> Iterator[Contract]:
    """Contracts that differ from one that failed in one argument, axis or size."""
    yield from _on_grids(state)
    yield from _wider(state)
    yield from _as_ids(state)
    yield from _longer(state)
    yield from _other_axes(state)
    yield from _of_pairs(state)
    yield from _other_lengths(state)
    yield from _other_forms(state)
    yield from _without_batch(state)


def _on_grids(state: _State) -> Iterator[Contract]:
    """All inputs that had no axes to flatten, as pictures or on a grid."""
    for form in ("B D 8 8", "B 3 32 32", "B 3 S D") if state.idle else ():
        axes = tuple(form.split())
        inputs = (
            replace(i, axes=axes) if i.name in state.idle else i for i in state.contract.inputs
        )
        contract = replace(state.contract, inputs=tuple(inputs))
        yield replace(contract, sizes={**DEFAULTS, **contract.sizes})


def _wider(state: _State) -> Iterator[Contract]:
    """Usual sizes of symbols of size 1, where that may fit by broadcasting alone."""
    thin = (s for s, n in state.contract.sizes.items() if n == 1 and state.raised == THIN)
    yield from (state.with_size(symbol, DEFAULTS.get(symbol, OTHER)) for symbol in thin)


def _as_ids(state: _State) -> Iterator[Contract]:
    """Ids in place of numbers, or smaller ones, where the message is about ids."""
    if re.search(r"scalar types: Long, Int|tensors of integer|must be tensors used", state.raised):
        floats = (i for i in state.free if i.dtype == "float")
        yield from (state.with_input(replace(i, dtype="int", axes=i.axes[:2])) for i in floats)
    if "index out of range in self" in state.raised:
        yield from (state.with_size("V", n) for n in (4, 2))


def _longer(state: _State) -> Iterator[Contract]:
    """More entries along an axis beyond whose end one was asked for."""
    beyond = BEYOND.search(state.raised)
    place, size = map(int, beyond.groups()) if beyond else (-1, 0)
    for entry in state.free:
        if 0 <= place < len(entry.axes) and state.size(entry.axes[place]) == size:
            yield from (state.with_axis(entry, place, n) for n in (size + 1, 2 * size))


def _other_axes(state: _State) -> Iterator[Contract]:
    """Axes of a size that the message names with another one that it names."""
    numbers = sorted(dict.fromkeys(state.numbers), key=lambda n: n == 1)  # 1 fits by chance
    for entry in state.free:
        if entry.role == "mask" and entry.argument not in state.job.unknown:
            continue
        for place, axis in reversed([*enumerate(entry.axes)]):
            fixed = ("B", *LENGTHS) if len(entry.axes) < 4 else ("B",)
            if state.size(axis) in numbers and axis not in fixed:
                others = (n for n in numbers if n != state.size(axis))
                yield from (state.with_axis(entry, place, n) for n in others)
    for entry in (i for i in state.contract.inputs if i.argument in state.job.guessed):
        if state.raised != IDLE and entry.dtype == "float":  # a convolution takes any size
            pictures = _pictures(len(entry.axes), numbers_in(state.job.candidate.text))
            yield from (state.with_input(replace(entry, axes=axes)) for axes in pictures)


def _pictures(rank: int, named: Iterable[int]) -> Iterator[tuple[str, ...]]:
    """The axes of pictures, of rank 4, and of videos, of rank 5, by the numbers of the source."""
    numbers = sorted(set(named), reverse=True)
    sides = [str(n) for n in dict.fromkeys((*(n for n in numbers if n in PICTURES), 16, 28, 64))]
    if rank == 4:
        yield from (("B", colors, side, side) for side in sides for colors in ("3", "1"))
    for frames in (str(n) for n in numbers if n in FRAMES) if rank == 5 else ():
        for side in sides:
            yield "B", "3", frames, side, side
            yield "B", frames, "3", side, side


def _of_pairs(state: _State) -> Iterator[Contract]:
    """A vector for each pair of positions, as of edges, even where a layer took one for each."""
    for entry in state.contract.inputs if "invalid for input of size" in state.raised else ():
        if entry.argument in state.job.guessed and entry.role == "data" and len(entry.axes) == 3:
            batch, length, width = entry.axes
            yield state.with_input(replace(entry, axes=(batch, length, length, width)))


def _other_lengths(state: _State) -> Iterator[Contract]:
    """Another number of positions: one that the message names, or a square."""
    sizes, numbers, guessed = state.contract.sizes, state.numbers, state.job.guessed
    for symbol in (s for s in LENGTHS if s in sizes and s not in state.job.stated):
        meets = [n for n in numbers if n > 1] if sizes[symbol] in numbers else []
        lengths = dict.fromkeys((*meets, *USUAL_LENGTHS))
        for entry in (i for i in state.contract.inputs if len(i.axes) > 3 and i.name in guessed):
            places = [place for place, axis in enumerate(entry.axes) if axis == symbol]
            yield from (state.with_axis(entry, p, n) for p in places for n in meets)
        yield from (state.with_size(symbol, n) for n in lengths)


def _other_forms(state: _State) -> Iterator[Contract]:
    """Other axes altogether, or, where nothing says what it is, no tensor."""
    for entry in state.free:
        unknown = entry.argument in state.job.unknown
        if entry.role == "mask" and not unknown:
            others = (replace(entry, axes=tuple(form.split())) for form in MASKS)
            yield from (state.with_input(o) for o in others if len(o.axes) != len(entry.axes))
        if not unknown and entry.role != "data":
            continue
        named = (form for name, forms in NAMED if name.search(entry.name) for form in forms)
        for form in dict.fromkeys((*named, *FORMS)):
            if "bool" not in form or names_mask(entry.name):
                yield state.with_input(parse_input(f"{entry.name}: {form}"))
        if unknown and len(state.contract.inputs) > 1:
            yield from (state.with_value(entry.name, value) for value in VALUES)


def _without_batch(state: _State) -> Iterator[Contract]:
    """All inputs without a batch, as graphs have none."""
    inputs = state.contract.inputs
    if state.free and all(i.axes[:1] == ("B",) and len(i.axes) > 1 for i in inputs):
        alone = tuple(replace(i, axes=i.axes[1:]) for i in inputs)
        yield replace(state.contract, inputs=alone)
