"""The source of module classes: where attributes are assigned, and which methods name them."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import nn

from attnlab.files import shown_path
from attnlab.records.trace import Finding

TORCH = str(Path(torch.__file__).parent)


class ClassSource:
    """Where a class is written; `tree` is None where that is nobody's to change."""

    def __init__(self, file: str, line: int, tree: ast.ClassDef | None) -> None:
        self.file, self.line, self.tree = file, line, tree

    @cached_property
    def shown(self) -> str:
        return shown_path(Path(self.file))

    @cached_property
    def methods(self) -> dict[str, ast.FunctionDef]:
        body = self.tree.body if self.tree else []
        return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def constructed(self) -> dict[str, int]:
        """The attributes that the constructor assigns, each with its line."""
        init = self.methods.get("__init__")
        return dict(reversed(list(self._assigned_in(init)))) if init else {}

    @cached_property
    def rewritten(self) -> frozenset[str]:
        """The attributes that other methods assign: a loss that is left there for the caller."""
        others = (node for name, node in self.methods.items() if name != "__init__")
        return frozenset(name for node in others for name, _ in self._assigned_in(node))

    def _assigned_in(self, method: ast.FunctionDef) -> Iterator[tuple[str, int]]:
        for node in ast.walk(method):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Attribute) and _is_self(target.value):
                    yield target.attr, self.line + target.lineno - 1

    @cached_property
    def ties(self) -> tuple[tuple[str, str, int], ...]:
        """What the constructor makes one: `a.weight` and `b.weight` of
        `self.a.weight = self.b.weight`, and the line."""
        init = self.methods.get("__init__")
        pairs = (
            (path_of(node.targets[0]), path_of(node.value), self.line + node.lineno - 1)
            for node in (ast.walk(init) if init else ())
            if isinstance(node, ast.Assign) and len(node.targets) == 1
        )
        return tuple(pair for pair in pairs if "." in pair[0] and pair[1])

    @cached_property
    def made_anew(self) -> int:
        """The line where a method gives some `X.weight` a new `nn.Parameter`; 0 for none."""
        for node in ast.walk(self.tree) if self.tree else ():
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Attribute) and target.attr == "weight":
                call = getattr(node, "value", None)
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Parameter"):
                    return self.line + target.lineno - 1
        return 0

    def assignment(self, attribute: str) -> int:
        """The line where `self.ATTRIBUTE` is assigned; the class's own where it is not seen."""
        calls = (n for n in ast.walk(self.tree) if _registers(n, attribute)) if self.tree else ()
        held = next((self.line + n.lineno - 1 for n in calls if isinstance(n, ast.Call)), self.line)
        return self.constructed.get(attribute, held)

    def formula(self, attribute: str) -> int:
        """The line of the power that makes what `self.ATTRIBUTE` holds, there, in the functions of
        the file that are called there, or else in the constructor; that line where none is."""
        line = self.assignment(attribute)
        module = ast.parse(Path(self.file).read_text("utf-8"))
        made = {n.name: n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)}
        todo: list[ast.AST] = [n for n in ast.walk(module) if getattr(n, "lineno", 0) == line]
        seen = {"__init__"}
        while todo:
            nodes = [n for each in todo for n in ast.walk(each)]
            if power := next((n for n in nodes if _is_power(n)), None):
                return int(getattr(power, "lineno", line))
            names = {_called(n) for n in nodes} - seen
            seen |= names
            todo = [made[n] for n in names if n in made]
        init = self.methods.get("__init__", ast.Pass())
        own = (self.line + n.lineno - 1 for n in ast.walk(init) if _is_power(n))
        return next(own, line)

    def finding(self, rule: str, severity: Any, line: int, message: str) -> Finding:
        return Finding(
            rule=rule, file=self.shown, line=line, op="", severity=severity, message=message
        )


def class_source_of(module: nn.Module) -> ClassSource:
    kind: Any = type(module)
    return class_source(kind)


@lru_cache(maxsize=256)
def class_source(kind: Any) -> ClassSource:
    """The source of a class; without a tree for one that is installed, or made at run time."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if not file or file.startswith(TORCH) or "site-packages" in file:
        return ClassSource(file, 0, None)
    try:
        lines, start = inspect.getsourcelines(kind)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError, ValueError):
        return ClassSource("", 0, None)
    return ClassSource(file, start, tree if isinstance(tree, ast.ClassDef) else None)


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _is_power(node: ast.AST) -> TypeGuard[ast.expr]:
    """A power, but for roots and squares."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return ast.unparse(node.right) not in ("0.5", "-0.5", "2")
    return _called(node) in ("exp", "pow", "power")


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _registers(node: ast.AST, name: str) -> bool:
    """`self.register_buffer("name", ...)` and the like."""
    if not isinstance(node, ast.Call):
        return False
    values = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
    return getattr(node.func, "attr", "").startswith("register_") and values == [name]


def path_of(node: ast.AST) -> str:
    """`a.weight` of `self.a.weight`; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join(parts) if _is_self(node) else ""


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
            found.append((path, source.shown, place))
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
            if isinstance(function, ast.Attribute) and _is_self(function.value):
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
            if names is not None and name not in names and name in source.constructed:
                place = (source.shown, source.assignment(name))
                found.append((f"{path}.{name}".lstrip("."), *place))
    return tuple(found)


@lru_cache(maxsize=256)
def _named_outside(source: ClassSource) -> frozenset[str] | None:
    """Attributes of anything that methods besides the constructor name, and strings; None where
    they may be reached in other ways, or another class has the forward."""
    if "forward" not in source.methods:
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
