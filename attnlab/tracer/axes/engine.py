"""The axes of every row of a recorded run, one row after the other.

A rule per operation says what becomes of the axes of its operands. An operation without a rule,
or one whose rule does not fit what came out, makes anonymous axes: never a wrong name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.records.trace import Severity
from attnlab.tracer.axes import unify
from attnlab.tracer.axes.atoms import Atom, Axes, Axis, Kind, anonymous, leaves, primed, size
from attnlab.tracer.axes.op_call import Call, TracedTensor
from attnlab.tracer.axes.render_names import BATCH, PLACES, Names
from attnlab.tracer.recorder import PLACEHOLDER
from attnlab.tracer.rows import Row

SPATIAL = {"h", "w", "t", "d", "x", "y", "n", "s", "i", "j"}


class AxisFinding(NamedTuple):
    """A finding about axes at a row, such as batch and sequence lined up."""

    row: int
    rule: str
    message: str
    severity: Severity


Message = Callable[[], str]  # a message built once all names are known; "" withdraws it


def _as_picture(named: Sequence[str]) -> Sequence[str]:
    """(B, 3, 32, 32) as (B, 3, h, w): its sides are places, and may not be cut by chance."""
    if len(named) == 4 and all(n.isdigit() for n in named[1:]) and named[2] == named[3]:
        return (*named[:2], "h", "w")
    return named


class Flow:
    """What is known of the axes while the rows are replayed."""

    def __init__(self, sizes: Mapping[str, int], rules: Mapping[str, Any]) -> None:
        self.names = Names(sizes)
        self.rules = rules
        self.symbols: dict[str, Atom] = {}  # the atoms that the user named
        self.made: list[TracedTensor] = []  # by row
        self.files: list[str] = []  # of the code of each row
        self.inputs: list[TracedTensor] = []
        self.reports: list[tuple[int, str, Message, Severity]] = []
        self.statistics: set[int] = set()  # rows that sum over the batch as if on purpose
        self.entries: set[int] = set()  # rows that take one entry of the batch

    # ------------------------------------------------------------ what comes in

    def add_input(self, shape: Sequence[int], named: Sequence[str] | None) -> None:
        """An input with the axes that the user says it has."""
        axes = anonymous(shape)
        if named is not None and len(named) == len(shape):
            named = _as_picture(named)
            axes = [
                self._named_axis(name, n, again=name in named[:i])
                for i, (name, n) in enumerate(zip(named, shape, strict=True))
            ]
        self.inputs.append(TracedTensor(tuple(shape), axes))

    def name_made(self, made: int, named: Sequence[str]) -> None:
        """An output that becomes an input later on, as in a script that draws its batch: what is
        not known of its axes is what the input's names say."""
        arr = self.made[made]
        for i, (axis, name) in enumerate(zip(arr.axes, named, strict=False)):
            if name.isidentifier() and len(leaves(axis)) == 1:
                said = self._named_axis(name, arr.shape[i], again=name in named[:i])
                unify.take_name(axis, said)

    def _named_axis(self, name: str, n: int, again: bool) -> Axis:
        if n == 1:
            return ()
        name, again = name.rstrip("'"), again or name.endswith("'")  # S' is a second S
        if not name.isidentifier():  # 3, 2*D
            return (Atom(n, "free" if name.isdigit() else "feature"),)
        atom = self.symbols.get(name)
        if atom is None or atom.size != n:
            kind = "batch" if name in BATCH else "index" if _is_place(name) else "feature"
            atom = Atom(n, kind, name)  # type: ignore[arg-type]
            self.symbols.setdefault(name, atom)
        return primed((atom,)) if again else (atom,)

    # ------------------------------------------------------------ one row

    def add_row(self, row: Row) -> None:
        call = self._call(row)
        rule = self.rules.get(call.name.strip("_"))
        found: Any = None
        if rule is not None:
            with suppress(Exception):
                found = rule(self, call)
        # A rule answers one list of axes, one tensor, or a list of these for several outputs.
        several = isinstance(found, list) and all(
            isinstance(f, (list, TracedTensor)) for f in found
        )
        made = found if several else [found] * min(1, len(call.outs))
        for i, shape in enumerate(call.outs):
            axes = made[i] if i < len(made) else None
            arr = axes if isinstance(axes, TracedTensor) else TracedTensor(shape, axes or [])
            if not _fits(arr.axes, shape):
                arr.axes = anonymous(shape)
            arr.shape, arr.axes = shape, primed_apart(arr.axes)
            _inherit(self, arr, call)
            self.made.append(arr)
            self.files.append(call.file)

    def end_at(self, row: int) -> None:
        """The first output of the run: it has positions, and of the batch nothing is left."""
        arr = self.made[row] if 0 <= row < len(self.made) else None
        if arr is None or arr.pooled is None or _has_batch(arr):
            return
        if any(a.kind in ("index", "joined") for axis in arr.axes for a in leaves(axis)):
            _report_pooled(self, arr.pooled, "nothing else of the batch is in the output")

    def _call(self, row: Row) -> Call:
        arrays = [
            self.operand(shape, source)
            for shape, source in zip(row.operands, row.sources, strict=True)
        ]
        holes = iter(arrays)
        args, kwargs = row.template
        name = row.op.strip("_") if row.op.startswith("__") else row.op
        return Call(
            name=name,
            row=len(self.made),
            args=[_filled(a, holes) for a in args],
            kwargs={n: _filled(a, holes) for n, a in (kwargs or {}).items()},
            arrays=arrays,
            outs=[out.shape for out in row.outs],
            floats=bool(row.outs) and row.outs[0].dtype.is_floating_point,
            module=row.module,
            file=row.code.co_filename if row.code else "",
            line=row.line,
        )

    def operand(self, shape: tuple[int, ...], source: int | str | None) -> TracedTensor:
        if type(source) is int:
            known = self.made[source] if source >= 0 else self.inputs[-1 - source]
            if known.shape == shape:
                return known
        weight = source if type(source) is str else ""
        kind: Kind = "table" if weight and len(shape) == 1 else "free"
        axes = anonymous(shape, kind)  # a weight serves anew each time
        for atom in (a for axis in axes if weight for a in axis):
            atom.made = "weight"
        if weight and len(shape) > 1:
            for atom in (a for axis in axes[:-1] for a in axis):
                atom.name = _last(weight)
        return TracedTensor(shape, axes, weight=weight)

    # ------------------------------------------------------------ what the rules use

    def feature(self, n: int, call: Call) -> Axis:
        """The axis that a layer makes."""
        return (Atom(n, "feature", _last(call.module)),) if n != 1 else ()

    def unify(self, a: Axis, b: Axis, call: Call, how: str = "") -> Axis:
        return unify.unify(self, a, b, call, how)

    def place(self, call: Call, row: int) -> str:
        """Where a call is: `on line 63`, or `at model.py:63` where the row is of another file."""
        same = self.files[row] == call.file
        return f"on line {call.line}" if same else f"at {Path(call.file).name}:{call.line}"

    def report(self, row: int, rule: str, message: Message, severity: Severity = "warning") -> None:
        self.reports.append((row, rule, message, severity))

    # ------------------------------------------------------------ what came of it

    def findings(self) -> Iterator[AxisFinding]:
        seen: set[tuple[int, str]] = set()
        for row, rule, message, severity in self.reports:
            text = message()
            if text and (row, rule) not in seen:
                seen.add((row, rule))
                yield AxisFinding(row, rule, text, severity)


def _is_place(name: str) -> bool:
    """S, T, Sq, h, w: axes that count positions, as the user calls them."""
    return name in PLACES or name[0] in "STL" or (name in SPATIAL)


def _filled(bone: Any, holes: Iterator[TracedTensor]) -> Any:
    if bone is PLACEHOLDER:
        return next(holes)
    if isinstance(bone, list):
        return [next(holes) if b is PLACEHOLDER else b for b in bone]
    return bone


def _last(path: str) -> str:
    """The last part of a dotted path that says something: `fc` of `h.0.fc.weight`."""
    parts = [p for p in path.split(".") if p and not p.isdigit() and p not in ("weight", "bias")]
    return parts[-1] if parts else ""


def _inherit(flow: Flow, arr: TracedTensor, call: Call) -> None:
    """A mean over the batch stays one until it meets the batch again, which is told."""
    rows = [a.pooled for a in call.arrays if a.pooled is not None]
    if not rows or arr.pooled is not None or not call.floats or call.name.endswith("_like"):
        return
    if _has_batch(arr) and any(a.pooled is None and _has_batch(a) for a in call.arrays):
        _report_pooled(flow, rows[0])
    else:  # or spread out over the batch again
        arr.pooled = rows[0]


SHARED = "the result is used for every entry of the batch: entries depend on each other"


def _report_pooled(flow: Flow, row: int, so: str = SHARED) -> None:
    what = "runs over the batch axis"
    if row in flow.entries:
        what = "takes one entry of the batch"
    meant = row in flow.statistics
    suffix = ", as in a statistic of the batch" if meant else ""
    flow.report(
        row,
        "batch-contraction",
        lambda: f"{what}, and {so}{suffix}",
        "note" if meant else "warning",
    )


def _has_batch(arr: TracedTensor) -> bool:
    return any(x.kind == "batch" for axis in arr.axes for x in leaves(axis))


def _fits(axes: Axes, shape: Sequence[int]) -> bool:
    """An atom's pieces make up its size, always."""
    return [axis[0].size if len(axis) == 1 else size(axis) for axis in axes] == [*shape]


def primed_apart(axes: Axes) -> Axes:
    """No atom stands twice in one tensor: the second time it is primed, as S' beside S."""
    found: Axes = [leaves(axis) for axis in axes]
    atoms = [a for axis in found for a in axis]
    if len(set(atoms)) == len(atoms):
        return found
    seen: set[Atom] = set()
    for i, axis in enumerate(found):
        if seen.intersection(axis):
            found[i] = primed(axis)
        seen.update(found[i])
    return found
