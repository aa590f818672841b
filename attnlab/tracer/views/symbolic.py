"""Run with symbolic sizes: the guards are the size relations that the run depends on.

Fake tensors with symbolic sizes go through the module. Wherever it branches because two sizes are
equal, or one has a certain value, PyTorch adds a guard. That imports PyTorch's compiler, so it is
done on request only.
"""

import re
import sys
from dataclasses import dataclass, field, replace
from traceback import FrameSummary
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlab.records.trace import Guard
from attnlab.sizes import with_head_dim
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.raw_trace import RawTrace, display_path, first_line, source_location
from attnlab.tracer.recorder import is_library_code, user_location

FIXED = 1  # sizes up to here are no symbols: an axis of size 1 broadcasts, and 0 is empty


WIDTHS = {"D", "H", "hd", "Hkv", "F", "V", "C", "M"}  # of weights and tables
# Lines of Python, and operations that ask for nothing but what they need.
PLAIN = {"", "add", "mul", "sub", "matmul", "bmm", "linear", "cat", "view", "reshape", "unflatten"}
ANY_SIZES = "with symbols for the sizes of its inputs it runs through, and compares none of them"


@dataclass
class SymbolicRun:
    """The result of a symbolic run."""

    names: dict[str, str] = field(default_factory=dict)  # of PyTorch's symbols: "B" of "s0"
    found: list[Guard] = field(default_factory=list)  # as PyTorch wrote them: Eq(s0, s1)
    problem: str = ""
    line: int = 0  # of the operation that ran last


def add_guards(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with the size relations that the run depends on."""
    run = run_symbolically(traced)
    guards = _guards(run, with_head_dim(traced.sizes))
    said = run.problem or ("" if guards else ANY_SIZES)
    return replace(raw, guards=guards, notes=(*raw.notes, said) if said else raw.notes)


def run_symbolically(traced: TracedCall) -> SymbolicRun:
    """Run once with symbols for the sizes of the inputs."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    run = SymbolicRun()
    first: dict[str, Any] = {}  # one size for all axes of one name
    given = [
        (name, t if t is None else _fake(mode, t, traced.axes.get(name, ()), first))
        for name, t in traced.given
    ]
    run.names = {str(size.node.expr): name for name, size in first.items()}
    torch.manual_seed(traced.seed)
    try:
        with torch.no_grad(), mode, GuardListener(env, run):
            traced.call(given)
    except Exception as error:
        run.problem = _problem(error, run)
    return run


def _fake(mode: Any, t: Tensor, axes: tuple[str, ...], first: dict[str, Any]) -> Tensor:
    """A tensor without data. Axes that weights have too keep their sizes; of the others, those of
    one name are said to be equal."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    names = axes if len(axes) == t.dim() else tuple(f"size {i}" for i in range(t.dim()))
    free = [n > FIXED and not name.isdigit() and name not in WIDTHS
            for n, name in zip(t.shape, names, strict=True)]  # fmt: skip
    kinds = [DimDynamic.DYNAMIC if f else DimDynamic.STATIC for f in free]
    context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
    fake: Tensor = mode.from_tensor(t, symbolic_context=context)
    for size, name in zip(fake.shape, names, strict=True):
        if name in first:
            torch._check(size == first[name])  # type: ignore[no-untyped-call]
        elif hasattr(size, "node"):
            first[name] = size
    return fake


class GuardListener(TorchFunctionMode):
    """Notes the guards that each operation adds, with the user's line."""

    def __init__(self, env: Any, run: SymbolicRun) -> None:
        super().__init__()
        self.env, self.run, self.known = env, run, len(env.guards)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._note("")  # what the lines of Python before it asked
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._note(getattr(func, "__name__", ""))

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._note("")  # what was asked after the last operation

    def _note(self, op: str) -> None:
        fresh = self.env.guards[self.known :]
        self.known += len(fresh)
        code, line, _ = user_location(sys._getframe(2), {})
        self.run.line = line or self.run.line
        file, source = source_location(code, line)
        for guard in fresh:
            found = Guard(
                relation=str(guard.expr), file=file, line=line, source=source, op=op.strip("_")
            )
            self.run.found.append(found if op else _asked_at(guard, found))


def _asked_at(guard: Any, found: Guard) -> Guard:
    """The guard at the line of Python that asked, which comes before that of the next operation."""
    place = getattr(guard.sloc, "framework_loc", None)
    if not isinstance(place, FrameSummary) or is_library_code(place.filename):
        return found
    return replace(
        found,
        file=display_path(place.filename),
        line=place.lineno or 0,
        source=(place.line or "").strip(),
    )


# ---------------------------------------------------------------- in the words of the user


def _guards(run: SymbolicRun, sizes: dict[str, int]) -> tuple[Guard, ...]:
    """Relations that say something: not that a size is above 1, and each one once."""
    guards: dict[str, Guard] = {}
    for found in run.found:
        text = _relation(found, run.names, sizes)
        if text:
            guards.setdefault(text, replace(found, relation=text))
    return tuple(guards.values())


def _relation(found: Guard, names: dict[str, str], sizes: dict[str, int]) -> str:
    """`Eq(s1, 4)` as "S == hd (= 4)"; "" for what every run asks, or what has no name."""
    sides = re.fullmatch(r"Eq\((.*), (.*)\)", found.relation)
    unnamed = set(re.findall(r"s\d+", found.relation)) - names.keys()
    if unnamed:
        return ""
    if sides is None:
        return _inequality(found, names)
    left, right = (re.sub(r"s\d+", lambda m: names[m[0]], side) for side in sides.groups())
    if left == right or not right.isdigit():
        return "" if left == right else f"{left} == {right}"
    same = [s for s, n in sizes.items() if str(n) == right and s != left]
    if same:
        return f"{left} == {same[0]} (= {right})"
    return f"{left} == {right}" if found.op in PLAIN else ""


def _inequality(found: Guard, names: dict[str, str]) -> str:
    """`s1 > 8` as "S > 8", where a line of Python asks and not an operation."""
    told = re.fullmatch(r"Ne\((.*), (.*)\)|([^<>]*) ([<>]=?) ([^<>]*)", found.relation)
    if told is None or found.op:
        return ""
    left, sign, right = (told[1], "!=", told[2]) if told[1] else (told[3], told[4], told[5])
    left, right = (re.sub(r"s\d+", lambda m: names[m[0]], side) for side in (left, right))
    return f"{left} {sign} {right}"


def _problem(error: Exception, run: SymbolicRun) -> str:
    kind = type(error).__name__
    by_value = kind in {"GuardOnDataDependentSymNode", "DataDependentOutputException"}
    values = "its course depends on values, which a symbolic run does not have"
    why = values if by_value else f"{kind}: {first_line(error)}"
    return f"symbolic sizes could not be followed beyond line {run.line}: {why}"
