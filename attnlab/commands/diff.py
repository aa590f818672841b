from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, Timeout, limits, note, run_job
from attnlab.commands.output import Html, emit_also
from attnlab.commands.target_flags import OWN_TIME, NamedTarget, takes_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attnlab.records import Job, Report
    from attnlab.records.diagnosis import DiffReport
    from attnlab.target.command_line import TraceCommand

PLACE = 103
CODES = {"same": 0, "different": 1, "crashed": 1, "timeout": 1, "memory": 1, "cannot-compare": 3}
STILL = "still running"  # what a report says of code that hangs
TOO_MUCH = "the values of all its steps are too many to be compared"
Other = Annotated[
    str,
    typer.Argument(
        metavar="REFERENCE",
        help="What works: file.py:Class, ref:Class, package.module:Class, or either @COMMIT.",
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="A TOML file with [weights]: each parameter of yours by those of the reference.",
    ),
]
Checkpoint = Annotated[
    str,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Your weights in place of drawn ones: of torch.save, or safetensors.",
    ),
]
ReferenceCheckpoint = Annotated[
    str, typer.Option("--reference-checkpoint", metavar="FILE", help="Those of the reference.")
]
AllSteps = Annotated[bool, typer.Option("--all-rows", help="Do not fold steps that are equal.")]


@takes_target
def command(
    named: NamedTarget,
    reference: Other,
    weights: Weights = "",
    checkpoint: Checkpoint = "",
    reference_checkpoint: ReferenceCheckpoint = "",
    all_rows: AllSteps = False,
    timeout: Timeout = "",
    html: Html = "",
    json: Json = False,
) -> int:
    """Say where your module parts from one that works, and how.

    Both get the same weights and inputs, in float64. A line is named when your output becomes right
    with the reference's value put there. Where outputs are equal, gradients are compared.
    """
    from attnlab.files import absolute_path
    from attnlab.render.diff import DiffPage
    from attnlab.target.diff_target import diff_job
    from attnlab.target.revision import past_version
    from attnlab.target.trace_advice import omission, omitted_inputs

    target, typed = named.name, named.repeating(reference).typed
    with past_version(target) as (mine, named_mine), past_version(reference) as (past, shown):
        typed = replace(typed, target=mine)
        names = named_mine, shown
        files = [absolute_path(f) if f else "" for f in (checkpoint, reference_checkpoint)]

        def job_of(fed: TraceCommand, plain: bool = False) -> Job:
            job = diff_job(fed, past, limits(timeout or OWN_TIME, ""), weights, names, plain)
            found = fed.inputs[len(typed.inputs) :]  # by trying: not what the user says
            tried = tuple(text.partition(":")[0] for text in found)
            return replace(job, guessed=(*job.guessed, *tried), checkpoints=(files[0], files[1]))

        note(f"comparing {target} with {reference} (your own code: under limits, not isolated)")
        job, report = _compared(typed, past, job_of)
    left = omitted_inputs(job)
    diff = _diff(report, (omission(left),) if left else ())
    page = DiffPage(
        target=target,
        reference=reference,
        reference_says=job.reference_says,
        outcome=diff.outcome if report.diff or diff.message == TOO_MUCH else report.outcome,
        report=diff,
        all_rows=all_rows,
        next=_next(diff, target),
    )
    return emit_also(page, json, CODES.get(page.outcome, 1), html)


def _compared(
    typed: TraceCommand, reference: str, job_of: Callable[..., Job]
) -> tuple[Job, Report]:
    """The job and its report: as guessed, else the first of other ways that works, or the first
    in which both ran."""
    from attnlab.errors import Refused
    from attnlab.target.infer import Unbuilt
    from attnlab.target.infer_inputs import Unfed

    first: tuple[Job, Report] | None = None
    tried: list[tuple[object, ...]] = []
    refused: Refused | None = None
    for fed, plain in _ways(typed, reference):
        try:
            job = job_of(fed, plain)
        except Refused as error:
            if fed is typed and not plain and not isinstance(error, (Unfed, Unbuilt)):
                raise  # nothing else that is tried would help
            refused = refused or error
            continue
        way = job.contract, job.reference_init
        if way in tried:
            continue
        tried.append(way)
        report = run_job(job)
        if report.diff is None or STILL in report.diff.message:
            return job, report  # it would take as long again
        if report.diff.outcome not in ("same", "different"):
            if first is None or (_both_ran(report) and not _both_ran(first[1])):
                first = job, report
            continue
        chosen = "" if plain else fed.init.removeprefix(typed.init)
        _tell(plain, chosen, fed.inputs[len(typed.inputs) :])
        return _with_masks(job, report, lambda flags: job_of(fed.with_flags(inputs=flags), plain))  # noqa: B023
    if first is None:
        assert refused is not None
        raise refused
    return first


def _with_masks(
    job: Job, report: Report, job_of: Callable[[tuple[str, ...]], Job]
) -> tuple[Job, Report]:
    """The job and its report; where outputs are equal without the masks that forward may be given,
    those with them, all together or else one by one, as is said of them or as masks of keys."""
    from attnlab.errors import Refused
    from attnlab.target.trace_advice import omitted_inputs

    masks = [text for text in omitted_inputs(job) if re.search(r":.* bool\b", text)]
    if not masks or report.diff is None or report.diff.outcome != "same":
        return job, report
    best = job, report
    keys = [re.sub(r": S S\b", ": B S", text) for text in masks]
    alone = [(text,) for text in (*masks, *keys)]
    for flags in dict.fromkeys([tuple(masks), tuple(keys), *alone]):
        try:
            other = job_of(flags)
        except Refused:
            continue
        second = run_job(other)
        outcome = second.diff.outcome if second.diff else ""
        if outcome == "different" or (outcome == "same" and len(flags) == len(masks)):
            note(f"with the masks that forward may be given: {', '.join(flags)}")
            return other, second
        if outcome == "same":
            note(f"outputs are equal with {flags[0]} alone, too")
            best = other, second
    return best


def _tell(plain: bool, init: str, inputs: tuple[str, ...]) -> None:
    """How both were built and fed, where that is not as the module alone says."""
    if init:
        note(f"built with {init.lstrip(', ')}, as nothing says it otherwise; --init changes it")
    if plain:
        note("both are built as the defaults of their constructors say; --init changes them")
    if inputs:
        said = ", ".join(f'"{each}"' for each in inputs)
        note(f"inputs as the reference takes them: {said}; --input changes them")


def _both_ran(report: Report) -> bool:
    return report.diff is not None and " raised " not in report.diff.message


def _ways(typed: TraceCommand, reference: str) -> Iterator[tuple[TraceCommand, bool]]:
    """The command, and whether both are built plainly: as guessed, and with the inputs that the
    reference runs with."""
    from attnlab.target.diff_target import fed_by_reference, paired_arguments
    from attnlab.target.find_target import split_target

    name = split_target(typed.target)[1]
    may_be_plain = not (typed.init or typed.sizes or typed.case)
    yield typed, False
    if may_be_plain:
        yield typed, True
    built, theirs = typed, typed.init
    for paired in paired_arguments(typed, reference, name):
        yield typed.with_flags(init=paired.mine), False
        if built is typed:
            built, theirs = typed.with_flags(init=paired.mine), paired.theirs
    fed = fed_by_reference(built, reference, name, run_job, theirs)
    if fed is not None:
        yield fed, False
    if fed is not None and may_be_plain:
        yield fed, True


def _diff(report: Report, untried: tuple[str, ...]) -> DiffReport:
    """What was compared, and what was not."""
    from attnlab.records.diagnosis import DiffReport

    if found := report.diff:
        said = [found.message, *(f"not compared: {text}" for text in untried)]
        same = found.outcome == "same"
        return replace(found, message="; ".join(filter(None, said))) if same else found
    if "over the cap of" in report.message:
        hint = "smaller sizes have fewer, as in --sizes S=3; or compare a part of it: file.py:Layer"
        return DiffReport(outcome="cannot-compare", message=TOO_MUCH, hint=hint)
    return DiffReport(outcome="crashed", message=report.message, hint=report.hint)


def _next(diff: DiffReport, target: str) -> str:
    if diff.diagnosis:
        first = diff.diagnosis[0]
        return f"look at {first.file}:{first.line}, then run this again"
    if diff.outcome == "different" and diff.part == "output":
        return f"attnlab trace {target} shows every step; --all-rows shows which pair up"
    return ""
