from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Force, Json, catalogue, emit, limits, note, parse_seed
from attnlab.commands.target_flags import OWN_TIME, NamedTarget, takes_target

if TYPE_CHECKING:
    from attnlab.records import Challenge, Job, Report
    from attnlab.worker.client import Worker

PLACE = 23
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Draw this bug again.")]
Crash = Annotated[bool, typer.Option("--crash", help="It may also be a bug that raises.")]


@takes_target
def command(
    named: NamedTarget,
    seed: Seed = "",
    crash: Crash = False,
    force: Force = False,
    json: Json = False,
) -> int:
    """Hide a bug in a copy of your own module, for you to find.

    Your file is not changed. The copy is graded against it with attnlab grade; hint helps in steps,
    and solution shows the change.
    """
    from dataclasses import replace

    from attnlab.catalogue.starter import write_starter
    from attnlab.doctor import isolated_worker
    from attnlab.errors import Refused
    from attnlab.mutation_testing.drawing import Drawer
    from attnlab.render.drawn import DrawnPage
    from attnlab.target.drawn import base_text, drawn_seed, own_challenge, write_drawn

    number = drawn_seed(parse_seed(seed))
    job = named.job(limits(OWN_TIME, ""))
    named.announce("looking at", job)
    with isolated_worker(note, own=True) as worker:
        report = worker.run_job(replace(job, stages=("trace", "check")))
        _must_run(named, job, report)
        own = _gradable(worker, own_challenge(job, report, number))
        note("looking for a bug that can be seen")
        bug = Drawer(own, job.candidate.text, worker).draw(number, crashes=crash)
    if bug is None:
        hint = "try another --seed, or --crash, which allows bugs that raise"
        raise Refused(
            f"no bug was found that an experiment shows in {named.name}", hint, named.name
        )
    write_drawn(own.slug, base_text(own), {"solution.py": job.candidate.text}, bug)
    kept = catalogue(named.ctx, anew=True).find(own.slug)
    path = Path(job.candidate.path)
    folder = Path(f"{path.stem}-sabotaged")
    folder.mkdir(exist_ok=True)
    file, _ = write_starter(kept, folder / path.name, replace=force)
    return emit(DrawnPage(challenge=kept, seed=number, file=file), json)


def _must_run(named: NamedTarget, job: Job, report: Report) -> None:
    """Raise `Refused` where the module cannot be built and called as `attnlab trace` would."""
    from dataclasses import replace

    from attnlab.errors import Refused

    look = replace(named.typed, verb="trace").command()
    if job.contract is None or job.candidate.name is None:
        raise Refused(
            f"{named.name}: a demo makes its own inputs", "name its class, as file.py:Net"
        )
    crash = report.trace.crash if report.trace else None
    if crash:
        says = f"{crash.file}:{crash.line}: {crash.error}: {crash.message}"
        raise Refused(f"{named.name} does not run as it is: {says}", f"{look} shows every step")
    if report.outcome != "ok" or report.trace is None:
        hint = report.hint or f"{look} says more"
        raise Refused(f"{named.name} does not run: {report.message or report.outcome}", hint)
    if job.contract.containers or job.contract.arguments:
        hint = "a graded module is fed with tensors alone: give the other arguments defaults"
        raise Refused(f"{named.name} takes an argument that is no tensor", hint, named.name)


def _gradable(worker: Worker, own: Challenge) -> Challenge:
    """The challenge with the promises that the module keeps, and the sizes that it takes."""
    from dataclasses import replace

    from attnlab.errors import Refused
    from attnlab.mutation_testing.drawing import Drawer

    text = Path(own.solution).read_text(encoding="utf-8")
    contract, verdict = own.contract, None
    for promises in dict.fromkeys((contract.promises, ())):
        for vary in ("BSDH", "BS", "B", ""):
            fits = tuple(symbol for symbol in vary if symbol in contract.sizes)
            tried = replace(own, contract=replace(contract, vary=fits, promises=promises))
            verdict = Drawer(tried, text, worker).grade(text, 0)
            if verdict.outcome == "passed":
                return tried
    said = verdict.message if verdict else ""
    hint = "a graded file stands alone, and gives the same for the same inputs"
    raise Refused(f"{Path(own.solution).name} is not graded as equal to itself: {said}", hint)
