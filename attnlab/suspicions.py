"""Turn the report on a user's own code into a ranked list of causes. Pure: no files asked."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from attnlab.catalogue.finding_rules import RULES, Layer
from attnlab.ranked_suspicions import clip_confidence, rank_suspicions
from attnlab.records import CheckResult, Finding, Report, Suspicion, Trace, Triage, record
from attnlab.records.ablation import Ablation
from attnlab.records.triage import TriageOutcome

# How much a finding's severity says beside the confidence of its rule.
WEIGHTS = {"error": 0.3, "warning": 0.1, "note": -0.4}
CUT_SHORT = "Nothing after this line ran, so nothing after it was looked at."
NOTHING = 1e-9  # of an output: no more than rounding
PROPERTY = 0.75  # confidence in a property that does not hold

_TABLES = tomllib.loads((Path(__file__).parent / "catalogue/suspicions.toml").read_text("utf-8"))
PROPERTIES: dict[str, float] = _TABLES["properties"]  # where that is another
ADVICE: dict[str, str] = _TABLES["advice"]  # for a script that took no step, by what ended it


@record
class Wishes:
    """What the user asked of a triage."""

    symptom: str = ""
    only: str = ""  # a layer
    ignored: tuple[str, ...] = ()  # rules
    guessed: tuple[str, ...] = ()  # inputs that neither user nor code states, as --input would
    retry: str = ""  # the command with all inputs that were guessed, to be changed
    flags: Mapping[str, str] = field(default_factory=dict)  # values that a script's flags take


def make_triage(
    target: str,
    report: Report,
    wishes: Wishes,
    ignored_lines: Mapping[tuple[str, int], frozenset[str]] | None = None,
) -> Triage:
    """The ranked list. `ignored_lines` are the rules that comments of the source switch off."""
    found = [
        suspicion
        for suspicion in _suspicions(report, wishes.guessed)
        if (not wishes.only or suspicion.layer == wishes.only)
        and not _is_ignored(suspicion, wishes, ignored_lines or {})
    ]
    ranked = tuple(rank_suspicions(found, wishes.symptom))
    seen = tuple(_looked_at(report))
    outcome = _outcome(report, ranked)
    unseen = outcome == "nothing-found" and not seen
    crash = report.training.crash if report.training else ""
    unfit = _unfit(report, wishes)
    return Triage(
        target=target,
        outcome="error" if unseen else outcome,
        suspicions=ranked,
        looked_at=seen,
        not_looked_at=tuple(_not_looked_at(report)),
        message=unfit or report.message or crash,
        advice=f"say what it takes, by changing this: {wishes.retry}"
        if unfit
        else _advice(target, report, wishes.flags),
        seconds=report.seconds,
    )


def _is_ignored(
    suspicion: Suspicion, wishes: Wishes, lines: Mapping[tuple[str, int], frozenset[str]]
) -> bool:
    here = lines.get((suspicion.file, suspicion.line or 0), frozenset())
    return suspicion.rule in wishes.ignored or not here.isdisjoint((suspicion.rule, "*"))


def _outcome(report: Report, ranked: tuple[Suspicion, ...]) -> TriageOutcome:
    if report.outcome == "timeout" and not ranked:
        return "timeout"
    if any(s.severity != "note" for s in ranked):
        return "found"
    crashed = report.outcome in ("crashed", "memory") or any(t.crash for t in _traces(report))
    if crashed or (report.training is not None and report.training.crash):
        return "crashed"
    return "nothing-found"


def _unfit(report: Report, wishes: Wishes) -> str:
    """What a crash of guessed inputs says: they may be what is wrong, and no line is blamed."""
    crash = report.trace.crash if report.trace else None
    if crash is None or not wishes.guessed or crash.call > 1:
        return ""
    return (
        f"it could not be run with guessed inputs ({', '.join(wishes.guessed)}), which may not be "
        f"what it takes: {crash.file}:{crash.line} {crash.error}: {crash.message.rstrip('.')}. "
        f"{crash.explanation}"
    ).strip()


def _advice(target: str, report: Report, values: Mapping[str, str]) -> str:
    """What to do about a script that took no step; "" where nothing is known to help."""
    training = report.training
    if training is None or training.steps:
        return ""
    if not training.crash and report.outcome == "ok":
        return (
            "it ended without an optimizer step: --args gives a script its arguments; a class or "
            f"function of it is looked at alone as attnlab triage {target}:NAME"
        )
    if needed := re.search(r"arguments are required: (.+)", report.output):
        flags = [flag.split("/")[-1] for flag in needed[1].split(", ")]
        said = [values.get(f, f.lstrip("-").upper() if f.startswith("-") else f) for f in flags]
        words = [f"{f} {v}" if f.startswith("-") else v for f, v in zip(flags, said, strict=True)]
        return f'with your own values: attnlab triage {target} --args "{" ".join(words)}"'
    return next((text for shown, text in ADVICE.items() if re.search(shown, training.crash)), "")


def _traces(report: Report) -> Iterator[Trace]:
    if report.trace is not None:
        yield report.trace
    if report.training is not None and report.training.trace is not None:
        yield report.training.trace


# ---------------------------------------------------------------- what is suspected


def _suspicions(report: Report, guessed: tuple[str, ...]) -> Iterator[Suspicion]:
    for trace in _traces(report):
        if trace.crash is not None and not (guessed and trace.crash.call == 1):
            yield _of_crash(trace)
        yield from (_of_finding(finding, trace) for finding in trace.findings)
    training = report.training
    told = training.crash if training else ""
    surroundings = any(re.search(shown, told) for shown in ADVICE)  # not what the code does
    if told and not surroundings and not any(trace.crash for trace in _traces(report)):
        yield from _of_crash_of_script(told)
    results = (*report.checks, *(training.properties if training else ()))
    yield from (_of_property(check) for check in results if check.outcome == "failed")
    yield from (_of_part(part) for part in _idle_parts(report))
    if training is not None:
        yield from (_of_finding(finding, training.trace) for finding in training.findings)


def _of_finding(finding: Finding, trace: Trace | None) -> Suspicion:
    rule = RULES.get(finding.rule)
    layer: Layer = rule.layer if rule else "trace"
    return Suspicion(
        rank=0,
        layer=layer,
        rule=finding.rule,
        severity=finding.severity,
        confidence=clip_confidence((rule.confidence if rule else 0.6) + WEIGHTS[finding.severity]),
        file=finding.file,
        line=finding.line or None,
        message=finding.message,
        evidence=_row(finding, trace),
        experiment=rule.experiment if rule else "",
        meaning=rule.text if rule else "",
    )


def _row(finding: Finding, trace: Trace | None) -> str:
    """The row that a finding stands at, as the table would show it."""
    if trace is None or finding.index is None or finding.index >= len(trace.ops):
        return ""
    op = trace.ops[finding.index]
    if (op.op, op.line) != (finding.op, finding.line):
        return ""
    numbers = f", {op.min:.3g} to {op.max:.3g}" if op.min is not None and op.max is not None else ""
    return f"{op.op} ({', '.join(op.axes)}){numbers}: {op.source}"


def _of_crash(trace: Trace) -> Suspicion:
    crash = trace.crash
    assert crash is not None
    operands = " and ".join(f"({', '.join(o.axes)})" for o in crash.operands)
    return Suspicion(
        rank=0,
        layer="trace",
        rule="crash",
        severity="error",
        confidence=1.0,
        file=crash.file,
        line=crash.line or None,
        message=f"{crash.error}: {crash.message.rstrip('.')}. {crash.explanation}".strip(),
        evidence=f"{crash.op} of {operands}: {crash.source}" if operands else crash.source,
        experiment="attnlab trace shows the rows before it",
        meaning=CUT_SHORT,
    )


def _of_property(check: CheckResult) -> Suspicion:
    sizes = " ".join(f"{name}={size}" for name, size in check.sizes.items())
    return Suspicion(
        rank=0,
        layer="property",
        rule=check.id,
        severity="error" if check.id == "finite" else "warning",
        confidence=clip_confidence(PROPERTIES.get(check.id, PROPERTY) + WEIGHTS["warning"]),
        file=check.file,
        line=check.line,
        message=f"broken: {_as_clause(check.title)}: {check.message}"
        if check.title
        else check.message,
        evidence=f"at {sizes}" if sizes else "",
        experiment=check.advice,
        meaning=RULES[check.id].text if check.id in RULES else "",
    )


def _idle_parts(report: Report) -> Iterator[Ablation]:
    """What can be switched off without any change, where nothing else was found."""
    parts = report.ablation.parts if report.ablation else ()
    lines = {finding.line for trace in _traces(report) for finding in trace.findings}
    idle = (part for part in parts if part.is_finding and (part.change or 0.0) < NOTHING)
    yield from (part for part in idle if part.line not in lines)


def _of_part(part: Ablation) -> Suspicion:
    rule = RULES["part-without-effect"]
    return Suspicion(
        rank=0,
        layer=rule.layer,
        rule="part-without-effect",
        severity="note",
        confidence=clip_confidence(rule.confidence + WEIGHTS["note"]),
        file=part.file,
        line=part.line or None,
        message=f"{part.what}: {part.message}",
        evidence="the same call without it gives the same output",
        experiment=rule.experiment,
        meaning=rule.text,
    )


def _of_crash_of_script(told: str) -> Iterator[Suspicion]:
    """What ended a script at one of its lines: `train.py:31: KeyError: 'x'`."""
    if match := re.match(r"(?P<file>[^\n]+?):(?P<line>\d+): (?P<message>\w*Error\b.*)", told):
        yield Suspicion(
            rank=0,
            layer="training",
            rule="crash",
            severity="error",
            confidence=1.0,
            file=match["file"],
            line=int(match["line"]),
            message=match["message"],
            evidence="",
            experiment="run the script alone: it ends here as well",
            meaning=CUT_SHORT,
        )


def _as_clause(title: str) -> str:
    """A title behind a colon: small at first, but for an abbreviation."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


# ---------------------------------------------------------------- what was looked at


def _looked_at(report: Report) -> Iterator[str]:
    for trace in _traces(report):
        if trace.ops:
            yield (
                f"the axes, values and flow of {len(trace.ops)} operations"
                f"{f' of {report.target}' if report.target else ''}"
            )
    known = [c for c in report.checks if c.outcome in ("passed", "failed")]
    if known:
        yield f"{len(known)} properties: {', '.join(c.id for c in known)}"
    if report.ablation and report.ablation.parts:
        yield f"{len(report.ablation.parts)} of its parts, each switched off in turn"
    if report.promises:
        yield "promises: " + "; ".join(f"{p.name} ({p.reason})" for p in report.promises)
    if report.training is not None:
        yield from report.training.looked_at
        held = [p for p in report.training.properties if p.outcome in ("passed", "failed")]
        if held:
            yield f"properties of the model on its own batch: {', '.join(p.id for p in held)}"


def _not_looked_at(report: Report) -> Iterator[str]:
    for trace in _traces(report):
        yield from trace.notes
    unsure: dict[str, list[str]] = {}
    live = report.training.properties if report.training else ()
    for check in (*report.checks, *live):
        if check.outcome == "error":
            unsure.setdefault(check.message, []).append(check.id)
    yield from (f"{', '.join(ids)}: {why}" for why, ids in unsure.items())
    if aside := sum(check.outcome == "skipped" for check in report.checks):
        yield f"{aside} properties that do not apply to it: attnlab verify says why of each"
    if report.training is not None:
        yield from report.training.not_looked_at
        if report.training.redirected:
            yield f"files written to a scratch folder: {', '.join(report.training.redirected)}"
    elif report.trace is not None:
        yield "training: the target is a module and trains nothing here"
    yield "values were not compared with a reference: nothing says that a formula is the right one"
