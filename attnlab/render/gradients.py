"""One backward pass: the first bad gradient, parameters that got none, their norms."""

from collections.abc import Sequence

from rich.text import Text

from attnlab.records import Op
from attnlab.records.trace import Backward, ParameterGradient
from attnlab.render.formats import format_number, format_place, format_shape
from attnlab.render.screen import Screen, bare_table, escape_control, plural, truncate

MOST = 24  # parameters in a table: the extremes tell more than the middle


def show_backward(backward: Backward, ops: Sequence[Op], screen: Screen) -> None:
    """One line for what is wrong, one row for each parameter."""
    marks = screen.marks
    screen.gap()
    screen.say(("gradients", "title"), ("  of the output times a fixed random direction", "aside"))
    if backward.message:
        bad = backward.origin is not None
        screen.hang(
            (f"{marks.bad if bad else marks.note} ", "bad" if bad else ""), backward.message
        )
    origin = next((op for op in ops if op.index == backward.origin), None)
    if origin is not None and f"line {origin.line}" not in backward.message:
        where = format_place(origin.file, origin.line)
        screen.one_line(f"  first at {where}  {origin.op}  ", (origin.source, "aside"))
    unused = [p for p in backward.parameters if p.norm is None and p.name not in backward.message]
    if unused:
        names = ", ".join(p.name for p in unused)
        says = f"{plural(len(unused), 'parameter')} got no gradient: {names}"
        screen.hang((f"{marks.warn} ", "warn"), says)
    for what, several in (("parameter", backward.parameters), ("input", backward.inputs)):
        used = [p for p in several if p.norm is not None]
        if used:
            _show_norms(used, what, screen)


def _show_norms(used: Sequence[ParameterGradient], what: str, screen: Screen) -> None:
    shown = _select_rows(used)
    table = bare_table("", "norm", "shape", what, right={"norm"})
    room = max(12, screen.width - 32)
    for parameter in shown:
        table.add_row(
            Text("" if parameter.finite else screen.marks.bad, style="bad"),
            format_number(parameter.norm or 0.0),
            format_shape(parameter.shape, screen.marks),
            Text(truncate(escape_control(parameter.name), room, screen.marks.dots)),
        )
    screen.print(table)
    if len(shown) < len(used):
        left = f"{len(used) - len(shown)} between the smallest and the largest left out"
        screen.say((f"{left}: --json has all", "aside"))


def _select_rows(used: Sequence[ParameterGradient]) -> list[ParameterGradient]:
    """In their own order: all of them, or those not finite, the smallest and the largest."""
    if len(used) <= MOST:
        return list(used)
    rank = sorted(used, key=lambda p: (p.finite, p.norm or 0.0))
    some = {p.name for p in (*rank[: MOST // 2], *rank[-MOST // 2 :])}
    return [p for p in used if p.name in some]
