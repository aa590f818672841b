"""Whether a plain call shows what failed: the one that `attnlab trace` makes at the same sizes."""

from dataclasses import replace

from attnlab.candidate.host import Died, Raised, checked_answer
from attnlab.checks.shared.compare import expected_shape
from attnlab.checks.shared.inputs import mismatch
from attnlab.grading.example_run import SEED
from attnlab.probe.answers import CannotTell, Inputs
from attnlab.probe.decode import UnexpectedOutput
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext, Probe
from attnlab.records import CheckResult
from attnlab.sizes import with_head_dim
from attnlab.verdict import TRACED


def with_plain_call(
    context: GradingContext, results: tuple[CheckResult, ...]
) -> tuple[CheckResult, ...]:
    """The results, the first of them with the dtype in which a plain call shows the failure."""
    if not results:
        return results
    first, *rest = results
    crashed = first.reason == "crashed" and first.line
    told = crashed or (first.id in TRACED and not first.reason)
    if first.outcome != "failed" or not first.sizes or not told:
        return results
    for dtype in ("float32", *context.contract.dtypes) if crashed else ("float32",):
        if _shows(context, first, dtype):
            return (replace(first, shown=dtype), *rest)
    return results


def _shows(context: GradingContext, failed: CheckResult, dtype: str) -> bool:
    crashed = failed.reason == "crashed"
    if "gradient" in failed.message:  # --backward shows them
        return not crashed
    contract = context.contract
    sizes = with_head_dim({**contract.sizes, **failed.sizes})
    given = draw.inputs(contract, sizes, Dice(SEED), contract.example_mask)
    probe = Probe(context, sizes)
    try:
        probe.equip()
        if dtype != "float32":
            checked_answer(probe.host.ask("cast_calls", dtypes=[dtype], inputs=[[*given.items()]]))
        elif crashed:
            probe.call(given)
        return not crashed and _is_wrong(probe, given, failed)
    except Raised as error:
        return crashed and (error.file, error.line) == (failed.file, failed.line)
    except UnexpectedOutput:
        return not crashed
    except (CannotTell, Died):
        return False


def _is_wrong(probe: Probe, given: Inputs, failed: CheckResult) -> bool:
    out = probe.call(given)
    if failed.id == "matches-reference":
        return mismatch(probe, out, probe.expected(given), "") is not None
    return tuple(out.shape) != expected_shape(probe) or not out.isfinite().all().item()
