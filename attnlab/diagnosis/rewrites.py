"""What a line may be changed to, so that it is right: what people get wrong and forget."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product

from attnlab.diagnosis.operands import of_kind, operand_rewrites
from attnlab.mutation_testing.operators.base import (
    Edit,
    Source,
    bug_of,
    called_name,
    is_method,
    load_mutations,
    subject,
)

# What is wrong where a mutation makes it right: its opposite, or what it is called elsewhere.
OPPOSITES = {
    **dict.fromkeys(("attribute-mixed-up", "name-mixed-up", "unpacked-order"), "wrong-operand"),
    **dict.fromkeys(("residual-of-another-step", "wrong-value-returned"), "wrong-operand"),
    **dict.fromkeys(("base-changed", "constant-shifted", "number-changed"), "wrong-number"),
    **dict.fromkeys(("call-left-out", "softmax-dropped", "transpose-dropped"), "extra-step"),
    "argument-left-out": "extra-argument",
    "call-doubled": "missing-step",
    "exponent-sign": "exponent",
    "operands-swapped": "exchanged",
    "precedence-lost": "precedence",
    "root-dropped": "exponent",
    "sign-flipped": "sign",
    "slice-dropped": "extra-step",
    "term-dropped": "extra-term",
    "term-twice": "missing-term",
}
# How a line is wrong, by the kind of change that makes it right; of other kinds what the mutation
# says that puts them in.
SAYS = {
    "axes-order": "the axes stand in the wrong order",
    "axes-mixed": "axes are mixed: they have to change places before this",
    "exchanged": "two operands are in the wrong order",
    "wrongly-joined": "two conditions, or masks, are joined the wrong way",
    "exponent": "a factor, a root or a power is not the right one",
    "extra-argument": "an argument is too much",
    "extra-step": "a step is one too many",
    "extra-term": "a term is one too many",
    "loop-end": "this line stands on the wrong side of the end of a loop",
    "mask-value": "the mask that is added closes nothing",
    "missing-argument": "an argument is missing",
    "missing-option": "an option is missing",
    "missing-step": "a step is missing",
    "missing-term": "a term is missing",
    "off-by-one": "a bound is off by one",
    "order": "the order is wrong",
    "other": "it computes something else than it should",
    "precedence": "a factor belongs to the whole sum",
    "range-shifted": "a range begins or ends at the wrong place",
    "scale": "a scale is missing",
    "sign": "a sign is wrong",
    "transposed": "two axes have to change places",
    "wrong-arguments": "an argument is wrong",
    "wrong-function": "another function has to be called",
    "wrong-number": "a number is wrong",
    "wrong-operand": "a value that it takes is not the right one",
}
# Mutations that leave the output, change it a little, or at random.
FAMILIES = ("training", "side_effects")
IDLE = {
    *("allocated-only", "another-exception", "buffer-as-attribute", "buffer-as-parameter"),
    *("dropout-added", "dropout-mode", "dtype-narrowed", "everything-counts"),
    *("first-sample-for-all", "heads-averaged", "mask-left-out", "positions-in-half"),
    *("positions-reversed",),
    *("returned-in-another-dtype", "returned-in-another-shape", "rolled-by-one"),
    *("rounded-to-half", "same-round-every-time", "scores-clamped", "statement-deleted"),
    *("tied-weight-copied", "sum-without-weights"),
}
OPTIONS = {  # that people forget, by function
    "gelu": ('approximate="tanh"',),
    "std": ("unbiased=False",),
    "tril": ("diagonal=-1", "diagonal=1"),
    "triu": ("diagonal=1", "diagonal=-1"),
    "var": ("unbiased=False",),
}


def rewrites(source: Source) -> Iterator[tuple[str, Edit]]:
    """What is wrong with a line, and the change that makes it right if it is."""
    for mutation in load_mutations():
        if mutation.family not in FAMILIES and mutation.id not in IDLE:
            yield from ((_kind(mutation.id, source, e), e) for e in mutation.edits(source))
    yield from operand_rewrites(source)
    yield from (("off-by-one", edit) for edit in _neighbours(source))
    yield from (("missing-option", edit) for edit in _options(source))
    yield from (("precedence", edit) for edit in _regrouped(source))
    yield from (("missing-term", edit) for edit in _residuals(source))
    yield from (("exponent", edit) for edit in _roots(source))
    yield from (("scale", edit) for edit in _scaled(source))
    yield from (("transposed", edit) for edit in _transposes(source))
    yield from (("axes-mixed", edit) for edit in _axes_before_views(source))
    yield from (("mask-value", edit) for edit in _weak_masks(source))
    yield from (("extra-step", edit) for edit in _inner_parts(source))
    yield from (("axes-order", edit) for edit in _moved_axes(source))
    yield from (("range-shifted", edit) for edit in _ranges(source))
    yield from (("reduced-axis", edit) for edit in _fewer_axes(source))
    yield from (("missing-step", edit) for edit in _scaled_back(source))
    yield from (("loop-end", edit) for edit in _loop_ends(source))


def fault_of(kind: str) -> str:
    """How a line is wrong, in a clause."""
    said = SAYS.get(kind) or bug_of(kind).rstrip(".")
    return said[:1].lower() + said[1:]


def _kind(mutation: str, source: Source, edit: Edit) -> str:
    """What is wrong where an edit of a mutation makes it right."""
    if mutation == "operator-inverted":
        start, end, new = edit.splices[0]
        if set(new) & set("&|^"):
            return "wrongly-joined"
        return "sign" if source.text[start:end].count("+") != new.count("+") else "exponent"
    return OPPOSITES.get(mutation, mutation)


def _moved_axes(source: Source) -> Iterator[Edit]:
    """One axis of a `permute` at another place, the others in their order."""
    for call in source.calls("permute"):
        axes = call.args if is_method(call) else call.args[1:]
        if len(axes) == 1 and isinstance(axes[0], ast.Tuple | ast.List):
            axes = axes[0].elts
        said = [source.text_of(axis) for axis in axes]
        for place, new in product(range(len(said)), repeat=2):
            if abs(place - new) > 1:  # else two are swapped, which is a mutation of its own
                moved = [*said[:place], *said[place + 1 :]]
                moved.insert(new, said[place])
                spans = (source.span(axis) for axis in axes)
                splices = ((*span, text) for span, text in zip(spans, moved, strict=True))
                yield Edit(splices=tuple(splices))


def _ranges(source: Source) -> Iterator[Edit]:
    """A range as long that begins where another one ends, and ends that go the other way."""
    for call in source.calls():
        first = [None] if called_name(call) == "arange" and len(call.args) == 1 else []
        start, stop = [*first, *call.args, None, None][:2]
        if isinstance(stop, ast.BinOp) and isinstance(stop.op, ast.Sub) and _is_zero(start):
            whole, begun = source.sides(stop)
            low = source.span(start or stop)[0]
            yield Edit(splices=((low, source.span(stop)[1], f"{begun}, {whole}"),))
        if called_name(call) in ("range", "arange") and len(call.args) == 1:
            yield source.put_expr(call.args[0], f"1, {source.atom(call.args[0])} + 1")
    for call in source.calls("arange"):
        names = {n.id for a in call.args for n in ast.walk(a) if isinstance(n, ast.Name)}
        for bound in call.args if len(call.args) > 1 else ():
            if all(_is_number(n) for n in ast.walk(bound)):
                ways = (way for name in sorted(names) for way in (f"-{name}", f"1 - {name}"))
                yield from source.put_each(bound, ways)


def _loop_ends(source: Source) -> Iterator[Edit]:
    """The last line of a loop after it, and the first line after a loop in it."""
    for loop in source.of_type(ast.For):
        moved = [(loop.body[-1], loop.col_offset)] if len(loop.body) > 1 else []
        around = getattr(source.parents.get(loop), "body", [])
        after = around[around.index(loop) + 1 :] if loop in around else []
        moved += [(each, loop.body[0].col_offset) for each in after[:1]]
        for statement, column in moved:
            if not isinstance(statement, (ast.For, ast.If, ast.Return, ast.While, ast.With)):
                start = source.span(statement)[0]
                line = source.text.rfind("\n", 0, start) + 1
                yield Edit(splices=((line, start, " " * column),))


def _fewer_axes(source: Source) -> Iterator[Edit]:
    """One axis less of those that a call takes together."""
    for call in source.calls():
        for value in (*call.args, *(k.value for k in call.keywords if k.arg in ("dim", "axis"))):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if len(parts) > 1 and all(_is_number(n) for part in parts for n in ast.walk(part)):
                said = [source.text_of(part) for part in parts]
                left = (said[:i] + said[i + 1 :] for i in range(len(said)))
                yield from source.put_each(value, (f"({', '.join(each)},)" for each in left))


def _scaled_back(source: Source) -> Iterator[Edit]:
    """What a call gives of a quotient, times the divisor, as where scores are capped."""
    for call in source.calls():
        inner = [*call.args, *([value] if (value := subject(call)) is not None else [])]
        for node in (n for n in inner if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)):
            yield source.put_expr(call, f"{source.text_of(call)} * {source.sides(node)[1]}")


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant | ast.UnaryOp | ast.unaryop)


def _is_zero(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value == 0)


def _weak_masks(source: Source) -> Iterator[Edit]:
    """A mask of numbers that closes what it is added to."""
    for call in source.calls("to", "float", "double", "type_as", "type"):
        if is_method(call):
            said = source.text_of(call)
            yield from (source.put_expr(call, f"{n} * -1e30") for n in (said, f"(1 - {said})"))
    for node in source.binary(ast.Sub):
        yield source.put_expr(node, f"({source.text_of(node)}) * -1e30")


def _inner_parts(source: Source) -> Iterator[Edit]:
    """A part of a tensor that is taken in the very index of that tensor."""
    for node in source.of_type(ast.Subscript):
        base = source.text_of(node.value)
        for inner in of_kind(node.slice, ast.Subscript):
            if source.text_of(inner.value) == base:
                yield source.put(node, source.text_of(inner))


def _axes_before_views(source: Source) -> Iterator[Edit]:
    """Axes that change places before a view, or in place of it."""
    for call in source.calls("view", "reshape", "flatten"):
        value = subject(call)
        if value is not None and is_method(call):
            said, rest = source.text_of(value), source.text_of(call)[len(source.text_of(value)) :]
            ways = [f"transpose({one}, {one + 1})" for one in range(3)]
            yield from source.put_each(call, (f"{said}.{way}{rest}" for way in ways))
            yield source.put(call, f"{said}.movedim(-1, 0)")
            yield source.put(call, f"{said}.movedim(-1, 0){rest}")


def _residuals(source: Source) -> Iterator[Edit]:
    """What a variable held before is added to what it gets."""
    for node in source.assignments():
        target = node.targets[0]
        names = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        if isinstance(target, ast.Name) and target.id in names:
            yield source.put(node.value, f"{target.id} + {source.atom(node.value)}")
    for loop in source.of_type(ast.For):
        for made in ast.walk(loop):
            if isinstance(made, ast.Assign) and isinstance(made.targets[0], ast.Name):
                said = f"{made.targets[0].id} + {source.atom(made.value)}"
                yield source.put(made.value, said)
    for value in source.returned_values():
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - {"self", "torch", "F"}
        for name in sorted(names):
            yield source.put(value, f"{name} + {source.atom(value)}")


def _neighbours(source: Source) -> Iterator[Edit]:
    """One more or less than a sum or difference, and than what is compared."""
    sums = source.binary(ast.Add, ast.Sub)
    sides: list[ast.expr] = [n for n in sums if not isinstance(source.parents.get(n), ast.BinOp)]
    sides += [n for c in source.of_type(ast.Compare) for n in (c.left, *c.comparators)]
    for side in sides:
        if not isinstance(side, ast.Constant):
            yield from source.put_each(side, (f"{source.atom(side)} {n}" for n in ("+ 1", "- 1")))
    for power in (n.right for n in source.binary(ast.Pow)):
        yield from (source.put_expr(power, f"{source.atom(power)} {n}") for n in ("+ 1", "- 1"))


def _options(source: Source) -> Iterator[Edit]:
    """An option that a call leaves out, and zero as the bound of a comparison."""
    for call in source.calls(*OPTIONS):
        for option in OPTIONS[called_name(call)]:
            if option.partition("=")[0] not in {k.arg for k in call.keywords}:
                between = ", " if call.args or call.keywords else ""
                text = source.text_of(call)[:-1].rstrip().rstrip(",")
                yield source.put(call, f"{text}{between}{option})")
    for node in source.of_type(ast.Compare):
        if len(node.comparators) == 1:
            yield source.put(node.comparators[0], "0")


def _regrouped(source: Source) -> Iterator[Edit]:
    """A factor of one term as one of the whole sum."""
    for node in source.binary(ast.Add, ast.Sub):
        left, right = source.sides(node)
        sign = "+" if isinstance(node.op, ast.Add) else "-"
        for one, term in ((True, node.left), (False, node.right)):
            if isinstance(term, ast.BinOp) and isinstance(term.op, (ast.Mult, ast.Div)):
                bare, factor = source.sides(term)
                symbol = "*" if isinstance(term.op, ast.Mult) else "/"
                whole = f"{bare} {sign} {right}" if one else f"{left} {sign} {bare}"
                yield source.put_expr(node, f"({whole}) {symbol} {factor}")


def _roots(source: Source) -> Iterator[Edit]:
    """The square root of a divisor or a factor, or its inverse."""
    for node in source.binary(ast.Div, ast.Mult):
        yield source.put(node.right, f"({source.sides(node)[1]}) ** 0.5")
    for node in source.binary(ast.Div):
        left, right = source.sides(node)
        yield source.put(node, f"{left} * {right}")
    for node in source.binary(ast.Mult):
        left, right = source.sides(node)
        yield source.put(node, f"{left} // {right}")


def _scaled(source: Source) -> Iterator[Edit]:
    """A product of matrices, divided by the root of the size that it sums over."""
    for node in source.binary(ast.MatMult):
        size = f"{source.atom(node.left)}.shape[-1] ** 0.5"
        yield source.put(node, f"({source.text_of(node)}) / {size}")
    for call in source.calls("matmul", "bmm", "einsum"):
        operands = [a for a in call.args if not isinstance(a, ast.Constant)]
        for operand in operands[:1]:
            size = f"{source.atom(operand)}.shape[-1] ** 0.5"
            yield source.put_expr(call, f"{source.text_of(call)} / {size}")


def _transposes(source: Source) -> Iterator[Edit]:
    """An operand of a product, or a mask, with its last axes exchanged."""
    for node in source.binary(ast.MatMult):
        for operand in (node.left, node.right):
            yield source.put(operand, f"{source.atom(operand)}.transpose(-2, -1)")
    for call in source.calls("matmul", "bmm", "masked_fill", "where"):
        for value in call.args[:2]:
            yield source.put(value, f"{source.atom(value)}.transpose(-2, -1)")
