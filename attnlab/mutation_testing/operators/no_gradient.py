"""A method runs without recording gradients.

Right: `y = self.out(x)`
Wrong: `torch.set_grad_enabled(False)` `y = self.out(x)`
"""

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, body


def edits(source: Source) -> Edits:
    for function in source.functions():
        if function.name != "__init__":
            first = function.decorator_list[0] if function.decorator_list else function
            start = source.span(first)[0] - (1 if function.decorator_list else 0)
            text = f"@torch.no_grad()\n{' ' * function.col_offset}"
            yield Edit(splices=((start, start, text),))
            yield source.insert(body(function)[0], "torch.set_grad_enabled(False)")
