"""What a call leaves on a module that changes the next one, and the line that keeps it."""

import ast
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.live.batch import Changes, Output
from attnlab.candidate.live.bench import Bench, largest_gap
from attnlab.candidate.live.watching import Place
from attnlab.tracer.class_source import ClassSource, class_source

OF_MODULES = frozenset(vars(nn.Module()))
DEEP = 3  # containers and objects in each other that are compared
Attribute = tuple[type[nn.Module], str]


def find_kept(bench: Bench, others: Changes, first: Output) -> tuple[str, Place] | None:
    """The attribute without which a call after another gives what it gives at first; None where
    there is no one such."""
    for kind, name in dict.fromkeys(_changed(bench)):
        place = _place(kind, name)
        if place is not None and _explains((kind, name), bench, others, first):
            return f"{kind.__name__}.{name}", place
    return None


def _changed(bench: Bench) -> Iterator[Attribute]:
    """What holds something else after a call than in a copy that was never called."""
    bench.live.forget()
    bench.live.call({})
    unused = dict(bench.live.unused.named_modules())
    for path, module in bench.live.model.named_modules():
        was = _attributes(unused[path]) if path in unused else {}
        for name, value in _attributes(module).items():
            if name not in was or not _same(was[name], value):
                yield type(module), name


def _attributes(module: nn.Module) -> dict[str, Any]:
    own = {n: v for n, v in vars(module).items() if n not in OF_MODULES}
    return own | dict(module.named_buffers(recurse=False))


def _same(one: Any, other: Any, depth: int = DEEP) -> bool:
    if one is other or not depth or isinstance(one, nn.Module):
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, str | int | float):
        return bool(one == other)
    a, b = _parts(one), _parts(other)
    return a.keys() == b.keys() and all(_same(a[key], b[key], depth - 1) for key in a)


def _parts(value: Any) -> Mapping[Any, Any]:
    """What a container or an object holds."""
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return value if isinstance(value, Mapping) else getattr(value, "__dict__", {})


def _explains(kept: Attribute, bench: Bench, others: Changes, first: Output) -> bool:
    """Whether the second call is right once this attribute is put back, and nothing else."""
    kind, name = kept
    live = bench.live
    live.forget()
    live.call({})
    for path, module in live.model.named_modules():
        if type(module) is kind:
            was = _attributes(live.unused.get_submodule(path))
            if name in was:
                setattr(module, name, copy.deepcopy(was[name]))
            else:
                delattr(module, name)
    try:
        after = live.call(others)
        gaps = ((o, largest_gap(o, after.tensors.get(n))) for n, o in first.tensors.items())
        return all(gap <= live.tolerance(out) for out, gap in gaps)
    except Exception:  # one of several that belong together
        return False


def _place(kind: type[nn.Module], name: str) -> Place | None:
    """The line outside the constructor that sets an attribute, or fills what it holds."""
    for each in kind.__mro__:
        source = class_source(each)
        found = sorted(_lines(source, name))
        if found:
            return Place(source.shown, source.line + found[0][1] - 1)
    return None


def _lines(source: ClassSource, name: str) -> Iterator[tuple[int, int]]:
    """Lines that set it, those that fill it behind them, and those that only read it last."""
    for title, method in source.methods.items():
        for node in ast.walk(method) if title != "__init__" else ():
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
            value = getattr(node, "value", None)
            emptied = isinstance(value, ast.Constant) and value.value is None
            held = [e for t in targets for e in ast.walk(t) if _is_own(e, name)]
            if held and not emptied:
                yield 0, getattr(node, "lineno", 0)
            elif _is_own(node, name) and not targets:
                yield 1 + (title != "forward"), getattr(node, "lineno", 0)


def _is_own(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and _is_self(node.value)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
