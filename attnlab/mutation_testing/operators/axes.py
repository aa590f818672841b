"""Axes that are mixed up: views, transposes, reductions and einsum."""

import ast
from itertools import combinations, pairwise

from attnlab.mutation_testing.operators.base import (
    Edits,
    Source,
    argument,
    body,
    called_name,
    equations,
    integer,
    is_method,
)

AXES = (0, 1, 2, 3, -1)
BEHIND = ("chunk", "split", "tensor_split", "roll")  # a first argument that is no axis
CUTTING = ("unbind", "select", "narrow", "squeeze", "unflatten", "index_select", "gather", "flip")
JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")
REDUCING = (
    *("all", "amax", "amin", "any", "argmax", "cumsum", "logsumexp", "max", "mean", "min"),
    *("norm", "normalize", "nansum", "prod", "std", "sum", "var"),
)
STACKING = {"cat": "stack", "concat": "stack", "stack": "cat"}
MOVING = ("transpose", "swapaxes", "swapdims", "movedim", "permute", "t")


def added_axis(source: Source) -> Edits:
    """`unsqueeze` inserts the new axis at another position, so another axis is broadcast."""
    for call in source.calls("unsqueeze"):
        yield from source.put_other_axes(argument(call, "dim", 0), AXES)
    for node in source.of_type(ast.Subscript):
        if "None" in _items(source, node):
            yield from _moved(source, node)


def _items(source: Source, node: ast.Subscript) -> list[str]:
    where = node.slice
    parts = where.elts if isinstance(where, ast.Tuple) else [where]
    return [source.text_of(part) for part in parts]


def _moved(source: Source, node: ast.Subscript) -> Edits:
    rest = _items(source, node)
    rest.remove("None")
    for place in range(4):
        padded = [*rest, *[":"] * (place - len(rest))]
        items = [*padded[:place], "None", *padded[place:]]
        yield source.put(node.slice, ", ".join(items))


def cut_axis(source: Source) -> Edits:
    """A tensor is split, selected or indexed along the axis next to the right one."""
    for call in source.calls(*BEHIND, *CUTTING):
        place = int(called_name(call) in BEHIND)
        yield from source.put_next_axes(argument(call, "dim", place))


def einsum_letter_summed(source: Source) -> Edits:
    """The output of an einsum lacks a letter, so that axis is summed."""
    for spec, text in equations(source):
        terms, arrow, result = text.partition("->")
        for i in range(len(result)):
            yield source.put(spec, f'"{terms}{arrow}{result[:i]}{result[i + 1 :]}"')


def einsum_letters(source: Source) -> Edits:
    """Two letters of an einsum are swapped."""
    for spec, text in equations(source):
        for i in range(len(text) - 1):
            if text[i : i + 2].isalpha():
                yield source.put(spec, f'"{text[:i]}{text[i + 1]}{text[i]}{text[i + 2 :]}"')


def flattened_axes(source: Source) -> Edits:
    """`flatten` starts one axis too early or too late."""
    for call in source.calls("flatten"):
        yield from source.put_next_axes(argument(call, "start_dim", 0))


def index_of_another_axis(source: Source) -> Edits:
    """An index picks from the axis before or after: the last sample, not the last position."""
    for node in source.of_type(ast.Subscript):
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            *axes, last = node.slice.elts
            if integer(last) is not None:
                before = ", ".join(map(source.text_of, axes[1:]))
                yield source.put(node.slice, f"{before}, {source.text_of(last)}".strip(", "))
                yield source.put(node.slice, f":, {source.text_of(node.slice)}")


def joined_axis(source: Source) -> Edits:
    """Tensors are concatenated along a wrong axis: a cache along the heads."""
    for call in source.calls(*JOINING):
        axis = argument(call, "dim", 0)
        if axis is None:
            yield source.put(call, source.text_of(call)[:-1].rstrip().rstrip(",") + ", dim=-1)")
        yield from source.put_next_axes(axis)


def joined_in_another_order(source: Source) -> Edits:
    """Tensors are concatenated in the wrong order: new keys before cached ones, cosines first."""
    for call in source.calls(*JOINING):
        items = call.args[0] if call.args else None
        if isinstance(items, ast.List | ast.Tuple) and len(items.elts) > 1:
            for one, other in zip(items.elts, items.elts[1:], strict=False):
                yield source.swap(one, other)
        elif items is not None:
            yield source.put(items, f"list({source.text_of(items)})[::-1]")


def permuted_order(source: Source) -> Edits:
    """Two axes of a `permute` are swapped."""
    for call in source.calls("permute"):
        axes = call.args if is_method(call) else call.args[1:]
        if len(axes) == 1 and isinstance(axes[0], ast.Tuple | ast.List):
            axes = axes[0].elts
        for one, other in combinations(axes, 2):
            yield source.swap(one, other)


def reduced_axis(source: Source) -> Edits:
    """A reduction runs over the axis next to the right one."""
    for call in source.calls(*REDUCING):
        yield from source.put_next_axes(argument(call, "dim", 0))


def repeated_in_another_order(source: Source) -> Edits:
    """`repeat_interleave` is replaced by copies in blocks, or the reverse."""
    for call, value in source.calls_on("repeat_interleave"):
        count, axis = argument(call, "repeats", 0), argument(call, "dim", 1)
        if count is not None:
            dim = source.text_of(axis) if axis is not None else "0"
            text = f"torch.cat([{source.text_of(value)}] * ({source.text_of(count)}), dim={dim})"
            yield source.put(call, text)
    for call, value in source.calls_on("repeat", "tile"):
        if len(call.args) == 1:
            text = f"{source.text_of(value)}.repeat_interleave({source.text_of(call.args[0])})"
            yield source.put(call, text)


def reshape_in_place_of_transpose(source: Source) -> Edits:
    """A transpose is replaced by a reshape: the shape is right, the values are in wrong places."""
    for call, value in source.calls_on("transpose", "permute", "swapaxes", "movedim"):
        if is_method(call):
            yield source.put(call, f"{source.text_of(value)}.reshape({source.text_of(call)}.shape)")
    for node in source.of_type(ast.Attribute):
        if node.attr == "mT":
            yield source.put(
                node, f"{source.text_of(node.value)}.reshape({source.text_of(node)}.shape)"
            )


def rolled_by_one(source: Source) -> Edits:
    """A tensor is shifted by one position."""
    for node in source.binary(ast.MatMult):
        for operand in (node.left, node.right):
            yield source.put(operand, f"({source.text_of(operand)}).roll(1, -2)")
    for call in source.calls("matmul", "bmm", "einsum", "scaled_dot_product_attention"):
        for value in call.args[-2:]:
            yield source.put(value, f"({source.text_of(value)}).roll(1, -2)")
    for function in source.functions("forward"):
        yield source.insert(body(function)[-1], "x = x.roll(1, 1)")


def stacked_or_joined(source: Source) -> Edits:
    """`cat` is used in place of `stack`, or the reverse: halves in place of pairs."""
    yield from source.rename_calls(STACKING)


def transpose_dropped(source: Source) -> Edits:
    """A transpose or permute is missing."""
    for call, value in source.calls_on(*MOVING):
        yield source.put(call, source.text_of(value))
    for node in source.of_type(ast.Attribute):
        if node.attr in ("mT", "T", "H", "mH"):
            yield source.put(node, source.text_of(node.value))


def transposed_axes(source: Source) -> Edits:
    """A transpose swaps the wrong pair of axes."""
    for call in source.calls("transpose", "swapaxes", "swapdims", "movedim"):
        for axis in call.args[-2:]:
            yield from source.put_next_axes(axis)


def unpacked_order(source: Source) -> Edits:
    """Unpacked values are assigned in the wrong order: keys are named values."""
    for node in source.of_type(ast.Assign):
        if isinstance(node.targets[0], ast.Tuple | ast.List):
            for one, other in combinations(node.targets[0].elts, 2):
                yield source.swap(one, other)


def view_in_place_of_transpose(source: Source) -> Edits:
    """A view swaps the sizes of two axes where a transpose is needed."""
    for call in source.calls("transpose"):
        axes = [integer(a) for a in call.args]
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(inner, ast.Call) and called_name(inner) in ("view", "reshape"):
            yield from _swapped(source, call, inner, axes)


def _swapped(source: Source, call: ast.Call, view: ast.Call, axes: list[int | None]) -> Edits:
    sizes = [source.text_of(a) for a in view.args]
    one, other = (*axes, None, None)[:2]
    if one is None or other is None or not all(-len(sizes) <= a < len(sizes) for a in (one, other)):
        return
    sizes[one], sizes[other] = sizes[other], sizes[one]
    yield source.put(call, f"{source.text_of(view.func)}({', '.join(sizes)})")


def view_order(source: Source) -> Edits:
    """Two sizes of a view are swapped, so the heads are split at wrong places."""
    for call in source.calls("view", "reshape", "unflatten", "zeros", "ones", "empty", "expand"):
        sizes = call.args[1:] if called_name(call) == "unflatten" else call.args
        for pack in sizes:
            if isinstance(pack, ast.Tuple | ast.List):
                sizes = pack.elts
        for one, other in pairwise(sizes):
            yield source.swap(one, other)
