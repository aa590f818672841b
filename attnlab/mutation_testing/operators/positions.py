"""Positions and their encodings."""

import ast

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, integer

BASES = ("1000.0", "100000.0", "9000.0", "10001.0")
COUNTS = ("({} - 2)", "({} - 1)", "({} // 2)", "({} * 2)")
HALVES = ("bfloat16", "half")
ENDS = (".clamp(max=127)", " % 256")
FAR = (".clamp(max=1000)", " % 4096")  # of tables, which are made long
WAVES = {"sin": "cos", "cos": "sin"}


def base_changed(source: Source) -> Edits:
    """The frequencies have another base."""
    for node in source.of_type(ast.Constant):
        if node.value in (10000, 1e5, 500000):
            yield from (source.put(node, base) for base in BASES)


def frequency_count(source: Source) -> Edits:
    """The exponent divides by a wrong number of frequencies: one less, half or twice as many."""
    for node in source.binary(ast.Div):
        left, right = source.sides(node)
        if not right.startswith("math.") and integer(node.right) is None:
            for other in COUNTS:
                yield source.put(node, f"{left} / {other.format(right)}")


def positions_from_one(source: Source) -> Edits:
    """Positions start at one, or at minus one."""
    for call in source.calls("arange"):
        yield source.put_expr(call, f"{source.text_of(call)} + 1")
        yield source.put_expr(call, f"{source.text_of(call)} - 1")
    for call in source.calls("range"):
        yield source.put(call, f"[i + 1 for i in {source.text_of(call)}]")


def positions_in_half(source: Source) -> Edits:
    """Positions or frequencies pass through half precision, where distant ones become equal."""
    for call in source.calls("arange", "pow", "exp", "outer"):
        for kind in HALVES:
            yield source.put(call, f"{source.text_of(call)}.{kind}().float()")
    for node in source.binary(ast.Pow):
        for kind in HALVES:
            yield source.put(node, f"({source.text_of(node)}).{kind}().float()")


def positions_reversed(source: Source) -> Edits:
    """Positions run backwards."""
    for call in source.calls("arange"):
        yield source.put(call, f"{source.text_of(call)}.flip(0)")
    for call in source.calls("range"):
        yield source.put(call, f"{source.text_of(call)}[::-1]")


def positions_stop_growing(source: Source) -> Edits:
    """Distant positions wrap around or are clamped."""
    for call in source.calls("arange"):
        function = source.function_of(call)
        table = function is None or function.name != "forward"
        for end in (*ENDS, *FAR) if table else ENDS:
            yield source.put_expr(call, f"{source.text_of(call)}{end}")


def sine_and_cosine(source: Source) -> Edits:
    """Sine and cosine are swapped, or one of them is used twice."""
    each = list(source.rename_calls(WAVES))
    yield from each
    if each:
        yield Edit(splices=tuple(splice for edit in each for splice in edit.splices))
