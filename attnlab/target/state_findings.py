"""What the text of a file says of weights that it keeps, the best ones or those of a network that
follows slowly: whether they are a copy, or the model itself, which goes on learning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from attnlab.target.source_walk import Function, Told, called, line_of, pairs_of, scopes, words

BEST = re.compile(r"best", re.IGNORECASE)
MODEL = re.compile(r"model|net|encoder|policy|agent|classifier", re.IGNORECASE)
SHALLOW = {"dict", "OrderedDict", "copy"}


def states_without_a_copy(tree: ast.Module) -> Iterator[Told]:
    """`best = model.state_dict()` in the loop, and `model.load_state_dict(best)` behind it."""
    loads = [
        (ast.unparse(n.args[0]), n.lineno)
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and called(n) == "load_state_dict" and n.args
    ]
    if not loads:
        return
    read = {  # names that come from a file as well
        ast.unparse(target)
        for n in ast.walk(tree)
        for target, value in pairs_of(n)
        if re.search(r"\bload\(", ast.unparse(value))
    }
    for _, nodes in scopes(tree):
        for branch in (n for n in nodes if isinstance(n, ast.If)):
            for name, value in _kept(branch):
                later = [
                    line
                    for text, line in loads
                    if _is_same(text, name)
                    and not branch.lineno <= line <= (branch.end_lineno or 0)
                ]
                if not BEST.search(name + ast.unparse(branch.test)) or not later or name in read:
                    continue
                yield Told(
                    line_of(value),
                    "state-not-copied",
                    f"{name} is {ast.unparse(value)[:60]}, whose tensors are the model's own: they "
                    f"change with every step, so line {later[0]} loads the last weights, not the "
                    "best ones. Keep copy.deepcopy(model.state_dict())",
                )


def _is_same(text: str, name: str) -> bool:
    """Whether it is the name itself, or that attribute of another object: `stopper.best`."""
    return text == name or (name.startswith("self.") and text.endswith(name.removeprefix("self")))


def _kept(branch: ast.If) -> Iterator[tuple[str, ast.expr]]:
    """The names, and keys of dicts, that keep a state of which nothing is copied."""
    for node in (n for part in branch.body for n in ast.walk(part)):
        for target, value in pairs_of(node):
            keys = value.keys if isinstance(value, ast.Dict) else []
            for key, inner in zip(keys, getattr(value, "values", []), strict=False):
                if key is not None and _is_live(inner):
                    yield f"{ast.unparse(target)}[{ast.unparse(key)}]", inner
            if _is_live(value):
                yield ast.unparse(target), value


def _is_live(value: ast.expr) -> bool:
    """`m.state_dict()`, also in another dict that holds the same tensors."""
    if isinstance(value, ast.DictComp):
        item, text = value.value, ast.unparse(value.generators[0].iter)
        while isinstance(item, ast.Attribute | ast.Call) and _cuts(item):
            item = item.func.value if isinstance(item, ast.Call) else item.value  # type: ignore[attr-defined]
        return isinstance(item, ast.Name) and text.endswith(".state_dict().items()")
    if not isinstance(value, ast.Call):
        return False
    if called(value) in SHALLOW:
        owner = getattr(value.func, "value", None)
        return any(map(_is_live, [*value.args[:1], *([owner] if owner else [])]))
    return called(value) == "state_dict" and isinstance(value.func, ast.Attribute)


def _cuts(node: ast.Attribute | ast.Call) -> bool:
    """`v.detach()` and `v.data`, which share memory with v."""
    return called(node) == "detach" if isinstance(node, ast.Call) else node.attr == "data"


def models_without_a_copy(tree: ast.Module) -> Iterator[Told]:
    """`best_model = model` in the loop that goes on to train it."""
    for _, nodes in scopes(tree) if any(map(BEST.search, words(tree))) else ():
        for loop in (n for n in nodes if isinstance(n, ast.For | ast.While)):
            inside = list(ast.walk(loop))
            fresh = {
                ast.unparse(t)
                for n in inside
                for t, value in pairs_of(n)
                if not isinstance(value, ast.Name)
            }
            for branch in (n for n in inside if isinstance(n, ast.If)):
                for node in (n for part in branch.body for n in ast.walk(part)):
                    for target, value in pairs_of(node):
                        name, kept = ast.unparse(target), ast.unparse(value)
                        whole = isinstance(value, ast.Name | ast.Attribute) and MODEL.search(kept)
                        if not (whole and BEST.search(name) and MODEL.search(name)):
                            continue
                        owners = {kept, kept.partition(".")[0]}
                        if BEST.search(kept) or owners & fresh or not _trained(inside, kept):
                            continue
                        if any(_reads(n, name, loop.end_lineno or 0) for n in nodes):
                            yield Told(
                                line_of(target),
                                "state-not-copied",
                                f"{name} is {kept} itself, which the loop goes on to train: behind "
                                "it they are one and the same, with the last weights. Keep "
                                f"copy.deepcopy({kept})",
                            )


def _trained(inside: list[ast.AST], model: str) -> bool:
    """Whether a loop goes on to train a model: it switches its mode, or hands it on to do so."""
    for call in (n for n in inside if isinstance(n, ast.Call)):
        given = {ast.unparse(a) for a in call.args}
        if ast.unparse(call.func) == f"{model}.train":
            return True
        if model in given and re.search(r"train|fit|epoch|step", called(call)):
            return True
    return False


def _reads(node: ast.AST, name: str, after: int) -> bool:
    is_name = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    return is_name and line_of(node) > after and ast.unparse(node) == name


WRITES = {"load_state_dict", "copy_", "lerp_", "mul_"}
NETWORKS = {"parameters", "named_parameters", "buffers"}
SAME = {"eval", "train", "to", "cuda", "cpu", "requires_grad_", "copy"}  # of the same parameters


def networks_without_a_copy(tree: ast.Module) -> Iterator[Told]:
    """`self.target = self.online`, and `self.target.load_state_dict(self.online.state_dict())`."""
    followed = dict(_followers(tree)) if words(tree) & {*WRITES, "data"} else {}
    for node in ast.walk(tree) if followed else ():
        for target, value in pairs_of(node):
            first = value
            while isinstance(first, ast.Call) and called(first) in SAME:
                shallow = called(first) == "copy" and len(first.args) == 1
                first = first.args[0] if shallow else getattr(first.func, "value", first.func)
            line = followed.get((_last(target), _last(first)), 0)
            names = ast.unparse(target), ast.unparse(first)
            others = [v for _, v in _others(tree, target, names[0]) if ast.unparse(v) != "None"]
            if not line or others or _is_made_again(tree, target, names[1]):
                continue
            yield Told(
                line_of(target),
                "network-not-copied",
                f"{names[0]} is {names[1]} itself: they have the same parameters, so line {line} "
                "copies them onto themselves, and what is to follow slowly moves with every step. "
                f"Make it copy.deepcopy({names[1]})",
            )


def _last(node: ast.AST) -> str:
    """`target` of `self.target` and of `agent.target`."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _followers(tree: ast.Module) -> Iterator[tuple[tuple[str, str], int]]:
    """Networks that take the weights of another: the two, and the line that copies them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) == "load_state_dict" and node.args:
            owner, given = getattr(node.func, "value", node), node.args[0]
            if called(given) == "state_dict" and isinstance(given, ast.Call):
                yield (_last(owner), _last(getattr(given.func, "value", given))), node.lineno
        if isinstance(node, ast.For) and called(node.iter) == "zip":
            parts = getattr(node.iter, "args", [])
            owners = [_last(getattr(p.func, "value", p)) for p in parts if called(p) in NETWORKS]
            writes = any(map(_writes, (n for part in node.body for n in ast.walk(part))))
            if len(owners) == 2 and writes:
                yield (owners[0], owners[1]), node.lineno
                yield (owners[1], owners[0]), node.lineno


def _writes(node: ast.AST) -> bool:
    own = isinstance(node, ast.Attribute) and node.attr == "data"
    return called(node) in WRITES or (own and isinstance(node.ctx, ast.Store))  # type: ignore[attr-defined]


def _others(tree: ast.Module, at: ast.expr, name: str) -> Iterator[tuple[int, ast.expr]]:
    """Where else a name is set in the class, or the function, around a place."""
    for node in ast.walk(_around(tree, at, ast.ClassDef if "." in name else Function)):
        for target, value in pairs_of(node):
            if ast.unparse(target) == name and target is not at:
                yield line_of(target), value


def _is_made_again(tree: ast.Module, at: ast.expr, name: str) -> bool:
    """Whether the other network is made behind the place, or in the loop around it."""
    loop = _around(tree, at, ast.For | ast.While)
    first = 0 if loop is not tree else line_of(at)
    return any(line > first for line, _ in _others(tree, at, name))


def _around(tree: ast.Module, at: ast.expr, kinds: Any) -> ast.AST:
    """The innermost node of these kinds around a place, or the whole."""
    around = (n for n in ast.walk(tree) if isinstance(n, kinds) and _holds(n, line_of(at)))
    return max(around, key=line_of, default=tree)


def _holds(node: ast.AST, line: int) -> bool:
    return line_of(node) <= line <= (getattr(node, "end_lineno", 0) or 0)


RULES = (states_without_a_copy, models_without_a_copy, networks_without_a_copy)
