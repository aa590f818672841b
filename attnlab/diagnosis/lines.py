"""The line to name: where a plain number was defined, or where a step is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

PLAIN_CALLS = {"sqrt", "float", "int", "log", "exp", "pow", "abs", "min", "max", "range", "len"}
MOSTLY = 0.85  # of the lines are the same in two files that have one text
MOST_PLACES = 3
MOST_LINKS = 4  # from a name to the name that it is made of


@lru_cache(maxsize=16)
def parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def definition_line(text: str, line: int) -> int | None:
    """The line that gives the one plain number that a line uses by name; None where none does.

    `scores * self.scale` with `self.scale = dim**-0.5` in the constructor: the latter."""
    tree = parse(text)
    if tree is None:
        return None
    found = {
        where
        for name in _names(tree, line)
        if len(_lines_that_read(tree, name)) == 1  # what others read as well is right
        if (where := _follow(tree, name, line)) is not None and where != line
    }
    return found.pop() if len(found) == 1 else None


def _names(tree: ast.Module, line: int) -> set[str]:
    """The names and attributes of self that a line reads."""
    found = set()
    for node in ast.walk(tree):
        if getattr(node, "lineno", None) != line:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
    return found


def _lines_that_read(tree: ast.Module, name: str) -> set[int]:
    """But for those that only hand it on under the same name."""
    handed = {line for value, line in _assignments(tree, name) if isinstance(value, ast.Name)}
    return {
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.Name) and node.id == name)
        if isinstance(node.ctx, ast.Load) and node.lineno not in handed
    }


def _follow(tree: ast.Module, name: str, before: int) -> int | None:
    """Where a name gets a plain number, by way of names that only hand it on."""
    for _ in range(MOST_LINKS):
        given = [a for a in _assignments(tree, name) if a[1] != before]
        if len(given) != 1:
            return None
        value, line = given[0]
        if isinstance(value, ast.Name) and value.id == name:
            return _default_line(tree, name) or None
        if not isinstance(value, (ast.Name, ast.Attribute)):
            return line if _is_plain(value) else None
        name = value.id if isinstance(value, ast.Name) else value.attr
    return None


def _assignments(tree: ast.AST, name: str) -> list[tuple[ast.expr, int]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        found += [(value, node.lineno) for target in targets if _is_named(target, name)]
    return found


def _is_named(target: ast.expr, name: str) -> bool:
    """Whether a target of an assignment is the name, or the attribute of that name."""
    if isinstance(target, ast.Attribute):
        return target.attr == name
    return isinstance(target, ast.Name) and target.id == name


def _default_line(tree: ast.Module, name: str) -> int:
    """The line of an argument's default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            last = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for argument, default in zip(last, node.args.defaults, strict=True):
                if argument.arg == name:
                    return default.lineno
    return 0


def _is_plain(value: ast.expr) -> bool:
    """Whether an expression is arithmetic of numbers."""
    if isinstance(value, (ast.List, ast.Tuple, ast.ListComp)):
        return True
    if not isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Call)):
        return False
    return all(
        _called(node) in PLAIN_CALLS for node in ast.walk(value) if isinstance(node, ast.Call)
    )


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@lru_cache(maxsize=16)
def differing_lines(mine: str, theirs: str) -> tuple[tuple[int, int, tuple[int, ...]], ...] | None:
    """First and last lines of mine that theirs has otherwise, and the lines of theirs that stand
    there; None where little is the same.

    What is left out is at the line that follows. Comments and spaces are no difference."""
    a, b = _code_lines(theirs), _code_lines(mine)
    alike = SequenceMatcher(None, [said for _, said in a], [said for _, said in b], autojunk=False)
    if not b or alike.ratio() < MOSTLY:
        return None
    found = [
        (b[min(i, len(b) - 1)][0], b[min(max(i, j - 1), len(b) - 1)][0], lines)
        for tag, start, end, i, j in alike.get_opcodes()
        if tag != "equal"
        for lines in [tuple(n for n, _ in a[start:end])]
    ]
    return tuple(found)


def replacing_lines(mine: str, theirs: str, line: int) -> tuple[int, ...]:
    """The lines of theirs that stand in place of a line of mine, and are more than it replaces:
    each of them alone is no fix."""
    for first, last, lines in differing_lines(mine, theirs) or ():
        if first <= line <= last and len(lines) > last - first + 1:
            return lines
    return ()


def _code_lines(text: str) -> list[tuple[int, str]]:
    """Numbers and texts of the lines that are no import, without comments and spaces around."""
    lines = ((n, line.split("  #")[0].strip()) for n, line in enumerate(text.splitlines(), 1))
    skipped = ("#", "import ", "from ")
    return [(n, said) for n, said in lines if said and not said.startswith(skipped)]


def nearest_difference(mine: str, theirs: str, line: int) -> int | None:
    """The line of mine to name where two files are the same but for a few places: what both have
    cannot be what is wrong. None where that says nothing."""
    places = differing_lines(mine, theirs)
    if not places or len(places) > MOST_PLACES:
        return None
    if any(first <= line <= last for first, last, _ in places):
        return line
    first, last, _ = min(places, key=lambda p: min(abs(line - p[0]), abs(line - p[1])))
    return first if line < first else last


def _function_at(text: str, line: int) -> ast.FunctionDef | None:
    tree = parse(text)
    around = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def is_in_function(text: str, line: int, other: int) -> bool:
    """Whether another line is in the function that a line is in."""
    around = _function_at(text, line)
    return around is not None and around.lineno <= other <= (around.end_lineno or 0)


def takes_argument(text: str, line: int) -> bool:
    """Whether a line of a helper reads an argument and nothing of `self`."""
    around = _function_at(text, line)
    if around is None or around.name == "forward":
        return False
    names = _names(parse(text) or ast.Module([], []), line)
    return "self" not in names and any(a.arg in names for a in around.args.args)


def gradient_line(text: str, line: int, function: str, name: str) -> int:
    """Where the backward at a line makes the gradient of what its function is applied to by name,
    or else of the first argument; 0 where that cannot be read."""
    around, tree = _function_at(text, line + 1), parse(text) or ast.Module([], [])
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call))
    given = next((c.args for c in calls if ast.unparse(c.func).endswith(f"{function}.apply")), [])
    said = [ast.unparse(argument).rpartition(".")[2] for argument in given]
    returned = [n.value for n in ast.walk(around or tree) if isinstance(n, ast.Return)]
    if around is None or not returned or returned[-1] is None:
        return 0
    made = returned[-1].elts if isinstance(returned[-1], ast.Tuple) else [returned[-1]]
    told = made[min(said.index(name) if name in said else 0, len(made) - 1)]
    where = told.lineno
    while isinstance(told, (ast.Call, ast.Attribute)):  # `dx.to(x)`: of `dx`
        told = told.func if isinstance(told, ast.Call) else told.value
    if isinstance(told, ast.Name):
        where = max((at for _, at in _assignments(around, told.id)), default=where)
    return where


def loading_line(text: str, name: str) -> int:
    """The line that says what goes into a weight of a state dict, by its name or by that of its
    layer; 0 where none or several do."""
    said: dict[str, set[int]] = {}
    for node in ast.walk(parse(text) or ast.Module([], [])):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            said.setdefault(node.value, set()).add(node.lineno)
    lines = next((said[n] for n in (name, name.rpartition(".")[0]) if n and n in said), set())
    return lines.pop() if len(lines) == 1 else 0


def line_after(text: str, line: int, busy: Sequence[int]) -> int:
    """The statement after `line` in its function if nothing is computed there, as `return x`; else
    the line itself."""
    tree = parse(text)
    following = next((s for s in _statements_after(tree, line)), 0) if tree else 0
    return following if following and following not in busy else line


def _statements_after(tree: ast.Module, line: int) -> Iterator[int]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for one, other in pairwise(body):
            if one.lineno <= line <= (one.end_lineno or one.lineno) and not isinstance(
                one, (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With)
            ):
                yield other.lineno


GRAD_MODES = ("no_grad", "inference_mode", "set_grad_enabled")


def grad_mode_line(text: str, lines: Sequence[int]) -> int:
    """The line that turns autograd off around the first of some lines that lies in such a block or
    function; 0 where none does."""
    blocks = list(_grad_mode_blocks(parse(text) or ast.Module([], [])))
    for line in lines:
        around = [start for start, first, last in blocks if first <= line <= last]
        if around:
            return max(around)
    return 0


def _grad_mode_blocks(tree: ast.Module) -> Iterator[tuple[int, int, int]]:
    """The line that says it, and the first and last line that it holds for."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            modes: list[ast.expr] = node.decorator_list
        else:
            modes = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
        for mode in modes:
            if any(word in ast.unparse(mode) for word in GRAD_MODES):
                yield mode.lineno, mode.lineno, getattr(node, "end_lineno", 0) or mode.lineno
