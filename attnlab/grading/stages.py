"""Grade a stage, a task after the bugs: what its expressions give beside what they give in the
right program, and how much was computed for them."""

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.host import Died, Raised
from attnlab.candidate.stage import STAGE_SETUP, STAGE_VALUE
from attnlab.grading.observations import Answering, crash_text, failure_reason
from attnlab.records import CheckResult
from attnlab.records.program import Stage, StageCheck, StageResult

AXES = ("row", "position", "place")
SHOWN = 12  # ids of a row in a message
Weights = Mapping[str, Tensor]


def right_values(side: Answering, weights: Weights, stage: Stage) -> dict[str, Any]:
    """What the right program gives for each check."""
    return {
        check.id: _ask(side, weights, check, check.right or check.value)["value"]
        for check in stage.checks
    }


def grade_stage(
    side: Answering, weights: Weights, stage: Stage, right: Mapping[str, Any]
) -> StageResult:
    """The checks of a stage of which `right` has a value; after one that used up the time the
    others are not tried."""
    results: list[CheckResult] = []
    for check in (check for check in stage.checks if check.id in right):
        late = any(result.reason == "timeout" for result in results)
        graded = _not_tried(check) if late else _grade_check(side, weights, check, right[check.id])
        results.append(graded)
    return StageResult(id=stage.id, title=stage.title, checks=tuple(results))


def cannot_compare(stage: Stage, why: str) -> StageResult:
    """The result where the right weights do not fit the candidate's model."""
    checks = (
        CheckResult(id=c.id, title=c.title, outcome="error", message=why) for c in stage.checks
    )
    return StageResult(id=stage.id, title=stage.title, checks=tuple(checks))


def _not_tried(check: StageCheck) -> CheckResult:
    message = "not tried: the time was up"
    return CheckResult(id=check.id, title=check.title, outcome="skipped", message=message)


def _grade_check(side: Answering, weights: Weights, check: StageCheck, right: Any) -> CheckResult:
    reason = ""
    try:
        answer = _ask(side, weights, check, check.value)
        message = difference(answer.get("value"), right, check.tolerance)
        if not message and (message := _excess(check, answer)):
            reason = "too-much"
    except Raised as error:
        message, reason = _crash(error, check), failure_reason(error)
    except Died as death:
        message, reason = f"the program {death}", failure_reason(death)
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome="failed" if message else "passed",
        message=message,
        reason=reason,
    )


def _crash(error: Raised, check: StageCheck) -> str:
    """What it raised; where a line of the check itself did, as in a call that does not fit, with
    that line in place of where it stands."""
    texts = {STAGE_SETUP: check.setup, STAGE_VALUE: check.value}
    if error.file not in texts or not error.line:
        return crash_text(error)
    line = texts[error.file].splitlines()[error.line - 1].strip()
    return f"{line}: {error}"


def _ask(side: Answering, weights: Weights, check: StageCheck, expression: str) -> dict[str, Any]:
    return side.ask(
        "observe_stage",
        weights=dict(weights),
        setup=check.setup,
        expression=expression,
        metered=bool(check.rows or check.largest),
    )


def _excess(check: StageCheck, answer: Mapping[str, Any]) -> str:
    """What to say where more was computed than there has to be."""
    rows, largest = answer["rows"], tuple(answer["largest"])
    if check.rows and rows > check.rows:
        return f"{rows} rows go through one layer, {check.rows} are enough"
    if check.largest and prod(largest) > check.largest:
        much = f"{prod(largest)} numbers, {check.largest} are enough"
        return f"a tensor of shape {largest} is made: {much}"
    return ""


def difference(value: Any, right: Any, tolerance: float) -> str:
    """How a value differs from the right one, at its first place; "" where it is the same."""
    if isinstance(right, dict):
        if not isinstance(value, dict) or value.keys() != right.keys():
            return f"{_kind(value)}, not values of {', '.join(right)}"
        found = ((label, difference(value[label], right[label], tolerance)) for label in right)
        return next((f"{label}: {message}" for label, message in found if message), "")
    value, right = _tensor_of_floats(value), _tensor_of_floats(right)
    if isinstance(right, Tensor) and isinstance(value, Tensor) and value.shape == right.shape:
        if right.is_floating_point():
            return _other_numbers(value.double(), right.double(), tolerance)
        return _other_ids(value, right)
    same = not isinstance(value, Tensor) and not isinstance(right, Tensor) and value == right
    return "" if same else f"{_kind(value)}, not {_kind(right)}"


def _tensor_of_floats(value: Any) -> Any:
    """A number or a list of numbers that has rounding as a tensor has; anything else as it is."""
    numbers = value if isinstance(value, list) and value else [value]
    rounded = all(type(number) is float for number in numbers)
    return torch.tensor(value, dtype=torch.float64) if rounded else value


def _other_ids(value: Tensor, right: Tensor) -> str:
    if torch.equal(value, right):
        return ""
    rows, wanted = value.reshape(-1, value.shape[-1]), right.reshape(-1, right.shape[-1])
    row = int((rows != wanted).any(dim=1).nonzero()[0])
    first = max(int((rows[row] != wanted[row]).nonzero()[0]) - 2, 0)
    shown, expected = (each[row, first : first + SHOWN].tolist() for each in (rows, wanted))
    place = f"row {row} is" if len(rows) > 1 else "is"
    return f"{place} {shown} from position {first} on, not {expected}"


def _other_numbers(value: Tensor, right: Tensor, tolerance: float) -> str:
    bound = tolerance * max(1.0, right.abs().max().item() if right.numel() else 1.0)
    gaps = (value - right).abs()
    wrong = ~(gaps <= bound)
    if not wrong.any():
        return ""
    at = wrong.nonzero()[0].tolist()
    mine, wanted = value[tuple(at)].item(), right[tuple(at)].item()
    shown = at if len(at) == 1 else at[:-1]  # the last axis is that of the numbers of one place
    named = zip(AXES, shown, value.shape, strict=False)
    place = ", ".join(f"{axis} {number} of {size}" for axis, number, size in named)
    largest = "NaN" if gaps.isnan().any() else f"up to {gaps.max().item():.2g}"
    off = f"off by {largest}, tolerance {tolerance:g}"
    places = wrong if wrong.dim() < 2 else wrong.any(-1)
    count = f"; {int(places.sum())} of {places.numel()} places differ" if place else ""
    return f"{place or 'the value'}: {mine:.4g}, not {wanted:.4g} ({off}){count}"


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return "nothing" if value is None else str(value)[:80]
