"""What stands below the table of a trace: the crash, the findings, the notes, the output."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from attnlab.records import Crash, Finding, Operand, Report, Trace
from attnlab.render.formats import format_lines, format_place, format_shape
from attnlab.render.screen import READABLE, Marks, Screen, escape_control, plural, truncate

MOST_FINDINGS = 20  # findings in full; a loop over 500 layers says the same 500 times


def show_crash(crash: Crash, screen: Screen) -> None:
    """The box the eye should land on: what raised, on what, and what that means."""
    from rich.panel import Panel  # few files crash: others must not wait

    marks = screen.marks
    source = truncate(escape_control(crash.source), screen.width - 4, marks.dots)
    operands = "\n".join(_operands(crash.operands, marks))
    reason = f"{crash.message.strip()}\n{crash.explanation.strip()}".removesuffix("\n")
    blocks = [Text(source, style="bold"), Text(operands), Text(escape_control(reason))]
    body = Text("\n\n").join(block for block in blocks if block)
    head = f"{marks.bad} {crash.error or 'Error'} at {format_place(crash.file, crash.line)}"
    head += f" in call {crash.call}" * (crash.call > 1)
    title = Text(truncate(escape_control(head), screen.width - 6, marks.dots), style="bad")
    wide = min(screen.width, READABLE)
    screen.print(Panel(body, title=title, title_align="left", border_style="bad", width=wide))


def show_failure_end(trace: Trace, report: Report, screen: Screen) -> None:
    """What ended the run before its end, if anything did."""
    if trace.crash:
        screen.gap()
        show_crash(trace.crash, screen)
    elif report.outcome != "ok":
        screen.gap()
        screen.hang((f"{screen.marks.bad} {report.outcome}  ", "bad"), report.message)


def _operands(operands: Sequence[Operand], marks: Marks) -> list[str]:
    names = [" ".join(o.axes) or "scalar" for o in operands]
    wide = max((cell_len(name) for name in names), default=0)
    pairs = zip(names, operands, strict=True)
    return [
        f"operand {number}  {name:<{wide}}  {format_shape(operand.shape, marks)}"
        for number, (name, operand) in enumerate(pairs, 1)
    ]


def show_findings(
    findings: Sequence[Finding], screen: Screen, names: Mapping[str, str] | None = None
) -> None:
    """What the trace noticed, the gravest first; what many layers have in common is said once.

    `names` are those of the files, where there are several.
    """
    rank = {"error": 0, "warning": 1, "note": 2}
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.severity, finding.rule, finding.file, finding.op, finding.message)
        alike.setdefault(key, []).append(finding)
    order = sorted(alike.values(), key=lambda group: rank[group[0].severity])
    for group in order[:MOST_FINDINGS]:
        _show_findings_alike(group, screen, names or {})
    if len(order) > MOST_FINDINGS:
        screen.say(
            (f"{screen.marks.dots} and {len(order) - MOST_FINDINGS} more: --json has all", "aside")
        )


def _show_findings_alike(
    group: Sequence[Finding], screen: Screen, names: Mapping[str, str]
) -> None:
    """One paragraph for findings that differ in their lines only."""
    finding = group[0]
    mark, style = _severity(finding, screen.marks)
    lines = list(dict.fromkeys(f.line for f in group if f.line))
    place = format_lines(finding.file, lines, names, ", ")
    head = [f"{mark} {finding.severity}", *filter(None, (place, finding.op))]
    often = f"  {plural(len(group), 'time')}" if len(group) > max(1, len(lines)) else ""
    screen.say((" ".join(head), style), (f"  {finding.rule}{often}", "aside"))
    screen.say(finding.message, indent=2)


def _severity(finding: Finding, marks: Marks) -> tuple[str, str]:
    looks = {
        "error": (marks.bad, "bad"),
        "warning": (marks.warn, "warn"),
        "note": (marks.note, "bold"),
    }
    return looks[finding.severity]


def show_notes(notes: Sequence[str], screen: Screen) -> None:
    """What the trace could not see, and why."""
    for text in notes:
        screen.say((f"{screen.marks.note} {text}", "aside"))


def show_hidden(count: int, screen: Screen, what: str = "finding") -> None:
    """How many findings would name the cause of a puzzle."""
    if count:
        screen.gap()
        text = f"{plural(count, what)} hidden so as not to spoil the puzzle; "
        text += "--reveal shows everything and counts as a hint"
        screen.hang((f"{screen.marks.unsure} ", "warn"), text)


def show_output(output: str, screen: Screen, keep: int = 8) -> None:
    """The last lines that the file printed itself."""
    lines = output.rstrip().splitlines()
    if not lines:
        return
    screen.heading("the file printed")
    if len(lines) > keep:
        screen.say((f"  {screen.marks.dots} {plural(len(lines) - keep, 'line')} before", "aside"))
    for line in lines[-keep:]:
        screen.one_line("  " + line)
