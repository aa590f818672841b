"""The results as Markdown, for docs/triage-accuracy.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

FIRSTS = 3
HALVES = ("open", "unopened")
MODULE = 3.0  # processor seconds beyond the import of torch
SCRIPT, MORE = 2.0, 5.0  # times its own first steps, and seconds more
TOP = """\
<!-- Made by `make triage`: run that, and do not change this by hand. -->
# How often triage names the cause

`make triage` runs `attnlab triage` on files that hold one known bug each, without any flag, and on
files that are right. *rank* is the place of the first suspicion of a rule that stands for a cause
of the item (`benchmarks/triage/causes.toml`) at one of its lines, or at none; 0 where none is. The
*open* half was in sight when the rules were written. The *unopened* half was written by others
before them, and committed as an archive with its hash; it is opened to be counted, not to be
learned from, so that its rows stay as they were counted until it is opened again.

"""
ALARMS = "{} half: {} of {} raise a warning or an error.\n"
COUNTED = re.compile(ALARMS.format("unopened", r"(\d+)", r"(\d+)"))


class Outcome(NamedTuple):
    name: str
    kind: str
    rank: int  # of the right cause; 0 = not among those told
    first: str  # the rule that stands first
    alarms: int  # warnings and errors
    seconds: float  # of the processor
    causes: str
    place: str
    right: str = ""  # the rule that has the rank
    half: str = "open"
    own: float = 0.0  # seconds that a script takes for as many steps itself


class Right(NamedTuple):
    name: str
    outcome: str
    said: str
    seconds: float
    half: str


def counted_before(text: str) -> tuple[list[Outcome], list[Right]]:
    """The outcomes of the unopened half in a page of before."""
    rows = (line.strip("| ").split(" | ") for line in text.splitlines() if "| unopened |" in line)
    wrong = [
        Outcome(
            name=name,
            kind=kind,
            rank=int(rank),
            first=first,
            alarms=0,
            seconds=float(seconds),
            causes=causes,
            place="",
            right=right,
            half=half,
            own=0.0 if own == "-" else float(own),
        )
        for name, half, kind, causes, rank, right, first, seconds, own in (
            row for row in rows if len(row) == len(Outcome._fields) - 2
        )
    ]
    alarms, many = map(int, found.groups() if (found := COUNTED.search(text)) else (0, 0))
    silent = Right("", "nothing-found", "", 0.0, "unopened")
    return wrong, [silent] * (many - alarms) + [silent._replace(outcome="found")] * alarms


def page(wrong: Sequence[Outcome], rights: Sequence[Right], beginning: float) -> str:
    return TOP + "\n".join(
        [
            *_shares(wrong),
            "",
            *_rights(rights),
            "",
            *_times(wrong, beginning),
            "",
            *_items(wrong),
            "",
        ]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)


def share(found: Sequence[Outcome], most: int) -> str:
    """`31 of 46 (67 %)`: of those found at a rank up to this."""
    if not found:
        return "-"
    count = sum(0 < o.rank <= most for o in found)
    return f"{count} of {len(found)} ({100 * count / len(found):.0f} %)"


def _shares(wrong: Sequence[Outcome]) -> Iterator[str]:
    by: Mapping[str, list[Outcome]] = {h: [o for o in wrong if o.half == h] for h in HALVES}
    head = ("cause", *(f"{half} half" for half in HALVES))
    rows = []
    for kind in ("module", "script", ""):
        some = {h: [o for o in by[h] if kind in ("", o.kind)] for h in HALVES}
        for most, name in ((1, "first"), (FIRSTS, f"among the first {FIRSTS}")):
            if any(some.values()):
                what = f"{kind or 'all'}: {name}"
                rows.append((what, *(share(some[h], most) for h in HALVES)))
    yield from _table(head, rows)


def _rights(rights: Sequence[Right]) -> Iterator[str]:
    yield "## Right files\n"
    for half in HALVES:
        some = [r.outcome for r in rights if r.half == half]
        if some:
            yield ALARMS.format(half, sum(o != "nothing-found" for o in some), len(some))
    alarms = [r for r in rights if r.outcome != "nothing-found" and r.name]
    if alarms:
        yield from _table(("file", "half", "says"), ((r.name, r.half, r.said) for r in alarms))


def _times(wrong: Sequence[Outcome], beginning: float) -> Iterator[str]:
    modules = [o.seconds - beginning for o in wrong if o.kind == "module"]
    scripts = [(o, SCRIPT * o.own + MORE) for o in wrong if o.kind == "script" and o.own]
    yield f"## Time\n\nProcessor seconds; importing torch takes {beginning:.1f} of them.\n"
    if modules:
        slow = sum(s > MODULE for s in modules)
        yield (
            f"* modules: {max(modules):.1f} at most beyond that, {slow} of {len(modules)} above "
            f"{MODULE:g}"
        )
    if scripts:
        slow = [o.name for o, most in scripts if o.seconds > most]
        worst = max(o.seconds / o.own for o, _ in scripts)
        yield (
            f"* scripts: {len(slow)} of {len(scripts)} above {SCRIPT:g} x their own first steps "
            f"plus {MORE:g}{': ' + ', '.join(slow) if slow else ''}; {worst:.1f} x at most"
        )


def _items(wrong: Sequence[Outcome]) -> Iterator[str]:
    yield "## Items\n"
    head = ("item", "half", "kind", "cause", "rank", "rule", "told first", "s", "own s")
    yield from _table(
        head,
        (
            (*(o.name, o.half, o.kind, o.causes, o.rank, o.right or "-", o.first), *_seconds(o))
            for o in wrong
        ),
    )


def _seconds(outcome: Outcome) -> tuple[str, str]:
    return f"{outcome.seconds:.1f}", f"{outcome.own:.1f}" if outcome.own else "-"
