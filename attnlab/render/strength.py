"""How strong the grader is: a row for each challenge, and every bug that got past it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from attnlab.mutation_testing.measure import ALL, Strength
from attnlab.records import plain, record
from attnlab.records.trial import Fate, Trial
from attnlab.render.json import Document
from attnlab.render.screen import Screen, bare_table, plural

GENERATED = (
    "<!-- Made by `make strength`: change the checks or the challenges, then run it again. -->\n"
)
INTRO = Path(__file__).with_name("templates") / "strength.md"
FATES: tuple[Fate, ...] = ("killed", "equivalent", "survived")
COLUMNS = ("challenge", "right files", "rejected", "mutants", "killed", "equivalent", "survived")

SHORT = {"right files": "right", "equivalent": "equal"}  # a row fits 80 columns


@record
class StrengthPage:
    measured: tuple[Strength, ...]
    seeds: int = 1
    percent: int = ALL  # of the mutants of each base

    @property
    def good(self) -> bool:
        return all(one.good for one in self.measured)

    def show(self, screen: Screen) -> None:
        marks = screen.marks
        screen.print(_table(self.measured, screen))
        for one in self.measured:
            for text in one.wrongs:
                screen.gap()
                screen.say((f"{marks.bad} {one.slug} ", "bad"), f"right, and rejected: {text}")
            for trial in one.got_past:
                _show_trial(one.slug, trial, screen)
        screen.gap()
        mark, style = (marks.ok, "ok") if self.good else (marks.bad, "bad")
        screen.say((f"{mark} {self.total()}", style))

    def document(self) -> Document:
        rows = [{**_counts(one), "wrongs": list(one.wrongs)} for one in self.measured]
        bad = [{"challenge": one.slug, **plain(t)} for one in self.measured for t in one.got_past]
        outcome = "ok" if self.good else "found"
        return {"outcome": outcome, "seeds": self.seeds, "challenges": rows, "survivors": bad}

    def markdown(self) -> str:
        """The page `docs/grader-strength.md`."""
        return "\n".join(self._lines()) + "\n"

    def total(self) -> str:
        """One sentence with the figures in all."""
        killed, same, survived = (sum(one.count(fate) for one in self.measured) for fate in FATES)
        rejected = sum(len(one.wrongs) for one in self.measured)
        right = sum(one.right for one in self.measured)
        flips = sum(one.flips for one in self.measured)
        share = killed / max(1, killed + survived)
        return (
            f"{killed} of {killed + survived} bugs killed ({share:.2%}), "
            f"{plural(same, 'equivalent mutant')}, "
            f"{rejected} of {plural(right, 'right file')} rejected, {plural(flips, 'flip')} "
            f"over {plural(self.seeds, 'seed')}"
        )

    def _sampled(self) -> str:
        """What was left out."""
        shown = f"\nOf the mutants of each base {self.percent} % were tried, always the same ones."
        return shown if self.percent < ALL else ""

    def _lines(self) -> Iterator[str]:
        yield from (GENERATED, INTRO.read_text("utf-8"), f"{self.total()}.{self._sampled()}\n")
        yield from _rows(
            COLUMNS, [[str(_counts(one)[c]) for c in COLUMNS] for one in self.measured]
        )
        yield "\n## By mutation\n"
        yield from _rows(("mutation", *FATES), _by_mutation(self.measured))
        survivors = [(o.slug, t) for o in self.measured for t in o.trials if t.fate == "survived"]
        yield "\n## Survivors\n" if survivors else "\nNo mutant survived."
        for slug, t in survivors:
            yield f"* {slug}, `{t.base}:{t.line}`, {t.mutation}: {t.reason}\n"
            yield from ("  ```diff", *(f"  {line}" for line in _diff(t)), "  ```")
        digests = (f"{one.slug} {one.digest}" for one in self.measured if one.digest)
        yield f"\n<!-- measured: {', '.join(digests)} -->"


def _counts(one: Strength) -> dict[str, str | int]:
    return {
        "challenge": one.slug,
        "right files": one.right,
        "rejected": len(one.wrongs),
        "mutants": len(one.trials),
        "killed": one.count("killed"),
        "equivalent": one.count("equivalent"),
        "survived": one.count("survived"),
        "shipped": one.shipped,
        "flips": one.flips,
    }


def _table(measured: tuple[Strength, ...], screen: Screen) -> Table:
    marks = screen.marks
    titles = [*(SHORT.get(title, title) for title in COLUMNS), "flips"]
    table = bare_table("", *titles, right=titles[1:], gap=1)
    for one in measured:
        mark = Text(marks.ok if one.good else marks.bad, style="ok" if one.good else "bad")
        counts = _counts(one)
        cells = [str(counts[column]) for column in (*COLUMNS[1:], "flips")]
        table.add_row(mark, Text(one.slug.rpartition("/")[2], style="name"), *cells)
    return table


def _show_trial(slug: str, trial: Trial, screen: Screen) -> None:
    what = "survived" if trial.fate == "survived" else "judged one way and the other"
    screen.gap()
    screen.say(
        (f"{screen.marks.bad} {slug} ", "bad"),
        f"{trial.base}:{trial.line}  {trial.mutation} {what}: {trial.reason}",
    )
    for line in _diff(trial):
        screen.one_line((f"  {line}", "ok" if line.startswith("+") else "aside"))


def _diff(trial: Trial) -> list[str]:
    before = [f"- {line}" for line in trial.before.splitlines()]
    return before + [f"+ {line}" for line in trial.after.splitlines()]


def _by_mutation(measured: tuple[Strength, ...]) -> list[list[str]]:
    counts = Counter((t.mutation, t.fate) for one in measured for t in one.trials)
    mutations = sorted({mutation for mutation, _ in counts})
    return [[mutation, *(str(counts[mutation, fate]) for fate in FATES)] for mutation in mutations]


def _rows(titles: tuple[str, ...], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
