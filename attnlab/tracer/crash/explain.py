"""Why an operation raised, in terms of the axes of its operands."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence

from attnlab.records.trace import Crash, Finding, Operand
from attnlab.tracer.axes.agree import Axes
from attnlab.tracer.crash.operand_origins import operand_origins
from attnlab.tracer.crash.trusted_fixes import trusted_fixes
from attnlab.tracer.findings import Rows, show
from attnlab.tracer.raw_trace import RawCrash, Shape, place_of

NEAR = 3  # operations between an input and a crash for which it may be to blame
SHORT = {"Half": "float16", "BFloat16": "bfloat16", "Float8_e4m3fn": "float8"}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}
NUMBER = r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?"
Explainer = Callable[[RawCrash, Sequence[Axes]], str]


def explain_crash(
    rows: Rows, crash: RawCrash, operands: Sequence[Axes], found: Sequence[Finding]
) -> Crash:
    """The crash of a trace. `operands` are the axes of its operands, `found` earlier findings."""
    explain = EXPLAIN.get(crash.op, _by_message) if crash.operands else _python_line
    of_value = _overflow(crash)
    fixes = () if of_value else tuple(dict.fromkeys(trusted_fixes(rows, crash, operands)))
    sentences = (
        _missing_kernel(crash) or of_value or explain(crash, operands),
        f"It runs with {' or with '.join(fixes)}." if fixes else "",
        " ".join(operand_origins(rows, crash, operands, _odd_axes(crash))),
        _earlier_finding(rows, crash, found),
    )
    return Crash(
        op=crash.op,
        file=crash.file,
        line=crash.line,
        operands=tuple(
            Operand(shape=s, axes=a) for s, a in zip(crash.operands, operands, strict=True)
        ),
        message=crash.message,
        explanation=" ".join(filter(None, sentences)),
        source=crash.source,
        error=crash.error,
        module=crash.module,
        inputs=tuple(dict.fromkeys(_near_inputs(rows, crash))),
    )


def _near_inputs(rows: Rows, crash: RawCrash) -> Iterator[str]:
    """The inputs that an operand is, or is made of in few steps and of nothing else."""
    for parent in crash.parents:
        steps = list(rows.ancestors([parent]))
        sources = {p for op in steps for p in op.parents if p < 0} if steps else {parent}
        if len(sources) == 1 and len(steps) <= NEAR:
            yield rows.raw.input_names[-1 - sources.pop()]


def _missing_kernel(crash: RawCrash) -> str:
    """A message where PyTorch lacks the kernel for this dtype and device."""
    told = re.search(r'"?(\w+)"? not implemented for \'(\w+)\'', crash.message)
    if told is None or told[2] not in SHORT:
        return ""
    return (
        f"PyTorch has no {told[1]} for {SHORT[told[2]]} on this device: the module is not at "
        "fault. Trace it in another dtype, or on a device that has the kernel."
    )


def _overflow(crash: RawCrash) -> str:
    """A number that is too large for the dtype of what it is put into; the shapes are right."""
    told = re.search(r"converted to type (?:c10::|at::)?(\w+) without overflow", crash.message)
    name = SHORT.get(told[1], "") if told else ""
    if name not in LARGEST:
        return ""
    large = (n for n in re.findall(NUMBER, crash.source) if abs(float(n)) > LARGEST[name])
    value = next(large, "")
    return (
        f"The value {value}{' ' if value else ''}does not fit {name}, whose largest is "
        f"{LARGEST[name]:g}: shapes and masks are not at fault."
    )


def _odd_axes(crash: RawCrash) -> tuple[int | None, ...]:
    """The axis of the first and of the second operand that do not meet."""
    if len(crash.operands) < 2 or not all(crash.operands[:2]):
        return (None, None)
    a, b = crash.operands[:2]
    if crash.op == "linear":
        return len(a) - 1, None
    if EXPLAIN.get(crash.op) is _cat:
        return None, None
    if EXPLAIN.get(crash.op) is _matmul and a[-1] != b[-2 if len(b) > 1 else -1]:
        return len(a) - 1, max(len(b) - 2, 0)
    clash = _clash(a, b)
    return (None, None) if clash is None else (len(a) + clash, len(b) + clash)


def _earlier_finding(rows: Rows, crash: RawCrash, found: Sequence[Finding]) -> str:
    """The earliest finding that the failing operands descend from: there the shape went wrong."""
    line = {op.index for op in rows.ancestors(crash.parents)}
    early = [f for f in found if f.index in line and f.severity != "note"]
    if not early:
        return ""
    first = min(early, key=lambda f: f.index or 0)
    return f"It went wrong earlier, at {first.op} {place_of(first, crash.file)} ({first.rule})."


def _python_line(crash: RawCrash, _operands: Sequence[Axes]) -> str:
    return "" if crash.op else "It was raised here, outside the operations that were recorded."


def _by_message(crash: RawCrash, operands: Sequence[Axes]) -> str:
    """Operations broadcast in their own ways; only PyTorch's message tells that this one did."""
    clash = "non-singleton dimension" in crash.message
    return _elementwise(crash, operands) if clash else _dtypes(crash)


def _linear(crash: RawCrash, operands: Sequence[Axes]) -> str:
    x, weight = (*crash.operands[:2], (), ())[:2]
    if not x or len(weight) != 2 or x[-1] == weight[1]:
        return _dtypes(crash)
    times, rest = divmod(x[-1], weight[1]) if weight[1] else (0, 0)
    wide = f", {times} times too wide" if times and not rest else ""
    layer = f"{crash.module or 'linear'} maps {weight[1]} features to {weight[0]}"
    return (
        f"{layer}, but the last axis of its input {show(operands[0])} = {show(x)} "
        f"has {x[-1]}{wide}."
    )


def _matmul(crash: RawCrash, operands: Sequence[Axes]) -> str:
    if len(crash.operands) < 2 or not all(crash.operands[:2]):
        return _dtypes(crash)
    (a, b), (na, nb) = crash.operands[:2], operands[:2]
    axis = -2 if len(b) > 1 else -1
    inner = b[axis]
    if a[-1] == inner:
        return _dtypes(crash) or (_leading(a, b) if len(a) > 2 or len(b) > 2 else "")
    return (
        f"{crash.op} sums the last axis of {show(na)} ({a[-1]}) against axis {axis} of {show(nb)} "
        f"({inner}), which must be equal."
    )


def _leading(a: Shape, b: Shape) -> str:
    if _clash(a[:-2], b[:-2]) is None:
        return ""
    return f"The leading axes {show(a[:-2])} and {show(b[:-2])} do not line up."


def _elementwise(crash: RawCrash, operands: Sequence[Axes]) -> str:
    full = [(s, n) for s, n in zip(crash.operands, operands, strict=True) if s]
    told = {int(n) for n in re.findall(r"\((\d+)\)", crash.message)}  # the sizes that clashed
    for (a, na), (b, nb) in itertools.combinations(full, 2):
        clash = _clash(a, b)
        if clash is not None and {a[clash], b[clash]} == told:
            return (
                f"Lined up from the right, axis {clash} of {show(na)} = {show(a)} is "
                f"{a[clash]} and of {show(nb)} = {show(b)} is {b[clash]}: "
                "they must be equal, or 1."
            )
    return _dtypes(crash)


def _clash(a: Shape, b: Shape) -> int | None:
    """The first axis, counted from the right as a negative number, that cannot broadcast."""
    places = range(-1, -min(len(a), len(b)) - 1, -1)
    return next((i for i in places if a[i] != b[i] and 1 not in (a[i], b[i])), None)


def _view(crash: RawCrash, operands: Sequence[Axes]) -> str:
    if "stride" in crash.message or "contiguous" in crash.message:
        unsure = "" if crash.fits else " reshape would run, and may mix entries of different axes."
        return (
            f"The tensor {show(operands[0])} is not laid out in this order in memory (a transpose "
            f"or permute came before), so no view of it has that shape.{unsure}"
        )
    count = math.prod(crash.operands[0])
    return f"The tensor {show(operands[0])} = {show(crash.operands[0])} has {count} elements."


def _cat(crash: RawCrash, operands: Sequence[Axes]) -> str:
    if len(set(crash.operands)) < 2:
        return _dtypes(crash)
    shapes = " and ".join(
        f"{show(n)} = {show(s)}" for s, n in zip(crash.operands, operands, strict=True)
    )
    but = "" if "stack" in crash.op else " but the one they are joined along"
    return f"Pieces must agree in every axis{but}: {shapes}."


def _embedding(crash: RawCrash, _operands: Sequence[Axes]) -> str:
    rows = crash.operands[1][0] if len(crash.operands) > 1 and crash.operands[1] else "?"
    if "range" in crash.message:
        return f"The table has {rows} rows, so indices run from 0 to one less."
    if "indices" in crash.message and crash.dtypes and crash.dtypes[0].startswith("float"):
        return f"Indices must be whole numbers, and these are {crash.dtypes[0]}: use .long()."
    return ""


def _dtypes(crash: RawCrash) -> str:
    kinds = sorted(set(crash.dtypes))
    if len(kinds) > 1 and ("dtype" in crash.message or "type" in crash.message):
        return f"The operands have different dtypes: {', '.join(crash.dtypes)}."
    return ""


EXPLAIN: dict[str, Explainer] = {
    "": _python_line,
    "linear": _linear,
    "matmul": _matmul,
    "bmm": _matmul,
    "mm": _matmul,
    "mv": _matmul,
    "view": _view,
    "reshape": _view,
    "unflatten": _view,
    "cat": _cat,
    "stack": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "embedding": _embedding,
}
