"""Numbers, signs, powers and dtypes."""

import ast

from attnlab.mutation_testing.operators.base import (
    SYMBOLS,
    Edits,
    Source,
    called_name,
    is_method,
    last_name,
)

WRITTEN = ("zeros", "ones")
EMPTY = {
    n.format(kind): n.format("empty")
    for n in ("{}", "new_{}", "{}_like", "new_{}_like")
    for kind in WRITTEN
}
DIVISIONS: dict[type[ast.operator], str] = {ast.Div: "//", ast.FloorDiv: "/"}
WIDE = ("float64", "float32", "double", "float")
FORMATS = ("float16", "bfloat16", "int64")
METHODS = {"float": ("half", "bfloat16", "double", "int"), "double": ("float", "half", "bfloat16")}
HALVES = ("half", "bfloat16")


def allocated_only(source: Source) -> Edits:
    """A tensor is allocated but never filled."""
    yield from source.rename_calls(EMPTY)


def constant_shifted(source: Source) -> Edits:
    """An integer is one too small or one too large."""
    for node in source.of_type(ast.Constant):
        if type(node.value) is int:
            for other in (node.value + 1, node.value - 1):
                yield source.put_expr(node, str(other))


def division_rounded(source: Source) -> Edits:
    """A true division is replaced by a floor division, or the reverse."""
    for node in source.binary(*DIVISIONS):
        yield source.operator(node, DIVISIONS[type(node.op)])
    for call in source.calls("div"):
        for keyword in call.keywords:
            if keyword.arg == "rounding_mode":
                yield from source.put_each(keyword.value, ("None", '"trunc"'))


def dtype_narrowed(source: Source) -> Edits:
    """A dtype with fewer digits is used, or one without fractions."""
    for node in source.of_type(ast.Attribute):
        if node.attr in WIDE and last_name(node.value) == "torch":
            yield from (source.rename(node, name) for name in FORMATS)
    for call in source.calls(*METHODS):
        if is_method(call):
            yield from (source.rename(call.func, name) for name in METHODS[called_name(call)])


def exponent_sign(source: Source) -> Edits:
    """An exponent has the wrong sign: wavelengths are used in place of frequencies."""
    for node in source.binary(ast.Pow):
        left, right = source.sides(node)
        yield source.put_expr(node, f"{left} ** -({right})")
    for call in source.calls("pow", "exp", "logspace"):
        for exponent in call.args[-1:]:
            yield source.put(exponent, f"-({source.text_of(exponent)})")


def number_changed(source: Source) -> Edits:
    """A float is negated, doubled, halved or zero."""
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, float):
            for other in (-node.value, node.value * 2, node.value / 2, 0.0):
                yield source.put_expr(node, repr(other))


def root_dropped(source: Source) -> Edits:
    """A square root is missing: scores are divided by the head size itself."""
    for call, value in source.calls_on("sqrt", "rsqrt"):
        yield source.put(call, source.atom(value))
    for node in source.binary(ast.Pow):
        left, right = source.sides(node)
        for more in ("* 2", "/ 2"):
            yield source.put_expr(node, f"{left} ** ({right}) {more}")


def rounded_to_half(source: Source) -> Edits:
    """A value passes through half precision and loses digits or range."""
    for node in source.assignments():
        for kind in HALVES:
            yield source.put(node.value, f"{source.atom(node.value)}.{kind}().float()")


def sign_flipped(source: Source) -> Edits:
    """A minus sign is missing, or one too many is there."""
    for node in source.of_type(ast.UnaryOp):
        if isinstance(node.op, ast.USub):
            yield source.put(node, source.text_of(node.operand))
    for product in source.binary(ast.MatMult, ast.Mult, ast.Div):
        left, right = source.sides(product)
        yield source.put(product, f"-({left}) {SYMBOLS[type(product.op)]} {right}")
    for call in source.calls("matmul", "bmm", "einsum", "outer"):
        yield source.put_expr(call, f"-{source.text_of(call)}")
