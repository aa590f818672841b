"""Measure many bases, one after the other: challenges of one module, and programs."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from attnlab.catalogue.programs import ProgramEntry, read_program
from attnlab.mutation_testing.measure import JobRunner, Strength, measure
from attnlab.mutation_testing.measure_program import ALL, ProgramRunner, measure_program
from attnlab.mutation_testing.resume import MeasuredBases, folder_digest, measurement_key
from attnlab.records import Challenge


class Runner(JobRunner, ProgramRunner, Protocol):
    """Runs both."""


@dataclass(frozen=True)
class Measurement:
    """How bases are measured."""

    runner: Runner
    pool: Executor
    seeds: Sequence[int]
    measured: MeasuredBases  # what was measured before is taken from there
    percent: int = ALL  # of the mutants of a program
    table: str = ""  # a table of before: what changed since then is measured wholly

    def strengths(
        self, challenges: Sequence[Challenge], programs: Sequence[ProgramEntry]
    ) -> Iterator[Strength]:
        """One for each base, in this order."""
        bases = {challenge.folder: challenge for challenge in challenges}  # bugs of one share it
        for challenge in bases.values():
            yield self._strength(challenge.folder, ALL, self._measure_challenge(challenge))
        for entry in programs:
            whole = self.table and folder_digest(entry.folder) not in self.table
            percent = ALL if whole else self.percent
            yield self._strength(entry.folder, percent, self._measure_program(entry, percent))

    def _strength(
        self, folder: str, percent: int, measure_base: Callable[[], Strength]
    ) -> Strength:
        key = measurement_key(folder, list(self.seeds), percent)
        known = self.measured.get(key)
        if known is not None:
            return known
        digest = folder_digest(folder) if percent == ALL else ""
        strength = replace(measure_base(), digest=digest)
        self.measured.add(key, strength)
        return strength

    def _measure_challenge(self, challenge: Challenge) -> Callable[[], Strength]:
        return lambda: measure(challenge, self.runner, self.seeds, self.pool)

    def _measure_program(self, entry: ProgramEntry, percent: int) -> Callable[[], Strength]:
        return lambda: measure_program(
            read_program(Path(entry.folder)), self.runner, self.seeds, self.pool, percent
        )
