"""What to do after a trace of one's own code: the next step, and what was not given to forward."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from attnlab.records import Job, Report, Trace
from attnlab.target.command_line import TraceCommand, input_flag, quote_word
from attnlab.target.conventions import CACHES, PLAIN, names_mask, usual_feed
from attnlab.target.outline import Parameter, outline_code

NEAR = 3  # operations before a line of Python that raised, for which inputs are blamed first
INSTALLED = {"site-packages", "dist-packages"}  # folders of code that is not the user's to edit


def next_step(typed: TraceCommand, job: Job, report: Report, price: str = "") -> str:
    """What to do next, with a command that can be pasted; `price` is what a triage costs."""
    if report.outcome == "timeout":
        longer = replace(typed, rest=(*typed.rest, "--timeout", f"{job.limits.seconds * 6:g}"))
        return f"if it only needs more time: {longer.command()}"
    trace, guessed = report.trace or Trace(), guessed_inputs(typed, job)
    if not (trace.grave or trace.crash or report.outcome != "ok"):
        checks = replace(typed, verb="triage", rest=(), tiny=False).command()
        cost = f"; {price}" if price else ""
        return (
            f"values and training were not looked at; what can be checked of them: {checks}{cost}"
        )
    at = (*trace.grave, trace.crash)[0]
    if at and INSTALLED & set(PurePath(at.file).parts):
        code = (job.own.module if job.own else None) or "that code"
        return f"{code} is installed: change --init or --input, not its file: {typed.command()}"
    fix = f"fix {at.file}:{at.line}" if at and at.line else "fix it"
    if trace.crash and (doubtful := _doubtful_inputs(typed, trace)):
        flags = " ".join(f"--input {quote_word(text)}" for text in doubtful)
        fix = f"see whether forward takes {flags}; if so, {fix}"
    if trace.crash and guessed and job.contract:
        sizes = ", ".join(f"{k}={v}" for k, v in job.contract.sizes.items())
        command = replace(typed.with_flags(inputs=tuple(guessed)), sizes=sizes).command()
        look = f"look at {trace.crash.file}:{trace.crash.line}" if trace.crash.line else fix
        return f"{look}; the inputs were guessed, and may not be what it takes: {command}"
    return f"{fix}, then {typed.command()}"


def guessed_inputs(typed: TraceCommand, job: Job) -> list[str]:
    """The guessed inputs, as `--input` would give them."""
    if job.contract is None or typed.case:
        return []
    given = _inputs_by_name(typed)
    return [input_flag(entry) for entry in job.contract.inputs if entry.argument not in given]


def unstated_inputs(typed: TraceCommand, job: Job) -> tuple[str, ...]:
    """All guessed inputs, where one has nothing but its name to say its axes; else none."""
    guessed = guessed_inputs(typed, job)
    stated = {p.name for p in _parameters(job) if p.feed}
    return tuple(guessed if any(text.partition(":")[0] not in stated for text in guessed) else ())


def _parameters(job: Job) -> tuple[Parameter, ...]:
    """What the target takes, as its source shows it."""
    code = job.candidate
    if not code.text or code.name is None:
        return ()
    seen = outline_code(code).definitions.get(code.name)
    takes = seen.forward or (seen.build if seen.kind == "function" else None) if seen else None
    return takes.parameters if takes else ()


def omitted_inputs(job: Job) -> list[str]:
    """The arguments of forward that were left at None, as `--input` would give them: those of
    unknown names by their names alone. Further calls are fed with what the first one left."""
    contract = job.contract
    if contract is None:
        return []
    given = {*(entry.argument for entry in contract.inputs), *contract.arguments}
    given |= {job.options.feed, *CACHES} if job.options.calls > 1 else set()
    left = [
        p
        for p in _parameters(job)
        if p.none and p.name not in given and p.annotation.partition(" ")[0] not in PLAIN
    ]
    return [
        f"{p.name}: {feed}" if (feed := p.feed or usual_feed(p.name, p.annotation)) else p.name
        for p in left
    ]


def omission(omitted: Sequence[str]) -> str:
    """What was not looked at, because forward did not get it."""
    names = ", ".join(text.partition(":")[0] for text in omitted)
    known = next((text for text in omitted if ":" in text), f"{omitted[0]}: AXES")
    return f'what forward does with {names} (None here); --input "{known}" gives it'


def untried_inputs(job: Job) -> tuple[str, ...]:
    """A note on what was left at None and is no mask: those are tried in the usual forms."""
    left = [text for text in omitted_inputs(job) if not names_mask(text.partition(":")[0])]
    return (omission(left),) if left else ()


def _doubtful_inputs(typed: TraceCommand, trace: Trace) -> Sequence[str]:
    """The inputs of the command line that what crashed took as they came, or nearly so; none after
    a first call that took them."""
    if trace.crash and trace.crash.call > 1:
        return []
    given = _inputs_by_name(typed)
    if trace.crash and trace.crash.op:
        names = dict.fromkeys(name.partition(".")[0] for name in trace.crash.inputs)
        return [given[name] for name in names if name in given]
    return [*given.values()] if len(trace.ops) <= NEAR else []


def _inputs_by_name(typed: TraceCommand) -> dict[str, str]:
    """The `--input` flags by the argument of forward that each of them gives."""
    return {re.split("[:=]", text)[0].strip(): text for text in typed.inputs}
