"""Arguments that one path through a function uses and another forgets, or reads the other way;
memories that are given to attention and do not become its keys."""

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


ROLE = re.compile(
    r"(^|_|w|to)(?P<role>q|k|v|kv|query|key|value|queries|keys|values)(_?(proj|linear|layer))?$"
)
CROSS = re.compile(r"cross|encdec|enc_dec|src_att|memory_att", re.IGNORECASE)
SOURCE = re.compile(
    r"^(context|ctx|mem(ory)?|enc\w*|source|src|inputs?|cond|kv|media|image\w*|other|y)$|"
    r"_(states|context|memory|input)$"
)
NO_SOURCE = re.compile(r"mask|pad|pos|len|cache|past|rot|freq|bias|time|step|idx|index|name")


def keys_of_queries(tree: ast.Module) -> Iterator[Told]:
    """`k = to_k(x)` beside `q = to_q(x)` where the memory that was given goes unread."""
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        for function in (n for n in kind.body if isinstance(n, Function)):
            given = [a.arg for a in function.args.args if a.arg != "self"]
            text = "\n".join(map(ast.unparse, function.body[bool(ast.get_docstring(function)) :]))
            unread = [n for n in given if not NO_SOURCE.search(n) and _is_unread(n, text)]
            for of, line, shown in _of_one(function) if unread else ():
                crossed = CROSS.search(f"{kind.name} {function.name} {shown}")
                prepared = [n for n in unread if re.search(rf"\b{n} = .*\({n}[,)]", text)]
                named = [n for n in unread if crossed and SOURCE.search(n)]
                if meant := "".join((prepared + named)[:1] if of in given else ()):
                    yield Told(
                        line,
                        "keys-of-queries",
                        f"{shown} takes {of}, as the queries do, and {meant}, which was given, "
                        f"reaches nothing: {of} attends to itself. Give keys and values {meant}",
                    )
                    break


def _is_unread(name: str, text: str) -> bool:
    """Whether a variable is only prepared, as by a norm, or asked for its shape."""
    aside = rf"(?m)^\s*{name} = .*$|\b{name}\.(shape|size|device|dtype)\b"
    return not re.search(rf"\b{name}\b", re.sub(aside, "", text))


def _of_one(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, int, str]]:
    """What queries, keys and values are all made of, with the line and the text of the keys."""
    made: dict[str, list[tuple[int, str, str]]] = {"q": [], "k": [], "v": []}
    for node in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
        given, text = [ast.unparse(a) for a in node.args], ast.unparse(node.func)
        role = ROLE.search(text.rpartition(".")[2].lower())
        if len(given) == 1 and role:
            for letter in "kv" if role["role"] == "kv" else role["role"][0]:
                made[letter].append((node.lineno, given[0], ast.unparse(node)))
        elif len(given) >= 3 and len(set(given[:3])) == 1 and text.startswith("self."):
            yield given[0], node.lineno, f"{text}({', '.join(given[:3])})"
    sources = {source for found in made.values() for _, source, _ in found}
    if all(made.values()) and len(sources) == 1:
        line, _, first = min(made["k"])
        last, _, then = max(made["v"])
        yield sources.pop(), line, first if then == first else f"{first}, as {then} (line {last}),"
