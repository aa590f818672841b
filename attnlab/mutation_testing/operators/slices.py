"""Slices that start, end or step elsewhere."""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, integer


def slice_dropped(source: Source) -> Edits:
    """A slice is missing, so the whole table or mask is used."""
    for node in source.of_type(ast.Subscript):
        yield source.put(node, source.text_of(node.value))
    for call, value in source.calls_on("narrow"):
        yield source.put(call, source.text_of(value))


def slice_of_the_end(source: Source) -> Edits:
    """A slice takes the last rows in place of the first."""
    for node in source.of_type(ast.Slice):
        if node.upper and not node.lower and not node.step:
            yield source.put(node, f"-({source.text_of(node.upper)}):")


def slice_of_the_start(source: Source) -> Edits:
    """A slice takes the first rows in place of the last: what is oldest is kept."""
    for node in source.of_type(ast.Slice):
        low = node.lower
        if node.upper is None and isinstance(low, ast.UnaryOp) and isinstance(low.op, ast.USub):
            yield source.put(node, f":{source.text_of(low.operand)}")


def slice_shifted(source: Source) -> Edits:
    """A slice starts or ends one element off."""
    for node in source.of_type(ast.Slice):
        low = source.text_of(node.lower) if node.lower else ""
        high = source.text_of(node.upper) if node.upper else ""
        step = f":{source.text_of(node.step)}" if node.step else ""
        later = f"{low} + 1" if low else "1"
        if high:
            forms = (f"{low}:{high} - 1", f"{low}:{high} + 1", f"{later}:{high} + 1")
            yield from source.put_each(node, (form + step for form in forms))
        yield source.put(node, f"{later}:{high}{step}")


def slice_step(source: Source) -> Edits:
    """A slice has a wrong step, or takes odd elements in place of even ones."""
    for node in source.of_type(ast.Slice):
        if node.step is not None:
            low, step = integer(node.lower) or 0, source.text_of(node.step)
            other = 1 - low if low in (0, 1) else 0
            yield from source.put_each(
                node, (f"{other}::{step}", f"{low}::{step} + 1", f"{low}::1")
            )


def shift_reversed(source: Source) -> Edits:
    """Inputs and targets are shifted the wrong way, or not against each other."""
    for node in source.of_type(ast.Slice):
        low, high = integer(node.lower), integer(node.upper)
        if node.step is None and node.lower is None and high is not None and high < 0:
            yield source.put(node, f"{-high}:")
        if node.step is None and node.upper is None and low is not None and low > 0:
            yield source.put(node, f":-{low}")
