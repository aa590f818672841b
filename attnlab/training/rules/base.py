"""Make a finding of a rule."""

from __future__ import annotations

import re
from typing import Any

from attnlab.catalogue.finding_rules import RULES
from attnlab.records.trace import Finding, Severity


def found(
    rule: str,
    place: tuple[str, int],
    message: str = "",
    severity: Severity = "warning",
    **values: Any,
) -> Finding:
    """A finding at a line of the script; without a message it says what the catalogue has for the
    rule, with these values."""
    said = message or RULES[rule].says.format(**values)
    return Finding(rule=rule, file=place[0], line=place[1], op="", severity=severity, message=said)


def line_of(source: str, pattern: str, before: int, within: int) -> int:
    """The line of a source text that matches: the last in the `within` lines up to `before`, or
    the first of all where `before` is 0; 0 where there is none."""
    lines = [n for n, text in enumerate(source.splitlines(), 1) if re.search(pattern, text)]
    if not before:
        return lines[0] if lines else 0
    return max((n for n in lines if before - within <= n <= before), default=0)
