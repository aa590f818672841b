"""Validate challenges: each shipped file must fail as expected, and each correct file must pass.

The shipped file fails the checks that its challenge expects, solution and alternatives pass,
mutants are rejected, and no hint gives the fix away. The caller passes the `grade` function.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from difflib import ndiff
from pathlib import Path
from typing import Literal

from attnlab.catalogue.bases import read_decoys
from attnlab.catalogue.patches import read_text
from attnlab.catalogue.renamed_checks import RENAMED
from attnlab.catalogue.texts import (
    edited_solution,
    headings,
    notes_text,
    shipped_code,
    shipped_text,
    solution_text,
)
from attnlab.errors import AttnlabError, Refused, Unreadable
from attnlab.records import Challenge, Code, Verdict, record
from attnlab.suggest import did_you_mean

REJECTED = ("failed", "crashed", "timeout", "memory")
PACKAGE = Path(__file__).parent.parent
SOLUTION = "solution.py"  # as a reference: the challenge's own
CLASS = re.compile(r"^class ([A-Z]\w*)\(", re.MULTILINE)
QUOTE = 8  # shorter lines of a fix are words that a hint may need

Role = Literal["shipped", "solution", "alternative", "mutant"]
GROUPS = (("shipped",), ("solution",), ("alternative",), ("mutant",))  # as they are counted
Grade = Callable[[Challenge, Code], Verdict]


@record
class ChallengeFile:
    """One file of a challenge; its role says which outcome is right."""

    challenge: Challenge
    role: Role
    code: Code


# All in one process; None, or none at all, where a process of its own has to tell.
GradeMany = Callable[[Sequence[ChallengeFile]], Sequence[Verdict | None]]


@record
class Validation:
    """The result of validating one challenge; without problems it is valid."""

    slug: str
    counts: tuple[str, ...]  # right files of all files: shipped, solution, others, mutants, texts
    problems: tuple[str, ...]


def validate(
    challenges: Iterable[Challenge],
    grade: Grade,
    pool: Executor,
    grade_many: GradeMany | None = None,
) -> Iterator[Validation]:
    """Validate each challenge in turn; `pool` grades several bases in parallel.

    Solutions are graded alone. The other files of a base are given to `grade_many`; what comes out
    there as it should is not graded again.
    """

    def problems(files: Sequence[ChallengeFile]) -> list[str]:
        others = [n for n, file in enumerate(files) if file.role != "solution"]
        verdicts = grade_many([files[n] for n in others]) if grade_many else ()
        answers = zip(others, verdicts, strict=False)
        good = {n for n, verdict in answers if verdict and not verdict_problem(files[n], verdict)}
        return ["" if n in good else file_problem(file, grade) for n, file in enumerate(files)]

    todo: list[tuple[Challenge, str, int, int]] = []  # where its files stand among its base's
    bases: dict[str, list[ChallengeFile]] = {}
    for challenge, files in files_to_grade(challenges):
        base = challenge.base or challenge.slug
        known = bases.setdefault(base, [])
        start = len(known)
        # Without a reference every file would come out with the same error.
        known += [] if _unknown_reference(challenge) else files
        todo.append((challenge, base, start, len(known)))
    graded = {base: pool.submit(problems, files) for base, files in bases.items()}
    for challenge, base, start, end in todo:
        files, told = bases[base][start:end], graded[base].result()[start:end]
        roles = [(file.role, text) for file, text in zip(files, told, strict=True)]
        yield make_validation(challenge.slug, roles, GROUPS, text_problems(challenge))


def unreadable_challenge(slug: str, error: AttnlabError) -> Validation:
    """The validation of a challenge that cannot be read."""
    where = f"{error.where}: " if error.where and error.where not in error.message else ""
    return Validation(slug=slug, counts=("-",) * 5, problems=(where + error.message,))


def make_validation(
    slug: str,
    files: Sequence[tuple[str, str]],
    groups: Sequence[tuple[str, ...]],
    texts: Sequence[str],
) -> Validation:
    """The validation of files, each given by its role and its problem or "". Files are counted by
    groups of roles; `texts` are the problems of hints and notes."""
    counts = []
    for roles in groups:
        good = [not problem for role, problem in files if role in roles]
        counts.append(f"{sum(good)}/{len(good)}" if good else "-")
    return Validation(
        slug=slug,
        counts=(*counts, "wrong" if texts else "ok"),
        problems=(*(problem for _, problem in files if problem), *texts),
    )


def files_to_grade(
    challenges: Iterable[Challenge],
) -> Iterator[tuple[Challenge, list[ChallengeFile]]]:
    """The files of each challenge; the right ones of a base are those of its first bug alone."""
    bases: set[str] = set()
    for challenge in challenges:
        files = challenge_files(challenge)
        yield challenge, files[:1] if challenge.base in bases else files
        bases |= {challenge.base} - {""}


def challenge_files(challenge: Challenge) -> list[ChallengeFile]:
    """Every file of a challenge that is graded, first what it ships."""
    found: list[tuple[Role, Code]] = [("shipped", shipped_code(challenge))]
    found += [("solution", _code(challenge, challenge.solution))]
    found += [("alternative", code) for code in other_right_files(challenge)]
    found += [("mutant", _code(challenge, path)) for path in challenge.mutants]
    return [ChallengeFile(challenge=challenge, role=role, code=code) for role, code in found]


def other_right_files(challenge: Challenge) -> list[Code]:
    """The alternatives, and the solution with each decoy of its base."""
    decoys = read_decoys(Path(challenge.folder)) if challenge.base else {}
    return [
        *(_code(challenge, path) for path in challenge.alternatives),
        *(
            Code(file=f"decoys/{name}.py", text=edited_solution(challenge, edits))
            for name, edits in decoys.items()
        ),
    ]


def _code(challenge: Challenge, path: str) -> Code:
    shown = Path(path).relative_to(challenge.folder).as_posix()
    return Code(file=shown, text=read_text(Path(path)), path=path)


def file_problem(case: ChallengeFile, grade: Grade) -> str:
    """Why this file is not graded as it should be, in one line; "" when it is."""
    try:
        verdict = grade(case.challenge, case.code)
    except (Refused, Unreadable) as error:
        return f"{case.code.file}: {error.message}"
    return verdict_problem(case, verdict)


def verdict_problem(case: ChallengeFile, verdict: Verdict) -> str:
    """Why this verdict on a file is not as it should be, in one line; "" when it is."""
    if case.role == "shipped":
        text = _shipped_problem(case.challenge, verdict)
    elif case.role == "mutant":
        good = verdict.outcome in REJECTED
        text = "" if good else f"must be rejected, came out {verdict.outcome}"
    else:
        text = "" if verdict.outcome == "passed" else f"must pass, {_describe_outcome(verdict)}"
    return f"{case.code.file}: {text}" if text else ""


def _shipped_problem(challenge: Challenge, verdict: Verdict) -> str:
    if verdict.outcome not in REJECTED:
        return f"must fail, {_describe_outcome(verdict)}"
    failed = [c.id for c in verdict.checks if c.outcome == "failed"]
    first = next((c.id for c in verdict.checks if c.outcome == "failed" and not c.folded_under), "")
    missing = [name for name in challenge.expected if name not in failed]
    if missing:
        return f"expected {', '.join(missing)} among the failures, which are {', '.join(failed)}"
    if challenge.expected and first != challenge.expected[0]:
        return f"expected {challenge.expected[0]} to be the first failure, it is {first or 'none'}"
    unseen = [bug.id for bug in challenge.bugs if not set(bug.checks) & set(failed)]
    return f"no check of the bug {unseen[0]} is among the failures" if unseen else ""


def _describe_outcome(verdict: Verdict) -> str:
    bad = next((c for c in verdict.checks if c.outcome in ("failed", "error")), None)
    why = f"{bad.id}: {bad.message}" if bad else verdict.message
    return f"came out {verdict.outcome}" + (f" ({why})" if why else "")


# ---------------------------------------------------------------- texts, and how much there is


def text_problems(challenge: Challenge) -> list[str]:
    """What is wrong with hints and notes. `load` has already counted the files."""
    shipped, solution = shipped_text(challenge), solution_text(challenge)
    found = []
    for number, hint in enumerate(challenge.hints, 1):
        quoted = quotes_fix(hint, shipped, solution)
        if quoted:
            found.append(f"challenge.toml: hint {number} quotes the fix: {quoted}")
    found += [*_unknown_reference(challenge), *_unknown_checks(challenge)]
    notes = notes_text(challenge)
    missing = [title for title in headings(challenge) if not _has_heading(notes, title)]
    return found + [f'notes.md: the heading "{title}" is missing' for title in missing]


def _unknown_reference(challenge: Challenge) -> list[str]:
    """The problem of a reference that is no class of `references/`."""
    name = challenge.reference
    if name == SOLUTION:
        return []
    files = (PACKAGE / "references").glob("*.py")
    known = [found for file in files for found in CLASS.findall(file.read_text("utf-8", "replace"))]
    if name in known:
        return []
    hint = did_you_mean(name, known) or f"There are {', '.join(sorted(known))}."
    return [f'challenge.toml: reference = "{name}", which does not exist. {hint}']


def _unknown_checks(challenge: Challenge) -> list[str]:
    """Ids that no check has; the files say which there are."""
    files = (PACKAGE / "checks").glob("*.py")
    known = {file.stem.replace("_", "-") for file in files}
    said = {"expected": challenge.expected}
    said |= {f"[[bugs]] {bug.id}": bug.checks for bug in challenge.bugs}
    return [
        f"challenge.toml: {where} names {name}, which is not a check. {_better_check(name, known)}"
        for where, names in said.items()
        for name in names
        if name not in known
    ]


def _better_check(name: str, known: Iterable[str]) -> str:
    new = RENAMED.get(name)
    return f"It is called {new} now." if new else did_you_mean(name, known)


def quotes_fix(hint: str, shipped: str, solution: str) -> str:
    """The first added line of the fix that `hint` gives away, whatever the spaces; or ""."""
    said = _squeeze(hint)
    diff = ndiff(shipped.splitlines(), solution.splitlines())
    added = [line[2:].strip() for line in diff if line.startswith("+ ")]
    return next((a for a in added if len(_squeeze(a)) >= QUOTE and _squeeze(a) in said), "")


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _has_heading(notes: str, heading: str) -> bool:
    titles = [line.lstrip("#").strip().lower() for line in notes.splitlines() if line[:1] == "#"]
    return heading.lower() in titles
