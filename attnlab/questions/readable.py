"""Lines of right code whose value is known for certain, as two traces of it show them.

Those of the shipped code stand in `lines.json`; other code is traced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.questions.base import Runner
from attnlab.questions.kept import find_entry, short_digest
from attnlab.questions.material import Piece, tree_of
from attnlab.records import record
from attnlab.records.trace import Op, Trace
from attnlab.sizes import Sizes, UnknownSize, measure
from attnlab.target.source import parse

FILE = Path(__file__).with_name("lines.json")
SETS = (0, 1)  # of sizes: that which a question names, and another
SUMMED = {
    "matmul": "a matrix product sums over the last axis of its left operand",
    "softmax": "softmax divides by a sum over the axis that `dim` names",
    "sum": "`dim` names it",
    "mean": "`dim` names it",
}
SYMBOLS = {
    ast.MatMult: "matmul", ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div",
    ast.BitAnd: "and", ast.BitOr: "or",
}  # fmt: skip
LAYERS = ("linear", "embedding", "layer_norm", "rms_norm")


@record
class Line:
    """A line `NAME = EXPRESSION` whose value is the output of its last row."""

    number: int
    name: str  # what it assigns
    rows: tuple[Op, ...]  # of it, at the first sizes
    other: tuple[int, ...]  # the shape of its value at the others
    left: tuple[str, ...] = ()  # axes of the left operand of its last sum
    known_as: tuple[str, ...] = ()  # what it is there for

    @property
    def value(self) -> Op:
        return self.rows[-1]


@record
class Lines:
    sizes: tuple[Sizes, ...]  # what the names of axes stand for, of each set
    all: tuple[Line, ...] = ()


def lines_of(piece: Piece, runner: Runner) -> Lines:
    """The lines of a piece that can be asked about; none where it cannot be run. Raises
    `Unreadable` where it is no Python."""
    if runner.shipped and (found := find_entry(FILE, lines_key(piece), Lines)):
        return _with_sources(found, piece)
    parse(piece.text, piece.code.file)  # raises where it is broken
    jobs = [piece.trace_job(number) for number in SETS]
    return runner.once(
        ("lines", jobs),
        Lines,
        lambda: _find_lines(piece, [runner.run_job(job).trace or Trace() for job in jobs]),
    )


def _with_sources(lines: Lines, piece: Piece) -> Lines:
    """What an entry does not repeat."""
    text, file = piece.text.splitlines(), piece.code.file
    found = []
    for line in lines.all:
        source = text[line.number - 1].strip()
        rows = tuple(replace(row, file=file, source=source) for row in line.rows)
        found.append(replace(line, rows=rows))
    return replace(lines, all=tuple(found))


def lines_key(piece: Piece) -> str:
    """What the lines of a piece depend on: its code, how it is built and fed."""
    code, contract = piece.code, replace(piece.contract, promises=())
    sizes = [piece.sizes(number) for number in SETS]
    whole = (code.text, code.name, code.siblings, sizes, contract)
    return f"{piece.base} {Path(code.file).name} {short_digest(whole)}"


def _find_lines(piece: Piece, traces: Sequence[Trace]) -> Lines:
    from attnlab.questions.walk import walk  # not where they are known

    sizes = tuple({**piece.sizes(n), **trace.sizes} for n, trace in zip(SETS, traces, strict=True))
    known_as = {step.line: tuple(step.why) for step in walk(traces[0])}
    found = list[Line]()
    for line in _readable_lines(piece, traces):
        row = line.value
        summed = [op for op in line.rows if op.op in SUMMED and op.parents]
        parent = summed[-1].parents[0] if summed else None
        left = next((op.axes for op in traces[0].ops if op.index == parent), ())
        if _fits(row.axes, (row.shape, line.other), sizes):
            found.append(replace(line, left=left, known_as=known_as.get(line.number, ())))
    return Lines(sizes=sizes, all=tuple(found))


def _readable_lines(piece: Piece, traces: Sequence[Trace]) -> Iterator[Line]:
    text = piece.text.splitlines()
    for node in ast.walk(tree_of(piece.text)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], lineno=line, end_lineno=end):
                ops = [[op for op in trace.ops if op.line == line] for trace in traces]
                rows = [row for each in ops if (row := value_row(text[line - 1], each))]
                same = line == end and len(rows) == len(traces)
                if same and all(len(row.shape) > 1 for row in rows):
                    yield Line(number=line, name=name, rows=tuple(ops[0]), other=rows[1].shape)


def _fits(axes: Sequence[str], shapes: Sequence[tuple[int, ...]], sizes: Sequence[Sizes]) -> bool:
    """Whether the names of the axes are right at all sizes."""
    try:
        return all(
            tuple(measure(axis.replace("'", ""), known) for axis in axes) == shape
            for shape, known in zip(shapes, sizes, strict=True)
        )
    except UnknownSize:
        return False


def value_row(source: str, ops: Sequence[Op]) -> Op | None:
    """The row that is the value of a line's one statement, of all rows of the line; None where that
    is not certain, or where the line ran several times with different shapes."""
    try:
        body = tree_of(source.strip()).body
    except (SyntaxError, ValueError):  # a part of a longer statement
        return None
    match body:
        case [
            ast.Assign(targets=[ast.Name() | ast.Attribute()], value=value)
            | ast.Return(value=ast.expr() as value)
        ] if ops:
            shapes = {op.shape for op in ops if op.op == ops[-1].op}
            sure = _makes(value, ops[-1]) and ops[-1].shape and len(shapes) == 1
            return ops[-1] if sure else None
    return None


def _makes(value: ast.expr, row: Op) -> bool:
    """Whether the outermost operation of the expression is that of the row."""
    match value:
        case ast.BinOp(op=symbol):
            return SYMBOLS.get(type(symbol)) == row.op
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            return row.module.rpartition(".")[2] == name and row.op in LAYERS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name == row.op
        case ast.Subscript():  # what another one inside of it reads may be the only tensor
            inner = sum(isinstance(node, ast.Subscript) for node in ast.walk(value)) > 1
            return row.op == "getitem" and not inner
    return False
