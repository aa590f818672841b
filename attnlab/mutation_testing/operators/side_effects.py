"""Gradients that are cut or scaled, and what a call leaves behind."""

import ast

from attnlab.mutation_testing.operators.base import (
    Edit,
    Edits,
    Source,
    body,
    called_name,
    is_constant,
    is_layer,
    is_method,
    last_name,
)

METHODS = ("masked_fill", "add", "mul", "sub", "div", "clamp", "nan_to_num", "unsqueeze")
SIGNS = dict(
    zip((ast.Add, ast.Sub, ast.Mult, ast.Div), ("add_", "sub_", "mul_", "div_"), strict=True)
)


def detached(source: Source) -> Edits:
    """A value is detached: the output is right, but no gradient reaches what comes before it."""
    for step in source.assignments():
        if not is_constant(step.value):
            yield _detach(source, step.value)
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Add):
            yield _detach(source, node.left)
            yield _detach(source, node.right)
        if isinstance(node, ast.Return) and node.value is not None:
            yield _detach(source, node.value)
    for call in source.calls("softmax", "matmul", "bmm", "einsum"):
        for value in (call, *call.args[-2:]):
            yield _detach(source, value)


def _detach(source: Source, value: ast.expr) -> Edit:
    return source.put(value, f"{source.atom(value)}.detach()")


def global_state_touched(source: Source) -> Edits:
    """A forward pass sets the random seed, so later random numbers repeat."""
    for function in source.functions("forward"):
        yield source.insert(body(function)[0], "torch.manual_seed(0)")


def gradient_scaled(source: Source) -> Edits:
    """The output is right but the gradient is half of what it should be."""
    for node in source.assignments():
        text = source.text_of(node.value)
        if not is_constant(node.value):
            yield source.put(node.value, f"({text}) * 0.5 + (({text}) * 0.5).detach()")


def gradients_recorded(source: Source) -> Edits:
    """What runs without gradients records them: memory grows, and results hold a graph."""
    for node in source.of_type(ast.expr):
        if last_name(node) in ("no_grad", "inference_mode"):
            yield source.rename(node, "enable_grad")


def input_overwritten(source: Source) -> Edits:
    """A step changes its input in place."""
    for call in source.calls(*METHODS):
        if is_method(call):
            yield source.rename(call.func, f"{called_name(call)}_")
    for node in source.binary(*SIGNS):
        left, right = source.sides(node)
        name = SIGNS[type(node.op)]
        if isinstance(node.left, ast.Name | ast.Attribute | ast.Subscript):
            yield source.put(node, f"{left}.{name}({right})")
        if isinstance(node.right, ast.Name) and isinstance(node.op, ast.Add | ast.Mult):
            yield source.put(node, f"{right}.{name}({left})")
    for function in source.functions("forward"):
        for argument in function.args.args[1:]:
            yield source.insert(body(function)[0], f"{argument.arg}.mul_(1)[...] = 0")
            yield source.insert(body(function)[-1], f"{argument.arg}.zero_()")


def kept_from_the_first_call(source: Source) -> Edits:
    """A value computed in the first call is reused in all later calls."""
    for node in source.assignments():
        name = last_name(node.targets[0])
        text = source.text_of(node.value)
        yield source.put(node.value, f'self.__dict__.setdefault("_{name}", {text})')


def no_gradient(source: Source) -> Edits:
    """A method runs without recording gradients."""
    for function in source.functions():
        if function.name != "__init__":
            first = function.decorator_list[0] if function.decorator_list else function
            start = source.span(first)[0] - (1 if function.decorator_list else 0)
            text = f"@torch.no_grad()\n{' ' * function.col_offset}"
            yield Edit(splices=((start, start, text),))
            yield source.insert(body(function)[0], "torch.set_grad_enabled(False)")


def noise_added(source: Source) -> Edits:
    """A little random noise is added to the output."""
    for value in source.returned_values():
        yield source.put(value, f"({source.text_of(value)}) + 1e-3 * torch.randn(())")


def only_while_training(source: Source) -> Edits:
    """A step runs only in train mode, or only in eval mode."""
    for function in source.functions("forward"):
        for node in ast.walk(function):
            if isinstance(node, ast.If):
                text = source.text_of(node.test)
                yield source.put(node.test, f"({text}) and self.training")
                yield source.put(node.test, f"({text}) and not self.training")
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                yield from _half(source, node, last_name(node.targets[0]))


def _half(source: Source, node: ast.Assign, name: str) -> Edits:
    """Only steps that change a value can be left out."""
    if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.value)):
        text = source.atom(node.value)
        yield source.put(node.value, f"{text} if self.training else {name}")
        yield source.put(node.value, f"{name} if self.training else {text}")


def weights_changed(source: Source) -> Edits:
    """A forward pass changes the weights."""
    for call in source.calls():
        if is_layer(call) and len(call.args) == 1:
            name = source.text_of(call.func)
            yield source.put(call.func, f"({name}.weight.data.mul_(1.01), {name})[1]")
