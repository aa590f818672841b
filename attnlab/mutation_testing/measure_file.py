"""Grade the right files and the bugs of a challenge or base of one file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.catalogue.validate import other_right_files
from attnlab.mutation_testing.measure import SHIPPED, Bug, Right, Runner, VersionGrader
from attnlab.mutation_testing.operators.base import Mutant, mutants
from attnlab.records import Challenge, Code, Limits, Report
from attnlab.records.trial import TrialJob, TrialResult
from attnlab.target.challenge_job import challenge_job
from attnlab.target.source import read_source
from attnlab.verdict import make_verdict

LIMITS = Limits(seconds=20.0)


class FileVersionGrader(VersionGrader[Code, Report]):
    """Grades files of one challenge."""

    def __init__(self, challenge: Challenge, runner: Runner, seeds: Sequence[int]) -> None:
        self.challenge, self.runner, self.seeds = challenge, runner, tuple(seeds)
        self.slug = challenge.base or challenge.slug
        others = (replace(c, name=challenge.class_name) for c in other_right_files(challenge))
        self.codes = [_read_code(challenge, challenge.solution), *others]
        job = challenge_job(challenge, Path(challenge.solution), stages=("check",), limits=LIMITS)
        self.job = replace(job, candidate=self.codes[0], until="verdict")

    def rights(self) -> list[Right[Code]]:
        """The solution, the alternatives, and the solution with each decoy."""
        return [Right(code.file, code) for code in self.codes]

    def bugs(self) -> Iterator[Bug[Code]]:
        return bugs(self.challenge)

    def grade(self, version: Code, seed: int, *, passed: bool) -> Report:  # noqa: ARG002
        return self.runner.run_job(replace(self.job, candidate=version, seed=seed))

    def try_all(self, versions: tuple[Code, ...]) -> Sequence[TrialResult[Report]]:
        job = TrialJob(
            job=self.job, right=tuple(self.codes[1:]), candidates=versions, seeds=self.seeds
        )
        return self.runner.trials(job).results

    def reason(self, file: str, report: Report) -> str:
        verdict = make_verdict(self.challenge, file, report)
        if verdict.outcome == "passed":
            return ""
        first = next((c for c in verdict.checks if c.outcome in ("failed", "error")), None)
        if verdict.outcome == "error" or first is None:
            return verdict.message
        return f"{first.id}: {first.message}"


def bugs(challenge: Challenge) -> Iterator[Bug[Code]]:
    """Shipped mutants, then generated ones; the same change of the same line comes once."""
    for path in challenge.mutants:
        code = _read_code(challenge, path)
        title = code.text.strip('" \n').partition("\n")[0].strip('" ')
        mutant = Mutant(mutation=SHIPPED, line=1, before="", after=title, text=code.text)
        yield Bug(code.file, code, mutant)
    seen: set[tuple[str, str, str]] = set()
    for path in (challenge.solution, *challenge.alternatives):
        code = _read_code(challenge, path)
        for mutant in mutants(code.text):
            change = (mutant.mutation, mutant.before, mutant.after)
            if change not in seen:
                seen.add(change)
                yield Bug(code.file, replace(code, text=mutant.text), mutant)


def _read_code(challenge: Challenge, path: str) -> Code:
    name = Path(path).relative_to(challenge.folder).as_posix()
    return replace(read_source(Path(path), name), name=challenge.class_name)
