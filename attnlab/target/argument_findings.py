"""Arguments that one path through a function uses and another forgets, or reads the other way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from attnlab.target.mask_usage import hides_padding, mask_meanings
from attnlab.target.source_walk import Function, Told, called, scopes

# Arguments that change what attention computes.
ASKED = re.compile(r"window|causal|mask|scale|softcap|bias|alibi|dropout")


def forgotten_arguments(tree: ast.Module) -> Iterator[Told]:
    """An argument that only one way through a function uses: the fallback forgets it."""
    for scope, _ in scopes(tree):
        if not isinstance(scope, Function):
            continue
        names = {a.arg for a in (*scope.args.args, *scope.args.kwonlyargs) if ASKED.search(a.arg)}
        for at, branch in enumerate(scope.body):
            if not isinstance(branch, ast.If) or not isinstance(branch.body[-1], ast.Return):
                continue
            rest = [*scope.body[:at], branch.test, *branch.orelse, *scope.body[at + 1 :]]
            used, also = (_named(branch.body), _named(rest))
            for name in sorted((names & used) - also) if scope.body[at + 1 :] else ():
                yield Told(
                    scope.body[at + 1].lineno,
                    "unused-argument",
                    f"{scope.name} uses {name} only where {ast.unparse(branch.test)}; from here on "
                    "it is forgotten, and the result is the same whatever was asked for",
                )


# What one of several masks of the same kind is named after.
WHOSE = re.compile(r"^(self|cross|src|tgt|source|target|memory|context|enc|dec|encoder|decoder)_")


MASKS = re.compile(r"(^|_)(mask|lengths|padding)$")
POOLED = re.compile(r"\.(a?max|mean|sum|softmax|logsumexp|topk|argmax)\(|softmax\(")
KEPT = re.compile(r"keep|kept|valid|visible|allowed|is_(real|valid)|real|non_?pad\w*|not_pad\w*")
HIDES = re.compile(r"-|\.min\b|neg|NEG|inf")  # numbers that hide
ADDS_AXES = {"unsqueeze", "bool", "expand", "view", "to"}


def opposite_masks(tree: ast.Module) -> Iterator[Told]:
    """A mask that hides where it is True in one use, and where it is False in another."""
    owners: list[ast.Module | ast.ClassDef] = [tree]
    owners += [*(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]
    for owner in owners:
        own = {n.name: n for n in owner.body if isinstance(n, Function)}
        known = {n.name: n for n in tree.body if isinstance(n, Function)}
        known |= {f"self.{name}": f for name, f in own.items()}
        for layer, kind in _layers(own.get("__init__"), tree):
            inside = (n for n in kind.body if isinstance(n, Function) and n.name == "forward")
            known |= {f"self.{layer}": f for f in inside}
        for function in own.values():
            kinds: dict[str, list[tuple[str, int, str]]] = {}
            for name in (a.arg for a in (*function.args.args, *function.args.kwonlyargs)):
                if "mask" in name or hides_padding(function, name):
                    found = kinds.setdefault(WHOSE.sub("", name), [])
                    found += [(*said, name) for said in mask_meanings(function, name, known)]
            for found in kinds.values():
                yield from _opposite(function, found)


def unread_masks(tree: ast.Module) -> Iterator[Told]:
    """A function that must be given a mask, or lengths, and never reads it."""
    for function in (n for n in ast.walk(tree) if isinstance(n, Function)):
        required = function.args.args[: len(function.args.args) - len(function.args.defaults)]
        body = [n for n in function.body if not isinstance(n, ast.Expr | ast.Pass | ast.Raise)]
        asked = [a.arg for a in required if MASKS.search(a.arg)]
        whole = asked and POOLED.search(ast.unparse(function))
        if len(body) < 2 or not whole or function.name == "forward":  # which a trace looks at
            continue
        read = _named(body)
        for name in (a for a in asked if a not in read and not re.match("_|unused", a)):
            yield Told(
                function.lineno,
                "unused-argument",
                f"{function.name} must be given {name}, and never reads it: what it was to hide, "
                "or to count, goes in all the same",
            )


def kept_fills(tree: ast.Module) -> Iterator[Told]:
    """`scores.masked_fill(keep, -inf)`: what is to be kept is hidden."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and called(node) in ("masked_fill", "masked_fill_")):
            continue
        if len(node.args) < 2:
            continue
        mask: ast.AST = node.args[0]
        while inner := _without_axes(mask):
            mask = inner
        name = getattr(mask, "id", getattr(mask, "attr", ""))
        if KEPT.fullmatch(name) and HIDES.search(ast.unparse(node.args[1])):
            yield Told(
                node.lineno,
                "mask-turned",
                f"{ast.unparse(node)[:70]} hides where {name} is True, and by its name that is "
                f"what may be seen: padding alone stays visible. Fill where ~{name}",
            )


def _without_axes(mask: ast.AST) -> ast.AST | None:
    """What axes are added to, in `mask[:, None]` or `mask.unsqueeze(1)`; None for others."""
    if isinstance(mask, ast.Subscript):
        return mask.value
    adds = isinstance(mask, ast.Call) and called(mask) in ADDS_AXES
    return getattr(getattr(mask, "func", None), "value", None) if adds else None


def open_memories(tree: ast.Module) -> Iterator[Told]:
    """`nn.Transformer` that hides padding of the source in the encoder, and not in the decoder."""
    made = {
        ast.unparse(n.targets[0])
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and ast.unparse(n.value).startswith("nn.Transformer(")
    }
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) in made)
    for call in calls:
        names = {k.arg for k in call.keywords}
        if "src_key_padding_mask" in names and not {"memory_key_padding_mask", None} & names:
            yield Told(
                call.lineno,
                "memory-open",
                f"{ast.unparse(call.func)} hides padding of the source in its encoder, and its "
                "decoder attends to it: give memory_key_padding_mask the same mask",
            )


def _layers(constructor: Function | None, tree: ast.Module) -> Iterator[tuple[str, ast.ClassDef]]:
    """The attributes that hold one layer of a class of the file, and the class."""
    kinds = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    for node in ast.walk(constructor) if constructor else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Attribute):
            yield from ((target.attr, kind) for kind in kinds if kind.name == called(node.value))


def _opposite(function: Function, found: list[tuple[str, int, str]]) -> Iterator[Told]:
    sure = [use for use in found if use[0] in ("allows", "forbids")]
    if len({said for said, _, _ in sure}) < 2:
        return
    word = sure[0][2]  # `frames`, `valid` name what is seen
    usual = "forbids" if "pad" in word else sure[0][0] if "mask" in word else "allows"
    _, line, name = next(use for use in sure if use[0] != usual)
    _, right, other = next(use for use in sure if use[0] == usual)
    hides = "True" if usual == "allows" else "False"
    yield Told(
        line,
        "mask-turned",
        f"{function.name} reads {name} here as hiding where it is {hides}, and "
        f"{'it' if other == name else other} at line {right} the other way round: one of the two "
        "hides what should be seen. Invert one with ~",
    )


def _named(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
