"""What counts: masks, and where and how they are applied."""

import ast
import re

from attnlab.mutation_testing.operators.base import (
    Edit,
    Edits,
    Source,
    argument,
    body,
    condition,
    is_method,
    last_name,
)

FILLS = ("0.0", "-1e-9", "1e9", '-float("inf") * -1', "-5.0", "-30.0", "-1e3", 'float("nan")')


def mask_after_softmax(source: Source) -> Edits:
    """The mask is applied after softmax, so masked scores still count in its denominator."""
    for call in source.calls("masked_fill"):
        place = _statement(source, call)
        later = _softmax_after(source, place) if place is not None else None
        value = argument(call, "value", 1)
        if place is None or later is None or value is None:
            continue
        start, (at, end) = source.span(place)[0], source.span(value)
        masking = source.text[start:at] + "0.0" + source.text[end : source.span(place)[1]]
        scores, weights = last_name(_target(call, source)), last_name(later.targets[0])
        renamed = re.sub(rf"\b{scores}\b", weights, masking) if scores else masking
        text = f"{source.text_of(later)}\n{' ' * later.col_offset}{renamed}"
        yield Edit(splices=((*source.span(place), "pass"), (*source.span(later), text)))


def _target(call: ast.Call, source: Source) -> ast.AST:
    parent = source.parents.get(call)
    return parent.targets[0] if isinstance(parent, ast.Assign) else call


def _statement(source: Source, call: ast.Call) -> ast.stmt | None:
    """The assignment that masks, or the `if mask is not None` around it."""
    node: ast.AST | None = source.parents.get(call)
    above = source.parents.get(node) if node is not None else None
    if isinstance(above, ast.If):
        return above
    return node if isinstance(node, ast.Assign) else None


def _softmax_after(source: Source, place: ast.stmt) -> ast.Assign | None:
    for node in source.assignments():
        if node.lineno > place.lineno and "softmax(" in source.text_of(node.value):
            return node
    return None


def mask_as_number(source: Source) -> Edits:
    """A boolean mask is added to the scores, subtracted from them or multiplied with them."""
    for call, scores in source.calls_on("masked_fill", "masked_fill_"):
        mask = argument(call, "mask", 0)
        if is_method(call) and mask is not None:
            for sign in ("+ ", "* ~", "- 2.0 * "):
                yield source.put(call, f"{source.text_of(scores)} {sign}({source.text_of(mask)})")


def mask_diagonal(source: Source) -> Edits:
    """A triangular mask is off by one diagonal, or is the other triangle."""
    for call in source.calls("tril", "triu"):
        text = source.text_of(call.func)
        yield source.put(call.func, text[:-1] + ("u" if text.endswith("l") else "l"))
        edge = argument(call, "diagonal", 0)
        for off in (-1, 1):
            if edge is None:
                inside = source.text_of(call)[:-1].rstrip().rstrip(",")
                comma = "" if inside.endswith("(") else ", "
                yield source.put(call, f"{inside}{comma}{off})")
            else:
                yield source.put(edge, f"{source.text_of(edge)} + {off}")


def mask_fill_value(source: Source) -> Edits:
    """Masked scores get a wrong value: not low enough, zero, or positive."""
    for call in source.calls("masked_fill", "masked_fill_"):
        value = argument(call, "value", 1)
        if value is not None:
            yield from source.put_each(value, FILLS)
    for call in source.calls("where"):
        for branch in call.args[1:]:
            text = source.text_of(branch)
            if "inf" in text or text.startswith(("-", "low", "0")):
                yield from source.put_each(branch, FILLS)


def mask_inverted(source: Source) -> Edits:
    """The mask is inverted: visible positions are hidden."""
    for call in source.calls("masked_fill", "masked_fill_", "where"):
        mask = condition(call)
        if mask is not None:
            yield source.put(mask, f"~({source.text_of(mask)})")
    for node in source.of_type(ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            yield source.put(node, source.text_of(node.operand))


def mask_left_out(source: Source) -> Edits:
    """The mask is computed but never applied."""
    for call, scores in source.calls_on("masked_fill", "masked_fill_"):
        yield source.put(call, source.text_of(scores))
    for function in source.functions("forward"):
        if any(a.arg == "mask" for a in function.args.args):
            yield source.insert(body(function)[0], "mask = None")
            yield source.insert(body(function)[0], "mask = None if mask is None else mask & False")


def mask_result_thrown_away(source: Source) -> Edits:
    """The result of a call that does not work in place is thrown away."""
    for node in source.assignments():
        name = last_name(node.targets[0])
        reads = [n for n in ast.walk(node.value) if isinstance(n, ast.Name) and n.id == name]
        if reads:
            yield source.put(node, source.text_of(node.value))


def mask_transposed(source: Source) -> Edits:
    """The mask has queries and keys swapped."""
    for call in source.calls("masked_fill", "masked_fill_", "where"):
        mask = condition(call)
        if mask is not None:
            yield source.put(mask, f"({source.text_of(mask)}).mT")
    for function in source.functions("forward"):
        if any(a.arg == "mask" for a in function.args.args):
            yield source.insert(body(function)[0], "mask = mask.mT if mask is not None else None")


def everything_counts(source: Source) -> Edits:
    """A comparison that tells what counts from padding is always true, or never."""
    for node in source.of_type(ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            text = source.text_of(node.left)
            yield from source.put_each(node, (f"({text} == {text})", f"({text} != {text})"))


def first_sample_for_all(source: Source) -> Edits:
    """A value of the first sample is used for the whole batch, or samples are mixed up."""
    for call in source.calls("masked_fill", "masked_fill_", "where", "repeat_interleave"):
        for value in call.args[:1]:
            yield source.put(value, f"({source.text_of(value)})[:1]")
    for node in source.assignments():
        text = source.text_of(node.value)
        yield from source.put_each(
            node.value, (f"({text})[:1].expand_as({text})", f"({text}).flip(0)")
        )
