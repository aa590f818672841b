"""What forward does with a mask tells what True means in it, and which axes it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Methods that leave what a mask says as it is, but for one.
SEEN_OTHERWISE = {
    *("unsqueeze", "view", "reshape", "expand", "to", "bool", "logical_not", "squeeze", "repeat"),
    *("transpose", "contiguous", "type", "clone", "detach", "repeat_interleave", "expand_as"),
}


# What closes a score that it is added to.
CLOSING = re.compile(r"\binf\b|finfo|^-[\d.]+e\+?\d|^-\d{4}|^NEG(_|$)|NEG_INF|MASK_VALUE")
PADDED = re.compile(r"(^|_)pad(ding|ded)?(_|$)")
VISIBLE = re.compile(r"(^|_)(keep|valid|visible|allow(ed)?|attend|real)(_|$)")
PADDING = "key_padding_mask"  # in PyTorch's layers: True is hidden


def hides_padding(function: Function, argument: str) -> bool:
    """Whether a function gives its mask on as one over keys."""
    keywords = (n for n in ast.walk(function) if isinstance(n, ast.keyword))
    padding = (k.value for k in keywords if (k.arg or "").endswith(PADDING))
    return any(is_argument(_turned(value), argument) for value in padding)


def mask_meaning(function: Function, argument: str) -> str:
    """`allows` or `forbids`, as forward compares, inverts, fills by or adds a mask; "" unknown."""
    said = next((said for said, _ in mask_meanings(function, argument)), "")
    if not said and any(_closes_by(node, argument) for node in ast.walk(function)):
        return "forbids"
    if not said and _becomes_its_opposite(function, argument):
        return "forbids"
    names = sorted(same_values(function, argument), key=lambda name: name != argument)
    told = (_said_of_mask(n, name) for name in names for n in ast.walk(function))
    return said or next(filter(None, told), "")


def _becomes_its_opposite(function: Function, argument: str) -> bool:
    """Whether names say that what is inverted is padding, as in `keep = ~pad`."""

    def inverts(node: ast.AST) -> bool:
        inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
        return inverted and is_argument(node.operand, argument)  # type: ignore[attr-defined]

    if PADDED.search(argument):
        return any(map(inverts, ast.walk(function)))
    assigned = (n for n in ast.walk(function) if isinstance(n, ast.Assign))
    return any(
        isinstance(n.targets[0], ast.Name)
        and VISIBLE.search(n.targets[0].id)
        and any(map(inverts, ast.walk(n.value)))
        for n in assigned
    )


def same_values(function: Function, argument: str) -> set[str]:
    """The variables that are an argument, as it came or seen otherwise."""
    found = {argument}
    for node in sorted(ast.walk(function), key=lambda n: getattr(n, "lineno", 0)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if any(is_argument(value, known) for known in found):
                    found.add(name)
    return found


def is_mask(function: Function, argument: str) -> bool:
    """Whether a function fills, chooses or closes scores by an argument, or inverts it."""
    nodes = list(ast.walk(function))
    inverted = [
        n.operand for n in nodes if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Invert)
    ]
    return (
        any(mask_meanings(function, argument))
        or any(_closes_by(n, argument) for n in nodes)
        or any(is_argument(operand, argument) for operand in inverted)
    )


def _closes_by(node: ast.AST, argument: str) -> bool:
    """Whether an expression is a mask times a number that closes, as in `pad.float() * -1e9`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    sides = ((node.left, node.right), (node.right, node.left))
    return any(is_argument(a, argument) and CLOSING.search(ast.unparse(b)) for a, b in sides)


def mask_meanings(
    function: Function, argument: str, called: Mapping[str, Function] | None = None
) -> Iterator[tuple[str, int]]:
    """What each use of a mask says of True in it, and the line: that at which the mask was last
    changed, or is used. `called` are functions that it may be given to, by the text of the call."""
    turned = {argument: False}  # the variables that are the mask, and whether inverted
    lines: dict[str, int] = {}
    values: dict[str, ast.expr] = {}
    nodes = sorted(
        ast.walk(function),
        key=lambda n: (getattr(n, "end_lineno", 0) or 0, isinstance(n, ast.Assign)),
    )
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
            inverted = _inverted(node.value, turned)
            if inverted is not None:
                turned[node.targets[0].id] = inverted
                lines[node.targets[0].id] = node.lineno
        elif isinstance(node, ast.Call):
            said = _said_by_call(node, turned, values)
            said = said or _said_inside(node, turned, (called or {}).get(ast.unparse(node.func)))
            used = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in lines]
            if said:
                yield said, lines[used[0]] if used else node.lineno


def _said_inside(call: ast.Call, turned: Mapping[str, bool], inside: Function | None) -> str:
    """What the function that a mask is given to does with it."""
    names = [a.arg for a in inside.args.args if a.arg != "self"] if inside else []
    pairs = [*zip(names, call.args, strict=False)]
    pairs += [(k.arg, k.value) for k in call.keywords if k.arg in names]
    for name, value in pairs:
        inverted = _inverted(value, turned)
        said = mask_meaning(inside, name) if inside and inverted is not None else ""
        if said in ("allows", "forbids"):
            return said if not inverted else "allows" if said == "forbids" else "forbids"
    return ""


def _said_by_call(
    call: ast.Call, turned: Mapping[str, bool], values: Mapping[str, ast.expr]
) -> str:
    """What filling by a mask, choosing by it or attending with it says of True in it."""
    name, method = last_name(call.func), isinstance(call.func, ast.Attribute)
    given = list(call.args)
    padding = [k.value for k in call.keywords if (k.arg or "").endswith(PADDING)]
    if padding:
        masks, allows, method = padding, False, True
    elif name == "scaled_dot_product_attention":
        masks = [k.value for k in call.keywords if k.arg == "attn_mask"] or given[3:4]
        allows = True
    elif name in ("masked_fill", "masked_fill_"):
        masks, allows = given[:1], False
    elif name == "where" and len(given) == 2:
        masks, allows = given[:1], True
    elif name == "where" and len(given) == 3 and any(_fills(g, values) for g in given[1:]):
        masks, allows = given[:1], not _fills(given[1], values)
    else:
        return ""
    inverted = _inverted(masks[0], turned) if masks and method else None
    if inverted is None:
        return ""
    return "forbids" if inverted is allows else "allows"


def _fills(node: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """A number, as -torch.inf or torch.finfo(x.dtype).min is: what is hidden gets it."""
    text = ast.unparse(values.get(node.id, node) if isinstance(node, ast.Name) else node)
    return bool(re.search(r"inf\b|finfo|^-?[\d.]", text))


def _inverted(node: ast.expr, turned: Mapping[str, bool]) -> bool | None:  # noqa: PLR0911
    """Whether an expression is a mask turned around; None for what is no mask."""
    match node:
        case ast.Name(id=name):
            return turned.get(name)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            inside = _inverted(operand, turned)
            return None if inside is None else not inside
        case ast.BinOp(op=ast.BitOr() | ast.BitAnd(), left=left, right=right):
            inside = _inverted(left, turned)
            return _inverted(right, turned) if inside is None else inside
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
            inside = _inverted(left, turned)
            return None if inside is None else not inside
        case ast.Subscript(value=value):
            return _inverted(value, turned)
        case ast.Call(func=function, args=[value]) if last_name(function) == "logical_not":
            inside = _inverted(value, turned)
            return None if inside is None else not inside
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in SEEN_OTHERWISE:
            inside = _inverted(value, turned)
            return inside if inside is None or name != "logical_not" else not inside
    return None


def _said_of_mask(node: ast.AST, argument: str) -> str:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[other]) if is_argument(left, argument):
            zero = ast.unparse(other) in ("0", "False")
            return "allows" if isinstance(op, ast.Eq if zero else ast.NotEq) else ""
        case ast.UnaryOp(op=ast.Invert(), operand=operand) if is_argument(operand, argument):
            return "allows"
        case ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1), right=right):
            return "allows" if is_argument(right, argument) else ""  # (1 - mask) * -1e9
        case ast.BinOp(op=ast.Mult(), right=ast.Subscript() | ast.Call() as right):
            return "allows" if is_argument(right, argument) else ""
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return (
                "forbids additive"
                if is_argument(left, argument) or is_argument(right, argument)
                else ""
            )
    return ""


def mask_shape(fresh: int) -> str:
    """Its axes, by how many are added to it on the way to scores of (B, H, S, S)."""
    return {0: "S S", 1: "B S S"}.get(fresh, "B S")


def fresh_axes(function: Function, argument: str) -> int:
    """How many axes a function adds to its mask, also by way of variables."""
    fresh = {argument: 0}
    for node in sorted(ast.walk(function), key=lambda n: getattr(n, "lineno", 0)):
        for name, known in list(fresh.items()):
            if isinstance(node, ast.Subscript) and is_argument(_turned(node.value), name):
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                texts = [ast.unparse(part) for part in parts]
                rows = texts[0] == "..." or texts == [
                    ":",
                    "None",
                    ":",
                ]  # of (B, S), for all queries
                more = 2 if rows else texts.count("None")
                fresh[name] = max(known, more)
            elif isinstance(node, ast.Call) and last_name(node.func) == "unsqueeze":
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                within = owner is not None and is_argument(_turned(owner), name)
                fresh[name] = max(known, within * ast.unparse(node).count("unsqueeze"))
            elif (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and (is_argument(_turned(node.value), name) or _closes_by(node.value, name))
            ):
                fresh.setdefault(node.targets[0].id, 0)
    return max(fresh.values())


def _turned(node: ast.expr) -> ast.expr:
    """The mask in `(mask == 0)` and `(~mask)`."""
    if isinstance(node, ast.Compare):
        return node.left
    return node.operand if isinstance(node, ast.UnaryOp) else node


def is_argument(node: ast.expr, argument: str) -> bool:
    """Whether an expression is the argument, as it came or seen otherwise."""
    while True:
        if isinstance(node, ast.Name):
            return node.id == argument
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and node.args and last_name(node.func) == "logical_not":
            node = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return False


def last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
