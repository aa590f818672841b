"""Walk a source text for patterns: scopes, calls, and what is told of a line."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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


@lru_cache(maxsize=4)
def words(tree: ast.Module) -> frozenset[str]:
    """The names in a text: of what it does not name, a rule need not look for."""
    found = (getattr(n, "id", getattr(n, "attr", None)) for n in ast.walk(tree))
    return frozenset(name for name in found if isinstance(name, str))


def line_of(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def pairs_of(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and what they are set to; `a, b = x, y` are two."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        names, values = getattr(target, "elts", None), getattr(node.value, "elts", None)
        if names and values and len(names) == len(values):
            yield from zip(names, values, strict=True)
        else:
            yield target, node.value


def set_once(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """The names of a scope that have one value all through it."""
    nodes = list(nodes)
    times = Counter(
        n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    )
    found = (pair for node in nodes for pair in pairs_of(node))
    return {t.id: value for t, value in found if isinstance(t, ast.Name) and times[t.id] == 1}


def terms(node: ast.expr, known: Mapping[str, ast.expr], depth: int = 6) -> Counter[str]:
    """What a sum adds up, how often each, names as their values in `known`; numbers are at ""."""
    if isinstance(node, ast.Name) and isinstance(known.get(node.id), SUMS) and depth:
        return terms(known[node.id], known, depth - 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Counter({"": node.value})
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return Counter({name: -n for name, n in terms(node.operand, known, depth).items()})
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        found, sign = terms(node.left, known, depth), 1 if isinstance(node.op, ast.Add) else -1
        for name, n in terms(node.right, known, depth).items():
            found[name] += sign * n
        return found
    return Counter({ast.unparse(node): 1})


SUMS = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Attribute)


MODULES = {"torch", "F", "nn", "np", "torch.nn.functional", "nn.functional", "functional", "numpy"}


def arguments(call: ast.AST) -> list[ast.expr]:
    """What a call is given, the tensor first whether it is a method or a function of torch."""
    if not isinstance(call, ast.Call):
        return []
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    alone = owner is None or ast.unparse(owner) in MODULES
    return list(call.args) if alone or owner is None else [owner, *call.args]


def argument(call: ast.AST, place: int, *names: str) -> ast.expr | None:
    """The argument of one of these names, or at this place, counting the tensor."""
    given = arguments(call)
    named = [k.value for k in getattr(call, "keywords", ()) if k.arg in names]
    return next(iter((*named, *given[place : place + 1])), None)


def base(node: ast.AST | None) -> str:
    """The variable or attribute that a value is a view, a slice or a method's result of."""
    while node is not None and not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = next(iter(arguments(node)), None)
        elif isinstance(node, ast.Attribute):
            return ast.unparse(node)
        else:
            return ""
    return ast.unparse(node) if node is not None else ""


def names_in(node: ast.AST) -> set[str]:
    """The names that stand in a text."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
