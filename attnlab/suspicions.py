"""Turn the report on a user's own code into a ranked list of causes. Pure: no files asked."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from attnlab.catalogue.finding_rules import RULES, Layer
from attnlab.records import CheckResult, Finding, Report, Suspicion, Trace, Triage, record
from attnlab.records.triage import TriageOutcome

# How much a finding's severity says beside the confidence of its rule.
WEIGHTS = {"error": 0.3, "warning": 0.1, "note": -0.4}
SAME_LINE = 0.15  # that a second suspicion of one line loses: other lines should be seen as well
SYMPTOM = 0.35  # that a rule which explains the symptom gains
LATER = 0.02  # for each finding before it of the same rule
EFFECTS = {"loss-not-finite", "finite", "first-loss", "loss-rises", "learning-rate"}
EFFECTS |= {"no-gradient"}  # of an argument that is not read, of a part that is left out
# Rules that tell why a parameter gets no gradient.
UNREACHED = {"result-unread", "unused-parameter", "result-dropped", "gradient-cut"}
EFFECTS_OF = {"labels-not-shifted": "labels-overwritten"}  # of one cause alone
EFFECT = 0.3  # that an effect loses where something else is found that may be its cause
CUT_SHORT = "Nothing after this line ran, so nothing after it was looked at."
PROPERTY = 0.75  # confidence in a property that does not hold

_TABLES = tomllib.loads((Path(__file__).parent / "catalogue/suspicions.toml").read_text("utf-8"))
PROPERTIES: dict[str, float] = _TABLES["properties"]  # where that is another
SYMPTOMS: dict[str, list[str]] = _TABLES["symptoms"]  # rules, checks and layers that explain it
ADVICE: dict[str, str] = _TABLES["advice"]  # for a script that took no step, by what ended it


@record
class Wishes:
    """What the user asked of a triage."""

    symptom: str = ""
    only: str = ""  # a layer
    ignored: tuple[str, ...] = ()  # rules
    guessed: tuple[str, ...] = ()  # inputs that neither user nor code states, as --input would
    retry: str = ""  # the command with all inputs that were guessed, to be changed


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
    ranked = tuple(_ranked(found, wishes.symptom))
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
        else _advice(target, report),
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


def _advice(target: str, report: Report) -> str:
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
        words = [f"{f} {f.lstrip('-').upper()}" if f.startswith("-") else f for f in flags]
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
    if told and not any(trace.crash for trace in _traces(report)):
        yield from _of_crash_of_script(told)
    results = (*report.checks, *(training.properties if training else ()))
    yield from (_of_property(check) for check in results if check.outcome == "failed")
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
        confidence=_clipped((rule.confidence if rule else 0.6) + WEIGHTS[finding.severity]),
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
        confidence=_clipped(PROPERTIES.get(check.id, PROPERTY) + WEIGHTS["warning"]),
        file=check.file,
        line=check.line,
        message=f"broken: {_as_clause(check.title)}: {check.message}"
        if check.title
        else check.message,
        evidence=f"at {sizes}" if sizes else "",
        experiment=check.advice,
        meaning=RULES[check.id].text if check.id in RULES else "",
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


def _clipped(confidence: float) -> float:
    return round(min(max(confidence, 0.05), 1.0), 2)


def _ranked(found: Iterable[Suspicion], symptom: str) -> Iterator[Suspicion]:
    """The likeliest first; of a rule and line, and of what says the same of many layers, one."""
    explains, found = SYMPTOMS.get(symptom, ()), list(found)

    def raised(suspicion: Suspicion) -> Suspicion:
        more = SYMPTOM if {suspicion.rule, suspicion.layer} & set(explains) else 0.0
        return replace(suspicion, confidence=_clipped(suspicion.confidence + more))

    found = [*_of_one_cause(found)]
    rules = {s.rule for s in found}
    grave = {"error": 0, "warning": 1, "note": 2}
    causes = [s for s in found if s.severity != "note" and s.rule not in EFFECTS]
    placed = any(s.line and s.layer != "property" for s in causes)
    found = [
        replace(s, confidence=_clipped(s.confidence - EFFECT))
        if (causes and s.rule in EFFECTS)
        or (placed and s.layer == "property" and not s.line)
        or EFFECTS_OF.get(s.rule) in rules
        else s
        for s in found
    ]
    left = sorted(map(raised, found), key=lambda s: (grave[s.severity] > 1, -s.confidence))
    seen: set[tuple[str, str, int | None]] = set()
    lines: dict[tuple[str, int | None], int] = {}
    times: dict[str, int] = {}
    weighed: list[tuple[float, Suspicion]] = []
    for suspicion in left:
        key = (suspicion.rule, suspicion.file, suspicion.line)
        if key in seen:
            continue
        seen.add(key)
        place = (suspicion.file, suspicion.line)
        less = SAME_LINE * (lines.get(place, 0) > 0) + LATER * times.get(suspicion.rule, 0)
        lines[place] = lines.get(place, 0) + 1
        times[suspicion.rule] = times.get(suspicion.rule, 0) + 1
        weighed.append((suspicion.confidence - less - (suspicion.severity == "note"), suspicion))
    weighed.sort(key=lambda pair: -pair[0])
    yield from (replace(s, rank=rank) for rank, (_, s) in enumerate(weighed, 1))


def _of_one_cause(found: list[Suspicion]) -> Iterator[Suspicion]:
    """The suspicions, but for gradients that are missing where another one tells why: what it
    says of them is evidence there."""
    idle = next((s for s in found if s.rule == "no-gradient"), None)
    parts = {name.strip().split(".")[0] for name in _listed(idle)} - {""}
    why = next(
        (
            s
            for s in found
            if s.rule in UNREACHED and parts & set(re.findall(r"\w+", s.message + s.evidence))
        ),
        None,
    )
    for suspicion in found:
        if suspicion is why and idle is not None:
            evidence = "; ".join(filter(None, (suspicion.evidence, idle.message)))
            sure = max(suspicion.confidence, idle.confidence)
            yield replace(suspicion, evidence=evidence, severity="warning", confidence=sure)
        elif suspicion is not idle or why is None:
            yield suspicion


def _listed(idle: Suspicion | None) -> list[str]:
    """The parameters that a missing gradient names."""
    return re.split(r", | and \d+ more", idle.message.partition(":")[0]) if idle else []


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
