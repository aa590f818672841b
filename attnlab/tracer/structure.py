"""What is odd about a module as it was built, read from its attributes and its source."""

import ast
import linecache
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from torch import Tensor, nn

from attnlab.records.trace import Finding
from attnlab.tracer.class_source import ClassSource, class_source, class_source_of
from attnlab.tracer.position_tables import odd_tables


def odd_structure(root: nn.Module) -> tuple[Finding, ...]:
    """What training, saving or a move to another device will not see, and layers that are one."""
    found: dict[tuple[str, str, int], Finding] = {}
    registered = {id(m) for m in root.modules()} | {id(p) for p in root.parameters()}
    for path, module in root.named_modules():
        source = class_source_of(module)
        for finding in (
            *_hidden_layers(path, module, source, registered),
            *_loose_tensors(path, module, source),
            *_same_layers(path, module, root),
            *_lost_ties(module, source),
            *odd_tables(path, module),
        ):
            found.setdefault((finding.rule, finding.file, finding.line), finding)
    for finding in _unread_arguments(root):
        found.setdefault((finding.rule, finding.file, finding.line), finding)
    return tuple(found.values())


# ---------------------------------------------------------------- what is not registered


def _hidden_layers(
    path: str, module: nn.Module, source: ClassSource, registered: set[int]
) -> Iterator[Finding]:
    for name, value in vars(module).items():
        if name.startswith("_") or source.tree is None:
            continue
        parts = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(parts, (list, tuple)) or not 1 < len(parts) < 10_000:
            continue
        hidden = [
            p for p in parts if isinstance(p, (nn.Module, nn.Parameter)) and id(p) not in registered
        ]
        weights = sum(
            p.numel()
            for part in hidden
            for p in (part.parameters() if isinstance(part, nn.Module) else [part])
        )
        if not weights:
            continue
        kind = type(value).__name__
        better = "nn.ModuleDict" if kind == "dict" else "nn.ModuleList"
        if isinstance(hidden[0], nn.Parameter):
            better = better.replace("Module", "Parameter")
        full = f"{path}.{name}".lstrip(".")
        yield source.finding(
            "layers-in-list",
            "warning",
            source.assignment(name),
            f"{full} is a plain {kind} of {len(hidden)} {type(hidden[0]).__name__}: its "
            f"{weights:,} weights are not in parameters(), so no optimizer trains them and no "
            f"state dict holds them; make it an {better}",
        )


def _loose_tensors(path: str, module: nn.Module, source: ClassSource) -> Iterator[Finding]:
    for name, value in vars(module).items():
        if not isinstance(value, Tensor) or source.tree is None:
            continue
        full, line = f"{path}.{name}".lstrip("."), source.assignment(name)
        assigned = name in source.constructed and name not in source.rewritten
        if value.requires_grad and assigned:
            why = (
                "the result of an operation on one"
                if value.grad_fn is not None
                else "a plain tensor"
            )
            yield source.finding(
                "parameter-not-registered",
                "warning",
                line,
                f"{full} wants gradients but is {why}, not an nn.Parameter: it is not in "
                "parameters(), so no optimizer trains it; wrap the final tensor in nn.Parameter",
            )
        elif value.is_floating_point() and value.numel() > 1 and assigned:
            yield source.finding(
                "buffer-not-registered",
                "note",
                line,
                f"{full} is a plain tensor, not a buffer: .to(device), .half() and state_dict() "
                "leave it behind; register_buffer keeps it with the module",
            )


# ---------------------------------------------------------------- layers that are one


def _same_layers(path: str, module: nn.Module, root: nn.Module) -> Iterator[Finding]:
    if not isinstance(module, (nn.ModuleList, nn.Sequential)):
        return
    counts = Counter(id(m) for m in module._modules.values() if m is not None)
    for layer in module.children():
        times, weights = counts[id(layer)], sum(p.numel() for p in layer.parameters())
        if times < 2 or not weights:
            continue
        owner = root.get_submodule(path.rpartition(".")[0]) if "." in path else root
        source = class_source_of(owner)
        line = source.assignment(path.rpartition(".")[2])
        near = "".join(linecache.getline(source.file, line + i) for i in range(-3, 2))
        meant = MEANT.search(f"{type(owner).__name__} {near}")
        if source.tree is not None and not meant and _is_multiplied(source, line):
            yield source.finding(
                "layer-shared",
                "warning",
                line,
                f"{path} holds one {type(layer).__name__} {times} times: [layer] * {times} repeats "
                "the object, so all depths share the same weights; build one in each round of a "
                "comprehension",
            )


# How a text says that depths share their weights on purpose.
MEANT = re.compile(
    r"shar(e|ing)|same (object|layer|weights|module)|albert|universal|without (more|extra) param",
    re.IGNORECASE,
)


def _is_multiplied(source: ClassSource, line: int) -> bool:
    """Whether a list that holds a call is multiplied there."""
    for node in ast.walk(source.tree) if source.tree else ():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        inside = range(source.line + node.lineno - 1, source.line + (node.end_lineno or 0))
        lists = [side for side in (node.left, node.right) if isinstance(side, ast.List)]
        near = range(inside.start - 3, inside.stop + 3)
        if line in near and any(e for side in lists for e in side.elts):
            return True
    return False


def _lost_ties(module: nn.Module, source: ClassSource) -> Iterator[Finding]:
    """`self.a.weight = self.b.weight` in the constructor, and yet they are two."""
    for left, right, line in source.ties:
        mine, other = _tensor_at(module, left), _tensor_at(module, right)
        if mine is None or other is None or mine is other or mine.data_ptr() == other.data_ptr():
            continue
        made = source.made_anew
        what = f"self.{left} was made one with self.{right}"
        after = "so they train apart; fill the tensor in place, as nn.init does, or tie them last"
        yield source.finding(
            "tying-lost",
            "warning",
            made or line,
            f"{what} on line {line}, and this line gives one of them a new tensor, {after}"
            if made
            else f"{what} here and is no longer: a later line gives one of them a new tensor, "
            f"{after}",
        )


def _tensor_at(module: nn.Module, path: str) -> nn.Parameter | None:
    try:
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError:
        return None
    return found if isinstance(found, nn.Parameter) else None


# ---------------------------------------------------------------- arguments that nothing reads


def _unread_arguments(root: nn.Module) -> Iterator[Finding]:
    """Arguments of a user's forward that its body never names, though a caller gives them."""
    kinds: set[Any] = {type(m) for m in root.modules()}
    for kind in sorted(kinds, key=lambda k: k.__qualname__):
        yield from _unread_in(kind, kind is type(root))


@lru_cache(maxsize=256)
def _unread_in(kind: Any, outermost: bool) -> tuple[Finding, ...]:
    source = class_source(kind)
    forward = source.methods.get("forward")
    if forward is None or _does_nothing(forward):
        return ()
    named = {n.id for n in ast.walk(forward) if isinstance(n, ast.Name)}
    names = [a.arg for a in (*forward.args.args[1:], *forward.args.kwonlyargs)]
    found = []
    for place, name in enumerate(names):
        if name in named or name.startswith("_") or "locals" in named:
            continue
        keywords = place >= len(forward.args.args) - 1
        given = _is_given(source.file, kind.__name__, names, name, None if keywords else place)
        told = "" if outermost or given else "; nothing in this file gives it"
        asked = outermost and place < len(names) - len(forward.args.defaults) - len(
            forward.args.kwonlyargs
        )
        severity = "warning" if (given or asked) and _carries(name) else "note"
        message = f"{kind.__name__}.forward takes {name} and never reads it{told}"
        line = source.line + forward.lineno - 1
        found.append(source.finding("unused-argument", severity, line, message))
    return tuple(found)


def _carries(name: str) -> bool:
    """Whether an argument of this name holds tensors, as its word says."""
    return bool(
        re.search(
            r"mask|pad|pos|cache|past|memory|context|bias|enc|cond|kv|emb|len|^t$|time|step|noise|sigma|edge|"
            r"weight|dist",
            name,
        )
    )


def _does_nothing(function: ast.FunctionDef) -> bool:
    """A placeholder: only a docstring, `pass`, `...` or `raise`."""
    return all(isinstance(n, (ast.Expr, ast.Pass, ast.Raise)) for n in function.body)


@lru_cache(maxsize=64)
def _calls(file: str) -> tuple[ast.Call, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.Call))


def _is_given(file: str, kind: str, names: Sequence[str], name: str, place: int | None) -> bool:
    """Whether some call in the file gives this argument to something that is made of this class,
    or gives several by keyword that are all its own."""
    holders = _holders(file, kind)
    for call in _calls(file):
        function = call.func
        owner = (
            function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        )
        fits = len(call.keywords) > 1 and {k.arg for k in call.keywords} <= set(names)
        if owner not in holders and not fits:
            continue
        keyword = next((k.value for k in call.keywords if k.arg == name), None)
        value = keyword or (
            call.args[place] if place is not None and len(call.args) > place else None
        )
        if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            return True
    return False


@lru_cache(maxsize=256)
def _holders(file: str, kind: str) -> frozenset[str]:
    """Names that are assigned what a call of the class makes, and names that walk over such."""
    found: set[str] = set()
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return frozenset()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _makes(node.value, kind):
            found |= {
                t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "")
                for t in node.targets
            }
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            over = {n.attr for n in ast.walk(node.iter) if isinstance(n, ast.Attribute)}
            over |= {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)}
            if over & found:
                found.add(node.target.id)
    return frozenset(found - {""})


def _makes(node: ast.AST, kind: str) -> bool:
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Name) and f.id == kind for f in calls)
