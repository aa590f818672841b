"""What the text of a file says of boolean masks: whether True stands for padding where it is made,
and what it means where it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.mask_usage import SEEN_OTHERWISE
from attnlab.target.source_walk import Function, Told, argument, called, scopes

PAD = re.compile(r"(^|[\W_])pad|PAD", re.ASCII)
LENGTHS = re.compile(r"[\w.]*(lengths|lens)\b(?!.*arange).*")
NO_NUMBER = re.compile(r"-|\.min\b|neg|NEG|inf")  # numbers that hide
TURNED = {"hides": "keeps", "keeps": "hides", "": ""}
MEANS = {"hides": "True where there is padding", "keeps": "True where there is no padding"}


def inverted_masks(tree: ast.Module) -> Iterator[Told]:
    """A mask that is True at padding, given where True is what may be seen, or the reverse."""
    said = _said_of_arguments(tree)
    own = {a.arg for n in ast.walk(tree) if isinstance(n, Function) for a in _arguments_of(n)}
    for scope, nodes in scopes(tree):
        given = _arguments_of(scope) if isinstance(scope, Function) else []
        doc = _documented(scope) if isinstance(scope, Function) else ""
        known = {a.arg: _by_text(a.arg, doc) or said.get(a.arg, "") for a in given}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, says = node.targets[0].id, _says(node.value, known)
                none = isinstance(node.value, ast.Constant) and node.value.value is None
                known[name] = known.get(name, "") if none else says
            for mask, wanted, where in _uses(node, own):
                if (says := _says(mask, known)) and says != wanted:
                    yield Told(
                        mask.lineno,
                        "mask-inverted",
                        f"{ast.unparse(mask)[:60]} is {MEANS[says]}, and {where} takes it as "
                        f"{MEANS[wanted]}: only padding is left to see. Give ~ of it",
                    )


def _uses(node: ast.AST, own: set[str]) -> Iterator[tuple[ast.expr, str, str]]:
    """The masks that a call is given, what True must mean in each, and how that is named."""
    name = called(node)
    if name == "scaled_dot_product_attention":
        mask = argument(node, 3, "attn_mask")
        yield from [(mask, "keeps", f"attn_mask of {name}")] if mask is not None else []
    for key in getattr(node, "keywords", ()):
        asked = re.fullmatch(r"(src|tgt|memory)_key_padding_mask", key.arg or "")
        if asked and key.arg not in own:
            yield key.value, "hides", key.arg
    if name in ("masked_fill", "masked_fill_"):
        mask, fill = argument(node, 1, "mask"), argument(node, 2, "value")
        number = ast.unparse(fill) if fill is not None else ""
        if mask is not None and NO_NUMBER.search(number) and number not in ("-100", "-1"):
            yield mask, "hides", f"{name} with {number}"  # those two mark labels


def _says(node: ast.expr, known: dict[str, str]) -> str:  # noqa: PLR0911
    """What True means in an expression; "" where that is not sure."""
    match node:
        case ast.Name(id=name):
            return known.get(name, "")
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return TURNED[_says(operand, known)]
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if PAD.search(ast.unparse(right)) and "len" not in ast.unparse(node):
                return {ast.Eq: "hides", ast.NotEq: "keeps"}.get(type(op), "")
            counted = "arange" in ast.unparse(left) and LENGTHS.fullmatch(ast.unparse(right))
            return {ast.Lt: "keeps", ast.GtE: "hides"}.get(type(op), "") if counted else ""
        case ast.Call(func=ast.Attribute(attr="eq" | "ne" as name), args=[other]):
            sure = PAD.search(ast.unparse(other))
            return ("hides" if name == "eq" else "keeps") if sure else ""
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in SEEN_OTHERWISE:
            if name == "to" and "bool" not in ast.unparse(node.args[0] if node.args else node):
                return ""
            inside = _says(value, known)
            return TURNED[inside] if name == "logical_not" else inside
        case ast.Subscript(value=value):
            return _says(value, known)
    return ""


def _arguments_of(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _documented(function: Function) -> str:
    return ast.get_docstring(function) or ""


def _by_text(name: str, doc: str) -> str:
    """What a docstring says of True in an argument."""
    line = re.search(rf"\b{name}\b[^\n]*\bTrue\b([^\n]*)", doc)
    if line is None or re.search(r"False|not |\bno\b|non|real|valid|keep", line[0]):
        return ""
    return "hides" if re.match(r"\W*(\w+ ){0,3}(is |are |for |on |at )*\w* ?pad", line[1]) else ""


def _said_of_arguments(tree: ast.Module) -> dict[str, str]:
    """What True means in arguments that are given a mask of the same name, made in this file."""
    made: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            made.setdefault(node.targets[0].id, set()).add(_says(node.value, {}))
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for key in getattr(node, "keywords", ()) if isinstance(node, ast.Call) else ():
            sure = isinstance(key.value, ast.Name) and len(made.get(key.value.id, ())) == 1
            names = made[key.value.id] if sure and isinstance(key.value, ast.Name) else set()
            found.setdefault(key.arg or "", set()).update(names or {_says(key.value, {})})
        for given in node.args if isinstance(node, ast.Call) else ():
            for name in (n.id for n in ast.walk(given) if isinstance(n, ast.Name)):
                plain = isinstance(given, ast.Name) and len(made.get(name, ())) == 1
                found.setdefault(name, set()).update(made[name] if plain else {""})
    return {name: next(iter(s)) for name, s in found.items() if len(s) == 1}


RULES = (inverted_masks,)
