"""The order of suspicions: the likeliest first, effects behind their causes."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from attnlab.records import Suspicion

SAME_LINE = 0.15  # that a second suspicion of one line loses: other lines should be seen as well
SYMPTOM = 0.35  # that a rule which explains the symptom gains
LATER = 0.02  # for each finding before it of the same rule
EFFECTS = {"loss-not-finite", "finite", "first-loss", "loss-rises", "learning-rate"}
EFFECTS |= {"no-gradient"}  # of an argument that is not read, of a part that is left out
# Rules that tell why a parameter gets no gradient.
UNREACHED = {"result-unread", "unused-parameter", "result-dropped", "gradient-cut"}
UNMASKED = {"unused-argument", "mask-after-softmax", "mask-value", "mask-multiplied"}
UNMASKED |= {
    "mask-undone",
    "mask-turned",
    "mask-of-other",
}  # which leave in sight what a mask was to hide
# Of these causes alone.
EFFECTS_OF = {"labels-not-shifted": {"labels-overwritten"}, "causality": UNMASKED}
EFFECTS_OF |= dict.fromkeys(("mask-effect", "padding-invariance"), UNMASKED)
# Samples mix where an operation of the trace is told to run over the batch.
MIXING = {"batch-contraction", "attention-axis", "position-on-batch", "softmax-axis"}
EFFECTS_OF |= {
    "axes-order": {"grid-by-rows"},
    "output-constant": {"softmax-axis"},
    "batch-independence": MIXING,
    "edge-shapes": {*MIXING, "batch-independence"},
}
UNFED = ("unused-input", "result-unread", "unused-parameter", "constant-output", "unused-argument")
EFFECTS_OF |= {rule: {"keys-of-queries", "mask-of-other"} for rule in UNFED}
EFFECT = 0.3  # that an effect loses where something else is found that may be its cause

_TABLES = tomllib.loads((Path(__file__).parent / "catalogue/suspicions.toml").read_text("utf-8"))
SYMPTOMS: dict[str, list[str]] = _TABLES["symptoms"]  # rules, checks and layers that explain it


def clip_confidence(confidence: float) -> float:
    return round(min(max(confidence, 0.05), 1.0), 2)


def rank_suspicions(found: Iterable[Suspicion], symptom: str) -> Iterator[Suspicion]:
    """The likeliest first; of a rule and line, and of what says the same of many layers, one."""
    explains, found = SYMPTOMS.get(symptom, ()), list(found)

    def raised(suspicion: Suspicion) -> Suspicion:
        more = SYMPTOM if {suspicion.rule, suspicion.layer} & set(explains) else 0.0
        return replace(suspicion, confidence=clip_confidence(suspicion.confidence + more))

    found = [*_of_one_cause(found)]
    rules = {s.rule for s in found if s.severity != "note"}
    grave = {"error": 0, "warning": 1, "note": 2}
    causes = [s for s in found if s.severity != "note" and s.rule not in EFFECTS]
    placed = any(s.line and s.layer != "property" for s in causes)
    found = [
        replace(s, confidence=clip_confidence(s.confidence - EFFECT))
        if (causes and s.rule in EFFECTS)
        or (placed and s.layer == "property" and not s.line)
        or EFFECTS_OF.get(s.rule, set()) & rules
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
