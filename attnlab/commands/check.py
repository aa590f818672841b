from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, complete_slug, emit, note

if TYPE_CHECKING:
    from attnlab.catalogue.program_entries import ProgramEntry
    from attnlab.catalogue.validate import ChallengeFile, Validation
    from attnlab.catalogue.validate_program import ProgramCase
    from attnlab.mutation_testing.measure import Strength
    from attnlab.mutation_testing.measure_all import Measurement
    from attnlab.records import Challenge, Code, Job, Report, Verdict
    from attnlab.records.program import Program, ProgramReport
    from attnlab.run_store import RunStore
    from attnlab.target.rounds import Stage
    from attnlab.worker.client import WorkerPool

PLACE = 200
AT_ONCE = max(2, min(4, os.cpu_count() or 2))  # each worker holds a torch of its own
Slugs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Only these challenges.", autocompletion=complete_slug
    ),
]
MeasureStrength = Annotated[
    bool, typer.Option("--strength", help="Measure the grader with many bugs; takes minutes.")
]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", min=1, help="With --strength: grade N times over.")
]
Percent = Annotated[
    int,
    typer.Option(
        "--sample",
        metavar="PERCENT",
        min=1,
        max=100,
        help="With --strength: try this share of the mutants of each base, always the same.",
    ),
]
Since = Annotated[
    Path | None,
    typer.Option(
        "--since",
        metavar="TABLE",
        help="With --sample: try all mutants of bases that changed since this table.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        help="Keep results in this file, and do not look again at what has not changed.",
    ),
]
Table = Annotated[
    Path | None, typer.Option("--table", metavar="FILE", help="With --strength: write it here too.")
]


def command(
    ctx: typer.Context,
    slugs: Slugs = None,
    strength: MeasureStrength = False,
    seeds: Seeds = 1,
    table: Table = None,
    sample: Percent = 100,
    since: Since = None,
    resume: Resume = None,
    json: Json = False,
) -> int:
    """Validate a catalogue of challenges.

    Every broken file must fail as it should and every solution pass, mutants must be rejected, and
    no hint may quote the fix.
    """
    from attnlab.catalogue.bases import SABOTAGED
    from attnlab.catalogue.load import DRAWN
    from attnlab.catalogue.validate import unreadable_challenge
    from attnlab.render.check import CheckPage
    from attnlab.run_store import RunStore
    from attnlab.worker.client import WorkerPool

    found = catalogue(ctx)
    programs = [p for slug in slugs or () if (p := found.find_program(slug))]
    names = {name for p in programs for name in (p.slug, p.name)}
    modules = [slug for slug in slugs or () if slug not in names]
    wanted = [c for slug in modules for c in found.find_base(slug) or [found.find(slug)]]
    if not slugs:
        wanted = [c for c in found.challenges if c.topic not in (DRAWN, SABOTAGED)]
        programs = list(found.programs)
    store = RunStore(resume)
    with WorkerPool(AT_ONCE) as workers:
        if strength:
            from attnlab.mutation_testing.measure_all import Measurement
            from attnlab.render.strength import StrengthPage

            with ThreadPoolExecutor(AT_ONCE) as pool:
                measurement = Measurement(
                    runner=workers,
                    pool=pool,
                    seeds=range(seeds),
                    measured=store,
                    percent=sample,
                    table=since.read_text(encoding="utf-8") if since and since.exists() else "",
                )
                measured = tuple(_measure(measurement, wanted, programs))
            strong = StrengthPage(measured=measured, seeds=seeds, percent=sample)
            if table:
                table.write_text(strong.markdown(), encoding="utf-8")
            return emit(strong, json, 0 if strong.good else 1)
        broken = () if slugs else zip(found.broken_slugs, found.broken, strict=True)
        examined = [unreadable_challenge(slug, error) for slug, error in broken]
        pool = ThreadPoolExecutor(AT_ONCE)
        try:  # bases fill the time that programs leave
            trained = _examine_programs(workers, store, programs, pool)
            examined += _examine(workers, store, wanted, pool)
            examined += [one.result() for one in trained]
        finally:  # after Ctrl-C nobody waits for a whole program: its worker is ended
            pool.shutdown(wait=False, cancel_futures=True)
    page = CheckPage(examined=tuple(examined))
    return emit(page, json, 1 if page.problems else 0)


def _examine(
    workers: WorkerPool, store: RunStore, challenges: list[Challenge], pool: Executor
) -> Iterator[Validation]:
    from attnlab.catalogue.validate import Validation, validate
    from attnlab.errors import Refused, Unreadable
    from attnlab.run_store import result_key
    from attnlab.target.challenge_job import challenge_job
    from attnlab.verdict import make_verdict

    def job_of(challenge: Challenge, code: Code) -> Job:
        job = challenge_job(challenge, code, stages=("check",))
        if code.path != challenge.file:  # of what is shipped, every failure that is expected
            job = replace(job, until="verdict")
        return job

    def grade(challenge: Challenge, code: Code) -> Verdict:
        return make_verdict(challenge, code.file, workers.run_job(job_of(challenge, code)))

    def grade_many(files: Sequence[ChallengeFile]) -> list[Verdict | None]:
        jobs: dict[int, Job] = {}
        for number, file in enumerate(files):
            with suppress(Refused, Unreadable):
                jobs[number] = job_of(file.challenge, file.code)
        reports = _run_together(workers, jobs)
        return [
            make_verdict(file.challenge, file.code.file, reports[number])
            if number in reports
            else None
            for number, file in enumerate(files)
        ]

    keys = {c.slug: result_key(c.folder, "check", c.slug) for c in challenges}
    known = {slug: one for slug, key in keys.items() if (one := store.get(key, Validation))}
    new = [c for c in challenges if c.slug not in known]
    examined = validate(new, grade, pool, grade_many)
    for number, challenge in enumerate(challenges, 1):
        one = known.get(challenge.slug) or next(examined)
        if not one.problems:
            store.add(keys[one.slug], one.slug, one)
        note(f"checked {number} of {len(challenges)}: {one.slug}")
        yield one


def _run_together(workers: WorkerPool, jobs: dict[int, Job]) -> dict[int, Report]:
    """The reports of jobs that differ in their candidates alone, from one process; none of those
    that ended it."""
    from attnlab.errors import AttnlabError
    from attnlab.records.trial import TrialJob

    reports: dict[int, Report] = {}
    left = dict(jobs)
    while left:
        first = next(iter(left.values()))
        alike = [n for n, job in left.items() if replace(job, candidate=first.candidate) == first]
        codes = tuple(left.pop(n).candidate for n in alike)
        with suppress(AttnlabError):
            job = TrialJob(job=first, right=(), candidates=codes, compare=False)
            results = zip(alike, workers.trials(job).results, strict=True)
            reports |= {n: r for n, tried in results for r in tried.reports if r.checks}
    return reports


def _examine_programs(
    workers: WorkerPool, store: RunStore, entries: list[ProgramEntry], pool: Executor
) -> list[Future[Validation]]:
    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.validate import Validation
    from attnlab.catalogue.validate_program import validate_program
    from attnlab.errors import AttnlabError
    from attnlab.records import Limits
    from attnlab.records.program import ProgramJob
    from attnlab.records.trial import ProgramTrialJob
    from attnlab.run_store import result_key
    from attnlab.target.rounds import SECONDS

    def job_of(program: Program, case: ProgramCase) -> ProgramJob:
        return ProgramJob(
            program=program,
            files=case.files,
            label=program.name,
            stages=_steps(case),
            open_stage=case.stage,
            checks=case.seen_by if case.stage else (),
            seed=case.seed,
            bugs=case.bugs,
            limits=Limits(seconds=SECONDS),
            first_failure=case.to_first_failure,
            every_unit=case.role == "right" and not case.seed,
        )

    def grade(program: Program, case: ProgramCase) -> ProgramReport:
        return workers.run_program(job_of(program, case))

    def try_many(program: Program, cases: Sequence[ProgramCase]) -> list[ProgramReport | None]:
        files = tuple(case.files for case in cases)
        job = ProgramTrialJob(job=job_of(program, cases[0]), candidates=files, compare=False)
        try:
            reports = [result.reports[0] for result in workers.program_trials(job).results]
        except AttnlabError:
            return []  # each will be graded alone
        return [report if report.parts else None for report in reports]

    def examine(entry: ProgramEntry) -> Validation:
        key = result_key(entry.folder, "check", entry.slug)
        one = store.get(key, Validation) or validate_program(
            read_program(Path(entry.folder)), grade, try_many
        )
        if not one.problems:
            store.add(key, one.slug, one)
        note(f"checked {one.slug}")
        return one

    return [pool.submit(examine, entry) for entry in entries]


def _steps(case: ProgramCase) -> tuple[Stage, ...]:
    if case.stage:
        return ("stage",) if case.wrong else ("grade", "stage")
    if case.role == "round":
        return ("grade", "bugs")
    if case.role == "right":  # that its parts are those of itself is asked once
        return ("goals",) if case.seed else ("material", "grade", "goals")
    return ("grade", "goals") if case.goals else ("grade",)


def _measure(
    measurement: Measurement, challenges: list[Challenge], programs: list[ProgramEntry]
) -> Iterator[Strength]:
    count = len(challenges) + len(programs)
    for number, one in enumerate(measurement.strengths(challenges, programs), 1):
        note(f"measured {number} of {count}: {one.slug}, {_counts_so_far(one)}")
        for trial in one.got_past:
            note(f"  {trial.base}:{trial.line} {trial.mutation}: {trial.after.strip()}")
        yield one


def _counts_so_far(one: Strength) -> str:
    """A line for each challenge: with many seeds the table at the end is far away."""
    killed, survived = one.count("killed"), one.count("survived")
    counts = f"{killed} of {killed + survived} killed, {len(one.wrongs)} of {one.right} rejected"
    return f"{counts}, {one.flips} flips"
