"""What a line may be changed to, so that it is right: what people write and forget, and what the
reference writes in such places."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from attnlab.mutation_testing.operators.base import (
    Edit,
    Node,
    Source,
    apply_edit,
    called_name,
    is_layer,
    is_method,
    last_name,
    load_mutations,
    subject,
)

SUGGESTED = ("wrong-arguments", "wrong-number", "wrong-function")  # by the reference
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
MOST_NAMES = 32  # that may be written in place of another one
# Mutations that leave the output, change it a little, or at random.
FAMILIES = ("training", "side_effects")
IDLE = {
    *("allocated-only", "another-exception", "buffer-as-attribute", "buffer-as-parameter"),
    *("dropout-added", "dropout-mode", "dtype-narrowed", "everything-counts"),
    *("first-sample-for-all", "heads-averaged", "mask-left-out", "positions-in-half"),
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


def rewrites(source: Source, others: Sequence[Source]) -> Iterator[tuple[str, Edit]]:
    """What may be changed, what the reference suggests first."""
    for theirs in others:
        yield from (("wrong-arguments", e) for e in _as_called(source, theirs))
        yield from (("wrong-number", e) for e in _as_numbered(source, theirs))
        yield from (("wrong-function", e) for e in _as_applied(source, theirs))
    for mutation in load_mutations():
        if mutation.family not in FAMILIES and mutation.id not in IDLE:
            yield from ((_kind(mutation.id, source, e), e) for e in mutation.edits(source))
    yield from (("wrong-operand", edit) for edit in _other_names(source))
    yield from (("missing-option", edit) for edit in _options(source))
    yield from (("precedence", edit) for edit in _regrouped(source))
    yield from (("missing-step", edit) for edit in _layers_applied(source))
    yield from (("missing-term", edit) for edit in _residuals(source))
    yield from (("exponent", edit) for edit in _roots(source))
    yield from (("scale", edit) for edit in _scaled(source))
    yield from (("transposed", edit) for edit in _transposes(source))
    yield from (("axes-mixed", edit) for edit in _axes_before_views(source))
    yield from (("missing-term", edit) for edit in _factors(source))
    yield from (("exponent", edit) for edit in _pairs_of_channels(source))
    yield from (("wrong-operand", edit) for edit in _names_of_statements(source))


def _kind(mutation: str, source: Source, edit: Edit) -> str:
    """What is wrong where an edit of a mutation makes it right."""
    if mutation == "operator-inverted":
        start, end, new = edit.splices[0]
        return "sign" if source.text[start:end].count("+") != new.count("+") else "exponent"
    return OPPOSITES.get(mutation, mutation)


def _as_called(source: Source, theirs: Source) -> Iterator[Edit]:
    """The plain arguments of a call of the same function in the reference."""
    known: dict[str, list[ast.Call]] = {}
    for call in theirs.calls():
        known.setdefault(called_name(call), []).append(call)
    for call in source.calls():
        for other in known.get(called_name(call), ()):
            splices = []
            mine = {k.arg: k.value for k in call.keywords}
            pairs = list(zip(call.args[::-1], other.args[::-1], strict=False))
            pairs += [(mine[k.arg], k.value) for k in other.keywords if k.arg in mine]
            for one, right in pairs:
                if _is_plain(one) and _is_plain(right) and ast.dump(one) != ast.dump(right):
                    splices.append((*source.span(one), theirs.text_of(right)))
            more = [
                f"{k.arg}={theirs.text_of(k.value)}"
                for k in other.keywords
                if k.arg not in mine and _is_plain(k.value)
            ]
            if more:
                end = source.span(call)[1] - 1
                said = ", ".join(more)
                empty = not call.args and not call.keywords
                splices.append((end, end, said if empty else f", {said}"))
            if splices:
                yield _whole(source, call, splices)


def _whole(source: Source, node: ast.AST, splices: Sequence[tuple[int, int, str]]) -> Edit:
    """Changes inside of a node as one, so that it is shown whole."""
    start, end = source.span(node)
    inside = tuple((a - start, b - start, new) for a, b, new in splices)
    text = apply_edit(source.text_of(node), Edit(splices=inside))
    return Edit(splices=((start, end, text),))


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression is a number, a flag or a text, or arithmetic of such."""
    if isinstance(node, ast.UnaryOp):
        return _is_plain(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_plain(node.left) and _is_plain(node.right)
    return isinstance(node, ast.Constant)


def _as_numbered(source: Source, theirs: Source) -> Iterator[Edit]:
    """A number that the reference has, in place of each that it has not."""
    mine, right = ({n for n, _ in _numbers(each)} for each in (source, theirs))
    lines: dict[tuple[int, int | float], list[ast.Constant]] = {}
    for number, node in _numbers(source):
        lines.setdefault((node.lineno, number), []).append(node)
    for (_, number), nodes in lines.items():
        strange = right - mine if number in right else right
        twice = {number - 1, number + 1} if len(nodes) > 1 else set()  # as in clamp(-2, 2)
        for other in sorted({*strange, *twice} - {number}):
            for some in dict.fromkeys((tuple(nodes), *((node,) for node in nodes))):
                yield Edit(splices=tuple((*source.span(node), repr(other)) for node in some))


def _numbers(source: Source) -> Iterator[tuple[int | float, ast.Constant]]:
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            yield node.value, node


def _as_applied(source: Source, theirs: Source) -> Iterator[Edit]:
    """A function that only the reference calls, in place of one that only this file calls."""
    mine, right = ({called_name(c) for c in s.calls()} for s in (source, theirs))
    for call in source.calls():
        if called_name(call) not in right and not is_layer(call):
            for name in sorted(right - mine):
                yield source.rename(call.func, name)


def _other_names(source: Source) -> Iterator[Edit]:
    """Another variable of the function, or attribute of the class, in place of each."""
    for function in source.functions():
        around = (n for n in source.ancestors(function) if isinstance(n, ast.ClassDef))
        owner = next(around, None)
        stored = {n.id for n in _of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)}
        stored |= {a.arg for a in function.args.args if a.arg != "self"}
        held = {
            n.attr
            for n in _of_kind(owner or function, ast.Attribute)
            if isinstance(n.ctx, ast.Store) and last_name(n.value) == "self"
        }
        names = [
            *sorted(stored),
            *(f"self.{n}" for n in sorted(held) if function.name != "__init__"),
        ]
        for node in _of_kind(function, ast.expr):
            said = source.text_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            if said in names and not isinstance(getattr(node, "ctx", None), ast.Store):
                yield from source.put_each(node, (n for n in names[:MOST_NAMES] if n != said))


def _names_of_statements(source: Source) -> Iterator[Edit]:
    """Another variable of the function wherever a statement has this one, as what it masks."""
    for function in source.functions():
        stored = {n.id for n in _of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)}
        for statement in _of_kind(function, ast.Assign):
            places: dict[str, list[ast.Name]] = {}
            for node in _of_kind(statement, ast.Name):
                places.setdefault(node.id, []).append(node)
            for name, nodes in places.items():
                for other in sorted(stored - {name})[:MOST_NAMES] if len(nodes) > 1 else ():
                    yield Edit(splices=tuple((*source.span(node), other) for node in nodes))


def _factors(source: Source) -> Iterator[Edit]:
    """A term of a sum times another variable."""
    for function in source.functions():
        names = sorted({n.id for n in _of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)})
        for node in _of_kind(function, ast.BinOp):
            for term in (node.left, node.right) if isinstance(node.op, ast.Add) else ():
                if isinstance(term, ast.Name):
                    others = (n for n in names[:MOST_NAMES] if n != term.id)
                    yield from source.put_each(term, (f"{term.id} * {n}" for n in others))


def _pairs_of_channels(source: Source) -> Iterator[Edit]:
    """Two neighbours share a number: half of it, rounded down."""
    for node in source.binary(ast.Mult, ast.Div, ast.FloorDiv):
        for operand in (node.left, node.right):
            if isinstance(operand, ast.Name):
                yield source.put(operand, f"({operand.id} // 2)")


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


def _of_kind(around: ast.AST, kind: type[Node]) -> list[Node]:
    return [node for node in ast.walk(around) if isinstance(node, kind)]


def _layers_applied(source: Source) -> Iterator[Edit]:
    """A layer that is made and never called, applied to each variable."""
    for owner in source.of_type(ast.ClassDef):
        made, read = set[str](), set[str]()
        for node in ast.walk(owner):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                (made if isinstance(node.ctx, ast.Store) else read).add(node.attr)
        unused = sorted(made - read)
        for function in ast.walk(owner) if unused else ():
            if isinstance(function, ast.FunctionDef) and function.name != "__init__":
                for node in _read(function):
                    if node.id != "self" and node in source.parents:
                        yield from source.put_each(node, (f"self.{n}({node.id})" for n in unused))


def _read(around: ast.AST) -> Iterator[ast.Name]:
    """The names that are read."""
    for node in ast.walk(around):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node


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
