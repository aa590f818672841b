"""Say the shape of a tensor before you run the line.

A line of right code is marked; type the axes of the tensor that it makes, as names (`B S H hd`,
`B S 3*D`) or as numbers. The answer is compared with the trace of that code at two sets of sizes.
The right sizes in another order count half. Then: does the last step make a view or a copy, and
which axis is summed?
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.errors import Refused
from attnlab.questions.base import Judged, Part, Runner, about, asked, choice
from attnlab.questions.material import Excerpt, Piece, excerpt, tree_of
from attnlab.records import Input
from attnlab.records.trace import Op, Trace
from attnlab.sizes import Sizes, UnknownSize, measure

MATERIAL = "piece"
EXPECTED = "the axes as names or numbers, such as B S D"
SETS = (0, 1)  # of sizes: that which the question names, and another
SYMBOLS = {
    ast.MatMult: "matmul", ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div",
    ast.BitAnd: "and", ast.BitOr: "or",
}  # fmt: skip
LAYOUT = {
    "view", "reshape", "transpose", "permute", "unflatten", "flatten", "expand", "contiguous",
    "unsqueeze", "squeeze", "cat", "repeat_interleave", "narrow", "movedim",
}  # fmt: skip
AXIS, TIMES = re.compile(r"[\w'*/+-]+"), re.compile(r"(?<=\d)\s*x\s*(?=\d)")
SUMMED = {
    "matmul": "a matrix product sums over the last axis of its left operand",
    "softmax": "softmax divides by a sum over the axis that `dim` names",
    "sum": "`dim` names it",
    "mean": "`dim` names it",
}


def draw(piece: Piece, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    runs = [run(piece, number, runner) for number in SETS]
    lines = [found for found in readable_lines(piece, runs) if fits(found.rows, runs)]
    if not lines:
        return None
    chosen = dice.choice(lines)
    first, row = ask_shape(chosen, runs), chosen.rows[0]
    code = shown(piece, excerpt(piece.text, chosen.number), chosen.number, runs[0])
    parts = [first, *_follow_ups(piece, runs[0].trace, row, dice)]
    return [about(part, code, {"base": piece.base, "category": "shapes"}) for part in parts]


class Run(NamedTuple):
    trace: Trace
    sizes: Sizes  # what the names of its axes stand for


class Line(NamedTuple):
    number: int
    name: str  # what the line assigns
    rows: tuple[Op, ...]  # the last one of it, in each run


def run(piece: Piece, number: int, runner: Runner) -> Run:
    trace = runner.trace(piece.trace_job(number))
    return Run(trace, {**piece.sizes(number), **trace.sizes})


def ask_shape(line: Line, runs: Sequence[Run]) -> Part:
    """What the shape is after a line."""
    row = line.rows[0]
    prompt = f"What is the shape of `{line.name}` after line {line.number}?"
    return Part(
        question=asked(prompt, EXPECTED),
        right=f"{' '.join(row.axes)}, here {' '.join(map(str, row.shape))}",
        judge=lambda typed: judge_axes(typed, line.rows, runs),
        rows=[op for op in runs[0].trace.ops if op.line == row.line and op.index <= row.index],
    )


def shown(piece: Piece, here: Excerpt, line: int | None, first: Run) -> dict[str, Any]:
    """The fields of a question about a part of the code, one line of it marked."""
    log = tuple(_arguments(piece, line or here.first))
    return {**here.code(Path(piece.code.file).name, line), "sizes": first.sizes, "log": log}


def _arguments(piece: Piece, line: int) -> Iterator[str]:
    """What the function with the line is called with, and what is known of the module's inputs."""
    entry, inputs = _entry(piece), piece.contract.inputs
    around = [
        node
        for node in ast.walk(tree_of(piece.text))  # the outer ones first
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    own = around[-1] if around else None
    if isinstance(own, ast.FunctionDef) and own is not entry:
        names = ", ".join(name for name in _names(own) if name != "self")
        yield f"{'.'.join(node.name for node in around)} gets {names or 'no argument'}"
    fed = [each for each in inputs if entry and each.argument in _names(entry)] or inputs
    kept = [each for each in inputs if each not in fed]
    yield f"{piece.code.name or 'the module'} is called with {_with_axes(fed)}"
    if kept:
        yield f"its parameters are {_with_axes(kept)}"


def _with_axes(inputs: Iterable[Input]) -> str:
    return ", ".join(f"{each.name} ({' '.join(each.axes)})" for each in inputs)


def _names(function: ast.FunctionDef) -> list[str]:
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _entry(piece: Piece) -> ast.FunctionDef | None:
    """The function that a call of the class or function runs, where the file has it."""
    for node in tree_of(piece.text).body:
        match node:
            case ast.FunctionDef(name=name) if name == piece.code.name:
                return node
            case ast.ClassDef(name=name, body=body) if name == piece.code.name:
                methods = (each for each in body if isinstance(each, ast.FunctionDef))
                return next((each for each in methods if each.name == "forward"), None)
    return None


# ---------------------------------------------------------------- which lines


def readable_lines(piece: Piece, runs: Sequence[Run]) -> Iterator[Line]:
    """Lines `NAME = EXPRESSION` whose value is the output of the last row there."""
    layers = _layers(piece.text)
    for node in ast.walk(tree_of(piece.text)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value, lineno=line, end_lineno=end):
                ends = [last_row(trace, line) for trace, _ in runs]
                rows = tuple(row for row in ends if row and _makes(value, row, layers))
                if line == end and len(rows) == len(runs):
                    yield Line(line, name, rows)


def fits(rows: Sequence[Op], runs: Sequence[Run]) -> bool:
    """Whether the names of the axes are right in every run."""
    try:
        return all(
            tuple(_size(axis, sizes) for axis in rows[0].axes) == row.shape
            for row, (_, sizes) in zip(rows, runs, strict=True)
        )
    except Refused:
        return False


def last_row(trace: Trace, line: int) -> Op | None:
    """The last row of a line, where all its runs end with the same shape."""
    rows = [op for op in trace.ops if op.line == line]
    last = rows[-1] if rows else None
    ends = {op.shape for op in rows if last and op.op == last.op}
    return last if last and len(ends) == 1 and len(last.shape) > 1 else None


def _makes(value: ast.expr, row: Op, layers: set[str]) -> bool:
    """Whether the outermost operation of the expression is that of the row."""
    match value:
        case ast.BinOp(op=symbol):
            return SYMBOLS.get(type(symbol)) == row.op
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return name in layers and row.op in ("linear", "embedding", "layer_norm", "rms_norm")
        case ast.Call(func=ast.Attribute(attr=name)):
            return name == row.op
        case ast.Subscript():
            return row.op == "getitem"
    return False


@lru_cache(maxsize=256)
def _layers(text: str) -> set[str]:
    """Attributes that every class of the file sets to a layer of PyTorch's, such as nn.Linear."""
    found: dict[str, set[bool]] = {}
    for node in ast.walk(tree_of(text)):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=value):
                layer = isinstance(value, ast.Call) and ast.unparse(value.func).startswith("nn.")
                found.setdefault(name, set()).add(layer)
    return {name for name, kinds in found.items() if kinds == {True}}


# ---------------------------------------------------------------- judging


def judge_axes(typed: str, rows: Sequence[Op], runs: Sequence[Run]) -> Judged:
    """Compare names with the shapes in all runs, numbers with that in the first one."""
    axes = AXIS.findall(TIMES.sub(" ", typed))
    if not axes:
        raise Refused(f'"{typed}" names no axis', f"type {EXPECTED}")
    if all(axis.isdecimal() for axis in axes):
        rows, runs = rows[:1], runs[:1]
    found = [tuple(_size(axis, sizes) for axis in axes) for _, sizes in runs]
    shapes, answer = [row.shape for row in rows], " ".join(axes)
    if found == shapes:
        return Judged("right", answer, "")
    if list(map(sorted, found)) == list(map(sorted, shapes)):
        return Judged("partly", answer, "the sizes are right, their order is not")
    return Judged("wrong", answer, _difference(axes, found[0], rows[0]))


def judge_shape(typed: str, axes: Sequence[str], shape: Sequence[int], sizes: Sizes) -> Judged:
    """The same of one tensor, at the sizes of one run."""
    row = Op(
        index=0, op="", line=0, file="", source="", shape=tuple(shape), axes=tuple(axes),
        dtype="", stride=(), view=False,
    )  # fmt: skip
    return judge_axes(typed, [row], [Run(Trace(), sizes)])


def _difference(axes: Sequence[str], sizes: Sequence[int], row: Op) -> str:
    if len(axes) != len(row.shape):
        return f"it has {len(row.shape)} axes, you named {len(axes)}"
    differ = [n for n, (a, b) in enumerate(zip(sizes, row.shape, strict=True)) if a != b]
    if not differ:
        return "right at these sizes by chance: at others it has another shape"
    place = differ[0]
    right = f"{row.axes[place]} = {row.shape[place]}"
    return f"axis {place} is {right}, not {axes[place]} = {sizes[place]}"


def _size(axis: str, sizes: Sizes) -> int:
    name = axis.rstrip("'")
    try:
        return measure(name, sizes)
    except UnknownSize:
        lower = {symbol.lower(): n for symbol, n in sizes.items()}
        if name.lower() in lower and list(map(str.lower, sizes)).count(name.lower()) == 1:
            return lower[name.lower()]
        raise Refused(f'"{axis}" is no size here', f"there are {', '.join(sizes)}") from None


# ---------------------------------------------------------------- what is asked next


def _follow_ups(piece: Piece, trace: Trace, row: Op, dice: random.Random) -> Iterator[Part]:
    if row.op in LAYOUT:
        yield _view_or_copy(row, dice)
    summed = [op for op in trace.ops if op.line == row.line and op.op in SUMMED and op.parents]
    if summed and (part := _summed_axis(piece, trace, summed[-1], dice)):
        yield part


def _view_or_copy(row: Op, dice: random.Random) -> Part:
    view, copy = "a view: it shares memory with its operand", "a copy: new memory was written"
    prompt = f"Its last step is `{row.op}`. Is the result a view or a copy?"
    asked, right, judge = choice(
        dice, view if row.view else copy, [view, copy], prompt, ordered=True
    )
    why = f"Strides of the result: {row.stride}."
    return Part(question=asked, right=right, judge=judge, why=why)


def _summed_axis(piece: Piece, trace: Trace, row: Op, dice: random.Random) -> Part | None:
    left = next((op for op in trace.ops if op.index == row.parents[0]), None)
    place = -1 if row.op == "matmul" else _dim(piece.text, row)
    if left is None or place is None or len({*left.axes}) != len(left.axes) or len(left.axes) < 2:
        return None
    choices = [f"axis {n} ({axis})" for n, axis in enumerate(left.axes)]
    if not -len(choices) <= place < len(choices):
        return None
    whose = "of its left operand " if row.op == "matmul" else "of its operand "
    prompt = f"`{row.op}` on line {row.line}: which axis {whose}is summed over?"
    asked, right, judge = choice(dice, choices[place], choices, prompt, ordered=True)
    why = f"The operand is {' '.join(left.axes)}; {SUMMED[row.op]}."
    return Part(question=asked, right=right, judge=judge, why=why)


def _dim(text: str, row: Op) -> int | None:
    """The one number that a call of the row's operation on its line is given as `dim`."""
    found = set()
    for node in ast.walk(tree_of(text)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), lineno=line) if (name, line) == (
                row.op,
                row.line,
            ):
                given = [k.value for k in node.keywords if k.arg == "dim"] or node.args[-1:]
                found.add(ast.unparse(given[0]) if given else "")
    number = found.pop() if len(found) == 1 else ""
    return int(number) if number.lstrip("-").isdecimal() else None
