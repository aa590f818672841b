"""Arguments that one path through a function uses and another forgets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from attnlab.target.source_walk import Function, Told, scopes

# Arguments that change what attention computes.
ASKED = re.compile(r"window|causal|mask|scale|softcap|bias|alibi|dropout")


def forgotten_arguments(tree: ast.Module) -> Iterator[Told]:
    """An argument that only one way through a function uses: the fallback forgets it."""
    for scope, _ in scopes(tree):
        if not isinstance(scope, Function):
            continue
        names = {a.arg for a in (*scope.args.args, *scope.args.kwonlyargs) if ASKED.search(a.arg)}
        for at, branch in enumerate(scope.body):
            if not isinstance(branch, ast.If) or not isinstance(branch.body[-1], ast.Return):
                continue
            rest = [*scope.body[:at], branch.test, *branch.orelse, *scope.body[at + 1 :]]
            used, also = (_named(branch.body), _named(rest))
            for name in sorted((names & used) - also) if scope.body[at + 1 :] else ():
                yield Told(
                    scope.body[at + 1].lineno,
                    "unused-argument",
                    f"{scope.name} uses {name} only where {ast.unparse(branch.test)}; from here on "
                    "it is forgotten, and the result is the same whatever was asked for",
                )


def _named(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
