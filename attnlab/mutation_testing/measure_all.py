"""Measure many bases, one after the other: challenges of one module, and programs."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from attnlab.catalogue.program_entries import ProgramEntry
from attnlab.catalogue.programs import read_program
from attnlab.mutation_testing.measure import ALL, JobRunner, Strength, measure
from attnlab.mutation_testing.measure_program import ProgramRunner, measure_program
from attnlab.records import Challenge
from attnlab.run_store import RunStore, folder_digest, result_key


class Runner(JobRunner, ProgramRunner, Protocol):
    """Runs both."""


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
        for challenge in bases.values():
            yield self._strength(challenge.folder, self._measure_challenge(challenge))
        for entry in programs:
            yield self._strength(entry.folder, self._measure_program(entry))

    def _strength(self, folder: str, measure_base: Callable[[int], Strength]) -> Strength:
        digest = folder_digest(folder)
        percent = ALL if self.table and digest not in self.table else self.percent
        key = result_key(folder, "strength", list(self.seeds), percent)
        known = self.measured.get(key, Strength)
        if known is not None:
            return known
        strength = replace(measure_base(percent), digest=digest if percent == ALL else "")
        self.measured.add(key, strength.slug, strength)
        return strength

    def _measure_challenge(self, challenge: Challenge) -> Callable[[int], Strength]:
        return lambda percent: measure(challenge, self.runner, self.seeds, self.pool, percent)

    def _measure_program(self, entry: ProgramEntry) -> Callable[[int], Strength]:
        return lambda percent: measure_program(
            read_program(Path(entry.folder)), self.runner, self.seeds, self.pool, percent
        )
