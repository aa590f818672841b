"""Every rule by which something is found: what it means, and the experiment that settles it.

Their texts stand in `findings.toml`, one table for each layer.
"""

import tomllib
from pathlib import Path
from typing import Literal, NamedTuple, get_args

Layer = Literal["trace", "unused", "property", "training"]


class FindingRule(NamedTuple):
    """What `attnlab explain RULE` and `attnlab triage` say of a finding."""

    title: str  # what was found, as a short sentence; of a property what is true of right models
    text: str  # why it matters and what to look at, in Markdown
    layer: Layer
    confidence: float = 0.6  # how likely a finding of this rule is the cause of a symptom, 0-1
    says: str = ""  # of what was seen, with the values of a finding to be filled in
    experiment: str = ""  # what to change or print, and what is seen if this is the cause


_TEXTS = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))
_LAYERS = {
    layer: {rule: FindingRule(layer=layer, **told) for rule, told in _TEXTS[layer].items()}
    for layer in get_args(Layer)
}
RULES: dict[str, FindingRule] = {
    rule: found for rules in _LAYERS.values() for rule, found in rules.items()
}
PROPERTY_FINDINGS = _LAYERS["property"]  # by the id that `attnlab verify` shows
