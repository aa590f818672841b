"""What the text of a file does with arguments: an id of 0 taken for none, one path that forgets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from attnlab.target.source_walk import Function, Told, scopes

IDS = re.compile(r"(^|[._])(pad|padding|bos|cls|mask|blank)(_token)?_(id|idx|index)$")
# Arguments that change what attention computes.
ASKED = re.compile(r"window|causal|mask|scale|softcap|bias|alibi|dropout")


def ids_of_zero(tree: ast.Module) -> Iterator[Told]:
    """`config.pad_token_id or config.eos_token_id`: the id 0 counts as none."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
            continue
        first, other = ast.unparse(node.values[0]), node.values[-1]
        if IDS.search(first) and not (isinstance(other, ast.Constant) and not other.value):
            yield Told(
                node.lineno,
                "zero-is-none",
                f"{ast.unparse(node)}: an id of 0 counts as false, so {ast.unparse(other)} is "
                f"taken instead. Compare with None: {first} if {first} is not None else ...",
            )


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
