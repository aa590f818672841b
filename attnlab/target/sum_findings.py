"""What the text of a file sums or compares along the wrong axis: late interaction
whose best token is one of the query."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, argument, arguments, base, called, line_of, scopes

QUERY = re.compile(r"^(q|query|queries)(_|$)|query", re.IGNORECASE)
DOCUMENT = re.compile(r"^(d|doc\w*|p|passage\w*)(_|$)", re.IGNORECASE)
LATE = re.compile(r"max_?sim|late_?inter|colbert", re.IGNORECASE)
BEST = {"max", "amax"}


def turned_late_interactions(tree: ast.Module) -> Iterator[Told]:
    """The best query token for each token of the document, summed over the document."""
    if not LATE.search(ast.unparse(tree)):
        return
    for _, nodes in scopes(tree):
        axes: dict[str, list[str]] = {}  # of scores: query, document, or other
        for node in nodes:
            if isinstance(node, ast.Assign):
                name = ast.unparse(node.targets[0])
                made = _axes_of_scores(node.value) or axes.get(base(node.value), [])
                kept = called(node.value) in ("masked_fill", "einsum", "matmul", "bmm", "")
                axes[name] = made if kept and not isinstance(node.value, ast.Subscript) else []
            if called(node) not in BEST:
                continue
            held = arguments(node)[0] if arguments(node) else node
            known = _axes_of_scores(held) or axes.get(ast.unparse(held), [])
            if called(held) == "masked_fill":
                known = known or axes.get(base(held), [])
            axis = argument(node, 1, "dim", "axis")
            place = int(_text(axis)) if re.fullmatch(r"-?\d", _text(axis)) else 99
            over_query = -len(known) <= place < len(known) and known[place] == "query"
            later = (n for n in nodes if called(n) == "sum" and line_of(n) >= line_of(node))
            if over_query and any(later):
                yield Told(
                    line_of(node),
                    "late-interaction-turned",
                    f"{ast.unparse(node)[:60]} takes the best query token for each token of "
                    "the document, and the sum runs over the document: long documents win. "
                    f"Take the best document token, dim={known.index('document') - len(known)}, "
                    "and sum over the query",
                )


def _text(node: ast.AST | None) -> str:
    return ast.unparse(node) if node is not None else ""


def _axes_of_scores(value: ast.AST) -> list[str]:
    """Whose tokens each axis of a product of token vectors is, where both are known by name."""
    given = arguments(value)
    if called(value) == "einsum" and len(given) == 3 and isinstance(given[0], ast.Constant):
        sides = re.fullmatch(r"([\w.]+),([\w.]+)->([\w.]+)", str(given[0].value).replace(" ", ""))
        kinds = [_kind(base(g)) for g in given[1:]]
        if sides is None or set(kinds) != {"query", "document"} or "." in sides[0]:
            return []
        found = []
        for letter in sides[3]:
            inside = [at for at in (1, 2) if letter in sides[at]]
            token = len(inside) == 1 and sides[inside[0]].index(letter) == len(sides[inside[0]]) - 2
            found.append(kinds[inside[0] - 1] if token else "other")
        return found
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult):
        given = [value.left, value.right]
    elif called(value) not in ("matmul", "bmm"):
        return []
    kinds = [_kind(base(g)) for g in given[:2]]
    turned = re.search(r"transpose|permute|\.mT\b|\.T\b|\.t\(\)", _text(given[1]))
    return kinds if set(kinds) == {"query", "document"} and turned else []


def _kind(name: str) -> str:
    name = name.removesuffix(".mT").rpartition(".")[2]
    return "query" if QUERY.search(name) else "document" if DOCUMENT.search(name) else ""


RULES = (turned_late_interactions,)
