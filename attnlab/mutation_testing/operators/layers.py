"""Layers, their options, buffers and the residual around them."""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, buffers, called_name, last_name

ALIKE = {
    "LayerNorm": "RMSNorm",
    "RMSNorm": "LayerNorm",
    "Linear": "Bilinear",
    "Dropout": "Identity",
}
LAYER_OPTIONS = {
    "Linear": ("bias=False",),
    "LayerNorm": ("eps=1e-3", "eps=0.1", "elementwise_affine=False", "bias=False"),
    "RMSNorm": ("eps=1e-3", "elementwise_affine=False"),
}


def another_layer(source: Source) -> Edits:
    """A similar layer is used in place of the right one."""
    yield from source.rename_calls(ALIKE)


def buffer_as_attribute(source: Source) -> Edits:
    """A fixed table is a plain attribute, so it does not move with the module."""
    for call, name, value in buffers(source):
        yield source.put(call, f"self.{name} = {value}")


def buffer_as_parameter(source: Source) -> Edits:
    """A fixed table is registered as a parameter, so training changes it."""
    for call, name, value in buffers(source):
        yield source.put(call, f"self.{name} = torch.nn.Parameter({value})")


def layer_options(source: Source) -> Edits:
    """A layer has no bias, no learned scale, or another eps."""
    for call in source.calls(*LAYER_OPTIONS):
        for option in LAYER_OPTIONS[called_name(call)]:
            yield source.put(call, f"{source.text_of(call)[:-1].rstrip().rstrip(',')}, {option})")
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, float) and 0 < node.value < 1e-4:
            yield source.put(node, repr(node.value * 1e4))


def layers_swapped(source: Source) -> Edits:
    """Two layers are applied in the wrong order."""
    for call in source.calls():
        inner = call.args[0] if len(call.args) == 1 else None
        if isinstance(inner, ast.Call) and len(inner.args) == 1:
            yield source.swap(call.func, inner.func)


def norm_around_the_residual(source: Source) -> Edits:
    """The residual is added before the norm in place of after it, or the reverse."""
    for node in source.binary(ast.Add):
        left, right = source.sides(node)
        for call, other in ((node.left, right), (node.right, left)):
            if isinstance(call, ast.Call) and len(call.args) == 1:
                inside = source.text_of(call.args[0])
                yield source.put(node, f"{source.text_of(call.func)}({inside} + {other})")
    for call in source.calls():
        inside_ = call.args[0] if len(call.args) == 1 else None
        if isinstance(inside_, ast.BinOp) and isinstance(inside_.op, ast.Add):
            left, right = source.sides(inside_)
            yield source.put_expr(call, f"{source.text_of(call.func)}({left}) + {right}")


def residual_of_another_step(source: Source) -> Edits:
    """The residual is an intermediate value and not the input."""
    for function in source.functions("forward"):
        names = [last_name(n.targets[0]) for n in ast.walk(function) if isinstance(n, ast.Assign)]
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                for operand in (node.left, node.right):
                    if isinstance(operand, ast.Name):
                        yield from (source.put(operand, n) for n in dict.fromkeys(names) if n)


def tied_weight_copied(source: Source) -> Edits:
    """A tied weight is copied in place of shared, so that both are trained apart."""
    for node in source.of_type(ast.Assign):
        if last_name(node.targets[0]) == "weight" and last_name(node.value) == "weight":
            text = source.text_of(node.value)
            yield source.put(node.value, f"nn.Parameter(({text}).detach().clone())")
