"""What the text of a file says of convolutions that are padded on both sides and then cut, as
causal ones are: what they read lies before a position only where the end is cut off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.formula_findings import AHEAD
from attnlab.target.source_walk import (
    Function,
    Told,
    called,
    line_of,
    names_in,
    pairs_of,
    scopes,
    words,
)

CONVOLUTION = re.compile(r"Conv(1d|2d)$")
# All that a kernel reaches: (k - 1) * d, without a half of it.
REACH = re.compile(r"(kernel\w*|\bks?\b|\w*conv\w*|\bwidth|filter\w*|\bsize)(\[0\])? - 1\)?( \*|$)")
LENGTH = re.compile(r"\.(shape\[|size\()|\blen\(")
PASSES = {"relu", "gelu", "silu", "tanh", "sigmoid", "elu", "leaky_relu", "dropout", "contiguous"}


def cut_in_front(tree: ast.Module) -> Iterator[Told]:
    """`self.conv(x)[..., self.pad:]` where the convolution pads by `pad` on both sides."""
    if not any(map(CONVOLUTION.search, words(tree))):
        return
    passed = _passed(tree)
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        made = _made(kind)
        pads = _padded(kind, made, passed)
        if not pads or AHEAD.search(ast.unparse(kind).lower()):
            continue
        full = {text for texts in pads.values() for text in texts}
        for method in (n for n in kind.body if isinstance(n, Function)):
            for node, of in _cut(method, set(pads)):
                lower = ast.unparse(node.lower) if node.lower else ""
                if lower in full or _is_length(node.lower, method):
                    amount = min(pads[of], key=len)
                    yield Told(
                        line_of(node),
                        "cut-in-front",
                        f"`{lower}:` cuts the front of what {of} gives, which is padded by "
                        f"{amount} on both sides: position t then reads the inputs up to "
                        f"t + {amount}. A causal one keeps the front and cuts the end, "
                        f"[..., :-{amount}]",
                    )
        yield from _cut_by_a_module(tree, kind, full)


def _made(kind: ast.ClassDef) -> dict[str, set[str]]:
    """All that names and attributes of a class are set to."""
    made: dict[str, set[str]] = {}
    for node in ast.walk(kind):
        for target, value in pairs_of(node):
            made.setdefault(ast.unparse(target), set()).add(ast.unparse(value))
    return made


def _passed(tree: ast.Module) -> dict[str, set[str]]:
    """All that is passed by these names to anything."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for word in node.keywords if isinstance(node, ast.Call) else ():
            found.setdefault(word.arg or "", set()).add(ast.unparse(word.value))
    return found


def _padded(
    kind: ast.ClassDef, made: dict[str, set[str]], passed: dict[str, set[str]]
) -> dict[str, set[str]]:
    """The attributes that hold a convolution padded by all its reach; each with the texts that say
    how much."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(kind):
        for target, value in pairs_of(node):
            for call in ast.walk(value):
                if not CONVOLUTION.search(called(call)) or not isinstance(call, ast.Call):
                    continue
                given = [k.value for k in call.keywords if k.arg == "padding"] or call.args[4:5]
                text = ast.unparse(given[0]) if given else ""
                said = {text, *made.get(text, ()), *passed.get(text, ())} - {""}
                said |= {v for t in said.copy() for v in made.get(t, ())}
                if not any(map(_is_reach, said)) or any("//" in t or "/ 2" in t for t in said):
                    continue
                same = {name for name, values in made.items() if values & said}
                name = ast.unparse(target)
                found.setdefault(name, set()).update(
                    {t for t in said if not t.isdigit()} | same, {f"{name}.padding[0]"}
                )
    return found


def _is_reach(text: str) -> bool:
    return bool(REACH.search(text))


def _cut(method: Function, names: set[str]) -> Iterator[tuple[ast.Slice, str]]:
    """The slices of what these convolutions give that begin somewhere and have no end."""
    from_: dict[str, str] = {}
    statements = [n for n in ast.walk(method) if isinstance(n, ast.Assign | ast.Return)]
    for statement in sorted(statements, key=line_of):
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript):
                of = _source(node.value, names, from_)
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
                cuts = [p for p in parts if isinstance(p, ast.Slice) and (p.lower or p.upper)]
                plain = all(isinstance(p, ast.Slice) or _is_dots(p) for p in parts)
                if of and len(cuts) == 1 and plain and cuts[0].lower and not cuts[0].upper:
                    yield cuts[0], of
        for target, value in pairs_of(statement):
            source = "" if isinstance(value, ast.Subscript) else _source(value, names, from_)
            from_[ast.unparse(target)] = source


def _is_dots(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _source(node: ast.expr, names: set[str], known: dict[str, str]) -> str:
    """The convolution that gave a value, before anything was cut from it."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if not isinstance(node, ast.Call):
        return ""
    if ast.unparse(node.func) in names:
        return ast.unparse(node.func)
    inner = [*node.args[:1], getattr(node.func, "value", None)]
    return next((found for n in inner if n is not None and (found := _source(n, names, known))), "")


def _is_length(lower: ast.expr | None, method: Function) -> bool:
    """`-T`, which keeps as many as went in, and those at the end."""
    if not isinstance(lower, ast.UnaryOp) or not isinstance(lower.op, ast.USub):
        return False
    if LENGTH.search(ast.unparse(lower)):
        return True
    return any(
        LENGTH.search(ast.unparse(n.value)) or ast.unparse(n.value).endswith(".shape")
        for n in ast.walk(method)
        if isinstance(n, ast.Assign)
        and names_in(lower) & {name for t in n.targets for name in names_in(t)}
    )


def _cut_by_a_module(tree: ast.Module, kind: ast.ClassDef, full: set[str]) -> Iterator[Told]:
    """`Chomp1d(padding)`, whose forward cuts the front of what it is given."""
    for other in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n is not kind):
        given = {
            ast.unparse(call.args[0])
            for call in ast.walk(kind)
            if isinstance(call, ast.Call) and called(call) == other.name and call.args
        }
        if not given & full:
            continue
        held = {
            ast.unparse(t)
            for n in ast.walk(other)
            for t, value in pairs_of(n)
            if isinstance(value, ast.Name)
        }
        for _, nodes in scopes(ast.Module([other], [])):
            for node in nodes:
                parts = getattr(getattr(node, "slice", None), "elts", [])
                cut = parts[-1] if isinstance(node, ast.Subscript) and parts else None
                if isinstance(cut, ast.Slice) and cut.lower and not cut.upper:
                    lower = ast.unparse(cut.lower)
                    if lower in held:
                        yield Told(
                            line_of(node),
                            "cut-in-front",
                            f"`{lower}:` cuts the front of a convolution that is padded by "
                            f"{min(given & full)} on both sides: position t then reads inputs "
                            f"behind t. A causal one keeps the front, [..., :-{lower}]",
                        )


ONE_SIDE = re.compile(r"\bpad\(|mask|tri[lu]|roll\(|ZeroPad|ConstantPad|flip\(|\[[^\]]*:|narrow\(")


def padded_by_half(tree: ast.Module) -> Iterator[Told]:
    """A class that calls itself causal, whose convolution is centred and nothing is cut."""
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        name, text = kind.name.lower(), ast.unparse(kind)
        choice = re.search(r"\bcausal\b", text.partition("def forward")[0])
        if "causal" not in name or re.search(r"(non|un|a)_?causal", name) or choice:
            continue
        if ONE_SIDE.search(text) or AHEAD.search(text.lower()):
            continue
        bases = " ".join(map(ast.unparse, kind.bases))
        for call in ast.walk(kind):
            own = "Conv1d" in bases and ast.unparse(getattr(call, "func", call)).endswith(
                "super().__init__"
            )
            if not isinstance(call, ast.Call) or not (called(call) == "Conv1d" or own):
                continue
            given = [k.value for k in call.keywords if k.arg == "padding"] or call.args[4:5]
            size = [k.value for k in call.keywords if k.arg == "kernel_size"] or call.args[2:3]
            pad = ast.unparse(given[0]) if given else ""
            pad = next(iter(_made(kind).get(pad, ())), pad)
            if (pad == "'same'" or pad.endswith("// 2")) and size and ast.unparse(size[0]) != "1":
                yield Told(
                    line_of(call),
                    "padded-ahead",
                    f"padding={pad} puts the kernel's middle at each position, and {kind.name} is "
                    "to be causal: half of what it reads comes later. Pad by (k - 1) * dilation "
                    "in front alone",
                )


RULES = (cut_in_front, padded_by_half)
