"""Every rule by which something is found: what it means, and the experiment that settles it."""

from typing import Literal, NamedTuple

from attnlab.catalogue.property_findings import PROPERTY_FINDINGS
from attnlab.catalogue.trace_findings import FINDINGS
from attnlab.catalogue.training_findings import TRAINING_FINDINGS
from attnlab.catalogue.unused_findings import UNUSED_FINDINGS

Layer = Literal["trace", "unused", "property", "training"]


class FindingRule(NamedTuple):
    """What `attnlab explain RULE` and `attnlab triage` say of a finding."""

    title: str  # what was found, as a short sentence
    text: str  # why it matters and what to look at, in Markdown
    layer: Layer
    confidence: float = 0.6  # how likely a finding of this rule is the cause of a symptom, 0-1
    experiment: str = ""  # what to change or print, and what is seen if this is the cause


RULES: dict[str, FindingRule] = {
    **{rule: FindingRule(*told, layer="trace") for rule, told in FINDINGS.items()},
    **{rule: FindingRule(*told[:2], "unused", *told[2:]) for rule, told in UNUSED_FINDINGS.items()},
    **{
        rule: FindingRule(*told[:2], "property", *told[2:])
        for rule, told in PROPERTY_FINDINGS.items()
    },
    **{
        rule: FindingRule(*told[:2], "training", *told[2:])
        for rule, told in TRAINING_FINDINGS.items()
    },
}
