"""Properties of a model, seen on a batch of its own: no reference, no contract, no other data.

The model is copied; the copy is called again with inputs that are changed along one axis. Ids are
replaced by other ids of the batch, floats by their own numbers in another order. What cannot be
tried is told with the reason. The results are those of the checks, under the same ids.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from torch import Tensor, nn

from attnlab.candidate.live import (
    calls,
    decoding,
    distances,
    layers,
    masks,
    order,
    padding,
    rotations,
    samples,
)
from attnlab.candidate.live.batch import CannotTry, LiveModel, undisturbed
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.demo_run import Fault
from attnlab.candidate.live.layout import find_layout
from attnlab.candidate.live.promises import find_promises
from attnlab.candidate.live.turned import read_turned
from attnlab.candidate.load import FunctionModule
from attnlab.catalogue.finding_rules import PROPERTY_FINDINGS
from attnlab.records import CheckResult, LiveReport, Outcome, Promise
from attnlab.tracer.raw_trace import first_line

SECONDS = 30.0  # after which no further property is begun
NOT_TRIED = "not-tried"
SAID = "you say so"


# By the ids of `[property]` in `catalogue/findings.toml`, the more basic ones first.
PROPERTIES: dict[str, Callable[[Bench], None]] = {
    "finite": calls.finite,
    "finite-gradients": layers.finite_gradients,
    "deterministic-eval": calls.deterministic,
    "input-unchanged": calls.inputs_unchanged,
    "constant-output": samples.constant,
    "batch-independence": samples.batch_independence,
    "edge-shapes": samples.alone,
    "causality": order.causality,
    "mask-effect": masks.mask_effect,
    "padding-invariance": padding.padding_invariance,
    "prefill-equals-decode": decoding.prefill_equals_decode,
    "positions-read": order.positions_read,
    "position-sensitivity": order.position_sensitivity,
    "permutation-equivariance": order.permutation_equivariance,
    "norm-kept": rotations.norm_kept,
    "distance-bias": distances.distance_bias,
    "offset-table": layers.offset_table,
    "norm-scale": layers.norm_scale,
    "second-call": calls.second_call,
    "train-mode": calls.train_mode,
}


OF_AXES = {  # that need to know which axis is which
    *("batch-independence", "edge-shapes", "causality", "mask-effect", "padding-invariance"),
    *("prefill-equals-decode", "position-sensitivity", "permutation-equivariance"),
    "positions-read",
}


class Hints(NamedTuple):
    """What is known beside the call: `targets` are what a loss compares the output with, `promised`
    the user's names of promises ("causal", "ordered"), `unpromised` such names or ids of properties
    that are not to be looked at."""

    targets: Tensor | None = None
    promised: tuple[str, ...] = ()
    unpromised: tuple[str, ...] = ()
    seen: tuple[tuple[str, str], ...] = ()  # promises that something else showed, each with why
    seconds: float = SECONDS


@undisturbed()
def live_properties(
    model: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    hints: Hints | None = None,
) -> LiveReport:
    """The properties of `model` on the batch `model(*args, **kwargs)`."""
    module = model if isinstance(model, nn.Module) else FunctionModule(model)
    hints = hints or Hints()
    try:
        bench = make_bench(module, args, kwargs or {}, hints)
    except Exception as error:
        why = str(error) if isinstance(error, CannotTry) else f"the call raised {_told(error)}"
        return LiveReport(checks=tuple(_not_checked(id_, why) for id_ in PROPERTIES))
    ends = time.monotonic() + hints.seconds
    results = tuple(_look(id_, bench, hints, ends) for id_ in PROPERTIES)
    found = tuple(Promise(name=n, reason=why) for n, why in bench.promises.items())
    return LiveReport(promises=found, checks=results)


def with_demo(live: LiveReport, faults: Iterable[Fault], hints: Hints) -> LiveReport:
    """The report with what the calls of a whole demo break, or show to hold."""
    found = {fault.id: fault.message for fault in faults if fault.id not in hints.unpromised}

    def seen(check: CheckResult) -> CheckResult:
        message = found.get(check.id)
        if message is None or check.outcome == "failed":
            return check
        if not message:
            return check if check.outcome == "passed" else _result(check.id, "passed", "")
        failed = _result(check.id, "failed", message)
        return replace(failed, advice=PROPERTY_FINDINGS[check.id].experiment)

    return replace(live, checks=tuple(map(seen, live.checks)))


def make_bench(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], hints: Hints
) -> Bench:
    """The copy with the axes of its batch and what it promises; raises what its first call does."""
    live = LiveModel(module, args, kwargs)
    bench = Bench(live, find_layout(live))
    bench.before = live.call({})
    turned = read_turned(bench, set(hints.promised))
    found = dict(hints.seen) | find_promises(bench, hints.targets)
    found |= dict.fromkeys(hints.promised, SAID)
    bench.promises = {n: why for n, why in found.items() if n not in hints.unpromised} | turned
    return bench


def _look(id_: str, bench: Bench, hints: Hints, ends: float) -> CheckResult:
    result = _result(id_, "passed", "")
    try:
        if id_ != "finite" and any(out.isnan().any() for out in bench.before.tensors.values()):
            raise CannotTry("its output holds NaN")  # noqa: TRY301
        if bench.doubt and id_ in OF_AXES:
            raise CannotTry(bench.doubt)  # noqa: TRY301
        if id_ in hints.unpromised:
            raise NotApplicable("you say that it is not promised")  # noqa: TRY301
        if time.monotonic() > ends:
            raise CannotTry(f"{hints.seconds:g} seconds were over")  # noqa: TRY301
        PROPERTIES[id_](bench)
    except Broken as broken:
        bench.broken.add(id_)
        file, line = broken.place or ("", None)
        failed = _result(id_, "failed", str(broken))
        result = replace(failed, file=file, line=line, advice=PROPERTY_FINDINGS[id_].experiment)
    except NotApplicable as reason:
        result = _result(id_, "skipped", str(reason))
    except CannotTry as reason:
        result = _not_checked(id_, str(reason))
    except Exception as error:  # the changed inputs are ours: what the model makes of them is not
        result = _not_checked(id_, f"with changed inputs the model raised {_told(error)}")
    return result


def _result(id_: str, outcome: Outcome, message: str) -> CheckResult:
    title = PROPERTY_FINDINGS[id_].title
    return CheckResult(id=id_, title=title, outcome=outcome, message=message)


def _not_checked(id_: str, why: str) -> CheckResult:
    return replace(_result(id_, "error", why), reason=NOT_TRIED)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
