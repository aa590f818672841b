"""What the first steps of a training run show, by the name that stands beside the finding."""

from __future__ import annotations

# rule: (what was found, why it matters and what to look at, confidence, experiment)
TRAINING_FINDINGS: dict[str, tuple[str, str, float, str]] = {}
