"""Make a finding of a rule."""

from __future__ import annotations

from attnlab.records.trace import Finding, Severity


def found(rule: str, severity: Severity, place: tuple[str, int], message: str) -> Finding:
    """A finding at a line of the script."""
    return Finding(
        rule=rule, file=place[0], line=place[1], op="", severity=severity, message=message
    )
