"""Expressions: operators, operands, names and arguments."""

import ast
import re

from attnlab.mutation_testing.operators.base import (
    SYMBOLS,
    Edits,
    Source,
    called_name,
    is_layer,
    is_method,
    last_name,
)

PAIRS = ("all any", "sum mean", "amax amin", "max min", "zeros ones", "zeros_like ones_like")
RELATED = {"argmax": "argmin", "new_zeros": "new_ones"}
for _one, _other in map(str.split, (*PAIRS, "floor ceil", "maximum minimum")):
    RELATED |= {_one: _other, _other: _one}
COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<="),
    ast.Eq: ("!=", "<", ">"),
    ast.NotEq: ("==", "<", ">"),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
SYMMETRIC = ("transpose", "transpose_", "swapaxes", "swapdims", "add", "mul")
OPERATORS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-", "*"),
    ast.Sub: ("+",),
    ast.Mult: ("/", "+", "**"),
    ast.Div: ("*", "//"),
    ast.FloorDiv: ("/", "*", "%"),
    ast.Mod: ("//",),
    ast.Pow: ("*",),
    ast.MatMult: ("*",),
    ast.BitAnd: ("|", "^"),
    ast.BitOr: ("&", "^"),
}


def another_reduction(source: Source) -> Edits:
    """A function is replaced by a related one: `sum` by `mean`, `all` by `any`, `max` by `min`."""
    yield from source.rename_calls(RELATED)


def argument_left_out(source: Source) -> Edits:
    """A call leaves out an argument: the mask, the scale, the dtype or the axis."""
    for call in source.calls():
        last = call.args[-1:] if len(call.args) > 1 and not call.keywords else []
        for gone in (*call.keywords, *last):
            rest = [source.text_of(a) for a in (*call.args, *call.keywords) if a is not gone]
            yield source.put(call, f"{source.text_of(call.func)}({', '.join(rest)})")


def attribute_mixed_up(source: Source) -> Edits:
    """An attribute is replaced by another of its kind: the layer of keys for that of values."""
    kinds = _kinds(source)
    for node in source.of_type(ast.Attribute):
        if isinstance(node.ctx, ast.Load) and last_name(node.value) == "self":
            kind = kinds.get(node.attr)
            same = [name for name in kinds if kinds[name] == kind and name != node.attr]
            yield from source.put_each(node, (f"self.{name}" for name in same))


def _kinds(source: Source) -> dict[str, str]:
    """The layer that each attribute is; "plain" for what is no call."""
    kinds: dict[str, str] = {}
    for node in source.of_type(ast.Assign):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute):
            kinds[target.attr] = (
                source.text_of(value.func) if isinstance(value, ast.Call) else "plain"
            )
    return kinds


def call_doubled(source: Source) -> Edits:
    """A layer or a function is applied twice."""
    for call in source.calls():
        if is_layer(call) and len(call.args) == 1 and not call.keywords:
            yield source.put(call, f"{source.text_of(call.func)}({source.text_of(call)})")
    for call, value in source.calls_on("softmax", "sin", "cos", "exp", "sqrt"):
        if is_method(call):
            tail = source.text[source.span(value)[1] : source.span(call)[1]]
            yield source.put(call, source.text_of(call) + tail)


def call_left_out(source: Source) -> Edits:
    """A layer or a function is not applied: no clamp, no norm, no root, no `exp`."""
    for call, value in source.calls_on():
        if is_layer(call) and call.args:
            yield source.put_expr(call, source.text_of(call.args[0]))
        elif last_name(value) != "self":
            yield source.put_expr(call, source.text_of(value))


def comparison_shifted(source: Source) -> Edits:
    """A comparison wrongly includes or excludes equality, or is reversed."""
    for node in source.of_type(ast.Compare):
        if len(node.ops) == 1:
            left, right = source.text_of(node.left), source.text_of(node.comparators[0])
            for symbol in COMPARISONS[type(node.ops[0])]:
                yield source.put(node, f"{left} {symbol} {right}")


def condition_negated(source: Source) -> Edits:
    """A condition is negated, or is always true or always false."""
    for node in source.nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield from source.put_each(
                node.test, (f"not ({source.text_of(node.test)})", "True", "False")
            )
        if isinstance(node, ast.BoolOp):
            one, other = map(source.text_of, node.values[:2])
            symbol = "or" if isinstance(node.op, ast.And) else "and"
            yield source.put(node, f"{one} {symbol} {other}")


def flag_flipped(source: Source) -> Edits:
    """A boolean flag has the wrong value."""
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, bool):
            yield source.put(node, str(not node.value))


def name_mixed_up(source: Source) -> Edits:
    """A variable is replaced by another that belongs with it: the queries for the keys."""
    for function in source.functions():
        family = _families(source, function)
        for node in source.nodes:
            read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            if isinstance(node, ast.Name) and read and source.function_of(node) is function:
                for other in family.get(node.id, ()):
                    yield source.put(node, other)


def _families(source: Source, function: ast.FunctionDef) -> dict[str, list[str]]:
    """For each name those that are bound with it, or by the same words."""
    groups = [[a.arg for a in function.args.args if a.arg != "self"]]
    alike: dict[str, list[str]] = {}
    for node in ast.walk(function):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple):
            groups.append([e.id for e in target.elts if isinstance(e, ast.Name) and e.id != "_"])
        elif isinstance(target, ast.Name) and isinstance(node, ast.Assign):
            pattern = re.sub(rf"\b{target.id}(?=\b|_)", "", source.text_of(node.value))
            alike.setdefault(pattern, []).append(target.id)
    found: dict[str, list[str]] = {}
    for group in (*groups, *alike.values()):
        for name in group:
            others = [other for other in dict.fromkeys(group) if other != name]
            found[name] = [*found.get(name, ()), *others]
    return found


def operands_swapped(source: Source) -> Edits:
    """Two operands or arguments are swapped."""
    for node in source.binary(*ORDERED):
        left, right = source.sides(node)
        yield source.put_expr(node, f"({right}) {SYMBOLS[type(node.op)]} ({left})")
    for call in source.calls():
        if called_name(call) in SYMMETRIC:
            continue
        if len(call.args) > 1 and not any(isinstance(a, ast.Starred) for a in call.args):
            yield source.swap(call.args[0], call.args[1])


def operator_inverted(source: Source) -> Edits:
    """An operator is replaced by its inverse or a similar one: `/` by `*`, `-` by `+`."""
    for node in source.binary(*OPERATORS):
        for symbol in OPERATORS[type(node.op)]:
            yield source.operator(node, symbol)


def precedence_lost(source: Source) -> Edits:
    """Parentheses are missing, so the operations have another order."""
    for node in source.of_type(ast.BinOp):
        left, right = source.sides(node)
        symbol = SYMBOLS[type(node.op)]
        if right.startswith("(") and right.endswith(")"):
            yield source.put(node, f"{left} {symbol} {right[1:-1]}")
        if left.startswith("(") and left.endswith(")"):
            yield source.put(node, f"{left[1:-1]} {symbol} {right}")


def term_dropped(source: Source) -> Edits:
    """One operand is missing: no residual, no scale, no bias."""
    for node in source.of_type(ast.BinOp):
        left, right = source.sides(node)
        yield source.put(node, left)
        if not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            yield source.put(node, right)


def term_twice(source: Source) -> Edits:
    """A term or a factor is applied twice: the scale, or the residual."""
    for node in source.binary(ast.Add, ast.Sub, ast.Mult, ast.Div):
        left, right = source.sides(node)
        symbol = SYMBOLS[type(node.op)]
        yield source.put_expr(node, f"{left} {symbol} {right} {symbol} {right}")
        if isinstance(node.op, ast.Add | ast.Mult):
            yield source.put_expr(node, f"{left} {symbol} {left} {symbol} {right}")
