"""The check stage: every check that applies, at every round of sizes, folded and ordered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from attnlab.checks.base import CannotTell, Check, Skip, lacks, load_checks
from attnlab.lab.asking import Odd
from attnlab.lab.host import Died, Raised
from attnlab.lab.probe import Bench, HostProbe
from attnlab.lab.sizes import Sizes, rounds
from attnlab.records import CheckResult, Outcome

SHAPE = "output-shape"
FIRST = 2  # rounds at which every check is made: the example's sizes, and the first that are drawn
IN_FORWARD = "Look at the last rows before the crash: `attnlab run` shows every step up to it."
IN_INIT = "Build it by itself at these sizes: the constructor must take what the task states."
ORDER: dict[Outcome, int] = {"failed": 0, "error": 1, "passed": 2, "skipped": 3}


def run_checks(bench: Bench) -> tuple[CheckResult, ...]:
    """What to look at first stands first: failures, those they explain, then the rest.

    The first round has the example's sizes, so a failure that the user can see in `run` comes
    before one that only other sizes bring out.
    """
    state = _State()
    applying = list(_applying(bench, state))
    for number, sizes in enumerate(rounds(bench.contract, bench.dice.plain)):
        left = [c for c in applying if state.open(c) and (number < FIRST or not c.few)]
        _round(bench, sizes, left, state, number)
    return _ordered(_asked(bench), state)


class _State:
    """The latest result of every check, and the round it came from."""

    def __init__(self) -> None:
        self.results: dict[str, CheckResult] = {}
        self.rounds: dict[str, int] = {}
        self.crashes: dict[str, tuple[str, int | None]] = {}  # check -> where the candidate raised
        self.over = ""  # why nothing more can be asked

    def open(self, check: Check) -> bool:
        """A check goes on to the next round until it fails or cannot be made."""
        result = self.results.get(check.id)
        held = result is not None and result.outcome == "passed"
        if check.once and held:
            return False
        return held or result is None or result.outcome == "skipped"

    def shapeless(self, check: Check) -> str:
        """Checks index outputs by the axes of the contract, so they need its shape."""
        shape = self.results.get(SHAPE)
        if SHAPE in check.after and shape is not None and shape.outcome == "failed":
            return f"not looked at, because {SHAPE} failed"
        return ""

    def put(self, result: CheckResult, number: int) -> None:
        before = self.results.get(result.id)
        if result.outcome == "skipped" and before is not None and before.outcome == "passed":
            return  # it held at other sizes
        self.results[result.id] = result
        self.rounds[result.id] = number


def _asked(bench: Bench) -> tuple[Check, ...]:
    return tuple(c for c in load_checks() if not bench.only or c.id in bench.only)


def _applying(bench: Bench, state: _State) -> Iterator[Check]:
    for check in _asked(bench):
        reason = lacks(check, bench.contract, bench.reference is not None)
        if check.on_demand and not bench.full:
            reason = "made on demand only"
        if reason is None:
            yield check
        else:
            state.put(_result(check, "skipped", reason), 0)


def _round(bench: Bench, sizes: Sizes, checks: list[Check], state: _State, number: int) -> None:
    probe = HostProbe(bench, sizes)
    ready = False
    for check in checks:
        reason = state.over or state.shapeless(check)
        if reason:
            state.put(replace(_result(check, "skipped", reason), reason="unseen"), number)
            continue
        try:
            if not ready:
                probe.equip()
                ready = True
            probe.back()  # the check before may have looked at other sizes
            result = _verdict(check, probe)
        except Raised as error:
            state.crashes[check.id] = (error.file, error.line)
            result = _crashed(check, error, probe.latest.sizes)
        except Died as death:
            result = _died(check, death, probe.latest.sizes)
            ready = False
            if death.reason == "timeout":
                state.over = "the time was up before its turn"
            else:
                probe.host = bench.host = bench.renew()
        state.put(result, number)
        if bench.brief and result.outcome == "failed":
            state.over = f"not looked at: {check.id} failed before it; --all looks at everything"


def _verdict(check: Check, probe: HostProbe) -> CheckResult:
    probe.strict = SHAPE in check.after
    try:
        failure = check.run(probe)
    except Skip as skip:
        return _result(check, "skipped", str(skip))
    except CannotTell as unknown:
        return replace(_result(check, "error", str(unknown)), reason=unknown.reason)
    except Odd as odd:
        return replace(_result(check, "failed", str(odd)), sizes=probe.latest.sizes, reason="odd")
    except (Raised, Died):
        raise
    except Exception as fault:  # ours, or an output that no check foresaw: never a pass
        message = f"the check itself failed: {type(fault).__name__}: {fault}"
        return replace(_result(check, "error", message), reason="internal")
    if failure is None:
        return _result(check, "passed", "")
    return replace(
        _result(check, "failed", failure.message),
        advice=failure.advice or check.advice,
        sizes=probe.latest.sizes,
    )


def _crashed(check: Check, error: Raised, sizes: Sizes) -> CheckResult:
    built = error.verb != "build"
    where = "the module" if built else "building the module"
    return replace(
        _result(check, "failed", f"{where} raised {error}"),
        file=error.file,
        line=error.line,
        sizes=sizes,
        reason="memory" if error.memory else "crashed",
        # What is made once calls in a way of its own, of which its advice speaks.
        advice=IN_INIT if not built else check.advice if check.once else IN_FORWARD,
    )


def _died(check: Check, death: Died, sizes: Sizes) -> CheckResult:
    return replace(
        _result(check, "failed", f"the candidate {death}"),
        sizes=sizes,
        reason=death.reason,
        advice="Run the file by itself at these sizes to see where it ends.",
    )


def _result(check: Check, outcome: Outcome, message: str) -> CheckResult:
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        message=message,
        advice=check.advice if outcome == "failed" else "",
        trusted=check.trusted,
    )


# ---------------------------------------------------------------- folding and order


def _ordered(checks: tuple[Check, ...], state: _State) -> tuple[CheckResult, ...]:
    rank = {check.id: i for i, check in enumerate(checks)}
    failed = [c for c in checks if state.results[c.id].outcome == "failed"]
    failed.sort(key=lambda c: (state.rounds[c.id], rank[c.id]))
    results = dict(state.results)
    for i, check in enumerate(failed):
        under = _explains(failed[:i], check, state, results)
        results[check.id] = replace(results[check.id], folded_under=under)
    place = {check.id: i for i, check in enumerate(failed)}

    def key(result: CheckResult) -> tuple[int, bool, int]:
        return (
            ORDER[result.outcome],
            bool(result.folded_under),
            place.get(result.id, rank[result.id]),
        )

    return tuple(sorted(results.values(), key=key))


def _explains(
    earlier: list[Check], check: Check, state: _State, results: dict[str, CheckResult]
) -> str:
    """The earlier failure that a failure follows from: a more basic property, or the same crash."""
    for other in earlier:
        same = state.crashes.get(other.id)
        if other.id in check.after or (same is not None and same == state.crashes.get(check.id)):
            return results[other.id].folded_under or other.id
    return ""
