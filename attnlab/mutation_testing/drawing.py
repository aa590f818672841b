"""Draw a bug for practice: a mutant as a person might have written it, vetted by the grader.

One is taken that two grades with different seeds reject, that an experiment of the command line
shows (a property that fails, a finding of the trace, a line that `grade --reveal` confirms), and
that the grader passes once its edits are undone.
"""

from __future__ import annotations

import ast
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from attnlab.catalogue.bases import SOLUTION
from attnlab.catalogue.folders import BASE_FILE
from attnlab.catalogue.load import DRAWN
from attnlab.catalogue.patches import read_text
from attnlab.catalogue.toml_rules import read_document
from attnlab.checks.base import Check, Tier, load_checks
from attnlab.errors import Refused
from attnlab.mutation_testing.measure import Runner
from attnlab.mutation_testing.operators.base import (
    Edit,
    Mutant,
    Source,
    bug_of,
    category_of,
    changed_lines,
    each_once,
    edits_of,
    load_mutations,
    mutation_named,
)
from attnlab.records import Challenge, Code, Limits, Verdict, record
from attnlab.records.patch import FollowUp
from attnlab.target.challenge_job import challenge_job
from attnlab.target.drawn import DrawnBug, write_drawn
from attnlab.verdict import make_verdict

FAMILIES = ("axes", "expressions", "layers", "masks", "numbers", "positions", "scores", "slices")
KNOWN = tomllib.loads(Path(__file__).with_name("drawing.toml").read_text("utf-8"))
GIVEN_AWAY = re.compile(
    r"\bpass\b|\bTrue if\b|lambda|[-+*/] ?-|-\(-|-0(?![.\w])|~\(?~|\b9000|sqrt\([\w.]+ [-+]"
)
PARENTHESES = re.compile(r"(?<![\w\])])\(([^()]*(?:\([^()]*\)[^()]*)*)\)")  # of no call
WIDEST = 8  # lines that one bug changes
CRASHES = 0.15  # of the challenges
TRIES = 60  # mutants of one module
FEW = 10  # the same where any bug will do, and
UNSEEN = 1  # bugs that no experiment shows, after which a property has to
VALUES = ("matches-reference", "gradients-match")  # that say nothing but that values differ
LIMITS = Limits(seconds=3.0)  # a mutant may hang, and another one is tried
DIFF_LIMITS = Limits(seconds=1.5)  # a bug that takes longer to locate is left for another
LEVELS = {Tier.SHAPE: 1, Tier.FINITE: 1, Tier.SAMPLES: 2, Tier.ORDER: 2, Tier.MASKS: 2}


@record
class Vetted:
    """A mutant that the grader rejects, and what shows it."""

    mutant: Mutant
    edit: tuple[str, str]
    verdict: Verdict
    experiment: str

    @property
    def first(self) -> str:
        """The check that fails first; "" where it crashed before any."""
        return next((c.id for c in self.verdict.checks if c.outcome == "failed"), "")


@dataclass(frozen=True)
class Drawer:
    """Draws bugs for the right file of a challenge."""

    challenge: Challenge  # its solution is the right file
    right: str  # the text of it
    runner: Runner

    def draw(
        self,
        seed: int,
        level: str = "",
        bugs: int = 1,
        *,
        crashes: bool | None = None,
        patient: bool = True,
    ) -> DrawnBug | None:
        """So many bugs, as one; None where none of this level is found. `crashes`: whether they may
        raise; if it is not said, few do, as few real ones do. `patient`: whether many are tried
        before it may raise after all."""
        dice = random.Random(seed)
        if crashes is None:
            crashes = level == "1" or dice.random() < CRASHES
        found: list[Vetted] = []
        unseen = 0
        for mutant in islice(self._shuffled(dice), TRIES if patient else FEW):
            if len(found) == bugs:
                break
            values = patient or (unseen < UNSEEN and not crashes)
            vetted = self.vet(mutant, seed, crashes, values)
            if vetted is None:
                continue
            apart = not any(self._overlap(vetted, other) for other in found)
            if vetted.experiment and apart and level in ("", str(_level(vetted))):
                found.append(vetted)
            unseen += not vetted.experiment
        if len(found) == bugs:
            return self._describe(found)
        hurried = not (patient or crashes)  # bugs that raise are found in no time
        return self.draw(seed, level, bugs, crashes=True, patient=False) if hurried else None

    def _overlap(self, one: Vetted, other: Vetted) -> bool:
        """Whether two bugs change the same or neighbouring text."""
        (a, b), (c, d) = (
            (start, start + len(vetted.edit[0]))
            for vetted in (one, other)
            for start in (self.right.index(vetted.edit[0]),)
        )
        return a <= d and c <= b

    def _shuffled(self, dice: random.Random) -> Iterator[Mutant]:
        """Mutants that a person might have written, no bug and no line much more likely."""
        source, drawn = Source(self.right), list[tuple[str, Edit]]()
        for mutation in load_mutations():
            if mutation.family in FAMILIES and mutation.id not in KNOWN["unreal"]:
                edits = list(edits_of(mutation, source))
                drawn += dice.sample(edits, min(3, len(edits)))
        dice.shuffle(drawn)
        made = each_once(source, sorted(drawn, key=self._is_commented))
        yield from (_tidy(mutant) for mutant in made if not self._stands_out(mutant))

    def _stands_out(self, mutant: Mutant) -> bool:
        """Whether it shows without being understood: words that the module has nowhere, or a name
        that is made and no longer used."""
        before, after = _names(self.right), _names(mutant.text)
        unused = any(after[word] == 1 < count for word, count in before.items())
        odd = GIVEN_AWAY.search(_added(mutant)) and not GIVEN_AWAY.search(mutant.before)
        return unused or bool(odd or {*after} - {*before} - {*KNOWN["common"]})

    def _is_commented(self, drawn: tuple[str, Edit]) -> bool:
        """Whether a comment at the line, or above it, says what would be right."""
        line = self.right.count("\n", 0, min(start for start, _, _ in drawn[1].splices)) + 1
        around = self.right.splitlines()[max(0, line - 2) : line]
        return any("#" in line for line in around)

    def vet(self, mutant: Mutant, seed: int, crashes: bool, values: bool = True) -> Vetted | None:
        """The mutant, if two grades reject it; without an experiment, if none shows it, and one
        grade has to do. `values`: it may be one that only an experiment with its values shows."""
        edit = unique_edit(self.right, mutant.text)
        if edit is None or edit[1].count("\n") > WIDEST:
            return None
        try:
            verdict = self.grade(mutant.text, seed % 1000)
        except Refused:  # in a part that the task says is right
            return None
        wanted = ("failed", "crashed") if crashes else ("failed",)
        if verdict.outcome not in wanted or not verdict.checks:
            return None
        experiment = _seen_by(verdict) or (values and self._experiment(mutant)) or ""
        if experiment and self.grade(mutant.text, seed % 1000 + 1).outcome not in wanted:
            return None
        return Vetted(mutant=mutant, edit=edit, verdict=verdict, experiment=experiment)

    def grade(self, text: str, seed: int) -> Verdict:
        """What `attnlab grade` says of a file."""
        job = challenge_job(self.challenge, self._code(text), stages=("check",), limits=LIMITS)
        report = self.runner.run_job(replace(job, until="reason", seed=seed))
        return make_verdict(self.challenge, f"{self.challenge.name}.py", report)

    def _code(self, text: str) -> Code:
        return Code(file=f"{self.challenge.name}.py", text=text)

    def _experiment(self, mutant: Mutant) -> str:
        """What shows a bug of which values alone tell; "" where nothing does."""
        code = self._code(mutant.text)
        job = challenge_job(self.challenge, code, stages=("diff",), limits=DIFF_LIMITS)
        right = replace(self._code(self.right), name=self.challenge.class_name)
        report = self.runner.run_job(replace(job, reference=right))
        end = mutant.line + mutant.before.count("\n")
        named = [found for found in (report.diff.diagnosis if report.diff else ()) if found.line]
        if any(found.confirmed or mutant.line <= found.line <= end for found in named):
            return "`attnlab grade --reveal` compares values step by step, and names the line"
        if report.outcome == "timeout":
            return ""
        trace = self.runner.run_job(replace(job, stages=("trace",))).trace
        if trace and (trace.crash or trace.grave):
            return "`attnlab run` shows it: look at the rows of the trace"
        return ""

    def _describe(self, found: Sequence[Vetted]) -> DrawnBug:
        checks = {check.id: check for check in load_checks()}
        firsts = [vetted.first for vetted in found]
        bugs = "a bug" if len(found) == 1 else f"{len(found)} bugs"
        return DrawnBug(
            title=f"{self.challenge.title}, with {bugs}",
            level=min(5, max(map(_level, found)) + len(found) - 1),
            category=self._category(found[0]),
            symptom=f"{'; '.join(dict.fromkeys(_symptom(v, checks) for v in found))}.",
            expected=tuple(dict.fromkeys(filter(None, firsts))) or ("output-shape",),
            hints=(
                " ".join(dict.fromkeys(map(_seen, found))),
                " ".join(dict.fromkeys(map(self._where, found))),
                "\n\n".join(f"Look at this:\n\n```python\n{_wrong(v)}\n```" for v in found),
            ),
            why="\n\n".join(map(_why, found)),
            find=" ".join(dict.fromkeys(f"{v.experiment}." for v in found)),
            edits=tuple(v.edit for v in found),
            follow_ups=_questions(found[0], checks),
        )

    def _category(self, vetted: Vetted) -> str:
        """What the line is about, else the bug, else the module."""
        if "mask" in f"{vetted.mutant.before} {vetted.mutant.after}":
            return "mask"
        found = category_of(vetted.mutant.mutation)
        of_positions = found == "attention" and self.challenge.topic == "position"
        return "positions" if of_positions else found

    def _where(self, vetted: Vetted) -> str:
        """What the line makes, and the function that it is in."""
        made = re.match(r"\s*(?:self\.)?(\w+)(?:, \w+)* [-+*/@]?= ", vetted.edit[0])
        makes = f", where `{made[1]}` is made" if made else ""
        about = KNOWN["about"].get(self._category(vetted), "what the module computes")
        return f"It is about {about}: look into `{self._function_of(vetted)}`{makes}."

    def _function_of(self, vetted: Vetted) -> str:
        """The function or class whose head stands last above the change."""
        above = self.right.splitlines()[: vetted.mutant.line]
        heads = re.findall(r"^\s*(?:def|class) (\w+)", "\n".join(above), re.MULTILINE)
        return heads[-1] if heads else self.challenge.class_name


def _seen_by(verdict: Verdict) -> str:
    """Which property shows the bug besides that values differ; "" where none does."""
    failed = [c.id for c in verdict.checks if c.outcome == "failed" and c.trusted]
    seen = next((check for check in failed if check not in VALUES), "")
    return f"`attnlab explain {seen}` says which property fails, and how it is looked at" * bool(
        seen
    )


def unique_edit(right: str, wrong: str) -> tuple[str, str] | None:
    """The lines that differ, with as many around them as make them stand once in the right text."""
    a, b = right.splitlines(keepends=True), wrong.splitlines(keepends=True)
    first, _, _ = changed_lines(right, wrong)
    start, end = first - 1, 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    for around in range(len(a)):
        top, bottom = max(0, start - around), max(0, end - around)
        old = "".join(a[top : len(a) - bottom])
        if old.strip() and right.count(old) == 1:
            return old, "".join(b[top : len(b) - bottom])
    return None


@lru_cache(maxsize=8)  # of the right text for each mutant
def _names(text: str) -> Counter[str]:
    """How often each name stands in the code, whatever comments and texts say."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    return Counter([*names, *(node.attr for node in nodes if isinstance(node, ast.Attribute))])


def _tidy(mutant: Mutant) -> Mutant:
    """The mutant without the parentheses that an operator put around a part, where they mean
    nothing."""
    for line in _added(mutant).splitlines():
        kept = set(PARENTHESES.findall(mutant.before))
        for pair in PARENTHESES.finditer(line):
            bare = f"{line[: pair.start()]}{pair[1]}{line[pair.end() :]}"
            text = mutant.text.replace(line, bare)
            if pair[1] not in kept and _same_code(text, mutant.text):
                return _tidy(replace(mutant, text=text, after=mutant.after.replace(line, bare)))
    return mutant


def _same_code(one: str, other: str) -> bool:
    try:
        return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except SyntaxError:
        return False


def _added(mutant: Mutant) -> str:
    """The lines of the mutant that the right text has not."""
    before = set(mutant.before.splitlines())
    return "\n".join(line for line in mutant.after.splitlines() if line not in before)


def _level(vetted: Vetted) -> int:
    if vetted.verdict.outcome == "crashed" or not vetted.first:
        return 1
    tier = next((c.tier for c in load_checks() if c.id == vetted.first), Tier.VALUES)
    return LEVELS.get(tier, 3 if tier <= Tier.VALUES else 4)


def _symptom(vetted: Vetted, checks: dict[str, Check]) -> str:
    if vetted.verdict.outcome == "crashed" or not vetted.first:
        return "A call raises an exception"
    if vetted.first in VALUES:
        what = "values" if vetted.first == VALUES[0] else "gradients"
        return f"It runs, and its {what} are not those that the task asks for"
    return f"It runs, but this does not hold: {checks[vetted.first].title}"


def _seen(vetted: Vetted) -> str:
    """What a grade saw with numbers, and the experiment that shows more of it."""
    first = next((c for c in vetted.verdict.checks if c.outcome == "failed"), None)
    said = f'"{first.title}" does not hold: {first.message}. ' if first else ""
    return f"{said}{vetted.experiment}."


def _why(vetted: Vetted) -> str:
    """What the bug is, and an example of right and wrong."""
    said, _, example = mutation_named(vetted.mutant.mutation).doc.partition("\n\n")
    return f"{said}\n\n```text\n{example.replace('`', '')}\n```"


def _wrong(vetted: Vetted) -> str:
    """The lines of the bug; where it left something out, what stands around."""
    return _added(vetted.mutant) or vetted.edit[1].strip("\n")


def _questions(vetted: Vetted, checks: dict[str, Check]) -> tuple[FollowUp, ...]:
    check = checks.get(vetted.first)
    test = f"{check.title}: {check.doc.strip().partition(chr(10) * 2)[0]}" if check else "Any call."
    return (
        FollowUp(question="Which property would a test of this have to look at?", answer=test),
        FollowUp(
            question="What is this kind of mistake, and how does the right code look?",
            answer=bug_of(vetted.mutant.mutation),
        ),
    )


def draw_from_base(
    base: Challenge, seed: int, runner: Runner, level: str = "", bugs: int = 1
) -> str:
    """Keep a challenge about one of the right versions of a base, in a folder of its own; returns
    its slug, "" where no bug was found."""
    folder = Path(base.folder)
    paths = [base.solution, *base.alternatives]
    texts = [read_text(Path(path)) for path in paths]
    at = random.Random(seed).randrange(len(paths))
    title = str(read_document(folder / BASE_FILE).data["title"])
    version = replace(base, title=title, solution=paths[at], edits=(), decoys=())
    drawer, any_bug = Drawer(version, texts[at], runner), bugs == 1 and not level
    bug = drawer.draw(seed, level, bugs, patient=not any_bug)
    if bug is None:
        return ""
    slug = f"{DRAWN}/{folder.name}-{seed}"
    files = {SOLUTION: texts[at]}
    files |= {f"alternatives/v{n}.py": text for n, text in enumerate(texts) if n != at}
    write_drawn(slug, read_text(folder / BASE_FILE), files, bug)
    return slug
