"""The pipeline: a job goes in, a report comes out, always.

    load -> trace -> check -> report

Each stage makes the record that the next one reads. The candidate answers through a host and may
raise, hang, die or lie at any step; what it does becomes part of the report.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import replace
from typing import Self

from attnlab.candidate.host import Died, Host, Raised, Spawn, checked_answer
from attnlab.candidate.session import HUNG
from attnlab.errors import Refused
from attnlab.grading.cost_stage import count_cost
from attnlab.grading.diff_stage import compare
from attnlab.grading.example_run import surroundings
from attnlab.grading.fit_stage import fit_inputs
from attnlab.grading.live_stage import find_parts, find_properties
from attnlab.grading.plain_call import with_plain_call
from attnlab.grading.refusals import Refusal, build_refusal, device_refusal, input_refusal
from attnlab.grading.runner import run_checks
from attnlab.grading.trace_stage import trace_example
from attnlab.grading.training_stage import watch_training
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.pacing import CallTimes
from attnlab.probe.probe import GradingContext
from attnlab.probe.reference import (
    USES,
    BadReference,
    FileReference,
    Reference,
    ReferenceCache,
    UnitReference,
)
from attnlab.probe.source_text import numbers_in
from attnlab.records import (
    CheckResult,
    Code,
    Contract,
    Fit,
    Job,
    JobOutcome,
    LiveReport,
    Report,
    Trace,
)
from attnlab.records.cost import CostReport
from attnlab.records.diagnosis import DiffReport
from attnlab.sizes import constructor_arguments, with_head_dim

CALLS = 250  # more than a right file is called in a grade
LONGEST = 3600  # seconds that --timeout takes


def run_job(job: Job, spawn: Spawn, references: ReferenceCache | None = None) -> Report:
    """Load the candidate, trace it, check it. A solution stays in `references` for the next job."""
    started = time.monotonic()
    seed = job.seed if job.seed is not None else secrets.randbits(31)
    outcome: JobOutcome = "ok"
    message = hint = ""
    refusal: Refusal | None = device_refusal(job)
    if refusal:
        return Report(outcome="refused", message=refusal.message, hint=refusal.hint)
    trace: Trace | None = None
    checks: tuple[CheckResult, ...] = ()
    live, training, diff, cost, ablation, fit = LiveReport(), None, None, None, None, None
    with Hosts(job, spawn, started + job.limits.seconds, references or ReferenceCache()) as hosts:
        try:
            fit = _fitted(job, hosts)
            if {"trace", "cost"} & set(job.stages):
                trace, cost = _traced(job, hosts)
                outcome, message = _memory(trace)
                refusal = input_refusal(job, trace)
            if "training" in job.stages:
                host, renew = hosts.candidate(), lambda: hosts.candidate(fresh=True)
                training = watch_training(job, host, renew)
            if "check" in job.stages and job.own is not None:
                host = hosts.candidate(fresh=trace is not None and job.contract is None)
                if not (trace and trace.crash):
                    live, training = find_properties(job, host)
            elif job.contract is not None and {"check", "diff"} & set(job.stages):
                checks, diff, slow = _compared(job, hosts, seed)
                outcome, message, hint = slow or (outcome, message, hint)
            if "ablation" in job.stages and not (trace and trace.crash):
                ablation = find_parts(job, hosts.candidate())
        except (Raised, Refused) as error:
            outcome, message, refusal = _ending(job, error)
        except Died as death:
            outcome, message = death.reason, f"{job.candidate.file} {death}"
        return Report(
            outcome="refused" if refusal and job.own else outcome,
            message=refusal.message if refusal else message,
            hint=refusal.hint if refusal else hint,
            target=shown_target(job),
            trace=trace,
            promises=live.promises,
            checks=checks or live.checks,
            training=training,
            diff=diff,
            cost=cost,
            ablation=ablation,
            fit=fit,
            output=hosts.printed(),
            isolation=hosts.isolation,
            missing=hosts.missing,
            seconds=time.monotonic() - started,
            seed=seed,
        )


def _traced(job: Job, hosts: Hosts) -> tuple[Trace, CostReport | None]:
    """The trace of the example, and what it costs where that is asked."""
    if "cost" in job.stages:
        return count_cost(job, hosts.candidate())
    return trace_example(job, hosts.candidate(), lambda: hosts.candidate(fresh=True)), None


def _fitted(job: Job, hosts: Hosts) -> Fit | None:
    """The inputs that were found by trying, where that is asked."""
    return fit_inputs(job, hosts.candidate()) if "fit" in job.stages else None


def _compared(
    job: Job, hosts: Hosts, seed: int
) -> tuple[tuple[CheckResult, ...], DiffReport | None, tuple[JobOutcome, str, str] | None]:
    """What the checks say, or how it differs from the reference; and of a file that is too slow to
    be graded the outcome, what to say and what to do."""
    if "diff" in job.stages:
        return (), compare(lambda: _grading_context(job, hosts, seed), job), None
    context = _grading_context(job, hosts, seed)
    checks = with_plain_call(context, run_checks(context))
    if context.too_slow and not any(check.outcome == "failed" for check in checks):
        return checks, None, ("timeout", *_too_slow(job, context.times))
    return checks, None, None


def _ending(job: Job, error: Raised | Refused) -> tuple[JobOutcome, str, Refusal | None]:
    """The outcome and message of a job that raised, and what helps."""
    if isinstance(error, Refused):
        return "refused", str(error), Refusal(str(error), error.hint)
    return _outcome_of(error), _crash_message(job, error), build_refusal(job, error)


def _outcome_of(error: Raised) -> JobOutcome:
    if error.error == HUNG:
        return "timeout"
    return "memory" if error.memory else "crashed"


def _too_slow(job: Job, times: CallTimes) -> tuple[str, str]:
    """What to say, and what to do next."""
    seconds = f"{job.limits.seconds:g} seconds"
    message = (
        f"{job.candidate.file} is too slow to be graded in {seconds}: a call takes about "
        f"{times.mean:.2g} s; nothing wrong was found in the first {times.count}"
    )
    more = max(math.ceil(times.mean * CALLS), 2 * math.ceil(job.limits.seconds))
    return message, f"make forward faster, or grade it with --timeout {min(more, LONGEST)}"


def _memory(trace: Trace) -> tuple[JobOutcome, str]:
    """A crash for want of memory is a limit that was met, not a mistake of shapes."""
    crash = trace.crash
    if crash and (crash.error == "MemoryError" or "allocate memory" in crash.message):
        return "memory", f"{crash.file}:{crash.line}: out of memory: {crash.message}"
    return "ok", ""


def _grading_context(job: Job, hosts: Hosts, seed: int) -> GradingContext:
    assert job.contract is not None
    host, reference = hosts.candidate(), hosts.reference()  # a file that does not load needs none
    return GradingContext(
        contract=job.contract,
        name=job.candidate.name,
        host=host,
        renew=lambda: hosts.candidate(fresh=True),
        dice=Dice(seed),
        reference=reference,
        text=job.candidate.text,
        # Without one, nothing says that a number is no limit that may be set.
        numbers=numbers_in(job.candidate.text) if reference else (),
        full=job.full,
        quick=job.quick,
        only=frozenset(job.only),
        until=job.until,
    )


class Hosts:
    """The processes of one job: the candidate's, replaced when it dies, and the reference's."""

    def __init__(self, job: Job, spawn: Spawn, deadline: float, references: ReferenceCache) -> None:
        self.job, self.spawn, self.deadline, self.references = job, spawn, deadline, references
        self.candidates: list[Host] = []
        self.solution: FileReference | None = None
        self.isolation: tuple[str, ...] = ()
        self.missing: tuple[str, ...] = ()

    def candidate(self, fresh: bool = False) -> Host:
        """The latest host, or a fresh one, with the candidate's source loaded."""
        if self.candidates and not fresh:
            return self.candidates[-1]
        host = self.spawn(self.job.limits, self.job.own is not None, self.deadline)
        self.candidates.append(host)
        self.isolation, self.missing = host.isolation, host.missing
        if self.job.contract is not None:  # without one, the file's own demo builds and feeds
            checked_answer(host.ask("load", **surroundings(self.job)))
        return host

    def reference(self) -> Reference | None:
        asked = self.job.reference
        if not isinstance(asked, Code):
            return UnitReference(asked, _allowing(self.job.contract)) if asked else None
        contract = self.job.contract
        self.solution = self.references.take(asked, contract, self.deadline)
        if self.solution is None:
            limits = self.job.limits  # of one job; the process is there for many
            limits = replace(limits, seconds=limits.seconds * USES, rings=False)
            own = self.job.reference_own
            host = self.spawn(limits, own is not None, self.deadline)
            try:
                self.solution = FileReference(asked, host, contract, own)
            except BadReference:
                host.close()
                raise
        return self.solution

    def printed(self) -> str:
        return "".join(h.printed for h in self.candidates)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for host in self.candidates:
            host.close()
        if self.solution:
            self.references.put(self.solution)


def _allowing(contract: Contract | None) -> list[str]:
    """The masks that are True where a key may be attended to."""
    inputs = contract.inputs if contract is not None else ()
    return [i.name for i in inputs if i.role == "mask" and not i.forbids]


def shown_target(job: Job) -> str:
    """`MultiHeadSelfAttention(embed_dim=8, num_heads=2)`."""
    name = job.candidate.name or job.candidate.file
    if job.contract is None:
        return name
    sizes = with_head_dim({**job.contract.sizes, **job.at})
    init = constructor_arguments(job.contract.init, sizes)
    return f"{name}({', '.join(f'{k}={_as_python(v)}' for k, v in init.items())})"


def _as_python(value: object) -> str:
    """As Python would say it; an object that is yet to be made as it will be."""
    return value if isinstance(value, str) and value.endswith(")") else repr(value)


def _crash_message(job: Job, error: Raised) -> str:
    place = f"{error.file}:{error.line}: " if error.line else ""
    if error.error == HUNG:
        source = f": {error.source}" if error.source else ""
        return f"{place}still running after {job.limits.seconds:g} seconds{source}"
    doing = f"importing {job.candidate.file}" if error.verb == "load" else shown_target(job)
    return f"{place}{doing} raised {error}"
