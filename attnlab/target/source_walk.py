"""Walk a source text for patterns: scopes, calls, and what is told of a line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Module


class Told(NamedTuple):
    """What a pattern says, at its line."""

    line: int
    rule: str
    message: str


@lru_cache(maxsize=4)
def scopes(tree: ast.Module) -> tuple[tuple[Scope, list[ast.AST]], ...]:
    """The module and each function, with the nodes that belong to it and to none inside."""
    return tuple(_scopes(tree))  # every rule asks for them


def _scopes(tree: ast.Module) -> Iterator[tuple[Scope, list[ast.AST]]]:
    scopes: list[Scope] = [tree, *(n for n in ast.walk(tree) if isinstance(n, Function))]
    for scope in scopes:
        own: list[ast.AST] = []
        todo: list[ast.AST] = list(scope.body)
        while todo:
            node = todo.pop(0)
            own.append(node)
            if not isinstance(node, (*Function.__args__, ast.ClassDef)):
                todo += ast.iter_child_nodes(node)
        yield scope, sorted(own, key=lambda n: getattr(n, "lineno", 0))


def line_of(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
