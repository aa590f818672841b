"""Write the tests that would have caught it.

A class is shown, right as it is. Write a pytest file that does `from layer import CLASS`, and type
its path. What is shown must pass it, and every right file, however that is written; then it is run
on each bug of the class and on generated ones. What counts is how many it sees; one that passes is
shown.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attnlab.catalogue.validate import other_right_files
from attnlab.errors import Refused
from attnlab.files import shown_path
from attnlab.mutation_testing.operators.base import drawn_mutants
from attnlab.mutation_testing.suite import Suite, SuiteProcess, run_unmutated, suite_process
from attnlab.questions.base import Judged, Part, Runner, about, asked
from attnlab.questions.kinds.effect import changed_lines
from attnlab.questions.material import Excerpt, Patched, promised, read_patched
from attnlab.records import Challenge
from attnlab.records.trial import SuiteCandidate, SuiteRequest, SuiteRun
from attnlab.target.source import read_source

MATERIAL = "patched"
ABOUT = ("tests",)  # what it can be asked about
MUTANTS = 12  # generated bugs beside those of the catalogue
GOOD, FAIR = 0.8, 0.4  # shares of bugs that are seen
SECONDS = 60.0  # that the tests may take on one file
MODULE, TESTS = "layer.py", "test_answer.py"


@dataclass(frozen=True)
class Wrong:
    """A file that the tests should reject."""

    text: str
    change: tuple[str, ...]  # as in a diff
    known: bool = False  # a bug of the catalogue, which surely does another thing


def draw(one: Patched, dice: random.Random, runner: Runner) -> Sequence[Part] | None:  # noqa: ARG001
    if one.challenge is None or one.challenge.kind != "debug":
        return None
    challenge, seed = one.challenge, dice.random()
    prompt = (
        f"Which tests would you write for `{one.name}`? Write them into a pytest file that does "
        f"`from layer import {one.name}`."
    )
    part = Part(
        question=asked(prompt, "the path of your pytest file"),
        right=f"at least {GOOD:.0%} of the bugs seen, and every right file passed",
        judge=lambda typed: judge_tests(typed, challenge, wrong_files(one, seed)),
        waits="running the tests on right files, then on wrong ones",
    )
    code = Excerpt(1, one.right).code(MODULE) | {"log": promised(one)}
    return [about(part, code, {"base": one.base, "category": "tests"})]


def wrong_files(one: Patched, seed: float) -> list[Wrong]:
    """Every bug of the base, and some mutants of the right file."""
    assert one.challenge is not None
    bugs = [b for b in read_patched(Path(one.challenge.folder)) if not b.is_right]
    drawn = islice(drawn_mutants(one.right, random.Random(seed)), MUTANTS)
    found = [Wrong(b.text, tuple(text for _, text in changed_lines(b)), True) for b in bugs]
    return found + [Wrong(m.text, (f"- {m.before}", f"+ {m.after}")) for m in drawn]


def judge_tests(typed: str, challenge: Challenge, wrong: Sequence[Wrong]) -> Judged:
    """Run the file on right and wrong ones; raises `Refused` where it cannot be run."""
    path = Path(typed).expanduser()
    read_source(path, typed)  # raises where it is no file of Python
    with running(challenge, path) as (suite, process):
        try:
            run_unmutated(suite, process)
        except Refused as error:
            hint = f"save what is shown as {MODULE} to try them; they must do `from layer import "
            raise Refused(error.message, f"{hint}{challenge.class_name}`", typed) from None
        for code in other_right_files(challenge):
            if (run := _run(process, code.text)).outcome != "passed":
                why = f"{run.test or run.outcome}: {run.message}".strip(": ")
                return Judged("wrong", typed, f"another right file fails it: {why}")
        survivors = [w for w in wrong if _run(process, w.text).outcome == "passed"]
        alive = [w for w in survivors if w.known or _differs(process, suite, w)]
    return _score(typed, len(wrong) - len(survivors), alive)


def _score(typed: str, killed: int, alive: Sequence[Wrong]) -> Judged:
    count = killed + len(alive)
    share = killed / count if count else 1.0
    message = f"{killed} of {count} bugs are seen"
    if alive:
        change = "; ".join(" ".join(line.split()) for line in alive[0].change[:6])
        message += f". One that passes: {change}. Which test would see it?"
    return Judged(
        "right" if share >= GOOD else "partly" if share >= FAIR else "wrong", typed, message
    )


@contextmanager
def running(challenge: Challenge, tests: Path) -> Iterator[tuple[Suite, SuiteProcess]]:
    """The tests beside the right file, in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="attnlab-quiz-") as name:
        folder = Path(name)
        text = Path(challenge.solution).read_text("utf-8")
        (folder / MODULE).write_text(text, "utf-8")
        shutil.copyfile(tests, folder / TESTS)
        suite = Suite(
            root=folder,
            folder=folder,
            module=folder / MODULE,
            tests=folder / TESTS,
            text=text,
            contracts=((challenge.class_name, challenge.contract),),
            spans=((1, len(text)),),
            seconds=SECONDS,
            shown=MODULE,
            shown_tests=shown_path(tests),
        )
        with suite_process(suite, folder) as process:
            yield suite, process


def _run(process: SuiteProcess, text: str) -> SuiteRun:
    return process.ask(SuiteRequest(text=text, seconds=SECONDS), SECONDS)


def _differs(process: SuiteProcess, suite: Suite, one: Wrong) -> bool:
    """Whether a file that passed does another thing than the right one, as far as can be seen."""
    names = tuple(name for name, _ in suite.contracts)
    request = SuiteRequest(
        text=suite.text,
        seconds=SECONDS,
        contracts=suite.contracts,
        candidates=(SuiteCandidate(text=one.text, names=names),),
    )
    found = process.ask(request, SECONDS).comparisons
    return not found or bool(found[0].difference)
