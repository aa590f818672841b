"""The frame of mutation operators: how they find places in a source and change its text.

An operator is a public function in a file of this folder, which holds a family of them. Its name is
the operator's id (`mask_inverted` -> `mask-inverted`), after the bug that it inserts; it yields an
`Edit` for every place where the bug can be inserted. The first line of its docstring says what the
bug is; `examples.toml` shows code before and after, under `Right:` and `Wrong:`.

The syntax tree only finds the place. The text is changed, so comments and layout stay, and a mutant
differs from the original as if a person had typed it. Nothing here runs code.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import random
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import resources
from inspect import getdoc
from itertools import zip_longest
from typing import TypeVar

from attnlab.files import PARSING
from attnlab.records import record

Node = TypeVar("Node", bound=ast.AST)
Splice = tuple[int, int, str]  # start, end, the new text between them
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
FACTORIES = {"arange", "empty", "empty_like", "full", "ones", "zeros", "tril", "triu", "all"}
# What bugs are called that the operators of a file make; the others are of attention.
CATEGORIES = {
    "masks": "mask",
    "positions": "positions",
    "layers": "normalisation",
    "training": "training",
}
ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


@record
class Edit:
    """The changes of a text that insert one bug; splices do not overlap."""

    splices: tuple[Splice, ...]


Edits = Iterator[Edit]


@record
class Mutant:
    """A source with one bug: the number of its first line, and the lines before and after."""

    mutation: str
    line: int
    before: str
    after: str
    text: str


@record
class Mutation:
    """A mutation as the rest of attnlab sees it."""

    id: str
    doc: str
    edits: Callable[[Source], Edits]

    @property
    def family(self) -> str:
        """Its file: `masks`."""
        return self.edits.__module__.rpartition(".")[2]


class Source:
    """A text with its syntax tree, and the methods that find nodes and make edits."""

    def __init__(self, text: str) -> None:
        self.text = text
        with PARSING:
            self.tree = ast.parse(text)
        self.parents = {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = text.splitlines(keepends=True)

    # ------------------------------------------------------------ finding

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes that run, in order of the text: no annotations, docstrings or messages."""
        found = [n for n in _running(self.tree) if hasattr(n, "lineno")]
        return sorted(found, key=self.span)

    def of_type(self, kind: type[Node]) -> Iterator[Node]:
        """The nodes of one class, such as `ast.Slice`."""
        return (node for node in self.nodes if isinstance(node, kind))

    def binary(self, *operators: type[ast.operator]) -> Iterator[ast.BinOp]:
        """The operations with one of these operators, such as `ast.Add`."""
        return (node for node in self.of_type(ast.BinOp) if isinstance(node.op, operators))

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of a function or method of one of these names; any call without names."""
        return (c for c in self.of_type(ast.Call) if not names or called_name(c) in names)

    def calls_on(self, *names: str) -> Iterator[tuple[ast.Call, ast.expr]]:
        """Such calls, each with the value that it is applied to (see `subject`)."""
        for call in self.calls(*names):
            value = subject(call)
            if value is not None:
                yield call, value

    def functions(self, *names: str) -> Iterator[ast.FunctionDef]:
        return (f for f in self.of_type(ast.FunctionDef) if not names or f.name in names)

    def assignments(self) -> Iterator[ast.Assign]:
        """`name = value` inside of methods other than `__init__`."""
        for function in self.functions():
            if function.name != "__init__":
                for node in ast.walk(function):
                    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                        yield node

    def returned_values(self) -> Iterator[ast.expr]:
        """The values that `forward` returns."""
        for function in self.functions("forward"):
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield node.value

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from its parent to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        """The innermost function around a node."""
        return next((n for n in self.ancestors(node) if isinstance(n, ast.FunctionDef)), None)

    # ------------------------------------------------------------ reading

    def offset(self, line: int, column: int) -> int:
        """The offset in the text of a position in the tree, which counts bytes."""
        ahead = self._lines[line - 1].encode()[:column] if line <= len(self._lines) else b""
        return self._starts[line - 1] + len(ahead.decode(errors="replace"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        n: ast.expr = node  # type: ignore[assignment]  # all that has a place has these four
        return (
            self.offset(n.lineno, n.col_offset),
            self.offset(n.end_lineno or n.lineno, n.end_col_offset or n.col_offset),
        )

    def text_of(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def atom(self, node: ast.AST) -> str:
        """The text of a node, in parentheses where an operator beside it could split it."""
        return self.text_of(node) if isinstance(node, ATOMS) else f"({self.text_of(node)})"

    def sides(self, node: ast.BinOp) -> tuple[str, str]:
        """Both operands, with the parentheses around them."""
        start, end = self.span(node)
        between = self.span(node.left)[1], self.span(node.right)[0]
        symbol = SYMBOLS.get(type(node.op), "<<")
        at = self.text.find(symbol, *between)
        return self.text[start:at].strip(), self.text[at + len(symbol) : end].strip()

    # ------------------------------------------------------------ changing

    def put(self, node: ast.AST, text: str) -> Edit:
        """Another text in place of a node."""
        return Edit(splices=((*self.span(node), text),))

    def put_each(self, node: ast.AST, texts: Iterable[str]) -> Edits:
        """One edit for each of the texts that stands in place of a node."""
        return (self.put(node, text) for text in texts)

    def put_other_axes(self, axis: ast.expr | None, numbers: Iterable[int]) -> Edits:
        """Each of the numbers but its own in place of an axis, where the call names one."""
        if axis is not None:
            yield from self.put_each(axis, (str(n) for n in numbers if n != integer(axis)))

    def put_next_axes(self, axis: ast.expr | None) -> Edits:
        """The axes before and after, where the call names its axis by number."""
        number = integer(axis)
        if number is not None:
            yield from self.put_other_axes(axis, (number - 1, number + 1))

    def rename(self, node: ast.expr, name: str) -> Edit:
        """Another name in place of `sin` in `sin`, `torch.sin` or `x.sin`."""
        end = self.span(node)[1]
        return Edit(splices=((end - len(last_name(node)), end, name),))

    def rename_calls(self, others: Mapping[str, str]) -> Edits:
        """The other name in place of each that is called."""
        return (self.rename(c.func, others[called_name(c)]) for c in self.calls(*others))

    def put_expr(self, node: ast.expr, text: str) -> Edit:
        """Another expression in place of a node, in parentheses where it is an operand."""
        parent = self.parents.get(node)
        inner = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Compare))
        return self.put(node, f"({text})" if inner else text)

    def swap(self, one: ast.AST, other: ast.AST) -> Edit:
        return Edit(
            splices=((*self.span(one), self.text_of(other)), (*self.span(other), self.text_of(one)))
        )

    def operator(self, node: ast.BinOp, symbol: str) -> Edit:
        """Another operator between the same operands."""
        left, right = self.sides(node)
        return self.put(node, f"{left} {symbol} {right}")

    def delete(self, statement: ast.stmt) -> Edit:
        return self.put(statement, "pass")

    def move(self, statement: ast.stmt, to: ast.stmt, after: bool = False) -> Edit:
        """A statement with lines of its own before or after another one, also of another block."""
        line = f"{' ' * to.col_offset}{self.text_of(statement)}\n"
        place = self._ends_at(to) if after else self._starts[to.lineno - 1]
        gone = self._starts[statement.lineno - 1], self._ends_at(statement), ""
        return Edit(splices=((place, place, line), gone))

    def _ends_at(self, statement: ast.stmt) -> int:
        """Where the line after a statement begins."""
        return self._starts[statement.end_lineno or statement.lineno]

    def insert(self, statement: ast.stmt, text: str) -> Edit:
        """A statement of its own before this one."""
        start, _ = self.span(statement)
        return Edit(splices=((start, start, f"{text}\n{' ' * statement.col_offset}"),))


def called_name(node: ast.Call) -> str:
    """`softmax` of `scores.softmax(...)` and of `F.softmax(...)`."""
    return last_name(node.func)


def last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_module(node: ast.AST) -> bool:
    """`torch`, `F` or `nn.functional`: a module that functions are taken from, not a tensor."""
    return last_name(node) in ("torch", "nn", "F", "math", "functional", "np", "numpy")


def is_method(node: ast.Call) -> bool:
    """A call on a value, such as `scores.softmax(-1)`, not on a library."""
    return isinstance(node.func, ast.Attribute) and not is_module(node.func.value)


def is_layer(node: ast.Call) -> bool:
    """`self.norm(x)`: a call of an attribute, which may be a method of the class as well."""
    return isinstance(node.func, ast.Attribute) and last_name(node.func.value) == "self"


def argument(node: ast.Call, name: str, place: int) -> ast.expr | None:
    """The argument called `name`, or number `place`, not counting the value it is applied to."""
    for keyword in node.keywords:
        if keyword.arg == name:
            return keyword.value
    place += 0 if is_method(node) else 1
    return node.args[place] if len(node.args) > place else None


def subject(node: ast.Call) -> ast.expr | None:
    """The value that a method is called on, or the first argument of a function."""
    if isinstance(node.func, ast.Attribute) and is_method(node):
        return node.func.value
    return node.args[0] if node.args else None


def condition(node: ast.Call) -> ast.expr | None:
    """The mask of `scores.masked_fill(mask, low)` and of `torch.where(mask, low, scores)`."""
    if called_name(node) == "where" and not is_method(node):
        return subject(node)
    return argument(node, "mask", 0)


def integer(node: ast.AST | None) -> int | None:
    """The integer that a node such as `-1` writes; None for another node."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = integer(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def equations(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """The equations of calls of `einsum`, such as "bhqk,bkhd->bqhd"."""
    for call in source.calls("einsum"):
        for first in call.args[:1]:
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first, first.value


def buffers(source: Source) -> Iterator[tuple[ast.Call, str, str]]:
    """The calls of `register_buffer`, with the name and the value of each."""
    for call in source.calls("register_buffer"):
        if len(call.args) > 1 and isinstance(name := call.args[0], ast.Constant):
            yield call, str(name.value), source.text_of(call.args[1])


def is_constant(node: ast.expr) -> bool:
    """A value without a gradient: it comes from a factory or a comparison."""
    calls = {called_name(n) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return isinstance(node, ast.Compare) or bool(calls & FACTORIES)


def body(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function after its docstring."""
    return function.body[1:] if _is_text(function.body[0]) else function.body


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`, under which nothing runs when the file is imported."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and last_name(node.test.left) == "__name__"
    )


def _running(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name in ("annotation", "returns", "msg") or not isinstance(child, ast.AST):
                continue
            quiet = (ast.Import, ast.ImportFrom, ast.Raise, ast.JoinedStr, ast.expr_context)
            if isinstance(child, ast.Raise):
                yield child  # it can be deleted, but its message does not matter
            elif not isinstance(child, quiet) and not _is_text(child) and not _is_guard(child):
                yield from _running(child)


# ---------------------------------------------------------------- all of them


@cache
def load_mutations() -> tuple[Mutation, ...]:
    """Every mutation in this folder, by name."""
    package = importlib.import_module("attnlab.mutation_testing.operators")
    examples = tomllib.loads(resources.files(package).joinpath("examples.toml").read_text("utf-8"))
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "base"]
    found = [
        Mutation(
            id=(named := function.__name__.replace("_", "-")),
            doc=f"{getdoc(function)}\n\n{examples[named]}",
            edits=function,
        )
        for module in (importlib.import_module(f"{package.__name__}.{name}") for name in names)
        for name, function in vars(module).items()
        if getattr(function, "__module__", "") == module.__name__ and not name.startswith("_")
    ]
    return tuple(sorted(found, key=lambda mutation: mutation.id.replace("-", "_")))


def mutation_named(name: str) -> Mutation:
    return next(mutation for mutation in load_mutations() if mutation.id == name)


def bug_of(mutation: str) -> str:
    """What bug a mutation puts in, in a sentence."""
    return mutation_named(mutation).doc.partition("\n\n")[0].replace("\n", " ")


def family_of(mutation: str) -> str:
    return mutation_named(mutation).family


def category_of(mutation: str) -> str:
    """What bugs of this kind are called, as a challenge's category: `mask`."""
    return CATEGORIES.get(family_of(mutation), "attention")


def mutants(text: str, *only: str) -> Iterator[Mutant]:
    """Every mutant of a source that compiles and differs in its syntax tree, each once."""
    source = Source(text)
    wanted = (m for m in load_mutations() if not only or m.id in only)
    yield from each_once(source, (edit for m in wanted for edit in edits_of(m, source)))


def drawn_mutants(text: str, dice: random.Random) -> Iterator[Mutant]:
    """Every mutant in a drawn order, each made when it is asked for."""
    source = Source(text)
    edits = [edit for mutation in load_mutations() for edit in edits_of(mutation, source)]
    dice.shuffle(edits)
    yield from each_once(source, edits)


def edits_of(mutation: Mutation, source: Source) -> Iterator[tuple[str, Edit]]:
    """What it may change, under its name; to find that is cheap."""
    return ((mutation.id, edit) for edit in mutation.edits(source))


def each_once(source: Source, edits: Iterable[tuple[str, Edit]]) -> Iterator[Mutant]:
    """The mutants that edits make; none that Python refuses, or whose syntax tree is that of the
    source or of one before."""
    seen = {ast.dump(source.tree)}
    for mutation, edit in edits:
        mutated = apply_edit(source.text, edit)
        tree = _compiled(mutated)
        if tree is not None and tree not in seen:
            seen.add(tree)
            line, before, after = changed_lines(source.text, mutated)
            yield Mutant(mutation=mutation, line=line, before=before, after=after, text=mutated)


def apply_edit(text: str, edit: Edit) -> str:
    for start, end, new in sorted(edit.splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def changed_lines(old: str, new: str) -> tuple[int, str, str]:
    """The number of the first line that differs, and the lines that differ before and after."""
    a, b = old.splitlines(), new.splitlines()
    first = next((i for i, (x, y) in enumerate(zip_longest(a, b)) if x != y), 0)
    last = 0
    while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
        last += 1
    return first + 1, _joined(a[first : len(a) - last]), _joined(b[first : len(b) - last])


def _joined(lines: list[str]) -> str:
    return "\n".join(line.strip() for line in lines)


def _compiled(text: str) -> str | None:
    """The tree of a text as a string, None where Python refuses it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as those about `1 is x`
            with PARSING:
                tree = ast.parse(text)
            compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return ast.dump(tree)
