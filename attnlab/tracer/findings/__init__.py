"""Findings of a trace: silent broadcasts, leftover axes, the origin of NaN and infinities.

Each rule is a function of the rows; a rule that is not sure says nothing. Severity: `error` for a
value that is broken, `warning` for a shape that is most likely an accident, `note` for a fact that
explains another finding and is harmless alone.
"""

import math

from attnlab.records.trace import Finding
from attnlab.tracer.findings.attention import (
    live_dropout,
    lone_choices,
    multiplied_masks,
    second_softmaxes,
    undone_masks,
    weak_masks,
)
from attnlab.tracer.findings.base import Rows, show
from attnlab.tracer.findings.modulations import zero_scales
from attnlab.tracer.findings.pairs import batch_norms, idle_terms, unpaired_draws
from attnlab.tracer.findings.positions import (
    cut_numbers,
    late_tokens,
    lone_positions,
    narrow_positions,
    positions_by_head,
    turned_values,
)
from attnlab.tracer.findings.residuals import (
    doubled_sums,
    missing_activations,
    missing_residuals,
    skipped_sums,
)
from attnlab.tracer.findings.scales import scales
from attnlab.tracer.findings.shapes import broadcasts, idle_squeezes, leftovers
from attnlab.tracer.findings.unused import (
    constant_outputs,
    dropped_results,
    odd_structure,
    unread_results,
    unused_inputs,
    unused_weights,
)
from attnlab.tracer.findings.values import (
    constants,
    denormals,
    empty_rows,
    late_masks,
    nan_origin,
    overflows,
    saturated,
)

__all__ = ["Rows", "find", "show"]
RULES = (
    *(broadcasts, idle_squeezes, leftovers, nan_origin, overflows, late_masks, empty_rows),
    *(saturated, constants, denormals),
    *(odd_structure, dropped_results, unread_results, unused_weights, unused_inputs),
    *(constant_outputs, weak_masks, multiplied_masks, undone_masks, second_softmaxes),
    *(scales, live_dropout, missing_residuals, skipped_sums, missing_activations, unpaired_draws),
    idle_terms,
    zero_scales,
    lone_choices,
    batch_norms,
    *(narrow_positions, cut_numbers),
    *(lone_positions, late_tokens, positions_by_head, turned_values, doubled_sums),
)


def find(rows: Rows) -> tuple[Finding, ...]:
    """All findings, in the order of their rows; several of one rule may stand at one row."""
    found = (finding for rule in RULES for finding in rule(rows))
    return tuple(sorted(found, key=lambda f: math.inf if f.index is None else f.index))
