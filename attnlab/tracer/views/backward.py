"""A further run with gradients: their norms, parameters without one, and where they break.

Every row's output gets a hook that records the norm of its gradient. Backward runs from output to
input, so the operation whose output gradient is still finite while that of its operand is not is
the one whose backward broke it.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.records.trace import Backward, Finding, Op, ParameterGradient
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.cast import fresh
from attnlab.tracer.flow import writes_in_place
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import RawTrace, finding_at, first_line, only_file, place_of
from attnlab.tracer.recorder import Recorder
from attnlab.tracer.rows import Row, replay

COTANGENT = 0x5EED
OVERWRITTEN = re.compile(r"modified by an inplace operation.*output \d+ of ([A-Za-z]+)")
# Whose slope is infinite or undefined at zero, and what keeps the operand away from it.
STEEP = {
    **dict.fromkeys(("sqrt", "sqrt_", "rsqrt"), "add an epsilon before the root"),
    **dict.fromkeys(("log", "log_", "log2", "log10"), "clamp its operand before the logarithm"),
    **dict.fromkeys(("pow", "reciprocal", "div", "truediv", "true_divide"), "guard the zero"),
    **dict.fromkeys(("norm", "vector_norm", "cdist", "dist"), "add an epsilon within the norm"),
    **dict.fromkeys(("acos", "asin", "atan2", "std"), "clamp its operand away from the edge"),
}


def broken_gradient(raw: RawTrace, broken: list[str]) -> Finding:
    """The finding that gradients named so are not finite after a backward pass of the user's own,
    at the first operation that was given a value at which its slope is infinite."""
    ops = raw.ops
    steep = (
        op for op in ops if op.op in STEEP and any(p >= 0 and ops[p].min == 0 for p in op.parents)
    )
    op = next(steep, None)
    told = f"after the backward pass the gradient of {join_names(broken)} is not finite"
    if op is None:
        return finding_at(ops[-1], "gradient-origin", told, "error")
    why = f"{op.op} on line {op.line} took a 0, where its slope is infinite; {STEEP[op.op]}"
    return finding_at(op, "gradient-origin", f"{told}: {why}", "error")


class GradientRecorder(Recorder):
    """Records the gradient norm of every output during backward."""

    def __init__(self, root: nn.Module | None) -> None:
        super().__init__(root)
        self.gradients: dict[int, float] = {}  # norms by row, in the order in which they came
        self.wants: set[int] = set()  # rows whose outputs take part in the backward pass
        self.last: dict[int, int] = {}  # the row that made a tensor, by the tensor's id
        self.alive: list[Tensor] = []  # ids stay theirs while the outputs live

    def _note(self, *args: Any) -> None:
        row = self._count
        super()._note(*args)
        for i, t in enumerate(args[-1]):
            self.last[id(t)] = row + i
            self.alive.append(t)
            if t.requires_grad:
                self.wants.add(row + i)
                t.register_hook(self._hook(row + i))

    def _hook(self, row: int) -> Any:
        def note(gradient: Tensor | None) -> None:
            if gradient is None:  # of a part of unbind that does not reach the output
                return
            self.gradients.setdefault(row, gradient_norm(gradient))

        return note


@dataclass(frozen=True)
class BackwardPass:
    """The result of a backward pass."""

    recorder: GradientRecorder
    parameters: tuple[ParameterGradient, ...]
    frozen: frozenset[str]
    ends: frozenset[int]  # rows that made an output of the module
    inputs: tuple[ParameterGradient, ...] = ()
    problem: str = ""


def add_gradients(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with gradients."""
    if raw.crash is not None:
        why = "there are no gradients: the forward pass ended with an exception"
        return replace(raw, backward=Backward(message=why))
    done = run_backward(traced)
    rows = [row for row in replay(done.recorder).rows for _ in row.outs]  # one for each output
    if len(rows) != len(raw.ops):  # a later call uses what the first one kept: a table of angles
        from attnlab.tracer.capture import record_run

        later = record_run(traced)
        raw = later if len(later.ops) == len(rows) else raw
    if done.problem or len(rows) != len(raw.ops):
        why = done.problem or "the run with gradients took another path than the one shown"
        told = Backward(parameters=done.parameters, inputs=done.inputs, message=why)
        ended = done.problem and (done.ends or done.recorder.failure)
        raised = [raised_finding(done, rows, raw.ops)] if ended else []
        return replace(raw, backward=told, findings=(*raw.findings, *raised))
    ops = tuple(replace(op, grad=done.recorder.gradients.get(op.index)) for op in raw.ops)
    origin, broken = first_broken(done, rows, raw)
    found = list(cut_findings(done, rows, raw.ops))
    if origin is not None and (not raw.ops[origin].nan or _is_cleared(done, raw)):
        found.insert(0, finding_at(raw.ops[origin], "gradient-origin", broken, "error"))
    return replace(
        raw,
        ops=ops,
        backward=Backward(
            parameters=done.parameters,
            inputs=done.inputs,
            origin=origin,
            message=broken or _without_gradient(done),
        ),
        findings=(*raw.findings, *found),
    )


# ---------------------------------------------------------------- the run


def run_backward(traced: TracedCall) -> BackwardPass:
    """Forward with gradients, and back from a fixed random cotangent."""
    recorder = GradientRecorder(traced.root)
    leaves = [
        t.requires_grad_() if t is not None and t.is_floating_point() else t
        for _, t in fresh(traced.given)
    ]
    # The module gets copies of the leaves, which it may write into.
    given = [
        (n, leaf.clone() if leaf is not None else None)
        for (n, _), leaf in zip(traced.given, leaves, strict=True)
    ]
    recorder.name_inputs([t for _, t in given if t is not None])
    named = dict(traced.root.named_parameters()) if traced.root is not None else {}
    learnt = {n: p for n, p in named.items() if p.requires_grad}
    torch.manual_seed(traced.seed)
    floats = {
        n: t for (n, _), t in zip(given, leaves, strict=True) if t is not None and t.requires_grad
    }
    problem, found, ends = "", dict[int, Tensor | None](), []
    with torch.enable_grad():
        try:
            with recorder:
                out = traced.call(given)
            ends = [t for t in tensors_in(out) if t.requires_grad]
            wanted = [*learnt.values(), *floats.values()]
            found = dict(
                zip(map(id, wanted), compute_gradients(ends, wanted) if ends else (), strict=False)
            )
        except Exception as error:
            problem = f"there are no gradients: {type(error).__name__}: {first_line(error)}"
    if not ends and not problem:
        problem = "there are no gradients: no output of the module depends on what has one"
    return BackwardPass(
        recorder=recorder,
        parameters=tuple(_parameter(n, p, found.get(id(p))) for n, p in named.items()),
        inputs=tuple(_parameter(n, t, found.get(id(t))) for n, t in floats.items()),
        frozen=frozenset(named.keys() - learnt.keys()),
        ends=frozenset(recorder.last[id(t)] for t in ends if id(t) in recorder.last),
        problem=problem,
    )


def compute_gradients(ends: list[Tensor], wanted: list[Tensor]) -> tuple[Tensor | None, ...]:
    """Gradients of the outputs times a fixed random cotangent. No `.grad` is touched."""
    dice = torch.Generator().manual_seed(COTANGENT)
    seeds = [torch.randn(t.shape, generator=dice).to(t.device, t.dtype) for t in ends]
    return torch.autograd.grad(ends, wanted, seeds, allow_unused=True)


def gradient_norm(gradient: Tensor) -> float:
    return float(torch.linalg.vector_norm(gradient.detach().double()))


def _parameter(name: str, parameter: Tensor, gradient: Tensor | None) -> ParameterGradient:
    norm = None if gradient is None else gradient_norm(gradient)
    finite = norm is None or math.isfinite(norm)
    return ParameterGradient(name=name, shape=tuple(parameter.shape), norm=norm, finite=finite)


# ---------------------------------------------------------------- where gradients break


def _is_cleared(done: BackwardPass, raw: RawTrace) -> bool:
    """Whether the outputs have no NaN, whatever the rows before them have."""
    return not any(raw.ops[row].nan for row in done.ends)


def first_broken(done: BackwardPass, rows: list[Row], raw: RawTrace) -> tuple[int | None, str]:
    """The row whose backward made the first gradient that is not finite, and a sentence."""
    gradients = done.recorder.gradients
    bad = next((row for row, norm in gradients.items() if not math.isfinite(norm)), None)
    leaf = next((p.name for p in done.parameters if not p.finite), None)
    if bad is None and leaf is None:
        return None, ""
    if any(op.nan for op in raw.ops):
        row = next(op.index for op in raw.ops if op.nan)
        first = f"{raw.ops[row].op} {place_of(raw.ops[row], only_file(raw))}"
        still = ": it was replaced, but not in the gradients" if _is_cleared(done, raw) else ""
        return row, f"the forward pass has NaN already, from {first}{still}"
    users = [
        i
        for i, row in enumerate(rows)
        if (bad in row.parents if bad is not None else leaf in row.sources)
        and i in gradients
        and math.isfinite(gradients[i])
    ]
    if not users:
        made = raw.ops[bad] if bad is not None else None
        where = f"the output of {made.op} {place_of(made, only_file(raw))}" if made else str(leaf)
        return bad, f"the first gradient that is not finite is that of {where}"
    guilty = max(users, key=lambda i: (raw.ops[i].op in STEEP, i))
    return guilty, _blame_message(raw, guilty, nan=bad is None or math.isnan(gradients[bad]))


def _blame_message(raw: RawTrace, row: int, nan: bool) -> str:
    op = raw.ops[row]
    what = f"backward of {op.op} made the first gradient that is not finite"
    operand = next((raw.ops[p] for p in op.parents if p >= 0), None)
    zero = operand is not None and operand.min is not None and operand.min <= 0
    steep = STEEP.get(op.op, "")
    if not steep:
        return f"{what}: {'NaN' if nan else 'an infinity'}"
    at = ", where its operand lies" if zero else ""
    nought = ", and 0 * inf is NaN: a where or a mask after it does not help" if nan else ""
    return f"{what}: its slope at the edge of its domain is infinite{at}{nought}; {steep}"


# ---------------------------------------------------------------- who gets none


def _without_gradient(done: BackwardPass) -> str:
    """One sentence on parameters without a gradient, and those whose gradient is exactly 0."""
    learnt = [p for p in done.parameters if p.name not in done.frozen]
    none = [p.name for p in learnt if p.norm is None]
    zero = [p.name for p in learnt if p.norm == 0]
    frozen = join_names(sorted(done.frozen))
    parts = (
        f"no gradient reached {join_names(none)}" if none else "",
        f"the gradient of {join_names(zero)} is exactly 0" if zero else "",
        f"{frozen} asked for none (requires_grad=False)" if frozen else "",
    )
    return "; ".join(filter(None, parts))


def join_names(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def cut_findings(done: BackwardPass, rows: list[Row], ops: tuple[Op, ...]) -> Iterator[Finding]:
    """Where the way from a parameter to the output was cut: a detach, or a block of no_grad."""
    lost = [p.name for p in done.parameters if p.norm is None and p.name not in done.frozen]
    reach = _ancestors(rows, done.ends)
    cuts: dict[int, list[str]] = {}
    for name in lost:
        cut = _cut(name, rows, reach, done.recorder.wants)
        if cut is not None and ops[cut].dtype.startswith(("float", "bfloat")):
            cuts.setdefault(cut, []).append(name)
    for cut, names in cuts.items():
        op = ops[cut]
        how = op.op if op.op in {"detach", "data", "detach_"} else f"{op.op} under no_grad"
        yield finding_at(
            op,
            "gradient-cut",
            f"{how} cuts the gradient: {join_names(names)} reach"
            f"{'es' if len(names) == 1 else ''} the output through it, and get"
            f"{'s' if len(names) == 1 else ''} none",
        )


def raised_finding(done: BackwardPass, rows: list[Row], ops: tuple[Op, ...]) -> Finding:
    """Where a value that the backward pass needs was overwritten, or where the forward pass raises
    with gradients alone; else where the backward pass began."""
    if not done.ends and len(rows) < len(ops):
        return finding_at(ops[len(rows)], "backward-raises", done.problem, "error")
    told = OVERWRITTEN.search(done.problem)
    made = told[1].lower().removesuffix("backward") if told else ""
    writes = [
        i for i, row in enumerate(rows) if made and writes_in_place(row) and row.parents[:1] >= (0,)
    ]
    for i in writes:
        op, above = ops[i], ops[rows[i].parents[0]]
        names = {name.replace("_", "") for name in (above.op, op.op)}
        if made in names or len(writes) == 1:
            says = f"{op.op} overwrites the result of {above.op} {place_of(above, op.file)}, which "
            says += "the backward pass needs"
            return finding_at(op, "backward-raises", says, "error")
    return finding_at(ops[-1], "backward-raises", done.problem, "error")


def _ancestors(rows: list[Row], ends: frozenset[int]) -> set[int]:
    """Rows that an output descends from."""
    reach, todo = set(ends), list(ends)
    while todo:
        above = [p for p in rows[todo.pop()].parents if p >= 0 and p not in reach]
        reach.update(above)
        todo += above
    return reach


def _cut(name: str, rows: list[Row], reach: set[int], wants: set[int]) -> int | None:
    """The first row on the way from a parameter to the output that passes no gradient on."""
    way: set[int] = set()
    for i, row in enumerate(rows):
        if name in row.sources or way & set(row.parents):
            if i not in wants and i in reach:
                return i
            way.add(i)
    return None
