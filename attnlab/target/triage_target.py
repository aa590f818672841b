"""Turn the target of a triage into a job: a script that trains is watched, a module is traced."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from attnlab.errors import Refused, Unreadable
from attnlab.files import PARSING
from attnlab.records import Job, Limits, Report, TrainingReport
from attnlab.records.job import Stage
from attnlab.target.command_line import TraceCommand
from attnlab.target.conventions import names_mask
from attnlab.target.find_target import Answer, Several, split_target
from attnlab.target.finding_lines import add_source_findings
from attnlab.target.fitted import STAGES, first_fit, guessed_job, second_fit
from attnlab.target.outline import outline_code
from attnlab.target.resolve import own_job, script_job
from attnlab.target.script_flags import flag_values
from attnlab.target.source import read_source
from attnlab.target.source_walk import Function
from attnlab.target.trace_advice import omitted_inputs

STEPS = 20  # of training that are watched
IGNORE = re.compile(r"#\s*attnlab:\s*ignore(?:\[([\w\s,-]*)\])?")
ROOTS = 3  # modules of a file that are looked at one after the other
NO_TRAINING = TrainingReport(steps=0)
ALL = "*"  # a comment that names no rule is about all
BACKWARD = re.compile(r"(^|_)(backward|vjp)$")
# A backward pass sums over what the forward pass keeps: weights over the batch, products of a
# softmax over its queries.
REVERSED = frozenset({"softmax-axis", "batch-contraction"})


def triage_job(
    typed: TraceCommand,
    limits: Limits,
    steps: int = STEPS,
    arguments: tuple[str, ...] = (),
    overfit: float = 0.0,
    answer: Answer | None = None,
) -> Job:
    """The job that looks at the target in all the ways that it allows; one batch is learned for
    `overfit` seconds."""
    limits = replace(limits, seconds=limits.seconds + overfit)
    path = Path(typed.target)
    if typed.target.endswith(".py") and not typed.describes_module:
        code = read_source(path, typed.target)
        if outline_code(code).trains:
            job = script_job(typed.target, limits, arguments)
            return replace(job, stages=("training",), steps=steps, overfit=overfit)
    if arguments:
        hint = "--args are given to a script that trains; a module is built with --init"
        raise Refused(f"--args: {typed.target} is no script that trains", hint, "--args")
    try:
        job = guessed_job(typed, limits=limits, answer=answer)
    except Several as error:
        if not 0 < len(error.roots) <= ROOTS:
            raise
        job = guessed_job(_root(typed, error.roots[-1]), limits=limits)
    return _alone(job, overfit)


def _root(typed: TraceCommand, name: str) -> TraceCommand:
    return replace(typed, target=f"{typed.target}:{name}")


def _other_roots(typed: TraceCommand, job: Job) -> tuple[str, ...]:
    """The modules of a file, besides that of the job, that no other of its classes uses."""
    name = job.candidate.name
    if split_target(typed.target)[1] or not typed.target.endswith(".py") or job.contract is None:
        return ()
    seen = outline_code(job.candidate)
    roots = [root for root in seen.roots if root != name and seen.definitions[root].callable]
    return tuple(roots) if name and 0 < len(roots) < ROOTS else ()


def _alone(job: Job, overfit: float) -> Job:
    """The job that looks at a module; parts are switched off where it is built and fed here."""
    stages: tuple[Stage, ...] = ("trace", "check", "ablation")
    return replace(job, stages=stages if job.contract else stages[:2], overfit=overfit)


def script_arguments(text: str) -> tuple[str, ...]:
    """The words of --args, as a shell would split them; raises `Refused`."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        hint = """as in --args '--data "my file.txt" --lr 0.1'"""
        raise Refused(f"--args {text}: {error}", hint, "--args") from None


def example_flags(job: Job) -> dict[str, str]:
    """Values for the flags of a script that is watched, of the types that its parser asks for."""
    return flag_values(job.candidate.text) if "training" in job.stages else {}


def _module_instead(
    typed: TraceCommand, report: Report, job: Job, run: Callable[[Job], Report]
) -> Job | str:
    """Where a script took no optimizer step: the job that looks at its model alone, or why there
    is none; "" where it need not."""
    script = "training" in job.stages
    if not script or (report.outcome != "timeout" and (report.training or NO_TRAINING).steps):
        return ""
    code = read_source(Path(typed.target), typed.target)
    roots = outline_code(code).roots
    if not roots:
        return "the file defines no module that could be looked at alone"
    try:
        own = replace(typed, target=f"{typed.target}:{roots[-1]}", rest=())
        own, made = first_fit(own, guessed_job(own, limits=job.limits), run, lambda _: None)
    except Refused as error:
        return f"{roots[-1]} alone: {error}. {error.hint}"
    return _alone(made, job.overfit)


def _with_masks(typed: TraceCommand, job: Job) -> Job | None:
    """The job with the optional masks that nothing feeds, where their use tells what they are."""
    texts = [text for text in omitted_inputs(job) if names_mask(text) and ":" in text]
    if not texts or "trace" not in job.stages:
        return None
    try:
        more = own_job(typed.with_flags(inputs=tuple(texts)), limits=job.limits)
    except Refused:
        return None
    return replace(more, stages=job.stages)


def with_demo(
    typed: TraceCommand, job: Job, report: Report, run: Callable[[Job], Report]
) -> Report:
    """The report with what the demo of a file shows, where the job itself builds and feeds its
    module: a demo has arguments and further calls of its own."""
    code, (place, name) = job.candidate, split_target(typed.target)
    crashed = report.outcome != "ok" or (
        report.trace is not None and report.trace.crash is not None
    )
    if not place.endswith(".py") or typed.describes_module:
        return report
    if name and not (crashed and name in outline_code(code).demo_names):
        return report
    if job.contract is None or "trace" not in job.stages or not outline_code(code).demo:
        return report
    demo = replace(job, candidate=replace(code, name=None), contract=None)
    return _add_demo(report, run(replace(demo, stages=tuple(s for s in job.stages if s in STAGES))))


def _add_demo(report: Report, demo: Report) -> Report:
    """The report with what only the demo shows; where one of the two ran, that alone is told."""
    old, new = report.trace, demo.trace
    if demo.outcome != "ok" or new is None:
        return report
    if old is None or old.crash or report.outcome != "ok":
        return report if new.crash else demo
    if new.crash:  # of what a demo needs beside its module, nothing is said
        return demo if new.crash.op else report
    return _add_findings(report, demo, ())


def _add_findings(
    report: Report, more: Report, reached: tuple[str, ...] = ("unused-argument", "unused-input")
) -> Report:
    """The report with what only another run shows, as one with masks; one that crashed may have
    been misfed. Findings of the rules in `reached` are those of the other run alone."""
    old, new = report.trace, more.trace
    if old is None or new is None or old.crash or new.crash or more.outcome != "ok":
        return report
    known = {(f.rule, f.file, f.line) for f in old.findings}
    fresh = [f for f in new.findings if (f.rule, f.file, f.line) not in known]
    kept = [f for f in old.findings if f.rule not in reached]
    failed = {check.id for check in report.checks if check.outcome == "failed"}
    checks = {check.id: check for check in report.checks}
    checks |= {c.id: c for c in more.checks if c.outcome == "failed" and c.id not in failed}
    trace = replace(old, findings=(*kept, *(replace(f, index=None) for f in fresh)))
    return replace(report, trace=trace, checks=tuple(checks.values()))


def _merge_reports(script: Report, module: Report) -> Report:
    """What the script did, with what its model showed."""
    crash = module.trace.crash if module.trace else None
    if module.outcome != "ok" or module.trace is None or crash:  # its inputs were guessed
        why = f"{crash.error}: {crash.message}" if crash else module.message or module.outcome
        return _without_module(script, f"the model alone: {why}")
    return replace(module, training=script.training, output=script.output, message=script.message)


def _without_module(script: Report, why: str) -> Report:
    training = script.training or NO_TRAINING
    told = (*training.not_looked_at, why)
    return replace(script, training=replace(training, not_looked_at=told))


def look_at(
    typed: TraceCommand, job: Job, run: Callable[[Job], Report], note: Callable[[str], None]
) -> Report:
    """All that `run` and the source show of a target, together; `note` is told what is done."""
    others = _other_roots(typed, job)
    if others:
        several, typed = typed, _root(typed, job.candidate.name or "")
        note(f"{several.target} has several modules; also looked at: {', '.join(others)}")
    typed, job = first_fit(typed, job, run, note)
    report, fed = run(job), typed
    other = second_fit(typed, job, report, run)
    if other is not None:
        tried = run(other[1])
        if tried.trace is not None and tried.trace.crash is None:
            (fed, job), report = other, tried
            note(f"it did not run with those inputs; with these it does: {fed.command()}")
    masked = _with_masks(fed, job)
    if masked is not None:
        report = _add_findings(report, run(masked))
    report = with_demo(typed, job, report, run)
    for name in others:
        report = _with_root(report, _root(several, name), job, run)
    report = add_source_findings(report, job)
    alone = _module_instead(typed, report, job, run)
    if isinstance(alone, str):
        return _without_module(report, alone) if alone else report
    note(f"it took no optimizer step: looking at {alone.candidate.name or 'what it runs'} alone")
    return _merge_reports(report, run(alone))


def read_alone(typed: TraceCommand, refused: Refused, limits: Limits) -> tuple[Job, Report] | None:
    """What the text of a file shows where its module could not be built or fed; None where that is
    nothing, or there is no such module."""
    place, name = split_target(typed.target)
    if not place.endswith(".py") or typed.describes_module:  # a flag may be what is wrong
        return None
    code = read_source(Path(place), typed.target)
    if name and name not in outline_code(code).definitions:
        return None
    job = Job(candidate=replace(code, name=None), contract=None, stages=("trace",), limits=limits)
    why = "; ".join(filter(None, (f"running it: {refused}", refused.hint)))
    report = Report(outcome="error", training=TrainingReport(steps=0, not_looked_at=(why,)))
    report = add_source_findings(report, job)
    return (job, report) if report.training and report.training.findings else None


def _with_root(
    report: Report, typed: TraceCommand, job: Job, run: Callable[[Job], Report]
) -> Report:
    """The report with what another module of the file shows."""
    try:
        made = _alone(guessed_job(typed, limits=job.limits), 0.0)
        fed, made = first_fit(typed, made, run, lambda _: None)
    except Refused as error:
        return replace(report, message=report.message or str(error))
    more = run(made)
    other = second_fit(fed, made, more, run)
    return _add_findings(report, run(other[1]) if other else more)


def ignored_lines(files: frozenset[str]) -> dict[tuple[str, int], frozenset[str]]:
    """By file and line: the rules that a comment `# attnlab: ignore[rule]` switches off, and those
    that say nothing of a backward pass that is written by hand."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    for file in files:
        try:
            text = read_source(Path(file), file).text
        except (Unreadable, OSError):
            continue
        found |= {(file, number): REVERSED for number in backward_lines(text)}
        for number, line in enumerate(text.splitlines(), 1):
            if match := IGNORE.search(line):
                rules = [word.strip() for word in (match[1] or "").split(",") if word.strip()]
                found[file, number] = frozenset(rules or [ALL]) | found.get((file, number), set())
    return found


def backward_lines(text: str) -> Iterator[int]:
    """The lines of functions that compute gradients by hand, by their names."""
    try:
        with PARSING:
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, Function) and BACKWARD.search(node.name):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
