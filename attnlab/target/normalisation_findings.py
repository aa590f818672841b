"""What the text of a file says of numbers that are brought to mean 0 and back, of variances, and of
weights that are to sum to 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations

from attnlab.target.source_walk import (
    Function,
    Told,
    arguments,
    called,
    line_of,
    names_in,
    pairs_of,
    scopes,
    set_once,
    words,
)

MEAN = re.compile(r"(^|_)means?(_|$)", re.IGNORECASE)
SPREAD = re.compile(r"(^|_)(stds?|stdev|std_dev)(_|$)", re.IGNORECASE)
SHIFT = re.compile(r"bias|beta|shift|^b$", re.IGNORECASE)


def turned_scales(tree: ast.Module) -> Iterator[Told]:
    """`x * mean + std`, `(x - std) / mean`, `x - mean / std`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp):
            continue
        left, right = node.left, node.right
        if isinstance(left, ast.BinOp) and isinstance(node.op, ast.Add) and _is(right, SPREAD):
            if isinstance(left.op, ast.Mult) and _is(left.right, MEAN):
                yield _told(node, "numbers are brought back with x * std + mean")
        elif isinstance(left, ast.BinOp) and isinstance(node.op, ast.Div) and _is(right, MEAN):
            if isinstance(left.op, ast.Sub) and _is(left.right, SPREAD):
                yield _told(node, "numbers are brought to mean 0 with (x - mean) / std")
        elif isinstance(node.op, ast.Sub) and isinstance(right, ast.BinOp):
            quotient = isinstance(right.op, ast.Div) and _is(right.left, MEAN)
            plain = isinstance(left, ast.Name | ast.Attribute | ast.Subscript)
            named = SHIFT.search(ast.unparse(left))
            if quotient and _is(right.right, SPREAD) and plain and not named:
                yield _told(node, "the division comes first here: write (x - mean) / std")


def _is(node: ast.expr, kind: re.Pattern[str]) -> bool:
    """Whether the last name of a value says that it is a mean, or a spread."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return bool(kind.search(str(getattr(node, "attr", getattr(node, "id", "")))))


def _told(node: ast.BinOp, right: str) -> Told:
    return Told(node.lineno, "scale-turned", f"`{ast.unparse(node)[:60]}`: {right}")


VARIANCE = re.compile(r"var|std|sigma|dev(iation)?s?$|second|spread", re.IGNORECASE)
SQUARED = re.compile(r"\*\* 2\b|\.pow\(2\)|square\(|pow\(\w+, 2\)|\b([\w.]+) \* \1\b")


def means_not_squared(tree: ast.Module) -> Iterator[Told]:
    """`(x**2).mean() - mean` is no variance: that is E[x^2] - E[x]^2."""
    for _, nodes in scopes(tree):
        known = set_once(nodes)
        named = (v for n in nodes for t, v in pairs_of(n) if VARIANCE.search(ast.unparse(t)))
        for part in (p for value in named for p in ast.walk(value)):
            if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Sub):
                continue
            whole, mean = (known.get(ast.unparse(s), s) for s in (part.left, part.right))
            averages = all(re.search(r"\b(mean|sum)\(", ast.unparse(s)) for s in (whole, mean))
            squares = [bool(SQUARED.search(ast.unparse(s))) for s in (whole, mean)]
            if averages and squares == [True, False] and names_in(whole) == names_in(mean):
                yield Told(
                    part.lineno,
                    "mean-not-squared",
                    f"`{ast.unparse(part)[:70]}` subtracts the mean itself from the mean of "
                    f"squares: a variance is E[x^2] - E[x]^2, with ({ast.unparse(part.right)})**2",
                )


SIGNS = {ast.Mult: "*", ast.Div: "/", ast.Add: "+", ast.Sub: "-"}
UNDOES = {"*": "/", "/": "*", "+": "-", "-": "+"}
BACK = re.compile(r"^(_*)(?:de_?|un_?|inv(?:erse|ert)?_?)(?=\w)|(?<=\w)_?inverse$", re.IGNORECASE)
Step = tuple[str, str]  # by which numbers are scaled or moved: a sign, and the other operand


def turned_inverses(tree: ast.Module) -> Iterator[Told]:
    """A `denormalise` that undoes the first step of `normalise` first."""
    for owner in (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef)):
        own = {n.name: n for n in owner.body if isinstance(n, Function)}
        for name, back in own.items():
            there = own.get("encode" if name == "decode" else BACK.sub(r"\1", name))
            if there is None or there is back:
                continue
            done, lines = _steps(there), _steps(back)
            undone = [(UNDOES[sign], of) for sign, of in lines]
            if sorted(done) != sorted(undone):
                continue
            for first, then in combinations(done, 2):
                mixed = (first[0] in "*/") != (then[0] in "*/")
                if mixed and undone.index(first) < undone.index(then):
                    start, end = (f"{UNDOES[sign]} {of}" for sign, of in (first, then))
                    yield Told(
                        lines[UNDOES[first[0]], first[1]],
                        "undone-in-order",
                        f"{name} undoes the steps of {there.name} in their own order: there "
                        f"{' '.join(first)} comes before {' '.join(then)} (line {done[then]}), so "
                        f"{end} has to come before {start} here",
                    )
                    break


def _steps(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[Step, int]:
    """The lines of the steps by which a function changes its first argument, in their order."""
    held = {a.arg for a in [a for a in function.args.args if a.arg != "self"][:1]}
    found: dict[Step, int] = {}
    for node in sorted(ast.walk(function), key=line_of):
        changes = [(ast.unparse(t), v) for t, v in pairs_of(node)]
        if isinstance(node, ast.AugAssign):
            changes = [("", ast.BinOp(node.target, node.op, node.value))]
        elif isinstance(node, ast.Return) and node.value is not None:
            changes = [("", (getattr(node.value, "elts", None) or [node.value])[0])]
        for target, value in changes:
            chain = _chain(value, held)
            found |= dict.fromkeys(chain, line_of(node))
            held |= {target} if chain else set()
    return found


def _chain(node: ast.expr, held: set[str]) -> list[Step]:
    """`(x - m) / s * w` as steps, the innermost first; none of what is not held."""
    steps: list[Step] = []
    while isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        left, right, sign = node.left, node.right, SIGNS[type(node.op)]
        if sign in "*+" and names_in(right) & held:
            left, right = right, left
        found = {*re.findall(r"[A-Za-z_]\w*(?![\w.(])", ast.unparse(right))}
        names = [w for w in found if "eps" not in w.lower()]
        steps.insert(0, (sign, names[0] if len(names) == 1 else ""))
        node = left
    return steps if ast.unparse(node) in held and all(of for _, of in steps) else []


CHANCES = re.compile(r"^(p|prob|attn|attention|alpha)(_|$)|(_|^)(dist|probs?|attn)$", re.IGNORECASE)
REST = re.compile(r"\b1(\.0?)? - |_like\(\w+\) - |-\w+ \+ 1\b")  # of a gate
PUTS = {"scatter_add", "scatter_add_", "index_add", "index_add_"}


def gates_twice(tree: ast.Module) -> Iterator[Told]:
    """`p_gen * p_vocab` and `p_gen * attn` in one sum: the second belongs to `1 - p_gen`."""
    for scope, nodes in scopes(tree) if "sigmoid" in words(tree) else ():
        known = set_once(nodes)
        softmaxes = [name for name, value in known.items() if called(value) == "softmax"]
        gates = [name for name, value in known.items() if called(value) == "sigmoid"]
        for gate in gates if not REST.search(ast.unparse(scope)) else ():
            held = {ast.unparse(t): v for n in nodes for t, v in pairs_of(n) if _gated(v, gate)}
            for node in nodes:
                added = arguments(node) if called(node) in PUTS else []
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                    added = [node.left, node.right]
                parts = [held.get(ast.unparse(p), p) for p in added]
                both = {other: p for p in parts if (other := _gated(p, gate))}
                spread = all(CHANCES.search(o) or o in softmaxes for o in both)
                if len(both) == 2 and (spread or {*both.values()} <= {*added}):
                    first, then = sorted(both.values(), key=line_of)
                    yield Told(
                        line_of(then),
                        "gate-twice",
                        f"`{ast.unparse(first)}` (line {line_of(first)}) and `{ast.unparse(then)}` "
                        f"are added with the same weight {gate}, and the weights of a mixture sum "
                        f"to 1: one of the two takes 1 - {gate}",
                    )


def _gated(node: ast.expr, gate: str) -> str:
    """What a product multiplies with the gate; "" for anything else."""
    views = r"(?:\[[^\]]*\]|\.unsqueeze\(-?\d\))?"
    found = re.fullmatch(rf"{gate}{views} \* (.+)|(.+) \* {gate}{views}", ast.unparse(node))
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return (found[1] or found[2]) if found and product else ""


RULES = (gates_twice, means_not_squared, turned_inverses, turned_scales)
