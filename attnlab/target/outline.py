"""What a source file defines, read without running it: classes, functions, signatures."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Literal

from attnlab.catalogue.literals import Scalar
from attnlab.records import Code, record
from attnlab.target.constants import fill_in_defaults, integer_constants
from attnlab.target.conventions import (
    CHANNELS,
    PICTURE_SIZES,
    TIMES,
    names_class,
    names_mask,
    names_part,
    usual_feed,
)
from attnlab.target.layer_widths import layer_widths
from attnlab.target.source import parse
from attnlab.target.top_level import is_demo, may_bind_more, read_names
from attnlab.target.usage import CHANNELS_LAST, IDS, PICTURE, VECTORS, ClassUsage

# Bases that take no constructor arguments and define no forward.
PLAIN_BASES = (
    *("Module", "nn.Module", "torch.nn.Module", "object", "ABC", "abc.ABC", "Generic"),
    *("NamedTuple", "typing.NamedTuple"),
)
FunctionDef = ast.FunctionDef | ast.AsyncFunctionDef


@record
class Parameter:
    name: str
    required: bool = True
    default: str | int | float | bool | None = None  # None too where it is no plain value
    none: bool = False  # its default is None
    annotation: str = ""
    role: Scalar | None = None  # of a constructor: the size it means by its use, or a value
    feed: str = ""  # of forward: the axes it has by its use, as in --input
    keys: tuple[str, ...] = ()  # of forward: those that it is looked up by, as a dict


@record
class Signature:
    parameters: tuple[Parameter, ...] = ()
    keywords: bool = False  # takes **kwargs

    def names(self) -> list[str]:
        return [p.name for p in self.parameters]


@record
class Definition:
    """A name that the file defines. A signature is None where the file does not show it."""

    name: str
    kind: Literal["class", "function", "other"]
    module: bool = False  # looks like an nn.Module
    callable: bool = True  # False: it surely has no forward
    build: Signature | None = None  # of the constructor, or of the function itself
    forward: Signature | None = None
    attributes: dict[str, int] = field(default_factory=dict)  # of the class, where they are sizes
    layers: tuple[str, ...] = ()  # the widths its constructor gives to layers: "16", "dim", "?"
    roles: dict[str, Scalar] = field(default_factory=dict)  # what arguments mean by their use


@record
class Outline:
    definitions: dict[str, Definition]
    complete: bool = True  # False: `from x import *` or `__getattr__` may give more names
    demo: bool = False  # has an `if __name__ == "__main__":`
    demo_names: frozenset[str] = frozenset()  # what it mentions, itself or in what it calls
    constants: dict[str, int] = field(default_factory=dict)  # `n_embd = 384` at top level
    climbs: int = 0  # the most dots of a relative import
    roots: tuple[str, ...] = ()  # the modules that no other class of the file uses
    imports: tuple[str, ...] = ()  # first parts of the names of what it imports
    trains: bool = False  # running it takes optimizer steps, or updates of its own

    def modules(self) -> list[str]:
        return [d.name for d in self.definitions.values() if d.module]

    def classes(self) -> list[str]:
        return [d.name for d in self.definitions.values() if d.kind == "class"]


def outline_code(code: Code) -> Outline:
    """That of a file, which is read once however many ask; raises what `parse` does."""
    return _outline(code.text, code.file)


@lru_cache(8)
def _outline(text: str, file: str) -> Outline:
    return read_outline(parse(text, file), read_comments(text))


def read_comments(text: str) -> dict[int, str]:
    """The comments of a text by their lines."""
    lines = enumerate(text.splitlines(), 1)
    return {i: line.partition("#")[2] for i, line in lines if "#" in line}


def _demo_names(tree: ast.Module, functions: Mapping[str, ast.stmt]) -> frozenset[str]:
    """The names that the demo of a file mentions, or a function that it reaches."""
    found: set[str] = set()
    todo: list[ast.AST] = [node for node in tree.body if is_demo(node)]
    while todo:
        fresh = {n.id for n in ast.walk(todo.pop()) if isinstance(n, ast.Name)} - found
        found |= fresh
        todo += [functions[name] for name in fresh & set(functions)]
    return frozenset(found)


def read_outline(tree: ast.Module, comments: Mapping[int, str] | None = None) -> Outline:
    """The names of a file's top level, those inside `if`, `try` and `with` included."""
    constants = integer_constants(tree.body)
    fill_in_defaults(tree, constants)
    names = read_names(tree.body)
    classes = {name: node for name, node in names.items() if isinstance(node, ast.ClassDef)}
    functions = {name: node for name, node in names.items() if isinstance(node, FunctionDef)}
    usage = ClassUsage(classes, functions, comments)
    found = {name: Definition(name=name, kind="other") for name in names}
    found |= {name: _class(name, classes, usage) for name in classes}
    for name, node in functions.items():
        build = _with_feeds(_signature(node.args, bound=False), usage, name, None)
        found[name] = Definition(name=name, kind="function", build=build)
    modules = [name for name in classes if found[name].module]
    return Outline(
        definitions=found,
        complete=not may_bind_more(names),
        demo=any(is_demo(node) for node in tree.body),
        demo_names=_demo_names(tree, functions),
        constants=constants,
        climbs=max((n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), default=0),
        roots=tuple(_without_parts(usage.roots(modules), found)),
        imports=tuple(dict.fromkeys(_imports(tree))),
        trains=_trains(tree),
    )


def _without_parts(roots: list[str], found: dict[str, Definition]) -> Iterator[str]:
    """The modules that are no argument of another one's constructor."""
    for name in roots:
        builds = [found[other].build for other in roots if other != name]
        asked = [p.name for build in builds if build for p in build.parameters if p.required]
        if not any(names_part(argument, name) for argument in asked):
            yield name


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _trains(tree: ast.Module) -> bool:
    """Whether running the file takes steps: it holds a gradient, `X.step(...)` or an update of its
    own such as `w -= lr * w.grad`, and code that runs."""
    nodes = list(ast.walk(tree))
    called = {
        node.func.attr
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    updates = any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, (ast.Sub, ast.Add))
        and re.search(
            r"grad|\b(lr|eta|alpha|step_size|learning_rate)\b|^[\d.e-]+ \* \w+$",
            ast.unparse(node.value),
            re.IGNORECASE,
        )
        for node in nodes
    )
    runs = any(
        isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in tree.body
    )
    steps = "step" in called or updates or {"sub_", "add_"} & called
    names = {n.id for n in nodes if isinstance(n, ast.Name)} | called
    if runs and {"grad_and_value", "value_and_grad"} & names:  # of torch.func, without optimizer
        return True
    return runs and bool(steps) and bool({"backward", "grad"} & called)


# ---------------------------------------------------------------- classes


def _class(name: str, classes: dict[str, ast.ClassDef], usage: ClassUsage) -> Definition:
    node = classes[name]
    build, seen = _method(node, ("__init__",), classes)
    forward, all_seen = _method(node, ("forward", "__call__"), classes)
    return Definition(
        name=name,
        kind="class",
        module=_is_module(node, classes, set()),
        callable=forward is not None or not all_seen,
        build=build or (Signature() if seen else None),
        forward=forward and _with_feeds(forward, usage, name, build),
        attributes=integer_constants(node.body),
        layers=_layers(node, classes),
        roles=usage.roles(name),
    )


def _with_feeds(
    forward: Signature, usage: ClassUsage, name: str, build: Signature | None
) -> Signature:
    """The parameters of forward with the axes that their use tells."""
    made = {p.name: p.default for p in build.parameters} if build else {}
    side, channels = (
        next((n for n in (made.get(str(n), n) for n in names) if type(n) is int), usual)
        for names, usual in (
            ((*PICTURE_SIZES, *usage.cut_in_patches(name)), 32),
            ((usage.channels(name), *CHANNELS), 3),
        )
    )
    first = "S B" if usage.is_time_first(name) else "B S"
    cut = [made.get(n) for n in dict.fromkeys(usage.cut_in_patches(name))]
    whole = len(cut) == 2 and all(type(n) is int for n in cut)
    rows = " ".join(map(str, cut if whole else (side, side)))
    axes = {IDS: f"{first} int", VECTORS: f"{first} D", PICTURE: f"B {channels} {rows}"}
    axes[CHANNELS_LAST] = f"B {rows} D"

    def feed(argument: str) -> str:
        unnamed = not usual_feed(argument, "")
        if (
            names_mask(argument)
            or usage.is_padding(name, argument)
            or (unnamed and usage.is_mask(name, argument))
        ):
            return usage.mask_axes(name, argument)
        read, kind = usage.width(name, argument), usage.fed(name, argument)
        width = int(read) if read.isdigit() else made.get(read)
        if kind == IDS and usage.rank(name, argument) == 3:
            return "B S L int"  # rows of sequences, as of an alignment
        if kind == IDS and names_class(argument) and TIMES & set(forward.names()):
            return "B int"  # of a diffusion model: one class for each sample
        if kind in ("", VECTORS) and type(width) is int:
            return f"{first} {width}"
        usual = usual_feed(argument, "")
        if not kind and usual == "B 3 32 32":
            return axes[PICTURE]
        usual = usual if first == "S B" else ""
        turned = usual.replace("B S", first, 1) if usual in ("B S D", "B S int") else ""
        return axes.get(kind, turned)

    found = (
        replace(p, feed=feed(p.name), keys=usage.keys(name, p.name)) for p in forward.parameters
    )
    return replace(forward, parameters=tuple(found))


def _layers(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> tuple[str, ...]:
    functions = (
        item
        for step in _lineage(node, classes)
        for item in (step.body if step else ())
        if isinstance(item, FunctionDef)
    )
    constructor = next((f for f in functions if f.name == "__init__"), None)
    return layer_widths(constructor) if constructor else ()


def _method(
    node: ast.ClassDef, names: tuple[str, ...], classes: dict[str, ast.ClassDef]
) -> tuple[Signature | None, bool]:
    """The signature of the first of `names` that the class or a base in this file defines.

    None where there is none, and whether everything that could define one has been seen.
    """
    for step in _lineage(node, classes):
        if step is None:
            return None, False
        own = {item.name: item for item in step.body if isinstance(item, FunctionDef)}
        for name in names:
            if name in own:
                return _signature(own[name].args, bound=not _is_static(own[name])), True
        if names == ("__init__",) and (_is_dataclass(step) or _is_named_tuple(step)):
            return _fields(step, classes)
        if step.decorator_list and names == ("__init__",):
            return None, False  # a decorator may write a constructor that is not in the source
    return None, True


def _is_dataclass(node: ast.ClassDef) -> bool:
    made = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return any(_dotted(name).endswith("dataclass") for name in made)


def _is_named_tuple(node: ast.ClassDef) -> bool:
    return any(_dotted(base).endswith("NamedTuple") for base in node.bases)


def _fields(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> tuple[Signature | None, bool]:
    """The constructor of a dataclass or a NamedTuple, where all its fields can be seen."""
    found: dict[str, Parameter] = {}
    for step in reversed(list(_lineage(node, classes))):
        if step is None:
            return None, False
        found |= {
            item.target.id: Parameter(
                name=item.target.id,
                required=item.value is None,
                default=_plain(item.value),
                annotation=ast.unparse(item.annotation),
            )
            for item in step.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
    return Signature(parameters=tuple(found.values())), True


def _lineage(
    node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: frozenset[str] = frozenset()
) -> Iterator[ast.ClassDef | None]:
    """The class and its bases, depth first; None for a base that lies in another file."""
    yield node
    seen |= {node.name}
    for base in node.bases:
        name = _dotted(base)
        if name in classes and name not in seen:
            yield from _lineage(classes[name], classes, seen)
        elif name not in PLAIN_BASES:
            yield None


def _is_module(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: set[str]) -> bool:
    seen.add(node.name)
    names = [_dotted(base) for base in node.bases]
    return (
        any(n.endswith("Module") or n.startswith(("nn.", "torch.nn.")) for n in names)
        or any(isinstance(i, FunctionDef) and i.name == "forward" for i in node.body)
        or any(
            n in classes and n not in seen and _is_module(classes[n], classes, seen) for n in names
        )
    )


def _dotted(node: ast.expr) -> str:
    """`torch.nn.Module`; of `Base[T]`, Base."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_static(node: FunctionDef) -> bool:
    return any(_dotted(d) == "staticmethod" for d in node.decorator_list)


# ---------------------------------------------------------------- signatures


def _signature(args: ast.arguments, *, bound: bool) -> Signature:
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    pairs = [*zip(plain, defaults, strict=True)][1 if bound else 0 :]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return Signature(
        parameters=tuple(_parameter(arg, default) for arg, default in pairs),
        keywords=args.kwarg is not None,
    )


def _parameter(arg: ast.arg, default: ast.expr | None) -> Parameter:
    return Parameter(
        name=arg.arg,
        required=default is None,
        default=_plain(default),
        none=isinstance(default, ast.Constant) and default.value is None,
        annotation=ast.unparse(arg.annotation) if arg.annotation else "",
    )


def _plain(node: ast.expr | None) -> str | int | float | bool | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (str, int, float)) else None


def format_signature(signature: Signature) -> str:
    """The names, each with its annotation where it has one."""
    noted = (f"{p.name}: {p.annotation}" if p.annotation else p.name for p in signature.parameters)
    return ", ".join(noted) or "no arguments"
