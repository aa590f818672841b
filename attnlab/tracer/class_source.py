"""The source of module classes: where attributes are assigned, and which methods name them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from attnlab.files import shown_path
from attnlab.records.trace import Finding

TORCH = str(Path(torch.__file__).parent)


class ClassSource(NamedTuple):
    """Where a class is written."""

    file: str
    line: int
    tree: ast.ClassDef | None

    def assignment(self, attribute: str) -> int:
        """The line where `self.ATTRIBUTE` is assigned; the class's own where it is not seen."""
        for node in ast.walk(self.tree) if self.tree else ():
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(is_own(target, attribute) for target in targets):
                return self.line + int(getattr(node, "lineno", 1)) - 1
        return self.line

    def method(self, name: str) -> ast.FunctionDef | None:
        body = self.tree.body if self.tree else []
        return next((n for n in body if isinstance(n, ast.FunctionDef) and n.name == name), None)

    def finding(self, rule: str, severity: Any, line: int, message: str) -> Finding:
        return Finding(
            rule=rule,
            file=shown_path(Path(self.file)),
            line=line,
            op="",
            severity=severity,
            message=message,
        )


def class_source_of(module: nn.Module) -> ClassSource:
    kind: Any = type(module)
    return class_source(kind)


@lru_cache(maxsize=256)
def class_source(kind: Any) -> ClassSource:
    """The source of a class; without a tree for one of PyTorch, or made at run time."""
    try:
        file = inspect.getsourcefile(kind) or ""
        lines, start = inspect.getsourcelines(kind)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError, ValueError):
        return ClassSource("", 0, None)
    own = not file.startswith(TORCH) and isinstance(tree, ast.ClassDef)
    return ClassSource(file, start, tree if own and isinstance(tree, ast.ClassDef) else None)


def is_own(node: ast.AST, attribute: str) -> bool:
    owner = node.value if isinstance(node, ast.Attribute) else None
    own = isinstance(owner, ast.Name) and owner.id == "self"
    return own and isinstance(node, ast.Attribute) and node.attr == attribute


def is_assigned(source: ClassSource, name: str) -> bool:
    """Whether the constructor assigns it: what forward leaves behind is another matter."""
    init = source.method("__init__")
    nodes = ast.walk(init) if init else ()
    assigned = (t for node in nodes if isinstance(node, ast.Assign) for t in node.targets)
    return any(is_own(target, name) for target in assigned)


# ---------------------------------------------------------------- what methods name


def call_places(root: nn.Module) -> tuple[tuple[str, str, int], ...]:
    """The path of each submodule with file and line of the first call that its owner's source
    makes of it."""
    modules = dict(root.named_modules())
    found = []
    for path in modules:
        owner, _, leaf = path.rpartition(".")
        if leaf.isdigit():  # of a list: what its owner loops over
            owner, _, leaf = owner.rpartition(".")
        source = class_source_of(modules[owner]) if owner in modules else None
        place = _called_lines(source).get(leaf) if source and source.tree else None
        if place is not None and source is not None:
            found.append((path, shown_path(Path(source.file)), place))
    return tuple(found)


@lru_cache(maxsize=256)
def _called_lines(source: ClassSource) -> dict[str, int]:
    """By attribute: the line of the first call of `self.ATTRIBUTE` outside the constructor."""
    lines: dict[str, int] = {}
    for method in source.tree.body if source.tree else ():
        if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
            continue
        for node in ast.walk(method):
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Attribute) and is_own(function, function.attr):
                line = source.line + function.lineno - 1
                lines[function.attr] = min(lines.get(function.attr, line), line)
    return lines


def never_named(root: nn.Module) -> tuple[tuple[str, str, int], ...]:
    """Submodules and parameters that their class names in its constructor alone: the path, file
    and line of each."""
    found = []
    for path, module in root.named_modules():
        source = class_source_of(module)
        if source.tree is None or isinstance(module, (nn.ModuleList, nn.Sequential)):
            continue
        names = _named_outside(source)
        for name in (*module._modules, *module._parameters):
            if names is not None and name not in names and is_assigned(source, name):
                place = (shown_path(Path(source.file)), source.assignment(name))
                found.append((f"{path}.{name}".lstrip("."), *place))
    return tuple(found)


@lru_cache(maxsize=256)
def _named_outside(source: ClassSource) -> frozenset[str] | None:
    """Attributes of anything that methods besides the constructor name, and strings; None where
    they may be reached in other ways, or another class has the forward."""
    if source.method("forward") is None:
        return None
    named: set[str] = set()
    for method in source.tree.body if source.tree else ():
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute):
                named.add(node.attr)
            elif isinstance(node, ast.Name) and node.id in ("getattr", "vars"):
                return None
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    return frozenset(named)
