"""Which bugs a user's tests let through: each survivor as a diff, and what it would do."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from attnlab.mutation_testing.operators.base import bug_of
from attnlab.records import plain, record
from attnlab.records.trial import SuiteStrength, Trial
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, plural

SHOWN = 12  # survivors, unless all are asked for
LINES = 6  # of a change


@record
class MutatePage:
    measured: SuiteStrength
    percent: int = 100  # of the mutants
    everything: bool = False

    def show(self, screen: Screen) -> None:
        groups = list(_alike(self.measured.of_fate("survived")))
        shown = groups if self.everything else groups[:SHOWN]
        screen.say(("mutate  ", "title"), (self.measured.module, "name"), f"  {self._tests()}")
        for group in shown:
            screen.gap()
            _show_survivor(group, screen)
        if len(groups) > len(shown):
            screen.gap()
            screen.say((f"{len(groups) - len(shown)} more like these; --all shows them", "aside"))
        screen.gap()
        mark, style = (screen.marks.bad, "bad") if groups else (screen.marks.ok, "ok")
        screen.say((f"{mark} {self.score()}", style))
        if rest := self._rest():
            screen.say((rest, "aside"))
        if shown:
            first = shown[0][0]
            screen.do_next(f"write a test that fails with the change at line {first.line}")

    def document(self) -> Document:
        found = self.measured
        counts = {fate: len(found.of_fate(fate)) for fate in ("killed", "equivalent", "survived")}
        return {
            "outcome": "found" if counts["survived"] else "nothing-found",
            **pick(found, "module", "suite", "tests", "seconds", "unproved"),
            "sample": self.percent,
            **counts,
            "score": self._share(),
            "survivors": [
                {"bug": bug_of(trial.mutation), **plain(trial)}
                for trial in found.of_fate("survived")
            ],
        }

    def _share(self) -> float:
        killed, alive = (len(self.measured.of_fate(fate)) for fate in ("killed", "survived"))
        return killed / max(1, killed + alive)

    def score(self) -> str:
        """One sentence with the figures."""
        killed, alive = (len(self.measured.of_fate(fate)) for fate in ("killed", "survived"))
        so = f"{plural(alive, 'bug')} would not be noticed" if alive else "every bug is noticed"
        return f"{killed} of {killed + alive} bugs killed ({self._share():.0%}): {so}"

    def _tests(self) -> str:
        return f"{plural(self.measured.tests, 'test')} in {self.measured.suite}"

    def _rest(self) -> str:
        same = len(self.measured.of_fate("equivalent"))
        parts = {
            f"{plural(same, 'mutant')} left out, with which the module does the same": same,
            f"{self.percent} % of all bugs were tried": self.percent < 100,
            f"{plural(self.measured.unproved, 'survivor')} could not be compared, and may do so "
            "too": self.measured.unproved,
        }
        return "; ".join(text for text, holds in parts.items() if holds)


def _alike(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """The survivors by line and bug."""
    for _, group in groupby(trials, key=lambda trial: (trial.line, trial.mutation)):
        yield list(group)


def _show_survivor(group: Sequence[Trial], screen: Screen) -> None:
    first = group[0]
    more = f"  and {len(group) - 1} more like it" if len(group) > 1 else ""
    head = f"{screen.marks.bad} {first.base}:{first.line}"
    screen.say((head, "bad"), f"  {first.mutation}", (more, "aside"))
    screen.say(bug_of(first.mutation), indent=2)
    for sign, text, style in (("-", first.before, "red"), ("+", first.after, "green")):
        for line in text.splitlines()[:LINES]:
            screen.print(Text(f"    {sign} {line.strip()}", style=style), soft_wrap=True)
    if first.reason:
        screen.say((f"seen by comparing: {first.reason}", "aside"), indent=2)
