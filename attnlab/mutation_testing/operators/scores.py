"""Scores and weights: softmax, scale, heads and dropout."""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, argument

AXES = (-1, -2, -3, 0, 1)
BOUNDS = ("max=8.0", "min=-20.0", "min=-1e3", "-50.0, 50.0")
SIZES = ("self.num_heads", "self.head_dim", "x.shape[-1]", "x.shape[1]", "self.head_dim + 1")


def softmax_axis(source: Source) -> Edits:
    """Softmax runs over a wrong axis: the queries, the heads or the batch."""
    for call in source.calls("softmax", "log_softmax", "softmin"):
        yield from source.put_other_axes(argument(call, "dim", 0), AXES)


def softmax_dropped(source: Source) -> Edits:
    """Softmax is missing, or replaced by a sigmoid or by log-softmax."""
    for call, scores in source.calls_on("softmax"):
        yield source.put(call, source.atom(scores))
        yield source.put(call, f"{source.atom(scores)}.sigmoid()")
        yield source.put(call, source.text_of(call).replace("softmax(", "log_softmax("))


def scores_clamped(source: Source) -> Edits:
    """Scores are clamped to bounds that real scores exceed."""
    for _, scores in source.calls_on("softmax"):
        for bound in BOUNDS:
            yield source.put(scores, f"{source.atom(scores)}.clamp({bound})")


def scale_of_another_width(source: Source) -> Edits:
    """The scale uses another size: the whole width, or the number of heads."""
    for call in source.calls("sqrt"):
        for size in SIZES if call.args else ():
            yield source.put(call.args[0], size)
    for node in source.binary(ast.Pow):
        sizes = ("embed_dim", "num_heads") if _in_init(source, node) else SIZES
        for size in sizes:
            yield source.put(node.left, size if size.isidentifier() else f"({size})")


def _in_init(source: Source, node: ast.AST) -> bool:
    function = source.function_of(node)
    return function is not None and function.name == "__init__"


def heads_averaged(source: Source) -> Edits:
    """The heads are averaged or permuted."""
    for node in source.assignments():
        text = source.text_of(node.value)
        if any(product in text for product in ("@", "matmul(", "softmax(", "bmm(")):
            mean = f"({text}).mean(1, keepdim=True).expand_as({text})"
            yield from source.put_each(
                node.value, (mean, f"({text}).roll(1, 1)", f"({text}).flip(1)")
            )


def dropout_added(source: Source) -> Edits:
    """Dropout is applied where there should be none, in train mode or always."""
    weights = [n.value for n in source.assignments() if "softmax(" in source.text_of(n.value)]
    for place in (*weights, *source.returned_values()):
        for when in ("True", "self.training"):
            yield source.put(place, f"torch.dropout({source.text_of(place)}, 0.1, {when})")


def dropout_mode(source: Source) -> Edits:
    """Dropout is always or never active, whatever the mode; or its rate is inverted."""
    for node in source.of_type(ast.Attribute):
        if node.attr == "training":
            yield from source.put_each(node, ("True", "False"))
    for call in source.calls("Dropout"):
        yield source.put(call.func, "nn.Identity")
    for call in source.calls("dropout"):
        for p in (argument(call, "p", 0), argument(call, "dropout_p", 0)):
            if p is not None:
                yield source.put(p, f"1 - ({source.text_of(p)})")
