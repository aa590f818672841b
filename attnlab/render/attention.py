"""Every attention of a run: its four roles, what its heads look at, how sharply."""

from collections.abc import Sequence
from math import isfinite

from rich.text import Text

from attnlab.records import Op
from attnlab.records.trace import Attention, Head
from attnlab.render.formats import format_number, format_place
from attnlab.render.heat import HeatMap, Scale, draw_heat, heat_picture, legend
from attnlab.render.screen import Screen, plural, truncate

DRAWN_ATTENTIONS = 2  # attentions whose heads are drawn; the others get a line
DRAWN_HEADS = 8  # heads that are drawn of one attention
MAP_LINES = 12  # of one map
MAP_WIDTH = 24  # cells for one map


def show_attention(found: Sequence[Attention], ops: Sequence[Op], screen: Screen) -> None:
    rows = {op.index: op for op in ops}
    for number_, attention in enumerate(found):
        screen.gap()
        _show_head(attention, rows, screen)
        if number_ < DRAWN_ATTENTIONS and attention.heads:
            _show_maps(attention.heads[:DRAWN_HEADS], screen)
            if len(attention.heads) > DRAWN_HEADS:
                left = plural(len(attention.heads) - DRAWN_HEADS, "more head")
                screen.say((f"  {left}: --json has them", "aside"))
        elif attention.heads:
            _show_heads(attention.heads, screen)


def _show_head(attention: Attention, rows: dict[int, Op], screen: Screen) -> None:
    where = format_place(attention.file, attention.line)
    module = f"  {attention.module}" if attention.module else ""
    screen.one_line(("attention", "title"), f"  {where}{module}")
    if facts := _facts(attention):
        screen.say((facts, "aside"), indent=2)
    for role in ("scores", "mask", "weights", "context"):
        op = rows.get(-1 if (index := getattr(attention, role)) is None else index)
        if op is not None:
            axes = " ".join(op.axes)
            line = f"line {op.line}  {op.op}  "
            room = max(0, screen.width - len(axes) - len(line) - 14)
            source = truncate(op.source, room, screen.marks.dots)
            screen.one_line(f"  {role:<8}  {line}", (f"{axes}  ", "name"), (source, "aside"))
    if attention.message:
        screen.say(attention.message, indent=2)


def _facts(attention: Attention) -> str:
    facts = (
        "" if attention.coverage is None else f"{attention.coverage:.0%} of the pairs may attend",
        {None: "", True: "no weight on later keys", False: "looks ahead"}[attention.causal],
        _sums(attention),
        "recomputed beside a fused kernel" if attention.fused else "",
    )
    return ", ".join(filter(None, facts))


def _sums(attention: Attention) -> str:
    if attention.sums is None:
        return ""
    low, high = (format_number(n) for n in attention.sums)
    return f"rows add up to {low}" if low == high else f"rows add up to {low} to {high}"


def _name(head: Head) -> str:
    return f"head {head.number}: entropy {format_number(head.entropy)}"


def _largest(head: Head) -> str:
    return f"largest weight of a query {format_number(head.largest)} on average"


def _show_heads(heads: Sequence[Head], screen: Screen) -> None:
    for head in heads:
        screen.one_line(f"  {_name(head)}, {_largest(head)}")


def _show_maps(heads: Sequence[Head], screen: Screen) -> None:
    """The maps beside each other, as many in a row as there is room for; one scale for all."""
    weights = [v for head in heads for row in head.weights.rows for v in row if isfinite(v)]
    scale = Scale(low=0.0, high=max(weights, default=1.0), floored=True)
    beside = min(max(1, screen.width // MAP_WIDTH), len(heads))
    room = screen.width // beside - 2
    for at in range(0, len(heads), beside):
        some = [(head, heat_picture(head.weights)) for head in heads[at : at + beside]]
        maps = [draw_heat(p, screen, room, scale, MAP_LINES) if p else None for _, p in some]
        for said in (_name, _largest):
            texts = [Text(truncate(said(head), room, screen.marks.dots)) for head, _ in some]
            screen.print(_side_by_side(texts, room), no_wrap=True, crop=True)
        for line in range(max((len(m.lines) for m in maps if m), default=0)):
            screen.print(
                _side_by_side([_map_line(m, line) for m in maps], room), no_wrap=True, crop=True
            )
    key = Text.assemble("weight ", *legend(scale, screen), ("  palest: exactly 0", "aside"))
    screen.print(key, no_wrap=True, crop=True)


def _map_line(drawn: HeatMap | None, line: int) -> Text:
    return drawn.lines[line] if drawn and line < len(drawn.lines) else Text()


def _side_by_side(cells: Sequence[Text], room: int) -> Text:
    """Texts in columns of `room` cells."""
    text = Text()
    for cell in cells:
        text.append_text(cell).append(" " * max(0, room - cell.cell_len + 2))
    return text
