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
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.errors import Refused
from attnlab.questions.base import Judged, Part, Runner, about, asked, choice
from attnlab.questions.material import Excerpt, Piece, excerpt, tree_of
from attnlab.questions.readable import SUMMED, Line, lines_of
from attnlab.records import Input
from attnlab.records.trace import Op
from attnlab.sizes import Sizes, UnknownSize, measure

MATERIAL = "piece"
ABOUT = ("shapes",)  # what it can be asked about
EXPECTED = "the axes as names or numbers, such as B S D"
LAYOUT = {
    "view", "reshape", "transpose", "permute", "unflatten", "flatten", "expand", "contiguous",
    "unsqueeze", "squeeze", "cat", "repeat_interleave", "narrow", "movedim",
}  # fmt: skip
AXIS, WORD = re.compile(r"[\w'*/+-]+"), re.compile(r"[^\W\d]\w*")
NUMBER = re.compile(r"(?<![\w'])(\d{1,9})(?![\w'])")
SIZE_OF = re.compile(r"^(?:torch\.)?Size\b")  # as it is printed
TIMES = re.compile(r"(?<=\d)\s*x\s*(?=\d)|(?<=\s)x(?=\s)")
MOST = 5  # parts of an expression with two numbers


def draw(piece: Piece, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    lines = lines_of(piece, runner)
    if not lines.all:
        return None
    chosen = dice.choice(lines.all)
    code = shown(piece, excerpt(piece.text, chosen.number), chosen.number, lines.sizes[0])
    parts = [ask_shape(chosen, lines.sizes), *_follow_ups(piece, chosen, dice)]
    return [about(part, code, {"base": piece.base, "category": "shapes"}) for part in parts]


class Run(NamedTuple):
    """What is known of a tensor at some sizes."""

    shape: tuple[int, ...]
    sizes: Sizes  # what the names of axes stand for


def ask_shape(line: Line, sizes: Sequence[Sizes]) -> Part:
    """What the shape is after a line."""
    row = line.value
    runs = [Run(*pair) for pair in zip((row.shape, line.other), sizes, strict=True)]
    prompt = f"What is the shape of `{line.name}` after line {line.number}?"
    return Part(
        question=asked(prompt, EXPECTED),
        right=f"{' '.join(row.axes)}, here {' '.join(map(str, row.shape))}",
        judge=lambda typed: judge_axes(typed, row, runs),
        rows=line.rows,
    )


def shown(piece: Piece, here: Excerpt, line: int | None, sizes: Sizes) -> dict[str, Any]:
    """The fields of a question about a part of the code, one line of it marked."""
    log = tuple(_arguments(piece, line or here.first))
    return {**here.code(Path(piece.code.file).name, line), "sizes": sizes, "log": log}


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


# ---------------------------------------------------------------- judging


def judge_axes(typed: str, row: Op, runs: Sequence[Run]) -> Judged:
    """Compare names with the shapes in all runs, numbers with that in the first one, of which the
    row is. A number in an expression may stand for what has that size in the first one."""
    first = runs[0].sizes
    text = SIZE_OF.sub("", typed.strip())
    axes = AXIS.findall(TIMES.sub(" ", text) if "x" not in map(str.lower, first) else text)
    if not axes:
        raise Refused(f'"{typed}" names no axis', f"type {EXPECTED}")
    answer, found = " ".join(axes), [_size(axis, first) for axis in axes]
    meant = [[_meanings(axis, first, run.sizes) for axis in axes] for run in runs]

    def fits(order: Sequence[int]) -> bool:
        return all(
            run.shape[n] in sizes or (number and not WORD.search(axis))
            for number, (run, known) in enumerate(zip(runs, meant, strict=True))
            for axis, sizes, n in zip(axes, known, order, strict=True)
        )

    if sorted(found) == sorted(row.shape):
        places = range(len(axes))
        if fits(places):
            return Judged("right", answer, "")
        if any(map(fits, permutations(places))):
            return Judged("partly", answer, "the sizes are right, their order is not")
    return Judged("wrong", answer, _difference(axes, found, row))


def _meanings(axis: str, first: Sizes, sizes: Sizes) -> set[int]:
    """What an axis may be at these sizes: each number in it stands for itself, or for a name, for a
    product of two or for a multiple of such, which is as large at the first sizes."""
    parts = NUMBER.split(axis)
    pairs = [(size, sizes.get(name, size)) for name, size in first.items() if size > 0]
    both = combinations_with_replacement(pairs, 2)
    factors = [(1, 1), *pairs, *((a * c, b * d) for (a, b), (c, d) in both)]
    choices: list[list[str]] = [[part] for part in parts]
    for place in range(1, len(parts), 2) if len(parts) <= MOST else ():
        number = int(parts[place])
        choices[place] = [str(number // a * b) for a, b in factors if number % a == 0]
    return {_size("".join(one), sizes) for one in product(*choices)}


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
    """The size of an axis; a name may be typed in either case where only one is meant."""
    lower = [name.lower() for name in sizes]
    known = {name.lower(): name for name in sizes if lower.count(name.lower()) == 1}
    known |= {name: name for name in sizes}
    names = WORD.sub(lambda m: known.get(m[0]) or known.get(m[0].lower(), m[0]), axis)
    try:
        return measure(names.replace("'", ""), sizes)
    except UnknownSize:
        raise Refused(f'"{axis}" is no size here', f"there are {', '.join(sizes)}") from None


# ---------------------------------------------------------------- what is asked next


def _follow_ups(piece: Piece, line: Line, dice: random.Random) -> Iterator[Part]:
    if line.value.op in LAYOUT:
        yield _view_or_copy(line.value, dice)
    if line.left and (part := _summed_axis(piece, line, dice)):
        yield part


def _view_or_copy(row: Op, dice: random.Random) -> Part:
    view, copy = "a view: it shares memory with its operand", "a copy: new memory was written"
    prompt = f"Its last step is `{row.op}`. Is the result a view or a copy?"
    asked, right, judge = choice(
        dice, view if row.view else copy, [view, copy], prompt, ordered=True
    )
    why = f"Strides of the result: {row.stride}."
    return Part(question=asked, right=right, judge=judge, why=why)


def _summed_axis(piece: Piece, line: Line, dice: random.Random) -> Part | None:
    row = next(op for op in reversed(line.rows) if op.op in SUMMED and op.parents)
    left, place = line.left, -1 if row.op == "matmul" else _dim(piece.text, row)
    if place is None or len({*left}) != len(left) or len(left) < 2:
        return None
    choices = [f"axis {n} ({axis})" for n, axis in enumerate(left)]
    if not -len(choices) <= place < len(choices):
        return None
    whose = "of its left operand " if row.op == "matmul" else "of its operand "
    prompt = f"`{row.op}` on line {row.line}: which axis {whose}is summed over?"
    asked, right, judge = choice(dice, choices[place], choices, prompt, ordered=True)
    why = f"The operand is {' '.join(left)}; {SUMMED[row.op]}."
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
