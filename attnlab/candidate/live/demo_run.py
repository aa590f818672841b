"""What a demo shows beyond its first call: steps with a cache beside one pass over all that they
were given, and equal calls of its functions that give different results."""

from __future__ import annotations

import copy
import inspect
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from attnlab.candidate.live.batch import fresh
from attnlab.candidate.live.bench import largest_gap, numbered
from attnlab.candidate.live.watching import Place, place_of_call
from attnlab.tracer.bind_arguments import bound_arguments, keyword_arguments
from attnlab.tracer.call_setup import uncompiled
from attnlab.tracer.decoding import TOLERANCE, ValuesByLine, first_difference, output_of
from attnlab.tracer.demo_recorder import StopDemo

SECONDS = 4.0  # after which a demo is stopped
MOST = 100  # calls that are looked at
LARGEST = 1 << 22  # elements of a model or value that is copied
DEEPEST = 5  # objects within each other
# Names of functions whose results are meant to depend on the calls before.
GOES_ON = re.compile(
    r"^_|step|next|upda?te?|push|append|feed|stream|write|insert|put|extend|add|chat|reply|say|talk"
    r"|train|fit|learn|sample|decode|fill|time|bench|forward"
)


class Fault(NamedTuple):
    """A property by its id, and how a demo breaks it; "" where it holds."""

    id: str
    message: str


class _Call(NamedTuple):
    """A call of a module, with copies of what it was given."""

    module: nn.Module
    unused: nn.Module | None  # a copy from before the first call
    name: str  # the argument that holds the positions
    given: dict[str, Any]
    before: dict[str, float]  # the tensors of the other arguments, each with a sum of its values
    after: dict[str, float]
    out: Tensor | None
    place: Place
    kept: Any  # the objects themselves, so that no other gets their identity

    @property
    def positions(self) -> Tensor:
        found: Tensor = self.given[self.name]
        return found

    @property
    def length(self) -> int:
        return self.positions.shape[1]


class _Result(NamedTuple):
    """A call of a function of the file."""

    given: Any
    returned: list[Tensor]
    state: dict[str, Any]  # of the objects it was given, before the call
    drew: bool


class DemoRun:
    """Watches a demo while it runs; `faults` are then what its calls break."""

    def __init__(self, file: str) -> None:
        self.file, self.ends = file, time.monotonic() + SECONDS
        self.calls: list[_Call] = []
        self.results: dict[tuple[str, int], list[_Result]] = defaultdict(list)
        self.weights: dict[int, tuple[nn.Module, int]] = {}  # sums of versions at the first call
        self.inside = 0
        self.begun: Any = None  # a call of a module that has not ended
        self.running: dict[int, tuple[tuple[str, int], Any, dict[str, Any], int]] = {}
        self.copies: dict[int, nn.Module] = {}

    def __enter__(self) -> Self:
        self.hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        self.profile = sys.getprofile()
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self.profile)
        for hook in self.hooks:
            hook.remove()

    def faults(self) -> Iterator[Fault]:
        with torch.no_grad(), uncompiled():
            yield from _steps_beside_one_pass(list(self._chains()), self.file)
        if all(_versions(module) == then for module, then in self.weights.values()):
            yield from self._equal_calls()

    # ------------------------------------------------------------ calls of modules

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        self.inside += 1
        if self.inside > 1 or len(self.calls) >= MOST:
            return
        if time.monotonic() > self.ends:
            raise StopDemo
        if id(module) not in self.weights:
            self.weights[id(module)] = (module, _versions(module))
            size = sum(t.numel() for t in (*module.parameters(), *module.buffers()))
            if size <= LARGEST:
                with suppress(Exception):  # one that cannot be copied is not called again
                    self.copies[id(module)] = copy.deepcopy(module)
        kwargs = keyword_arguments(sys._getframe(1))
        bound = bound_arguments(module, args, kwargs)
        name = next((n for n, v in bound.items() if _runs_along_positions(v)), "")
        if name and not module.training:
            others = {n: v for n, v in bound.items() if n != name}
            given = fresh(bound, {})
            self.begun = (module, name, given, others, _sums(others), place_of_call())

    def _leave(self, module: nn.Module, args: Any, out: Any) -> None:  # noqa: ARG002
        self.inside = max(self.inside - 1, 0)
        if self.inside or self.begun is None:
            return
        of, name, given, others, before, place = self.begun
        self.begun = None
        main = output_of(out)
        made = None if main is None else main.detach().clone()
        left = _sums((others, out))
        unused = self.copies.get(id(of))
        call = _Call(of, unused, name, given, before, left, made, place, (others, out))
        self.calls.append(call)

    def _chains(self) -> Iterator[list[_Call]]:
        chain: list[_Call] = []
        for call in self.calls:
            if chain and _goes_on(chain[-1], call):
                chain.append(call)
                continue
            if len(chain) > 1:
                yield chain
            chain = [call]
        if len(chain) > 1:
            yield chain

    # ------------------------------------------------------------ calls of functions

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            if time.monotonic() > self.ends:
                raise StopDemo
            line = self._called_at(frame)
            if line and sum(map(len, self.results.values())) < MOST:
                names = inspect.getargs(frame.f_code)
                given = {n: frame.f_locals.get(n) for n in (*names.args, *filter(None, names[1:]))}
                key = (frame.f_code.co_qualname, line)
                self.running[id(frame)] = (key, _frozen(given), _state(given), _dice())
        elif event == "return" and id(frame) in self.running:
            key, args, state, dice = self.running.pop(id(frame))
            drew = dice != _dice()
            self.results[key].append(_Result(args, _copies(arg), state, drew))

    def _called_at(self, frame: FrameType) -> int:
        """The line of the demo's top level, or of its `main()`, that calls a function of the file;
        0 for other calls."""
        code = frame.f_code
        plain = not code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE)
        if code.co_filename != self.file or not plain or GOES_ON.search(code.co_name.lower()):
            return 0
        caller = self._above(frame)
        if caller is None or code.co_name.startswith("<"):
            return 0
        top = caller.f_code.co_name == "<module>"
        above = None if top else self._above(caller)
        main = above is not None and above.f_code.co_name == "<module>"
        plain_main = main and not caller.f_code.co_argcount
        return caller.f_lineno if top or plain_main else 0

    def _above(self, frame: FrameType) -> FrameType | None:
        """The caller of a frame in the same file, decorators of torch between them left aside."""
        above = frame.f_back
        for _ in range(4):
            if above is None or above.f_code.co_filename == self.file:
                return above
            above = above.f_back
        return None

    def _equal_calls(self) -> Iterator[Fault]:
        for (name, line), results in self.results.items():
            first = results[0]
            if len(results) < 2 or any(r.given != first.given or r.drew for r in results):
                continue
            gap = max(_gap(first.returned, r.returned) for r in results[1:])
            if not gap:
                continue
            moved = [p for p, s in results[1].state.items() if first.state.get(p) != s]
            yield Fault(
                "second-call",
                f"the demo calls {name} (line {line}) {len(results)} times with equal arguments, "
                f"and what it returned differs by up to {gap:.2g}, though nothing random was "
                f"drawn{_grown(moved[0], first, results[1]) if moved else ''}",
            )
            return


def _grown(path: str, first: _Result, second: _Result) -> str:
    was, now = first.state.get(path), second.state[path]
    before = f"was {was[0]} before the first call" if was else "was not there before the first"
    return f": {path} {before}, and is {now[0]} before the second"


# ---------------------------------------------------------------- steps beside one pass


def _runs_along_positions(value: Any) -> bool:
    if not isinstance(value, Tensor) or value.is_nested:
        return False
    ids = value.dim() == 2 and not value.is_floating_point() and value.dtype is not torch.bool
    return ids or (value.dim() == 3 and value.is_floating_point())


def _goes_on(last: _Call, call: _Call) -> bool:
    """Whether a call takes up what the one before it left in its cache, and just that."""
    if call.module is not last.module or call.name != last.name:
        return False
    if call.positions.shape[0] != last.positions.shape[0]:
        return False
    taken = {n: s for n, s in call.before.items() if s is not None}
    made = {n: s for n, s in taken.items() if last.before.get(n) != s}  # by the last call
    return bool(made) and all(last.after.get(n) == s for n, s in taken.items())


def _steps_beside_one_pass(chains: list[list[_Call]], file: str) -> Iterator[Fault]:
    for chain in chains:
        message = _broken_chain(chain, file)
        if message is not None:
            yield Fault("prefill-equals-decode", message)
            if message:
                return


def _broken_chain(chain: list[_Call], file: str) -> str | None:
    """How steps differ from one pass over what they were given; None where that cannot be told."""
    model, given = chain[0].unused, _one_pass(chain)
    total = sum(call.length for call in chain)
    holds_all = any(n >= total for t in _tensors(chain[-1].kept) for n in t.shape[1:-1])
    if model is None or given is None or not holds_all:
        return None
    try:
        with ValuesByLine(file) as full:
            whole = output_of(copy.deepcopy(model)(**fresh(given, {})))
    except Exception:  # what is put together here may not be what it takes
        return None
    if whole is None or whole.dtype not in (torch.float32, torch.float64) or whole.dim() < 2:
        return None
    start = 0
    for number, call in enumerate(chain):
        end = start + call.length
        rows = _rows(whole, call, start, end, total)
        if rows is not None and call.out is not None and rows.shape == call.out.shape:
            gap = largest_gap(rows, call.out)
            if not gap <= TOLERANCE * max(rows.abs().max().item(), 1e-3):
                return _told(chain, number, (start, end, total), gap, file, full)
        start = end
    return ""


def _told(
    chain: list[_Call],
    number: int,
    span: tuple[int, int, int],
    gap: float,
    file: str,
    full: ValuesByLine,
) -> str:
    start, end, total = span
    call, model = chain[number], chain[0].unused
    with ValuesByLine(file) as mine:
        copy.deepcopy(model)(**fresh(call.given, {}))  # type: ignore[misc]
    first = first_difference(full.values, mine.values, start, end)
    where = f", behind a cache of {start}" if start else ""
    fed = numbered("position", range(start, end))
    says = first.message.partition(": ")[2] if first else ""
    return (
        f"the demo's call {number + 1} at {call.place}, of {fed}{where}, gave an output that "
        f"differs by up to {gap:.2g} from one pass over all {total}"
        + (f". The first difference is on line {first.line}: {says}" if first else "")
    )


def _rows(whole: Tensor, call: _Call, start: int, end: int, total: int) -> Tensor | None:
    """The rows of one pass that a call has to equal."""
    if whole.shape[1] == total:
        out = call.out
        last = out is not None and (out.dim() < whole.dim() or out.shape[1] < call.length)
        rows = whole[:, end - 1 : end] if last else whole[:, start:end]
        return rows[:, 0] if out is not None and out.dim() < whole.dim() else rows
    return whole if end == total else None


def _one_pass(chain: list[_Call]) -> dict[str, Any] | None:
    """The arguments of one call with the positions of all: those of the first one, with tensors
    that run along the positions joined, and masks of the keys as the last call has them."""
    first, lengths = chain[0].given, [call.length for call in chain]
    found: dict[str, Any] = dict(first)
    found[chain[0].name] = torch.cat([call.positions for call in chain], 1)
    held = chain[0].kept[0]
    for name, value in held.items():
        values = [v for call in chain if isinstance(v := call.given.get(name), Tensor)]
        if not isinstance(value, Tensor) or len(values) < len(chain):
            continue
        if all(v.shape == value.shape and torch.equal(v, value) for v in values):
            continue
        axes = range(value.dim())
        along = [a for a in axes if [v.shape[a] for v in values] == lengths]
        if not along:
            return None
        found[name] = torch.cat(values, along[0])
    return found


# ---------------------------------------------------------------- values, told apart


def _parts(value: Any) -> list[tuple[str, Any]]:
    """What lies in a container or an object of the user's, with how it is reached."""
    if isinstance(value, dict):
        return [(f"[{k!r}]", v) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if isinstance(value, (Tensor, nn.Module, type)) or not hasattr(value, "__dict__"):
        return []
    return [(f".{k}", v) for k, v in vars(value).items()]


def _walk(value: Any, path: str = "", deep: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (Tensor, int, float)):
        yield path, value
    elif deep < DEEPEST:
        for step, part in _parts(value):
            yield from _walk(part, f"{path}{step}", deep + 1)


def _tensors(value: Any) -> list[Tensor]:
    return [v for _, v in _walk(value) if isinstance(v, Tensor)]


def _sum(tensor: Tensor) -> float:
    if tensor.numel() > LARGEST or tensor.is_complex() or tensor.is_nested:
        return 0.0
    return float(tensor.detach().double().sum())


def _sums(value: Any) -> dict[str, float]:
    """Floating-point tensors by identity, each with the sum of its values."""
    return {str(id(t)): _sum(t) for t in _tensors(value) if t.is_floating_point()}


def _state(given: dict[str, Any]) -> dict[str, Any]:
    """The tensors of objects and containers by path, each with its shape and sum."""
    return {
        path: (tuple(t.shape), _sum(t))
        for name, value in given.items()
        if not isinstance(value, Tensor)
        for path, t in _walk(value, name)
        if isinstance(t, Tensor)
    }


def _frozen(value: Any, deep: int = 0) -> Any:
    """What can be compared: tensors by their values, objects by identity."""
    if isinstance(value, Tensor):
        places = torch.arange(value.numel(), dtype=torch.float64).view(value.shape)
        return (tuple(value.shape), str(value.dtype), _sum(value), _sum(value.cpu() * places))
    if isinstance(value, (int, float, str, bytes, bool, type(None))):
        return value
    if isinstance(value, (list, tuple)) and deep < DEEPEST:
        return tuple(_frozen(v, deep + 1) for v in value)
    if isinstance(value, dict) and deep < DEEPEST:
        return tuple((str(k), _frozen(v, deep + 1)) for k, v in value.items())
    return id(value)


def _copies(value: Any) -> list[Tensor]:
    kept = [t for t in _tensors(value) if 0 < t.numel() <= LARGEST and not t.is_complex()]
    return [t.detach().double().clone() for t in kept]


def _gap(mine: list[Tensor], yours: list[Tensor]) -> float:
    """How far the tensors of two results are apart; infinite where their shapes differ."""
    if [t.shape for t in mine] != [t.shape for t in yours]:
        return float("inf")
    gaps = [0.0]
    for a, b in zip(mine, yours, strict=True):
        apart = largest_gap(a, b)
        gaps.append(apart * (apart > TOLERANCE * max(a.abs().max().item(), 1e-3)))
    return max(gaps)


def _dice() -> int:
    """Something that is another once a random number was drawn."""
    drawn = [random.getstate(), torch.get_rng_state().numpy().tobytes()]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        drawn.append(numpy.random.get_state()[1].tobytes())
    return hash(tuple(drawn))


def _versions(module: nn.Module) -> int:
    return sum(p._version for p in module.parameters() if not p.is_inference())
