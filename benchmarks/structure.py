"""Measure the shape of the code: files and statements of each room, and how imports run.

    python -m benchmarks.structure [PACKAGE ...]

Each PACKAGE is the folder of an `attnlab` package, so that two versions stand side by side.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent.parent / "attnlab"
Graph = dict[str, set[str]]


def modules(package: Path) -> dict[str, ast.Module]:
    """Syntax trees by dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if "challenges" not in parts:
            name = ".".join(("attnlab", *parts)).removesuffix(".__init__")
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def statements(tree: ast.Module) -> int:
    """The statements of a module, without docstrings."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return sum(not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)) for n in nodes)


def import_graph(trees: dict[str, ast.Module]) -> Graph:
    """Which modules each module imports when it is loaded."""
    graph: Graph = {name: set() for name in trees}
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[name] |= {m if m in trees else node.module for m in full} & trees.keys()
            elif isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & trees.keys()
        graph[name].discard(name)
    return graph


def in_circles(graph: Graph) -> set[str]:
    """Modules that need themselves, however indirectly."""
    left = dict(graph)
    while ready := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in ready}
    return set(left)


def longest_chain(graph: Graph) -> int:
    """Modules in the longest chain of imports."""
    circles = in_circles(graph)

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(other) for other in graph[name] - circles), default=0)

    return max(depth(name) for name in graph.keys() - circles)


def rooms(names: Iterable[str]) -> dict[str, str]:
    """The room of each module: the folder below the package that it lies in, "(top)" for none."""
    folders = {name.split(".")[1] for name in names if name.count(".") > 1}
    heads = {name: name.split(".")[1] if "." in name else "" for name in names}
    return {name: head if head in folders else "(top)" for name, head in heads.items()}


def measure(package: Path) -> dict[str, str]:
    """Rows of the table."""
    trees = modules(package)
    graph = import_graph(trees)
    room = rooms(trees)
    files = Counter(room.values())
    counts: Counter[str] = Counter()
    for name, tree in trees.items():
        counts[room[name]] += statements(tree)
    rows = {f"{r}: files, statements": f"{files[r]}, {counts[r]}" for r in sorted(files)}
    rows["all: files, statements"] = f"{len(trees)}, {sum(counts.values())}"
    lines = (p.read_text(encoding="utf-8").count("\n") for p in package.rglob("*.py"))
    rows["lines"] = str(sum(lines))
    rows["longest chain of imports"] = str(longest_chain(graph))
    rows["modules in a circle of imports"] = str(len(in_circles(graph)))
    return rows


def main() -> None:
    packages = [Path(arg) for arg in sys.argv[1:]] or [HERE]
    tables = [measure(package) for package in packages]
    for row in sorted({row for table in tables for row in table}):
        print(f"{row:36}", *(f"{table.get(row, '-'):>14}" for table in tables))


if __name__ == "__main__":
    main()
