"""What the text of a file says of a tensor that lost an axis and meets the tensor that it was taken
of: axes are lined up from the right, so the samples of one meet the positions of the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from attnlab.target.source_walk import Told, argument, arguments, called, line_of, scopes, set_once

SAME = {"float", "double", "half", "long", "int", "to", "abs", "neg", "detach", "clone", "type_as"}
SAME |= {"clamp", "clip", "exp", "log", "contiguous", "bool"}
PAIRED = {"sub", "add", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "minimum", "maximum"}
PAIRED |= {"sub_", "add_", "mul_", "div_", "true_divide", "floor_divide", "remainder"}
REDUCED = {"sum", "mean", "amax", "amin", "max", "min", "norm", "std", "var", "prod", "median"}
REDUCED |= {"logsumexp"}
# Square tables, where columns may be meant, and rows of one sample.
SQUARE = re.compile(r"^[A-Z]$|adj|dist|cost|gram|kernel|cov|corr|sim|affin|matrix|plan|graph|lap")
ONE_ROW = re.compile(r"\[None|\[np\.newaxis|unsqueeze\(0\)|\(1, |-> 1 |\(\[\[")


def rows_against_places(tree: ast.Module) -> Iterator[Told]:
    """`pos[:, -1] - pos`: (B,) lines up with the places of (B, T)."""
    for _, nodes in scopes(tree):
        once, known = set_once(nodes), dict[str, list[ast.expr]]()
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    known.setdefault(ast.unparse(target), []).append(node.value)
        for node in nodes:
            for one, other in _pairs(node):
                part, value = _lost(one, once), _same(other)
                name = ast.unparse(value)
                if part is None or name != ast.unparse(part[0]) or _may_line_up(name, known):
                    continue
                at = line_of(once[one.id]) if isinstance(one, ast.Name) else 0
                if at and any(at <= line_of(v) <= line_of(node) for v in known.get(name, ())):
                    continue  # it is another by now
                shown = f"{ast.unparse(one)} = {part[1]}" if at else part[1]
                yield Told(
                    line_of(node),
                    "axis-lost",
                    f"{shown[:70]} has one axis less than {name}, and both are combined in "
                    f"`{ast.unparse(node)[:60]}`: axes are lined up from the right, so each sample "
                    f"of one meets a place of the other. Right for one sample alone; keep the "
                    f"axis: {part[2]}",
                )
                break


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Two values that are combined place by place, either first."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.MatMult):
        sides = [node.target, node.value]
    elif called(node) in PAIRED:
        sides = arguments(node)[:2]
    if len(sides) == 2:
        yield sides[0], sides[1]
        yield sides[1], sides[0]


def _same(node: ast.expr) -> ast.expr:
    """What a value holds the places of, each by itself."""
    while called(node) in SAME and arguments(node):
        node = arguments(node)[0]
    return _same(node.operand) if isinstance(node, ast.UnaryOp) else node


def _lost(node: ast.expr, once: Mapping[str, ast.expr]) -> tuple[ast.expr, str, str] | None:
    """The tensor that a value lost an inner axis of, the text of the value, and what keeps it."""
    node = _same(node)
    node = _same(once.get(node.id, node)) if isinstance(node, ast.Name) else node
    text = ast.unparse(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        places = [ast.unparse(e) for e in node.slice.elts]
        if re.fullmatch(r"(:, )+-?\d+(, :)*", ", ".join(places)):
            at = next(p for p in places if p != ":")
            end = "" if at == "-1" else str(int(at) + 1)
            kept = [f"{at}:{end}" if p == at else p for p in places]
            return node.value, text, f"{ast.unparse(node.value)}[{', '.join(kept)}]"
    inner = node
    if re.search(r"\)(\.values|\.indices|\[[01]\])$", text):
        inner = getattr(node, "value", node)
    best = called(inner) in ("max", "min", "median")  # which give values and places
    axis = argument(inner, 1, "dim", "axis")
    if called(inner) not in REDUCED or best == (inner is node) or "keepdim" in text or axis is None:
        return None
    if called(inner) == "norm" and not any(k.arg in ("dim", "axis") for k in _keywords(inner)):
        return None
    if not re.fullmatch(r"[1-9]|[\[(][1-9](, [1-9])*,?[\])]", ast.unparse(axis)):
        return None
    return arguments(inner)[0], text, "keepdim=True"


def _keywords(node: ast.AST) -> list[ast.keyword]:
    return node.keywords if isinstance(node, ast.Call) else []


def _may_line_up(name: str, known: Mapping[str, list[ast.expr]]) -> bool:
    """Whether a tensor may be square, or have one row."""
    made = (ast.unparse(v) for v in known.get(name, ()))
    return bool(SQUARE.search(name.rpartition(".")[2])) or any(map(ONE_ROW.search, made))


RULES = (rows_against_places,)
