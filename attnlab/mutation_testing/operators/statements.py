"""Statements, loops and what is returned."""

import ast
from itertools import pairwise

from attnlab.mutation_testing.operators.base import Edits, Source, body, called_name, last_name

FORMS = ("({},)", "({})[0]", "({})[None]", "({}).mT", "({}).squeeze()", "({}).sum(0, keepdim=True)")
COUNTERS = ("range", "enumerate")
DELETED = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.Raise, ast.Assert, ast.For)
SWAPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.If)


def another_exception(source: Source) -> Edits:
    """A call that must be refused raises another exception."""
    for node in source.of_type(ast.Raise):
        if isinstance(node.exc, ast.Call):
            yield source.put(node.exc.func, "Warning")


def returned_in_another_dtype(source: Source) -> Edits:
    """The output has another dtype than the input."""
    for value in source.returned_values():
        for kind in ("double", "float", "half"):
            yield source.put(value, f"{source.atom(value)}.{kind}()")


def returned_in_another_shape(source: Source) -> Edits:
    """The output is a tuple, or has an axis too many or too few."""
    for value in source.returned_values():
        yield from source.put_each(value, (form.format(source.text_of(value)) for form in FORMS))


def rounds_of_a_loop(source: Source) -> Edits:
    """A loop runs one round too few or too many, or skips the first."""
    for call in source.calls("range"):
        if len(call.args) == 1:
            text = source.text_of(call.args[0])
            forms = (f"{text} - 1", f"{text} + 1", f"1, {text}", f"0, {text}, 2")
            yield from source.put_each(call.args[0], forms)


def same_round_every_time(source: Source) -> Edits:
    """Every round of a loop does what the first does, such as to draw the same batch."""
    for loop in source.of_type(ast.For):
        counts = isinstance(loop.iter, ast.Call) and called_name(loop.iter) in COUNTERS
        target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        if counts and isinstance(target, ast.Name):
            for node in source.of_type(ast.Name):
                if node.id == target.id and loop in source.ancestors(node) and node is not target:
                    for text in (f"0 * {node.id}", f"{node.id} + 1", f"{node.id} // 2"):
                        yield source.put_expr(node, text)


def statement_deleted(source: Source) -> Edits:
    """A statement is missing."""
    for node in source.nodes:
        if isinstance(node, DELETED) and source.function_of(node) is not None:
            yield source.delete(node)


def statements_swapped(source: Source) -> Edits:
    """Two statements run in the wrong order."""
    for function in source.functions():
        for one, other in pairwise(body(function)):
            ordered = _writes(one) & _names(other) or _names(one) & _writes(other)
            if isinstance(one, SWAPPED) and isinstance(other, SWAPPED) and ordered:
                yield source.swap(one, other)


def _names(statement: ast.stmt) -> set[str]:
    return {last_name(node) for node in ast.walk(statement)} - {""}


def _writes(statement: ast.stmt) -> set[str]:
    """The names that a step gives a value to; of a call by itself all that it mentions."""
    if isinstance(statement, ast.Expr):
        return _names(statement)
    stored = [n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store)]
    return {last_name(node) for node in stored} - {""}


def sum_overwritten(source: Source) -> Edits:
    """A sum over a loop is overwritten in each round, so that the last one alone counts."""
    for node in source.of_type(ast.AugAssign):
        yield source.put(node, f"{source.text_of(node.target)} = {source.text_of(node.value)}")


def sum_without_weights(source: Source) -> Edits:
    """A sum adds every batch with the same weight, so that a mean becomes a mean of means."""
    for node in source.of_type(ast.AugAssign):
        if isinstance(node.op, ast.Add):
            for text in ("1", f"{source.atom(node.value)} ** 2"):
                yield source.put(node.value, text)
            if isinstance(node.value, ast.BinOp):
                yield from source.put_each(node.value, source.sides(node.value))


def wrong_value_returned(source: Source) -> Edits:
    """An intermediate value is returned."""
    for function in source.functions():
        names = [a.arg for a in function.args.args if a.arg != "self"][:1]
        for node in ast.walk(function):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            names += [target.id] if isinstance(target, ast.Name) else []
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from (source.put(node.value, name) for name in dict.fromkeys(names))
