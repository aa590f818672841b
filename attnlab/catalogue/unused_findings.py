"""What is given, held or computed and reaches nothing, and what a later line undoes."""

from __future__ import annotations

# rule: (what was found, why it matters and what to look at, confidence, experiment)
UNUSED_FINDINGS: dict[str, tuple[str, str, float, str]] = {}
