"""What the reference suggests for a line: its own lines, numbers, arguments and functions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from attnlab.diagnosis.lines import differing_lines
from attnlab.diagnosis.operands import arguments_by_name
from attnlab.mutation_testing.operators.base import (
    Edit,
    Source,
    apply_edit,
    called_name,
    is_layer,
    subject,
)

MOST_LINES = 4  # of the reference that are taken for one change
WORDS = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d*)?(?:e-?\d+)?|[^\s\w]")
ELEMENTWISE = {
    *("exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "square", "reciprocal"),
    *("relu", "softplus", "sin", "cos"),
}
SYMBOLS: dict[str, set[str]] = {
    "order": set(),
    "mask-inverted": {"~", "not"},
    "sign": {"+", "-"},
    "exponent": {"*", "/"},
    "wrongly-joined": {"&", "|", "^"},
    "comparison-shifted": {"<", ">", "=", "!"},
}


def suggestions(source: Source, theirs: Source) -> Iterator[tuple[str, Edit]]:
    """What is wrong with a line, and the change that makes it right if it is."""
    yield from _as_written(source, theirs)
    yield from (("wrong-arguments", edit) for edit in _as_called(source, theirs))
    yield from (("wrong-number", edit) for edit in _as_numbered(source, theirs))
    yield from (("wrong-function", edit) for edit in _as_applied(source, theirs))
    yield from (("missing-term", edit) for edit in _as_added(source, theirs))
    yield from (("missing-step", edit) for edit in _as_bent(source, theirs))
    yield from (("missing-step", edit) for edit in _as_divided(source, theirs))
    yield from (("wrong-arguments", edit) for edit in arguments_by_name(source))


def _as_written(source: Source, theirs: Source) -> Iterator[tuple[str, Edit]]:
    """The lines of the reference, where few others differ."""
    if differing_lines(source.text, theirs.text) is None:
        return
    mine, right = (each.text.splitlines(keepends=True) for each in (source, theirs))
    places = SequenceMatcher(None, mine, right, autojunk=False).get_opcodes()
    for tag, first, last, begin, end in places:
        if tag != "equal" and max(last - first, end - begin) <= MOST_LINES:
            old, new = "".join(mine[first:last]), "".join(right[begin:end])
            start = source.offset(first + 1, 0)
            edit = Edit(splices=((start, start + len(old), new),))
            yield difference(old, new), edit


def difference(old: str, new: str) -> str:
    """What is wrong with a line, from its words and those of the right one."""
    mine, right = (Counter(WORDS.findall(text)) for text in (old, new))
    gone, come = set(mine - right), set(right - mine)
    both = gone | come
    called = any(re.search(rf"\b{word}\(", old + new) for word in both if word.isidentifier())
    numbers = all(word[0].isdigit() or word == "-" for word in both)
    names = all(word.isidentifier() for word in both)
    symbols = [kind for kind, some in SYMBOLS.items() if both <= some]
    if symbols or numbers:
        return symbols[0] if symbols else "wrong-number"
    if gone and come:
        return ("wrong-function" if called else "wrong-operand") if names else "other"
    what = "step" if called else "term" if both & set("+-*/@&|") else "argument"
    return f"{'extra' if gone else 'missing'}-{what}"


def _as_called(source: Source, theirs: Source) -> Iterator[Edit]:
    """The plain arguments of a call of the same function in the reference."""
    known: dict[str, list[ast.Call]] = {}
    for call in theirs.calls():
        known.setdefault(called_name(call), []).append(call)
    for call in source.calls():
        for other in known.get(called_name(call), ()):
            splices = []
            mine = {k.arg: k.value for k in call.keywords}
            pairs = list(zip(call.args[::-1], other.args[::-1], strict=False))
            pairs += [(mine[k.arg], k.value) for k in other.keywords if k.arg in mine]
            for one, right in pairs:
                if _is_plain(one) and _is_plain(right) and ast.dump(one) != ast.dump(right):
                    splices.append((*source.span(one), theirs.text_of(right)))
            more = [
                f"{k.arg}={theirs.text_of(k.value)}"
                for k in other.keywords
                if k.arg not in mine and _is_plain(k.value)
            ]
            if more:
                end = source.span(call)[1] - 1
                said = ", ".join(more)
                empty = not call.args and not call.keywords
                splices.append((end, end, said if empty else f", {said}"))
            if splices:
                yield _whole(source, call, splices)


def _whole(source: Source, node: ast.AST, splices: Sequence[tuple[int, int, str]]) -> Edit:
    """Changes inside of a node as one, so that it is shown whole."""
    start, end = source.span(node)
    inside = tuple((a - start, b - start, new) for a, b, new in splices)
    text = apply_edit(source.text_of(node), Edit(splices=inside))
    return Edit(splices=((start, end, text),))


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression is a number, a flag or a text, or arithmetic of such."""
    if isinstance(node, ast.UnaryOp):
        return _is_plain(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_plain(node.left) and _is_plain(node.right)
    return isinstance(node, ast.Constant)


def _as_numbered(source: Source, theirs: Source) -> Iterator[Edit]:
    """A number that the reference has, in place of each that it has not."""
    mine, right = ({n for n, _ in _numbers(each)} for each in (source, theirs))
    lines: dict[tuple[int, int | float], list[ast.Constant]] = {}
    for number, node in _numbers(source):
        lines.setdefault((node.lineno, number), []).append(node)
    for (_, number), nodes in lines.items():
        strange = right - mine if number in right else right
        twice = {number - 1, number + 1} if len(nodes) > 1 else set()  # as in clamp(-2, 2)
        for other in sorted({*strange, *twice} - {number}):
            for some in dict.fromkeys((tuple(nodes), *((node,) for node in nodes))):
                yield Edit(splices=tuple((*source.span(node), repr(other)) for node in some))


def _numbers(source: Source) -> Iterator[tuple[int | float, ast.Constant]]:
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            yield node.value, node


def _as_applied(source: Source, theirs: Source) -> Iterator[Edit]:
    """A function that only the reference calls, in place of one that only this file calls."""
    mine, right = ({called_name(c) for c in s.calls()} for s in (source, theirs))
    for call in source.calls():
        if called_name(call) not in right and not is_layer(call):
            for name in sorted(right - mine):
                yield source.rename(call.func, name)


def _as_bent(source: Source, theirs: Source) -> Iterator[Edit]:
    """A function of each number, as `exp`, that only the reference applies, to an operand."""
    mine, right = ({called_name(c) for c in s.calls()} for s in (source, theirs))
    for name in sorted((right - mine) & ELEMENTWISE):
        for node in source.binary(ast.Mult, ast.Div, ast.Add, ast.Sub):
            for operand in (node.left, node.right):
                if not isinstance(operand, ast.Constant):
                    yield source.put(operand, f"{source.atom(operand)}.{name}()")


def _as_divided(source: Source, theirs: Source) -> Iterator[Edit]:
    """A variable divided by its own sum or norm, as one of the reference is."""
    ways = set[str]()
    for node in theirs.binary(ast.Div):
        value = subject(node.right) if isinstance(node.right, ast.Call) else None
        same = theirs.sides(node)[0]
        if value is not None and theirs.text_of(value) == same:
            ways.add(theirs.text_of(node.right)[len(same) :])
    for name in source.of_type(ast.Name) if ways else ():
        inner = isinstance(source.parents.get(name), ast.Attribute)
        if isinstance(name.ctx, ast.Load) and not inner:
            texts = (f"({name.id} / {name.id}{way})" for way in sorted(ways))
            yield from source.put_each(name, texts)


def _as_added(source: Source, theirs: Source) -> Iterator[Edit]:
    """A number that the reference adds to something, added to what a call gives."""
    added = {
        f"{sign} {theirs.text_of(node.right)}"
        for sign, kind in (("+", ast.Add), ("-", ast.Sub))
        for node in theirs.binary(kind)
        if isinstance(node.right, ast.Constant)
    }
    for call in source.calls():
        yield from (source.put_expr(call, f"{source.text_of(call)} {n}") for n in sorted(added))
    for node in source.binary(ast.Mult):
        for operand in (node.left, node.right):
            if isinstance(operand, ast.Name):
                yield from (source.put(operand, f"({operand.id} {n})") for n in sorted(added))
