"""What the text of a forward with a cache shows: positions and masks that leave the cache out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from attnlab.target.conventions import CACHES
from attnlab.target.source_walk import Function, Told, called, line_of, scopes

EMPTY = re.compile(r"^not \w+$|\bis None\b|== 0$")  # tests for a cache that holds nothing
POSITIONS = re.compile(r"pos|wpe|\bpe\b|time_emb", re.IGNORECASE)  # names of their tables
ASKED = r"offset|start_pos|position_ids|cache_position"  # where positions are said by the caller


def positions_without_cache(tree: ast.Module) -> Iterator[Told]:
    """Positions that begin at 0 in a forward that takes a cache."""
    for scope, nodes, caches in _with_caches(tree):
        cache = min(caches)
        for node in nodes:
            if not _begins_at_zero(node):
                continue
            held = caches | _holding([n for n in nodes if line_of(n) < line_of(node)], caches)
            statement = next((n for n in nodes if _holds(n, node)), node)
            counts = _counts_input(node, nodes) and not re.search(ASKED, ast.unparse(scope))
            if counts and not _mentions(statement, held):
                yield Told(
                    line_of(node),
                    "positions-ignore-cache",
                    f"{ast.unparse(node)} begins at 0 also where {cache} holds earlier positions: "
                    "with a cache every new token is put at the beginning. Add the cache's length",
                )
                break


def _begins_at_zero(node: ast.AST) -> bool:
    """`arange(n)`, or the first rows `[:n]` of a table of positions."""
    if isinstance(node, ast.Subscript):
        return bool(_cuts(node)) and bool(POSITIONS.search(ast.unparse(node.value)))
    return called(node) == "arange" and isinstance(node, ast.Call)


def _cuts(node: ast.Subscript) -> list[ast.Slice]:
    """The slices `[:n]` of a subscript."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [p for p in parts if isinstance(p, ast.Slice) and p.upper and not p.lower]


def triangles_without_cache(tree: ast.Module) -> Iterator[Told]:
    """`triu(ones(queries, keys), diagonal=1)` where there are more keys than queries."""
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function):
            continue
        made = {
            ast.unparse(n.targets[0]): ast.unparse(n.value)
            for n in nodes
            if isinstance(n, ast.Assign) and len(n.targets) == 1
        }
        for node in nodes:
            if called(node) not in ("triu", "tril", "triu_", "tril_"):
                continue
            text = ast.unparse(node)
            sized = re.search(r"(ones|full|zeros|empty)\(\(?\[?(\w+), (\w+)\b", text)
            shift = _diagonal(node)
            if not sized or sized[2] == sized[3] or not re.fullmatch(r"-?\d+", shift):
                continue
            queries, keys = sized[2], sized[3]
            if re.search(rf"\b{queries}\b", made.get(keys, "")) and "+" in made.get(keys, ""):
                yield Told(
                    line_of(node),
                    "causal-ignores-cache",
                    f"the triangle of {text[:70]} begins at the first of {keys} = {made[keys]} "
                    f"keys: query i sees the first {int(shift) + (called(node)[3] == 'l')} + i of "
                    f"them, and not itself. Shift the diagonal by {keys} - {queries}",
                )


def _diagonal(call: ast.AST) -> str:
    """The diagonal that is given to triu or tril, as a method or as a function of torch."""
    if not isinstance(call, ast.Call):
        return ""
    named = [ast.unparse(k.value) for k in call.keywords if k.arg == "diagonal"]
    alone = ast.unparse(getattr(call.func, "value", call)) == "torch"
    return next(iter((*named, *map(ast.unparse, call.args[int(alone) :]))), "0")


def causal_without_cache(tree: ast.Module) -> Iterator[Told]:
    """`is_causal=True` over keys that a cache is part of."""
    for _, nodes, caches in _with_caches(tree):
        cache = min(caches)
        held = _holding(nodes, caches)
        for node in nodes:
            if called(node) != "scaled_dot_product_attention" or not isinstance(node, ast.Call):
                continue
            asked = any(ast.unparse(k) == "is_causal=True" for k in node.keywords)
            if asked and any(_mentions(keys, held) for keys in node.args[1:3]):
                yield Told(
                    node.lineno,
                    "causal-ignores-cache",
                    f"is_causal=True begins its triangle at the first key, and {cache} puts "
                    "earlier keys first: one new query sees the oldest key alone. Ask for it only "
                    "where there are as many queries as keys, or give attn_mask "
                    "tril(diagonal=keys - queries)",
                )


def _with_caches(tree: ast.Module) -> Iterator[tuple[Function, list[ast.AST], set[str]]]:
    """Functions that take a cache, with the nodes that may run with a full one, and its names."""
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function):
            continue
        arguments = {a.arg for a in (*scope.args.args, *scope.args.kwonlyargs)}
        caches = {a for a in arguments if a in CACHES or re.search(r"cache|past", a)}
        text = ast.unparse(scope)
        held = (a for a in arguments - caches - {"self"} if f"{a}." in text)
        caches |= {a for a in held if re.search(rf"\b{a}\.(kv|cache|past|layers_kv)\w*\b", text)}
        if caches:
            aside = {id(n) for node in nodes for n in _of_empty(node, caches, scope.body)}
            yield scope, [n for n in nodes if id(n) not in aside], caches


def _of_empty(node: ast.AST, caches: set[str], body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What runs only where the cache is empty: one side of a test, or what a return leaves."""
    if not isinstance(node, ast.If | ast.IfExp) or not _mentions(node.test, caches):
        return
    empty = EMPTY.search(ast.unparse(node.test))
    part: Any = node.body if empty else node.orelse
    if not empty and node in body and isinstance(node.body[-1], ast.Return):
        part = [*part, *body[body.index(node) + 1 :]]
    for statement in part if isinstance(part, list) else [part]:
        yield from ast.walk(statement)


def _holding(nodes: list[ast.AST], caches: set[str]) -> set[str]:
    """The variables that hold something of a cache."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and _mentions(node.value, caches | found):
            found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def _holds(statement: ast.AST, node: ast.AST) -> bool:
    simple = isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return))
    return simple and any(n is node for n in ast.walk(statement))


def _counts_input(node: ast.AST, nodes: list[ast.AST]) -> bool:
    """Whether an arange, or a slice, has one bound, the length of an input."""
    if isinstance(node, ast.Subscript):
        bound = next((ast.unparse(p.upper) for p in _cuts(node) if p.upper), "")
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        bound = ast.unparse(node.args[0])
    else:
        return False
    if re.search(r"size\(0\)|shape\[0\]|batch|\bB\b|bsz|mask", bound):
        return False
    sized = [
        ast.unparse(n.targets[0])
        for n in nodes
        if isinstance(n, ast.Assign) and re.search(r"\.(shape|size\()", ast.unparse(n.value))
    ]
    return ".shape" in bound or ".size(" in bound or any(bound in names for names in sized)


RULES = (positions_without_cache, causal_without_cache, triangles_without_cache)
