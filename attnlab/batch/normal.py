"""What a program says, without the names of variables, comments, docstrings and spaces."""

import ast
import hashlib
from collections.abc import Iterable

from attnlab.errors import AttnlabError
from attnlab.run_store import SHORT
from attnlab.target.source import parse

DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def normal_digest(texts: Iterable[str]) -> str:
    """The same digits for all texts that say the same."""
    found = hashlib.sha256()
    for text in texts:
        found.update(_normal_text(text).encode("utf-8", "replace") + b"\0")
    return found.hexdigest()[:SHORT]


def _normal_text(text: str) -> str:
    try:
        tree = parse(text, "")
        for node in ast.walk(tree):
            if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
        return ast.dump(_Renamed(tree).visit(tree))
    except (AttnlabError, RecursionError):
        return "".join(text.split())


class _Renamed(ast.NodeTransformer):
    """Variables and arguments of the file are numbered as they come; what it imports and
    attributes keep their names."""

    def __init__(self, tree: ast.AST) -> None:
        names = [n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)]
        names += [
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        self.numbers = {name: f"v{at}" for at, name in enumerate(dict.fromkeys(names))}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self.numbers.get(node.id, node.id), ctx=node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(arg=self.numbers[node.arg])
