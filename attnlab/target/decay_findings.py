"""What the text of a file says of a recurrence that is to forget: that its state shrinks from step
to step, as the sign of its matrix decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from attnlab.target.source_walk import Told, arguments, called, line_of, pairs_of, words

MATRIX = re.compile(r"(^|_)a(_|$)|(^|_)a?log_?a(_|$)|^a_?log|lambda", re.IGNORECASE)
STEP = re.compile(r"(\b|_)(dts?|deltas?|time_?step|step_?size)(_|\b)|softplus\(", re.IGNORECASE)
POSITIVE = {"exp", "softplus"}
SAME = {"float", "to", "unsqueeze", "view", "reshape", "unsqueeze_", "type_as", "expand", "double"}
NEGATED = re.compile(r"-1(\.0)? \*|\*=? -1\b|\bneg(ative)?_?\(")
SCANS = re.compile(r"selective_scan\w*|mamba_chunk_scan\w*")  # A before them is < 0


def growing_states(tree: ast.Module) -> Iterator[Told]:
    """`A = exp(A_log)`, and then `exp(dt * A)`, which is larger than 1."""
    if not POSITIVE & words(tree):
        return
    text = ast.unparse(tree)
    if NEGATED.search(text):
        return
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for target, value in pairs_of(node):
            values.setdefault(ast.unparse(target), []).append(value)
    for node in ast.walk(tree):
        for matrix, decay in (*_exponents(node, values), *_scanned(node, text)):
            source = _positive(matrix, values)
            negated = rf"-\s*{re.escape(ast.unparse(matrix))}\b"
            if source is not None and not re.search(negated, text):
                yield _told(source, decay, node)


def _scanned(node: ast.AST, text: str) -> Iterator[tuple[ast.expr, str]]:
    """The matrix that is given to a scan of a library."""
    name = called(node)
    if SCANS.fullmatch(name) and f"def {name}(" not in text:
        yield from ((matrix, f"the decay of {name}") for matrix in arguments(node)[2:3])


def _told(source: ast.expr, decay: str, node: ast.AST) -> Told:
    text = ast.unparse(source)
    return Told(
        line_of(source),
        "state-grows",
        f"`{text[:60]}` is positive, and so {decay[:60]} (line {line_of(node)}) is larger than 1: "
        f"the state grows with every step where it is to fade. The matrix is -{text[:60]}",
    )


def _exponents(
    node: ast.AST, values: Mapping[str, list[ast.expr]]
) -> Iterator[tuple[ast.expr, str]]:
    """The matrix of `exp(step * matrix)`, and its text, also by einsum or by the name of it."""
    inner = arguments(node)[0] if called(node) == "exp" and arguments(node) else None
    if inner is None:
        return
    known = values.get(ast.unparse(inner), [])
    inner = known[0] if len(known) == 1 else inner
    factors: list[ast.expr] = []
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
        factors = [inner.left, inner.right]
    elif called(inner) in ("einsum", "mul", "outer"):
        factors = [a for a in arguments(inner) if not isinstance(a, ast.Constant)]
    if len(factors) != 2:
        return
    for matrix, step in (factors, factors[::-1]):
        if any(
            isinstance(n, ast.UnaryOp) and not isinstance(n.operand, ast.Constant)
            for n in ast.walk(step)
        ):
            continue
        if STEP.search(ast.unparse(step)) and MATRIX.search(_word(matrix)):
            yield _bare(matrix), f"exp({ast.unparse(step)} * {ast.unparse(_bare(matrix))})"
            return


def _bare(node: ast.expr) -> ast.expr:
    """`A` of `A[None]` and `A.float()`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            called(node) in SAME
            and isinstance(node, ast.Call)
            and (isinstance(node.func, ast.Attribute))
        ):
            node = node.func.value
        else:
            return node


def _word(node: ast.expr) -> str:
    """The name of a value, or of what it is the exp of."""
    node = _bare(node)
    while called(node) in POSITIVE and arguments(node):
        node = _bare(arguments(node)[0])
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _positive(node: ast.expr, values: Mapping[str, list[ast.expr]]) -> ast.expr | None:
    """What makes a value positive: an exp or softplus without a minus, also as a real part."""
    node = _bare(node)
    if isinstance(node, ast.Name | ast.Attribute):
        known = values.get(ast.unparse(node), [])
        found = [_positive(v, {}) for v in known]
        return found[0] if found and all(f is not None for f in found) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and "1j" in ast.unparse(node):
        return _positive(node.left, values)
    if called(node) == "complex" and arguments(node):
        return _positive(arguments(node)[0], values)
    is_matrix = called(node) in POSITIVE and MATRIX.search(_word(node))
    return node if is_matrix and "-" not in ast.unparse(node) else None


RULES = (growing_states,)
