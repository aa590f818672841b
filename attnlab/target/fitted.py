"""Jobs for modules whose inputs are found by trying, where source and names do not say them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from attnlab.errors import Refused
from attnlab.records import Fit, Job, Limits, Report, TraceOptions
from attnlab.records.job import Stage
from attnlab.target.command_line import TraceCommand, input_flag
from attnlab.target.find_target import Answer, split_target
from attnlab.target.infer import Unsized
from attnlab.target.infer_inputs import Unfed
from attnlab.target.outline import outline_code
from attnlab.target.resolve import own_job
from attnlab.target.source import read_source

STAGES: tuple[Stage, ...] = ("trace", "check")  # of a demo
PARTS = {"q", "k", "v", "query", "key", "value", "queries", "keys", "values"}
Run = Callable[[Job], Report]


def guessed_job(
    typed: TraceCommand,
    *,
    limits: Limits | None = None,
    options: TraceOptions | None = None,
    answer: Answer | None = None,
) -> Job:
    """The job of a user's own module; where nothing says what an argument is, it stands in
    `unknown`, and the job is to be fitted before it runs."""
    fed, unknown = typed, tuple[str, ...]()
    for _ in range(2):  # its inputs, and their width
        try:
            job = own_job(fed, limits=limits, options=options, answer=answer)
            break
        except Unfed as error:
            fed, unknown = fed.with_flags(inputs=error.proposed), error.names
        except Unsized as error:
            fed = fed.with_flags(sizes=error.proposed)
        except Refused:
            demo = None if answer else _demo_of(typed)
            if demo is None:
                raise
            return own_job(demo, limits=limits, options=options)
    else:
        job = own_job(fed, limits=limits, options=options, answer=answer)
    if fed is not typed and not unknown and job.contract:
        unknown = tuple(i.argument for i in job.contract.inputs if i.dtype == "float")
    if job.contract is None or answer or typed.case or job.contract.containers:
        return job
    if not unknown:  # `values` alone is no part of an attention
        names = {i.argument for i in job.contract.inputs}
        unknown = tuple(names & PARTS) if len(names & PARTS) == 1 else ()
    said = {text.partition(":")[0].partition("=")[0].strip() for text in typed.inputs}
    guessed = tuple(i.argument for i in job.contract.inputs if i.argument not in said)
    stated = tuple(word.partition("=")[0].strip() for word in typed.sizes.split(",") if word)
    return replace(job, guessed=guessed, unknown=unknown, stated=stated)


def fitted_command(typed: TraceCommand, job: Job, run: Run) -> TraceCommand | None:
    """The command with inputs and sizes with which a call runs to its end; None for none."""
    if not job.guessed:
        return None
    fit = run(replace(job, stages=("fit",))).fit
    return _command(typed, job, fit) if fit else None


def _command(typed: TraceCommand, job: Job, fit: Fit) -> TraceCommand:
    before = job.contract.sizes if job.contract else {}
    old = {i.name: i for i in job.contract.inputs} if job.contract else {}
    changed = (i for i in fit.inputs if old.get(i.name) != i or i.argument in job.unknown)
    flags = [input_flag(i) for i in changed if i.argument in job.guessed]
    known = job.contract.arguments if job.contract else {}
    flags += [f"{name} = {value}" for name, value in fit.arguments.items() if name not in known]
    named = {axis for i in fit.inputs for axis in i.axes if job.unknown} - {"B"}
    if any(axis.isdigit() for i in fit.inputs for axis in i.axes):
        named |= {"D", "C", "E"}  # else a number is taken for the model's own width
    sizes = [f"{s}={n}" for s, n in fit.sizes.items() if before.get(s) != n or s in named]
    return typed.with_flags(sizes=", ".join(sizes), inputs=tuple(flags))


def first_fit(
    typed: TraceCommand, job: Job, run: Run, note: Callable[[str], None]
) -> tuple[TraceCommand, Job]:
    """The command and the job to run first: as they are, or, where an argument is unknown, with
    inputs that were found by trying; raises `Refused` where none were found."""
    if not job.unknown:
        return typed, job
    fed = fitted_command(typed, job, run)
    if fed is None and (demo := _demo_of(typed)):
        note(f"no inputs were found with which it runs alone: running the demo of {demo.target}")
        return demo, replace(own_job(demo, limits=job.limits, options=job.options), stages=STAGES)
    if fed is None:
        own_job(typed)  # which says what is missing; where nothing is, its crash tells more
        return typed, replace(job, guessed=(), unknown=())
    found = ", ".join(f'"{text}"' for text in fed.inputs[len(typed.inputs) :])
    note(f"inputs found by trying: {found}; --input changes them")
    return fed, _fitted_job(fed, typed, job)


def _fitted_job(fed: TraceCommand, typed: TraceCommand, job: Job) -> Job:
    """The job of a command with fitted inputs: a length that had to be found is no length that may
    vary."""
    made = own_job(fed, limits=job.limits, options=job.options)
    made = replace(made, stages=job.stages)
    found = {word.partition("=")[0].strip() for word in fed.sizes.split(",")}
    found -= {word.partition("=")[0].strip() for word in typed.sizes.split(",")}
    if made.contract is None:
        return made
    vary = tuple(symbol for symbol in made.contract.vary if symbol not in found)
    return replace(made, contract=replace(made.contract, vary=vary))


def _demo_of(typed: TraceCommand) -> TraceCommand | None:
    """The command for the whole file of a class, where that has a demo of the class and no flag
    describes how it is built or fed."""
    place, name = split_target(typed.target)
    if not name or not place.endswith(".py") or typed.describes_module:
        return None
    seen = outline_code(read_source(Path(place)))
    shown = name in seen.definitions and name in seen.demo_names
    return replace(typed, target=place) if shown else None


def second_fit(
    typed: TraceCommand, job: Job, report: Report, run: Run
) -> tuple[TraceCommand, Job] | None:
    """The command and the job where the first call with guessed inputs crashed and other inputs
    run to the end; None where there are none, or where the user said what it takes."""
    crash = report.trace.crash if report.trace else None
    if crash is None or job.contract is None or crash.call > 1:
        return None
    fed = fitted_command(typed, job, run)
    if fed is None:
        return None
    try:
        return fed, _fitted_job(fed, typed, job)
    except Refused:
        return None
