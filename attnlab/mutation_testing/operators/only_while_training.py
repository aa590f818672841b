"""A step runs only in train mode, or only in eval mode.

Right: `if mask is not None: scores = scores.masked_fill(mask, low)`
Wrong: `if (mask is not None) and self.training: scores = scores.masked_fill(mask, low)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
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
