"""Repairs by the text: the file with one line changed, run anew.

Where the reference computes otherwise, no value of it may fit any step. Then the lines that compute
what the reference does not have are changed as people get lines wrong and right: with what the
reference writes in such places, or by an operator of the mutation tests. A change with which the
output is right, on other inputs as well, says what is wrong, where, and what would be right.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from torch import Tensor

from attnlab.diagnosis.pairing import Pairing, equal
from attnlab.mutation_testing.operators.base import (
    Edit,
    Source,
    apply_edit,
    called_name,
    changed_lines,
    is_layer,
    load_mutations,
)

MOST = 1200  # changes that are tried
BATCH = 24  # that are asked for at once
SECONDS = 5.0  # of CPU for all of them
MOST_VALUES = 6_000  # of one run, above which a change costs too much
MOST_LINES = 800
LEAST_SHOWN = 8  # characters of an expression that is shown
MOST_NAMES = 24  # that may be written in place of another one
# Mutations that leave the output, change it a little, or at random.
FAMILIES = ("training", "side_effects")
IDLE = {
    *("allocated-only", "another-exception", "buffer-as-attribute", "buffer-as-parameter"),
    *("dropout-added", "dropout-mode", "dtype-narrowed", "everything-counts"),
    *("first-sample-for-all", "heads-averaged", "mask-left-out", "positions-in-half"),
    *("returned-in-another-dtype", "returned-in-another-shape", "rolled-by-one"),
    *("rounded-to-half", "same-round-every-time", "scores-clamped", "statement-deleted"),
    *("tied-weight-copied", "sum-without-weights"),
}
# What is left out may be put in at several places, all as good.
INSERTING = ("missing-step", "missing-term", "scale", "exponent", "transposed", "precedence")
OPTIONS = {  # that people forget, by function
    "gelu": ('approximate="tanh"',),
    "std": ("unbiased=False",),
    "tril": ("diagonal=-1", "diagonal=1"),
    "triu": ("diagonal=1", "diagonal=-1"),
    "var": ("unbiased=False",),
}
Run = Callable[[Sequence[str], float], Sequence[Tensor | None]]


@dataclass(frozen=True)
class Change:
    """A text with one change, and how it is called."""

    kind: str
    line: int
    old: str  # of the expression, or of the line
    new: str
    text: str
    rank: int  # 0: the line takes what is right and gives what is wrong


@dataclass(frozen=True)
class Fix:
    """A change that makes the output right; `sure` where no other line does."""

    change: Change
    sure: bool


def find_fix(
    first: Pairing, text: str, others: Sequence[str], run: Run, again: Run, right_again: Tensor
) -> tuple[Fix | None, int]:
    """The likeliest change that makes the outputs of two draws right, and how many were tried.

    `others` are texts of the reference."""
    if len(first.mine.values) > MOST_VALUES or text.count("\n") > MOST_LINES:
        return None, 0
    changes = islice(changes_of(first, text, others), MOST)
    hits, tried, left = list[Change](), 0, SECONDS
    while batch := list(islice(changes, BATCH)):
        if hits and batch[0].rank > hits[0].rank:
            break
        results = run([change.text for change in batch], left)
        tried += len(results)
        found = [c for c, r in zip(batch, results, strict=False) if _is_right(r, first.theirs.result)]
        if found:
            confirmed = again([change.text for change in found], SECONDS)
            pairs = zip(found, confirmed, strict=False)
            hits += [change for change, result in pairs if _is_right(result, right_again)]
        if len(results) < len(batch):
            break
    if not hits:
        return None, tried
    best = hits[0]
    alone = all(abs(hit.line - best.line) <= 1 for hit in hits)
    return Fix(best, alone and best.kind not in INSERTING), tried


def _is_right(result: Tensor | None, right: Tensor | None) -> bool:
    return result is not None and right is not None and equal(result, right)


def changes_of(first: Pairing, text: str, others: Sequence[str]) -> Iterator[Change]:
    """Each change of a text once, those of the most suspicious lines first."""
    source = Source(text)
    ranks = _ranks(first, source)
    found = list[tuple[int, int, str, Edit]]()
    for order, (kind, edit) in enumerate(_edits(source, [Source(o) for o in others])):
        start = text.count("\n", 0, edit.splices[0][0]) + 1
        end = text.count("\n", 0, edit.splices[0][1]) + 1
        found.append((min(ranks.get(n, 3) for n in range(start, end + 1)), order, kind, edit))
    seen = {text}
    for rank, _, kind, edit in sorted(found, key=lambda each: each[:2]):
        changed = apply_edit(text, edit)
        if changed not in seen:
            seen.add(changed)
            old, new = _shown(source, edit, changed)
            line = text.count("\n", 0, edit.splices[0][0]) + 1
            yield Change(kind, line, old, new, changed, rank)


def _shown(source: Source, edit: Edit, changed: str) -> tuple[str, str]:
    """The expression that an edit changes, before and after: so much of it as says something."""
    low = min(start for start, _, _ in edit.splices)
    high = max(end for _, end, _ in edit.splices)
    more = len(changed) - len(source.text)
    around = [
        (end - start, start, end)
        for node in source.nodes
        if isinstance(node, ast.expr)
        for start, end in [source.span(node)]
        if start <= low and high <= end and end - start >= LEAST_SHOWN
    ]
    for _, start, end in sorted(around):
        try:
            both = source.text[start:end], changed[start : end + more]
            old, new = (ast.unparse(ast.parse(each.strip(), mode="eval")) for each in both)
        except SyntaxError:
            continue
        if old != new:
            return old, new
    _, before, after = changed_lines(source.text, changed)
    return before, after


def _ranks(first: Pairing, source: Source) -> dict[int, int]:
    """How suspicious lines are: 0 where what is wrong comes from what is right, 1 where the output
    is made of it, 2 in the same functions and where their names are made."""
    values = first.mine.values
    found = dict[int, int]()
    for index in first.wrong:
        if values[index].line:
            for line in (values[index].line, *values[index].callers):
                found.setdefault(line, 1)
    found |= {values[i].line: 0 for i in first.sources}
    near = set[int]()
    for function in source.of_type(ast.FunctionDef):
        lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        if function.name == "__init__" or any(line in found for line in lines):
            near.update(lines)
    return {**dict.fromkeys(near, 2), **found}


def _edits(source: Source, others: Sequence[Source]) -> Iterator[tuple[str, Edit]]:
    """What may be changed, what the reference suggests first."""
    for theirs in others:
        yield from (("arguments-of-reference", e) for e in _as_called(source, theirs))
        yield from (("number-of-reference", e) for e in _as_numbered(source, theirs))
        yield from (("function-of-reference", e) for e in _as_applied(source, theirs))
    for mutation in load_mutations():
        if mutation.family not in FAMILIES and mutation.id not in IDLE:
            yield from ((mutation.id, edit) for edit in mutation.edits(source))
    yield from (("wrong-operand", edit) for edit in _other_names(source))
    yield from (("option-missing", edit) for edit in _options(source))
    yield from (("precedence", edit) for edit in _regrouped(source))
    yield from (("missing-step", edit) for edit in _layers_applied(source))
    yield from (("missing-term", edit) for edit in _residuals(source))
    yield from (("exponent", edit) for edit in _roots(source))
    yield from (("scale", edit) for edit in _scaled(source))
    yield from (("transposed", edit) for edit in _transposes(source))


def _as_called(source: Source, theirs: Source) -> Iterator[Edit]:
    """The plain arguments of a call of the same function in the reference."""
    known: dict[str, list[ast.Call]] = {}
    for call in theirs.calls():
        known.setdefault(called_name(call), []).append(call)
    for call in source.calls():
        for other in known.get(called_name(call), ()):
            splices, more = [], []
            mine = {k.arg: k.value for k in call.keywords}
            pairs = list(zip(call.args[::-1], other.args[::-1], strict=False))
            pairs += [(mine[k.arg], k.value) for k in other.keywords if k.arg in mine]
            for one, right in pairs:
                if _is_plain(one) and _is_plain(right) and ast.dump(one) != ast.dump(right):
                    splices.append((*source.span(one), theirs.text_of(right)))
            for keyword in other.keywords:
                if keyword.arg not in mine and _is_plain(keyword.value):
                    more.append(f"{keyword.arg}={theirs.text_of(keyword.value)}")
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
    mine, right = (
        {n.value for n in s.of_type(ast.Constant) if type(n.value) in (int, float)}
        for s in (source, theirs)
    )
    lines: dict[tuple[int, int | float], list[ast.Constant]] = {}
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            lines.setdefault((node.lineno, node.value), []).append(node)
    for (_, number), nodes in lines.items():
        strange = right - mine if number in right else right
        twice = {number - 1, number + 1} if len(nodes) > 1 else set()  # as in clamp(-2, 2)
        for other in sorted({*strange, *twice} - {number}):
            for some in dict.fromkeys((tuple(nodes), *((node,) for node in nodes))):
                yield Edit(splices=tuple((*source.span(node), repr(other)) for node in some))


def _as_applied(source: Source, theirs: Source) -> Iterator[Edit]:
    """A function that only the reference calls, in place of one that only this file calls."""
    mine, right = ({called_name(c) for c in s.calls()} for s in (source, theirs))
    for call in source.calls():
        if called_name(call) not in right and not is_layer(call):
            for name in sorted(right - mine):
                yield source.rename(call.func, name)


def _other_names(source: Source) -> Iterator[Edit]:
    """Another variable of the function, or another attribute of the class, in each place."""
    for function in source.functions():
        inner = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
        stored = {n.id for n in inner if isinstance(n.ctx, ast.Store)}
        stored |= {a.arg for a in function.args.args if a.arg != "self"}
        for node in inner:
            if isinstance(node.ctx, ast.Load) and node.id in stored and node in source.parents:
                for name in sorted(stored - {node.id})[:MOST_NAMES]:
                    yield source.put(node, name)
    for owner in source.of_type(ast.ClassDef):
        own = [
            n
            for n in ast.walk(owner)
            if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
        ]
        names = sorted({n.attr for n in own if isinstance(n.ctx, ast.Store)})[:MOST_NAMES]
        for node in own:
            if isinstance(node.ctx, ast.Load) and node.attr in names:
                yield from (source.rename(node, name) for name in names if name != node.attr)


def _layers_applied(source: Source) -> Iterator[Edit]:
    """A layer that is made and never called, applied to each variable."""
    for owner in source.of_type(ast.ClassDef):
        made, read = set[str](), set[str]()
        for node in ast.walk(owner):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                (made if isinstance(node.ctx, ast.Store) else read).add(node.attr)
        unused = sorted(made - read)
        for function in ast.walk(owner) if unused else ():
            if isinstance(function, ast.FunctionDef) and function.name != "__init__":
                for node in ast.walk(function):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                        if node.id != "self" and node in source.parents:
                            yield from source_calls(source, node, unused)


def source_calls(source: Source, node: ast.Name, layers: Sequence[str]) -> Iterator[Edit]:
    return (source.put(node, f"self.{name}({node.id})") for name in layers)


def _residuals(source: Source) -> Iterator[Edit]:
    """What a variable held before is added to what it gets."""
    for node in source.assignments():
        target = node.targets[0]
        names = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        if isinstance(target, ast.Name) and target.id in names:
            yield source.put(node.value, f"{target.id} + {source.atom(node.value)}")
    for loop in source.of_type(ast.For):
        for node in ast.walk(loop):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                told = source.atom(node.value)
                yield source.put(node.value, f"{node.targets[0].id} + {told}")
    for value in source.returned_values():
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - {"self", "torch", "F"}
        for name in sorted(names):
            yield source.put(value, f"{name} + {source.atom(value)}")


def _options(source: Source) -> Iterator[Edit]:
    """An option that a call leaves out, and zero as the bound of a comparison."""
    for call in source.calls(*OPTIONS):
        for option in OPTIONS[called_name(call)]:
            if option.partition("=")[0] not in {k.arg for k in call.keywords}:
                between = ", " if call.args or call.keywords else ""
                text = source.text_of(call)[:-1].rstrip().rstrip(",")
                yield source.put(call, f"{text}{between}{option})")
    for node in source.of_type(ast.Compare):
        if len(node.comparators) == 1:
            yield source.put(node.comparators[0], "0")


def _regrouped(source: Source) -> Iterator[Edit]:
    """A factor of one term as one of the whole sum."""
    for node in source.binary(ast.Add, ast.Sub):
        left, right = source.sides(node)
        sign = "+" if isinstance(node.op, ast.Add) else "-"
        for one, term in ((True, node.left), (False, node.right)):
            if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
                bare, factor = source.sides(term)
                symbol = "*" if isinstance(term.op, ast.Mult) else "/"
                whole = f"{bare} {sign} {right}" if one else f"{left} {sign} {bare}"
                yield source.put_expr(node, f"({whole}) {symbol} {factor}")


def _roots(source: Source) -> Iterator[Edit]:
    """The square root of a divisor or a factor, or its inverse."""
    for node in source.binary(ast.Div, ast.Mult):
        yield source.put(node.right, f"({source.sides(node)[1]}) ** 0.5")
    for node in source.binary(ast.Div):
        left, right = source.sides(node)
        yield source.put(node, f"{left} * {right}")


def _scaled(source: Source) -> Iterator[Edit]:
    """A product of matrices, divided by the root of the size that it sums over."""
    for node in source.binary(ast.MatMult):
        size = f"{source.atom(node.left)}.shape[-1] ** 0.5"
        yield source.put(node, f"({source.text_of(node)}) / {size}")
    for call in source.calls("matmul", "bmm", "einsum"):
        operands = [a for a in call.args if not isinstance(a, ast.Constant)]
        for operand in operands[:1]:
            size = f"{source.atom(operand)}.shape[-1] ** 0.5"
            yield source.put_expr(call, f"{source.text_of(call)} / {size}")


def _transposes(source: Source) -> Iterator[Edit]:
    """An operand of a product, or a mask, with its last axes exchanged."""
    for node in source.binary(ast.MatMult):
        for operand in (node.left, node.right):
            yield source.put(operand, f"{source.atom(operand)}.transpose(-2, -1)")
    for call in source.calls("matmul", "bmm", "masked_fill", "where"):
        for value in call.args[:2]:
            yield source.put(value, f"{source.atom(value)}.transpose(-2, -1)")
