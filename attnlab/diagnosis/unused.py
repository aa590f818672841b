"""Changes that use what a class makes and never reads: it is likely what a line lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from attnlab.mutation_testing.operators.base import Edit, Source

MOST = 300  # changes of a function, for each that is unused


def uses_of_unused(source: Source) -> Iterator[tuple[str, Edit]]:
    """What is wrong with a line, and the change of it that uses an attribute that nothing reads."""
    for owner in source.of_type(ast.ClassDef):
        unused = _unused(owner)
        for function in ast.walk(owner) if unused else ():
            if isinstance(function, ast.FunctionDef) and function.name != "__init__":
                for name in unused:
                    yield from islice(_uses(source, function, name), MOST)


def _unused(owner: ast.ClassDef) -> list[str]:
    """The layers and parameters that a class makes and does not read."""
    made, read = set[str](), set[str]()
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            read.add(node.attr)
        elif isinstance(node, ast.Assign) and any(map(_is_made, ast.walk(node.value))):
            stored = (n for target in node.targets for n in ast.walk(target))
            made |= {n.attr for n in stored if isinstance(n, ast.Attribute)}
    return sorted(made - read)


def _is_made(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _uses(source: Source, function: ast.FunctionDef, name: str) -> Iterator[tuple[str, Edit]]:
    """Applied as a layer, given to a call as another attribute is, or put into a sum or product."""
    names = [node for node in _read(function) if node.id != "self" and node in source.parents]
    for node in names:
        yield "missing-step", source.put(node, f"self.{name}({node.id})")
    known = sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name)} - {"self"})
    for node in (n for call in _calls_of_own(function) for n in _read(call) if n in names):
        others = (f"self.{name}({other})" for other in known if other != node.id)
        yield from (("missing-step", edit) for edit in source.put_each(node, others))
    for call in _calls_with_attribute(function):
        said = source.text_of(call)
        yield (
            "missing-argument",
            source.put(call, f"{said[:-1].rstrip().rstrip(',')}, self.{name})"),
        )
        for taken in call.args[1:]:
            if _is_own(taken):
                other = said.replace(source.text_of(taken), f"self.{name}")
                yield "wrong-operand", source.put(call, other)
                first = source.text_of(call.args[0])
                for node in names:
                    made = other.replace(f"({first},", f"({node.id},", 1)
                    yield "missing-step", source.put(node, made)
    for statement in ast.walk(function):
        if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is not None:
            whole = source.atom(statement.value)
            yield "missing-term", source.put(statement.value, f"{whole} + self.{name}")
            yield "missing-term", source.put(statement.value, f"{whole} * self.{name}")


def _calls_with_attribute(function: ast.FunctionDef) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and any(map(_is_own, node.args)):
            yield node


def _calls_of_own(function: ast.FunctionDef) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _is_own(node.func):
            yield node


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"


def _read(around: ast.AST) -> Iterator[ast.Name]:
    """The names that are read."""
    for node in ast.walk(around):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node
