"""A step changes its input in place.

Right: `return self.norm(h) + x`
Wrong: `return x.add_(self.norm(h))`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, body, called_name, is_method

METHODS = ("masked_fill", "add", "mul", "sub", "div", "clamp", "nan_to_num", "unsqueeze")
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "add_",
    ast.Sub: "sub_",
    ast.Mult: "mul_",
    ast.Div: "div_",
}


def edits(source: Source) -> Edits:
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
