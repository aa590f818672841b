"""The results as docs/in-the-wild.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from benchmarks.examined import EXAMINED, verdict_of
from benchmarks.wild.measure import Wild

TOP = """\
<!-- Made by `python -m benchmarks.wild`: run that, and do not change this by hand. -->
# In the wild

`python -m benchmarks.wild` builds each family of transformers from its configuration made small,
with random weights, and shapes of x-transformers; calls it once; traces it, and looks at the
properties that `attnlab verify` infers. Only the axes of ids and pictures are named. The models
are released and used: each warning was looked at by hand, and is a bug with a reproduction, meant
so, or was a false alarm, and then the rule was changed.
"""
TABLE = """
## The families

*rows*: operations of one call. *axes*: the share of axes that have a name. *found*: warnings, and
properties that do not hold. Families that are not here do not build or run at these sizes, or need
inputs that are no ids and no pictures.

| family | rows | axes | found |
|---|---|---|---|
"""


def page(found: Sequence[Wild]) -> str:
    """The whole page."""
    run = [wild for wild in found if not wild.problem]
    unknown = sum(verdict_of(*alarm) is None for wild in run for alarm in wild.alarms)
    axes = 100 * sum(w.named for w in run) / max(1, sum(w.axes for w in run))
    bugs = sum(entry.verdict == "bug" and "/" in entry.where for entry in EXAMINED)
    lines = [
        TOP,
        (
            f"* transformers {version('transformers')}, x-transformers "
            f"{version('x-transformers')}, torch {version('torch')}"
        ),
        f"* {len(run)} families run, {sum(w.rows for w in run)} rows, {axes:.1f} % of axes named",
        (
            f"* families with a warning of the trace: {sum(bool(w.findings) for w in run)}; with a "
            f"property that does not hold: {sum(bool(w.broken) for w in run)}"
        ),
        f"* bugs: {bugs}; warnings nobody looked at: {unknown}",
        "",
        "## What was found",
        *_examined(),
        TABLE.rstrip(),
        *map(_row, run),
        "",
    ]
    return "\n".join(lines)


def _examined() -> Iterator[str]:
    titles: Mapping[str, str] = {"bug": "Bugs", "intended": "Meant so"}
    for verdict, title in titles.items():
        entries = [entry for entry in EXAMINED if entry.verdict == verdict]
        if entries:
            yield f"\n### {title}\n"
            yield from (f"* `{e.where}`, `{e.rule}`: {e.told}" for e in entries)


def _row(wild: Wild) -> str:
    share = f"{100 * wild.named / wild.axes:.1f} %" if wild.axes else ""
    rules = dict.fromkeys(f"`{f.rule}`" for f in wild.findings)
    rules |= dict.fromkeys(f"`{name}`" for name, _ in wild.broken)
    return f"| {wild.family} | {wild.rows} | {share} | {', '.join(rules)} |"
