"""What the sources of a program say: their code, what they import, which unit makes which."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from attnlab.files import PARSING
from attnlab.records import Code
from attnlab.records.program import Files, Program, Unit


def syntax_trees(files: Files) -> dict[str, str]:
    """The syntax trees of files, in which comments and layout do not count; {} if one has none."""
    try:
        with PARSING:
            return {name: ast.dump(ast.parse(text)) for name, text in files.items()}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def unit_code(
    unit: Unit,
    files: Files,
    label: str,
    program: Program | None = None,
    others: Sequence[Unit] = (),
) -> Code:
    """The source of a unit with the files that it may import, and with `others` from the right
    program in place of its own."""
    text, beside = files[unit.file], {n: t for n, t in files.items() if n != unit.file}
    for other in others if program else ():
        assert program is not None
        right = f"right_{other.file}"
        beside[right] = program.files[other.file]
        text += f"\n\nfrom {right.removesuffix('.py')} import {other.class_name}\n"
    return Code(
        file=f"{label}{unit.file}", text=text, name=unit.class_name, siblings=tuple(beside.items())
    )


@lru_cache(maxsize=64)
def files_behind(file: str, files: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """A file of a program and those that it imports, and so on."""
    texts, seen, left = dict(files), set[str](), [file]
    while left:
        seen.add(name := left.pop())
        for node in ast.walk(ast.parse(texts[name])):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            beside = {f"{module.partition('.')[0]}.py" for module in modules}
            left += beside & texts.keys() - seen
    return frozenset(seen)


def uses(files: Files, unit: Unit, other: Unit) -> bool:
    """Whether a unit is made with another one, or with something that is."""
    classes = _names_in_units(files[unit.file]) | _names_in_units(files[other.file])
    seen, left = {unit.class_name}, [unit.class_name]
    while left:
        new = classes.get(left.pop(), set()) & classes.keys() - seen
        seen |= new
        left += new
    return other.class_name in seen


@lru_cache(maxsize=8)
def _names_in_units(text: str) -> dict[str, set[str]]:
    """The names that each class and function of a source text has in it."""
    return {
        node.name: {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        for node in ast.parse(text).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }
