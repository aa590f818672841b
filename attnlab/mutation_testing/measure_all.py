"""Measure many bases, one after the other: challenges of one module, and programs."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from attnlab.catalogue.program_entries import ProgramEntry
from attnlab.catalogue.programs import read_program
from attnlab.mutation_testing.measure import ALL, Runner, Strength, VersionGrader
from attnlab.mutation_testing.measure_file import FileVersionGrader
from attnlab.mutation_testing.measure_program import ProgramVersionGrader
from attnlab.records import Challenge
from attnlab.run_store import RunStore, folder_digest, result_key


@dataclass(frozen=True)
class Measurement:
    """How bases are measured."""

    runner: Runner
    pool: Executor
    seeds: Sequence[int]
    measured: RunStore  # what was measured before is taken from there
    percent: int = ALL  # of the mutants of each base
    table: str = ""  # a table of before: what changed since then is measured wholly

    def strengths(
        self, challenges: Sequence[Challenge], programs: Sequence[ProgramEntry]
    ) -> Iterator[Strength]:
        """One for each base, in this order."""
        bases = {challenge.folder: challenge for challenge in challenges}  # bugs of one share it
        for folder, challenge in bases.items():
            grader = partial(FileVersionGrader, challenge, self.runner, self.seeds)
            yield self._strength(folder, grader)
        for entry in programs:
            yield self._strength(entry.folder, partial(self._program_grader, entry))

    def _program_grader(self, entry: ProgramEntry) -> ProgramVersionGrader:
        return ProgramVersionGrader(read_program(Path(entry.folder)), self.runner, self.seeds)

    def _strength(
        self, folder: str, make_grader: Callable[[], VersionGrader[Any, Any]]
    ) -> Strength:
        digest = folder_digest(folder)
        percent = ALL if self.table and digest not in self.table else self.percent
        key = result_key(folder, "strength", list(self.seeds), percent)
        known = self.measured.get(key, Strength)
        if known is not None:
            return known
        strength = make_grader().measure(self.pool, percent)
        strength = replace(strength, digest=digest if percent == ALL else "")
        self.measured.add(key, strength.slug, strength)
        return strength
