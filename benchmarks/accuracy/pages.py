"""The results as tables: of rich for the terminal, of Markdown for docs/tracer-accuracy.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from benchmarks.accuracy.measure import COINCIDE, Found, Named, Right

Results = tuple[Sequence[Right], Sequence[Found], Sequence[Found]]  # right, wrong, not expected

AIM = 95.0
HEAD = ("model", "rows", "placed", "axes", "strict", "steady", "findings")
TOP = """\
<!-- Made by `make accuracy`: run that, and do not change this by hand. -->
# How often the tracer is right

`make accuracy` traces models that are right and modules that are wrong. Only the axes of the
inputs are named; what every other axis is, the trace infers.

"""
MODELS = """
## Right models of others

Random weights, made from configurations, called once under `no_grad`. *placed*: rows that have a
file and a line. *axes*: of all axes of tensors with two or more axes, the share that has a name,
which is anything but a bare number of 2 or more. *strict*: the same without axes of size 1, which
need no name. *steady*: of the names, those that are the same in a second run with fewer entries and
positions; a name that was only guessed from a size is not. *findings*, warnings and errors, must
be 0: the models are right.
"""
VARIANTS = """
## Wrong variants

Each is a file of `benchmarks/accuracy/variants/FAMILY/` that makes a real bug again in one style,
with the line that would be right beside the wrong one. *found* says where the finding stands: at
the `mistake`, or at the line where it `shows` for the first time because the mistake is in no
operation (a layer built otherwise, a table cut to another size). *twin*: findings on the right one,
which must be 0.

Most of these were in sight when the rules were written. Of 16 in new styles that were written after
that, 13 were found at once, with nothing on their twins; of 45 models that were traced for the
first time then, 42 raised nothing. What was missed was added here, and to the rules.
"""
APART = """
## Not expected

Mistakes that the axes cannot show, kept here so that nobody counts on the tracer for them.
"""


def where(found: Found) -> str:
    if found.at is None:
        return "no"
    return "mistake" if found.at.line in found.variant.wrong else "shows"


def totals(rights: Sequence[Right], founds: Sequence[Found], chance: int) -> Iterator[str]:
    if rights:
        axes, strict = _sum([r.axes for r in rights]), _sum([r.strict for r in rights])
        low = [r for r in rights if r.axes.percent < AIM]
        rows, placed = sum(r.rows for r in rights), sum(r.placed for r in rights)
        findings = sum(len(r.findings) for r in rights)
        yield f"{len(rights)} right models, {rows} rows: {100 * placed / max(rows, 1):.1f} % placed"
        yield f"axes named: {axes.percent:.1f} % (strict {strict.percent:.1f} %)"
        yield f"names that stay at other sizes: {_sum([r.steady for r in rights]).percent:.1f} %"
        yield f"models below {AIM:.0f} % of axes: {len(low)}"
        notes = sum(r.notes for r in rights)
        yield f"findings on right models: {findings} (and {notes} notes, which are no alarms)"
    if founds:
        hits = [f for f in founds if f.at is not None]
        exact = sum(where(f) == "mistake" for f in hits)
        twins = sum(bool(f.twins) for f in founds)
        yield f"{len(hits)} of {len(founds)} wrong variants found, {exact} of them at the mistake"
        yield f"right twins with findings: {twins}"
        yield f"findings on right twins at {len(COINCIDE)} sets of sizes that coincide: {chance}"


def _sum(parts: Sequence[Named]) -> Named:
    return Named(sum(p.named for p in parts), sum(p.all for p in parts))


def models(rights: Sequence[Right]) -> Table:
    table = Table(
        "model", "rows", "placed", "axes", "strict", "steady", "findings", title="right models"
    )
    for r in rights:
        table.add_row(*_model(r), style="" if good(r) else "red")
    return table


def good(r: Right) -> bool:
    return not r.findings and not r.crash and r.axes.percent >= AIM and r.placed == r.rows


def _model(r: Right) -> tuple[str, ...]:
    if r.crash:
        return (r.name, "crashed", "", "", "", "", "")
    placed = f"{100 * r.placed / max(r.rows, 1):.0f} %"
    shares = [f"{part.percent:.1f} %" for part in (r.axes, r.strict, r.steady)]
    return (r.name, str(r.rows), placed, *shares, str(len(r.findings)))


def variants(founds: Sequence[Found]) -> Table:
    table = Table("family", "variant", "found", "rule", "twin", title="wrong variants")
    for f in founds:
        rule = f.at.rule if f.at else ""
        style = "" if f.at and not f.twins else "red"
        cells = f.variant.family, f.variant.name, where(f), rule, str(len(f.twins))
        table.add_row(*cells, style=style)
    return table


def page(results: Results, left_out: Sequence[str], chance: int) -> str:
    rights, founds, apart = results
    told = totals(rights, founds, chance)
    parts = [TOP, *(f"* {line}\n" for line in told), MODELS]
    for library in dict.fromkeys(r.library for r in rights):
        parts.append(f"\n### {library}\n\n")
        parts += _rows(HEAD)
        parts += _rows(*(_model(r) for r in rights if r.library == library), head=False)
    parts += [f"\nNot installed, and so left out: {', '.join(left_out)}.\n"] if left_out else []
    parts += [VARIANTS, "\n", *_rows(("family", "variant", "found", "rule", "twin", "message"))]
    parts += _rows(*(_variant(f) for f in founds), head=False)
    parts += [APART, "\n", *_rows(("variant", "found", "why not"))]
    parts += _rows(*((f.variant.title, where(f), f.variant.why_not) for f in apart), head=False)
    return "".join(parts)


def _variant(f: Found) -> tuple[str, ...]:
    rule, message = (f"`{f.at.rule}`", f.at.message) if f.at else ("", "")
    names = f.variant.family, f"`{f.variant.name}`: {f.variant.title}"
    return (*names, where(f), rule, str(len(f.twins)), message)


def _rows(*rows: tuple[str, ...], head: bool = True) -> list[str]:
    lines = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |\n" for row in rows]
    return [*lines, "|" + "---|" * len(rows[0]) + "\n"] if head else lines
