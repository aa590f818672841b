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
    read = [n for n in _loads(tree) if n.lineno == line]
    found = {where for node in read if (where := _follow(tree, node)) not in (None, line)}
    return found.pop() if len(found) == 1 else None


def names_number(text: str, line: int, said: str) -> bool:
    """Whether what a line reads by this name is a plain number, as far as the file tells."""
    tree = parse(text)
    read: ast.expr | None = None
    if tree is not None:
        read = next((n for n in _loads(tree) if n.lineno == line and ast.unparse(n) == said), None)
    for _ in range(MOST_LINKS):
        if tree is None or not isinstance(read, (ast.Name, ast.Attribute)):
            break
        read = next(iter(_given(tree, read)), None)
    return read is not None and not isinstance(read, ast.Name | ast.Attribute) and _is_plain(read)


def _loads(around: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """Where names and attributes are read."""
    for node in ast.walk(around):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield node


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


def _follow(tree: ast.Module, read: ast.expr) -> int | None:
    """Where what is read gets a plain number, by way of names and calls that only hand it on."""
    for _ in range(MOST_LINKS):
        if not isinstance(read, (ast.Name, ast.Attribute)):
            return read.lineno if _is_plain(read) else None
        given = _given(tree, read)
        if len(given) != 1 or not _is_only_reader(tree, read):
            return None
        read = given[0]
    return None


def _given(tree: ast.Module, read: ast.Name | ast.Attribute) -> list[ast.expr]:
    """What a name or an attribute is set to: by statements, by calls of its function, or at last
    by its default."""
    if isinstance(read, ast.Attribute):
        return [value for value, _ in _assignments(tree, read.attr)]
    function = _function_in(tree, read.lineno)
    names = [a.arg for a in function.args.args] if function else []
    kind = ast.Name
    set_here = [v for v, at in _assignments(function or tree, read.id, kind) if at != read.lineno]
    if function is None or read.id not in names or set_here:
        return set_here or [value for value, _ in _assignments(tree, read.id, kind)]
    place = names.index(read.id)
    first = place - (names[0] in ("self", "cls", "ctx"))
    handed = [value for call in _calls(tree, function) for value in _handed(call, read.id, first)]
    late = place - len(names) + len(function.args.defaults)
    return handed or (function.args.defaults[late : late + 1] if late >= 0 else [])


def _calls(tree: ast.Module, function: ast.FunctionDef) -> list[ast.Call]:
    """The calls of a function, of the class that it makes, or of the operation that it is."""
    owners = (c for c in ast.walk(tree) if isinstance(c, ast.ClassDef) and function in c.body)
    owner = next((c.name for c in owners), "")
    name = {"__init__": owner, "forward": f"{owner}.apply"}.get(function.name, function.name)
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call))
    return [c for c in calls if f".{ast.unparse(c.func)}".endswith(f".{name}")]


def _handed(call: ast.Call, name: str, place: int) -> list[ast.expr]:
    """What a call gives an argument, by its name or at its place."""
    found = [k.value for k in call.keywords if k.arg == name]
    return found or call.args[place : place + 1]


def _is_only_reader(tree: ast.Module, read: ast.Name | ast.Attribute) -> bool:
    """Whether nothing else reads this but for what hands it on: what others read as well is
    right."""
    near = _function_in(tree, read.lineno) if isinstance(read, ast.Name) else None
    said = ast.unparse(read)
    others = [n for n in _loads(near or tree) if n is not read and ast.unparse(n) == said]
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    parents |= {n: parents[parents[n]] for n in others if isinstance(parents[n], ast.Tuple)}
    return all(_is_handing_on(tree, parents[n]) for n in others)


def _is_handing_on(tree: ast.Module, node: ast.AST) -> bool:
    """Whether a statement or a call only passes its operands to what is defined in the file."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.Assign, ast.AnnAssign))
    own = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return bool(own & set(ast.unparse(node.func).split(".")))


def _assignments(
    tree: ast.AST, name: str, kind: type[ast.expr] = ast.expr
) -> list[tuple[ast.expr, int]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        found += [
            (value, node.lineno)
            for target in targets
            if isinstance(target, kind) and _is_named(target, name)
        ]
    return found


def _is_named(target: ast.expr, name: str) -> bool:
    """Whether a target of an assignment is the name, or the attribute of that name."""
    if isinstance(target, ast.Attribute):
        return target.attr == name
    return isinstance(target, ast.Name) and target.id == name


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
    return _function_in(parse(text) or ast.Module([], []), line)


def _function_in(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The innermost function that has a line."""
    around = [
        node
        for node in ast.walk(tree)
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
