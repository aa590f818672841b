"""Steps with a cache beside one pass over the same positions."""

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.live.batch import CannotTry
from attnlab.candidate.live.bench import SOME, Bench, Broken, NotApplicable, largest_gap
from attnlab.candidate.live.pieces import equal_in_pieces
from attnlab.candidate.live.watching import Values
from attnlab.target.conventions import ARGUMENTS, CACHES
from attnlab.tracer.call_setup import uncompiled
from attnlab.tracer.decoding import TOLERANCE, cache_argument, cache_in, output_of
from attnlab.tracer.nested_tensors import map_tensors
from attnlab.tracer.raw_trace import first_line

DEEPEST = 4  # objects of a cache within each other
STEPS = 2  # that follow the prefill
STARTS = {name for name, value in ARGUMENTS.items() if value == 0} | {
    *("start", "position_offset", "past_len", "cache_len", "start_index", "input_pos", "pos_offset")
}
BATCH = {"b", "B", "batch", "batch_size", "max_batch", "max_batch_size", "bsz"}


def prefill_equals_decode(bench: Bench) -> None:
    model, layout = bench.live.model, bench.layout
    name = cache_argument(model.forward)
    if name is None:
        equal_in_pieces(bench)
        return
    bench.promised("causal", "it takes a cache, and nothing says that it is causal")
    if any(leaf.name.partition(".")[0] in CACHES for leaf in bench.live.leaves):
        raise CannotTry("its cache is made of tensors of the batch: attnlab trace --decode")
    if any(leaf.role == "mask" for leaf in bench.live.leaves):
        raise CannotTry("how its mask goes on with each step is not known")
    if not layout.targets or layout.length < SOME + STEPS:
        raise NotApplicable("no input has enough positions")
    tried = []
    for form, make in _empty_caches(bench):
        chain = _Chain(bench, name, form)
        try:
            chain.begin(make)
        except Exception as error:  # this form is not what it takes
            tried.append(f"{form}: {type(error).__name__}: {first_line(error)}")
            continue
        if not chain.keeps:
            tried.append(f"{form}: nothing comes back, or is kept in it")
            continue
        chain.compare()
        return
    raise CannotTry(f"no cache for its argument {name} is known ({'; '.join(tried[:2])})")


class _Chain:
    """A prefill and steps, each with the cache of the call before."""

    def __init__(self, bench: Bench, name: str, form: str) -> None:
        self.bench, self.name, self.form = bench, name, form
        self.first = bench.layout.length - STEPS
        self.keeps = False

    def begin(self, make: Callable[[], Any]) -> None:
        """The prefill; `keeps` says whether the cache holds anything afterwards."""
        self.bench.live.forget()
        given = make()
        out = self._call(0, self.first, given)
        back = cache_in(out, self.name)
        self.cache = given if back is None else back
        self.keeps = any(True for _ in _held(self.cache))

    def compare(self) -> None:
        """Raises `Broken` at the first step that differs."""
        for end in range(self.first + 1, self.bench.layout.length + 1):
            step, full = Values(), Values()
            out = self._call(end - 1, end, self.cache, step)
            back = cache_in(out, self.name)
            self.cache = self.cache if back is None else back
            mine = output_of(out)
            kept, self.bench.live.model = (
                self.bench.live.model,
                copy.deepcopy(self.bench.live.unused),
            )
            whole = output_of(self._call(0, end, None, full))
            self.bench.live.model = kept
            at = self.bench.layout.turned
            if mine is None or whole is None or mine.dim() < 2 or mine.dim() != whole.dim():
                raise CannotTry("its output has no axis of positions")
            axis = 0 if at else 1
            wanted = whole.narrow(axis, whole.shape[axis] - 1, 1)
            if mine.shape != wanted.shape:
                raise CannotTry(f"a step returns {tuple(mine.shape)}, not {tuple(wanted.shape)}")
            gap = largest_gap(mine, wanted)
            if not gap <= TOLERANCE * max(wanted.abs().max().item(), 1e-3):
                raise Broken(
                    f"after a prefill of {self.first} positions, the step for position {end - 1} "
                    f"differs by up to {gap:.2g} from the last row of one pass over {end} "
                    f"({self.name}: {self.form})",
                    self.bench.first_apart(full, step, end - 1),
                )

    def _call(self, start: int, end: int, cache: Any, watch: Values | None = None) -> Any:
        args, kwargs = map_tensors(lambda t: self._cut(t, start, end), self.bench.live.inputs)
        model = self.bench.live.model
        takes = inspect.signature(model.forward).parameters
        more = {n: start for n in takes if n in STARTS and n not in kwargs}
        if "use_cache" in takes:
            more["use_cache"] = True
        torch.manual_seed(0)
        with torch.no_grad(), uncompiled(), watch or nullcontext():
            return model(*args, **{**kwargs, **more, self.name: cache})

    def _cut(self, tensor: Tensor, start: int, end: int) -> Tensor:
        layout = self.bench.layout
        leaf = next((le for le in self.bench.live.leaves if le.value is tensor), None)
        axis = layout.position_axis(leaf) if leaf in layout.targets and leaf else None
        context = leaf in layout.sequences
        if axis is None and tensor.dim() and leaf not in layout.targets and not context:
            long = [a for a, n in enumerate(tensor.shape) if n == layout.length]
            axis = long[-1] if len(long) == 1 else None
        return (tensor if axis is None else tensor.narrow(axis, start, end - start)).clone()


def _held(cache: Any, deep: int = 0) -> Iterator[Tensor]:
    """The tensors of a cache, also of objects in it."""
    if isinstance(cache, Tensor):
        yield cache
    elif deep < DEEPEST:
        inside = cache if isinstance(cache, (list, tuple, dict)) else getattr(cache, "__dict__", ())
        for part in inside.values() if isinstance(inside, dict) else inside:
            yield from _held(part, deep + 1)


# ---------------------------------------------------------------- empty caches


def _empty_caches(bench: Bench) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a first call may be given, each with its name; the file's own classes come first."""
    model = bench.live.model
    lists = [len(m) for m in model.modules() if isinstance(m, nn.ModuleList)]
    layers = max(lists, default=0)
    for kind in _cache_classes(model):
        given = _arguments(kind, bench, layers)
        if given is not None:
            make = partial(kind, **given)
            yield f"{kind.__name__}()", make
            if layers:
                yield f"[{kind.__name__}()] * {layers}", partial(_several, make, layers)
    yield "None at first", lambda: None
    if layers:
        yield f"[None] * {layers}", lambda: [None] * layers
        yield f"[(None, None)] * {layers}", lambda: [(None, None)] * layers
        yield f"[{{}}] * {layers}", partial(_several, dict, layers)
    yield "a dict", dict
    yield "a list", list
    yield "(None, None)", lambda: (None, None)


def _several(make: Callable[[], Any], count: int) -> list[Any]:
    return [make() for _ in range(count)]


def _cache_classes(model: nn.Module) -> Iterator[type]:
    """Of the file that the model is defined in."""
    space = vars(sys.modules.get(type(model).__module__, sys))
    for value in list(space.values()):
        own = inspect.isclass(value) and value.__module__ == type(model).__module__
        if own and "cache" in value.__name__.lower():
            yield value


def _arguments(kind: type, bench: Bench, layers: int) -> dict[str, Any] | None:
    """What a cache is made of, by the names of its sizes; None where one is not known."""
    found = {}
    for p in list(inspect.signature(kind).parameters.values()):
        if p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        value = _size(p.name, bench, layers)
        if value is None:
            return None
        found[p.name] = value
    return found


def _size(name: str, bench: Bench, layers: int) -> Any:
    if name in BATCH:
        return bench.layout.samples
    if "layer" in name:
        return layers
    held = (vars(m).get(name) for m in bench.live.model.modules())
    known = next((v for v in held if type(v) is int), None)
    if known is not None:
        return known
    if "len" in name or "seq" in name or name in ("T", "S", "size"):
        return bench.layout.length
    return {"dtype": bench.live.dtype, "device": "cpu"}.get(name)
