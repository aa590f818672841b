"""Turn the report on a file into its verdict. Pure: no files, no processes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attnlab.records import (
    Bug,
    Challenge,
    CheckResult,
    GradeOutcome,
    Report,
    Trace,
    Triage,
    Verdict,
)
from attnlab.target.command_line import TraceCommand, input_flag

if TYPE_CHECKING:
    from attnlab.records.program import ProgramReport

EXIT_CODES: dict[GradeOutcome, int] = {
    "passed": 0,
    "failed": 1,
    "crashed": 1,
    "timeout": 1,
    "memory": 1,
    "unreadable": 2,
    "cannot-compare": 3,
    "error": 70,
}

NO_KERNEL = "no-kernel"  # what it calls is not to be had on this machine
UNKNOWN = ("no-weights", NO_KERNEL)  # why nothing can be said, for or against the file
REFUSED = ("PermissionError", "[Errno 1] ", "[Errno 13] ")  # how the system says that it may not
TRACED = {"output-shape", "finite", "fully-masked-row", "matches-reference", "gradients-match"}
EARLIER = "It went wrong earlier, at "  # how a trace begins what it says of a crash's cause
UNSEEN = "unseen"  # the reason of a check that was skipped because one before it had failed
# How the whole job ended, where that decides the grade before any check does.
_JOB: dict[str, GradeOutcome] = {
    "timeout": "timeout",
    "memory": "memory",
    "crashed": "crashed",
    "unreadable": "unreadable",
    "error": "error",
    "refused": "error",
}
# Why a check ended as it did, where the reason says more than "failed" or "error".
_REASONS: dict[str, GradeOutcome] = {
    "crashed": "crashed",
    "unwritten": "crashed",
    "timeout": "timeout",
    "memory": "memory",
}


def make_verdict(challenge: Challenge, file: str, report: Report) -> Verdict:
    """The verdict on `file`: its outcome and score, the first reason, and what to do next."""
    first = _first(report)
    outcome = _outcome(report, first)
    return Verdict(
        challenge=challenge.slug,
        file=file,
        outcome=outcome,
        score=_score(outcome, challenge, report),
        checks=report.checks,
        isolation=report.isolation,
        seconds=report.seconds,
        message=_message(outcome, first, report) + _progress(outcome, challenge.bugs, report),
        next=_next(outcome, first, challenge, report, file),
        seed=report.seed,
        output=report.output,
    )


def _first(report: Report) -> CheckResult | None:
    """The check that decides: the first that failed, else the first that could not be made.

    A fault of ours comes before a comparison that could not be made.
    """
    failed = next((c for c in report.checks if c.outcome == "failed"), None)
    errors = [c for c in report.checks if c.outcome == "error"]
    serious = next((c for c in errors if c.reason not in UNKNOWN), None)
    return failed or serious or next(iter(errors), None)


def _outcome(report: Report, first: CheckResult | None) -> GradeOutcome:
    if report.outcome != "ok":
        return _JOB[report.outcome]
    if first is None:
        # What rests on the candidate's own word can fail it, but not pass it.
        passed = any(c.outcome == "passed" and c.trusted for c in report.checks)
        return "passed" if passed else "cannot-compare"
    if first.outcome == "failed":
        return _REASONS.get(first.reason, "failed")
    return "cannot-compare" if first.reason in UNKNOWN else _REASONS.get(first.reason, "error")


def _score(outcome: GradeOutcome, challenge: Challenge, report: Report) -> float:
    """1 for a passed file and for no other; else how much of what was wrong is gone."""
    if outcome == "passed":
        return 1.0
    return _bug_score(challenge.bugs, report) if challenge.bugs else _check_score(report.checks)


def _bug_score(bugs: tuple[Bug, ...], report: Report) -> float:
    """The share of the bugs that are gone, by weight; what else fails counts as one bug more."""
    failed = {c.id for c in report.checks if c.outcome == "failed" and not c.folded_under}
    whole = sum(bug.weight for bug in bugs)
    done = fixed_bugs(bugs, report)
    known = {check for bug in bugs if bug not in done for check in bug.checks}
    another = bool(failed - known) or len(done) == len(bugs)
    return sum(bug.weight for bug in done) / (whole + another)


def fixed_bugs(bugs: tuple[Bug, ...], report: Report) -> tuple[Bug, ...]:
    """The bugs whose checks were all made and passed."""
    passed = {c.id for c in report.checks if c.outcome == "passed"}
    return tuple(bug for bug in bugs if passed.issuperset(bug.checks))


def _check_score(checks: tuple[CheckResult, ...]) -> float:
    """The share of the applicable checks that passed; what was not looked at did not."""
    counted = sum(c.outcome != "skipped" or c.reason == UNSEEN for c in checks)
    passed = sum(c.outcome == "passed" for c in checks)
    return passed / max(counted, passed + 1)


_DEFAULT_MESSAGES: dict[GradeOutcome, str] = {
    "failed": "a check failed",
    "crashed": "the file crashed",
    "timeout": "the file did not finish in time",
    "memory": "the file needed more memory than is allowed",
    "unreadable": "the file cannot be read",
    "cannot-compare": "no check could be run, so nothing is known about this file",
    "error": "attnlab failed, not your file",
}


def _message(outcome: GradeOutcome, first: CheckResult | None, report: Report) -> str:
    """One sentence: the outcome and its first reason."""
    if outcome == "passed":
        count = sum(c.outcome == "passed" for c in report.checks)
        return f"passed: {count} of {count} checks hold"
    said = report.message or _crash(report) if report.outcome != "ok" else ""
    if not said and first:
        said = f"{first.id}: {first.message or first.title}"
    return f"{outcome}: {said or _DEFAULT_MESSAGES[outcome]}"


def _progress(outcome: GradeOutcome, bugs: tuple[Bug, ...], report: Report) -> str:
    """How far one is, where there are several bugs and a check tells them apart."""
    gone = f" ({len(fixed_bugs(bugs, report))} of {len(bugs)} bugs are gone)"
    return gone if outcome == "failed" and bugs else ""


def _crash(report: Report) -> str:
    crash = report.trace.crash if report.trace else None
    return f"{crash.file}:{crash.line}: {crash.message}" if crash else ""


def _next(
    outcome: GradeOutcome,
    first: CheckResult | None,
    challenge: Challenge,
    report: Report,
    file: str,
) -> str:
    """The one thing to do now."""
    slug, look = challenge.slug, _trace_command(challenge, file)
    own = {
        "passed": f"attnlab explain {slug} shows the notes: why, how to find it, where it was seen",
        "crashed": _crash_advice(challenge, report, file),
        "timeout": f"fix {first.file}:{first.line}, then grade it again"
        if first and first.line
        else f"{look} shows how far it gets: look for a loop that never ends",
        "memory": f"{look} shows the shapes: look for a tensor that grows",
        "unreadable": "fix the file, then grade it again",
        "cannot-compare": f"keep the parameter names and shapes of {challenge.class_name}, as in "
        f"the file that attnlab start {slug} writes",
        "error": "attnlab doctor tests this machine; please report what it says",
    }
    if first and first.reason == NO_KERNEL:
        own["cannot-compare"] = "use operations that PyTorch supports on a CPU"
    said = f"{report.message} {first.message if first else ''}"
    if outcome == "crashed" and any(word in said for word in REFUSED):
        return report.hint or (
            "a graded file cannot use other files, the network or other processes: "
            "put what it needs into the file, then grade it again"
        )
    advice = first.advice if first and outcome == "failed" else ""
    if first and first.reason == "unwritten":
        advice = f"write what {first.file}:{first.line} leaves open, then grade it again"
    elif first and outcome in ("failed", "crashed"):
        advice = _trace_at(challenge, first, file) or advice
        if first.reason == "crashed" and not first.shown and first.line:
            advice = (
                f"see what {first.file}:{first.line} is given where it raises, in calls of the "
                f"check {first.id} and not in a plain one: attnlab explain {first.id} says which"
            )
    return report.hint or advice or own.get(outcome, f"{look} shows every step")


def _trace_at(challenge: Challenge, failed: CheckResult, file: str) -> str:
    """The command that shows a call at other sizes than the example's; "" where `run` does, and
    where a trace does not show what failed."""
    contract = challenge.contract
    known = {symbol: n for symbol, n in failed.sizes.items() if symbol in contract.sizes}
    crashed, dtype = failed.reason == "crashed", failed.shown
    if not dtype or (dtype == "float32" and (not known or known == contract.sizes)):
        return ""
    other = () if dtype == "float32" else ("--dtype", dtype)
    command = TraceCommand(
        target=challenge.name,
        sizes=", ".join(f"{s}={n}" for s, n in known.items() if known != contract.sizes),
        rest=("--backward",) if "gradient" in failed.message else other,
    )
    if not _is_own_file(challenge, file):
        command = replace(
            command,
            target=f"{file}:{challenge.class_name}",
            init=", ".join(f"{name}={value}" for name, value in contract.init.items()),
            inputs=tuple(map(input_flag, contract.inputs)),
        )
    seen = "the shapes up to the crash" if crashed else "a call at these sizes"
    return f"{command.command()} shows {seen}"


def _crash_advice(challenge: Challenge, report: Report, file: str) -> str:
    if report.outcome == "crashed" and report.trace is None:  # before anything could run
        return "fix what raised there, then grade it again"
    return f"{_trace_command(challenge, file)} shows the shapes up to the crash"


def _trace_command(challenge: Challenge, file: str) -> str:
    """The command that shows what it does: `run` takes a challenge's own file and started ones."""
    if _is_own_file(challenge, file):
        return f"attnlab run {challenge.slug}"
    return f"attnlab trace {file}:{challenge.class_name}"


def _is_own_file(challenge: Challenge, file: str) -> bool:
    """Whether commands that are given the challenge's name take this file: started or shipped."""
    return file.removeprefix("./") == f"{challenge.name}.py" or file.startswith(challenge.slug)


# ---------------------------------------------------------------- rounds


def grade_outcome(report: ProgramReport) -> GradeOutcome:
    """The outcome of a grade as a whole: with the bugs done, that of the stage that is open."""
    done = report.outcome == "passed" and not report.passed
    return "failed" if done else report.outcome


def next_of_round(
    report: ProgramReport, name: str, yours: bool, *, graded: bool, ended: bool = False
) -> str:
    """The one thing to do after a program was trained or graded; `ended`: its bugs are named."""
    again = f"attnlab grade {name}"
    if not yours and report.outcome != "passed":
        return f"attnlab start {name} writes ./{name}/; fix its files, then {again}"
    crashed = report.outcome in ("crashed", "timeout", "memory")
    if not graded and not crashed:
        so = "goals do not show every mistake: " if report.outcome == "passed" else ""
        return f"{so}{again} compares every part with the right program"
    if report.outcome == "passed":
        return "attnlab interview start draws another round"
    if not report.parts or crashed:
        run = f"attnlab run {name}"
        shown = {"crashed": "the step", "timeout": "the line at which the time was up"}
        shows = shown.get(report.outcome) if graded else None
        then = f"{run} shows {shows}" if shows else f"then {run if not graded else again}"
        return f"{report.hint or _remedy(report.message)}; {then}"
    if ended:
        return (
            f"attnlab solution {name} shows every change; "
            f"attnlab start {name} --force --seed N draws another round"
        )
    return (
        f"attnlab run {name} trains it and shows the loss; attnlab hint {name} gives a hint; "
        f"{again} --reveal ends the round and names parts and bugs"
    )


def _remedy(message: str) -> str:
    """What to do about a program that did not get to its end."""
    if any(word in message for word in (*REFUSED, "name resolution")):
        return "a program cannot use files, the network or other processes: leave that out"
    if "ModuleNotFoundError" in message:
        return "a program is graded with PyTorch and its own files alone: leave the import out"
    late = "did not answer in time" in message
    return "look for a loop that never ends" if late else "fix that"


NEAR = 2  # lines before and after a failure whose operations belong to it
FEW = 9  # operations that are read at a glance


def steps_around(trace: Trace, verdict: Verdict) -> Trace:
    """The operations at the line of the first failure and near it, or the last before a crash;
    without findings, which would spoil a puzzle."""
    line = next((c.line for c in verdict.checks if c.outcome == "failed" and c.line), None)
    at = trace.crash.line if trace.crash else line
    near = [op for op in trace.ops if at and op.line and abs(op.line - at) <= NEAR]
    if not near:  # no line is known: the end is nearest to what came out
        near = list(trace.ops)
    return replace(trace, ops=tuple(near[-FEW:]), findings=(), notes=(), calls=())


def hide_findings(trace: Trace) -> Trace:
    """The trace of all calls without findings and the explanation of a crash that repeats them."""
    crash = trace.crash
    if crash:
        crash = replace(crash, explanation=crash.explanation.partition(EARLIER)[0].rstrip())
    calls = tuple(replace(call, trace=hide_findings(call.trace)) for call in trace.calls)
    return replace(trace, findings=(), crash=crash, calls=calls)


def hide_suspicions(triage: Triage) -> Triage:
    """Only the crash is left of what is suspected, as it is of a trace."""
    crashes = (s for s in triage.suspicions if s.rule == "crash")
    shown = (replace(s, message=s.message.partition(EARLIER)[0].rstrip()) for s in crashes)
    return replace(triage, suspicions=tuple(shown))
