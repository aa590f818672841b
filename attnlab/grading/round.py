"""One set of sizes: which checks are worth a call there, and what comes of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from attnlab.candidate.host import Died, Raised
from attnlab.candidate.session import HUNG
from attnlab.checks.base import CannotTell, Check, Failure, Inputs, Skip, Steps, driven
from attnlab.grading.decode import Odd
from attnlab.grading.host_probe import HostProbe
from attnlab.records import CheckResult, Outcome
from attnlab.sizes import Sizes

LATE = "the time was up before its turn"
SHAPE = "output-shape"
VALUES = "matches-reference"
IN_FORWARD = "Look at the last rows before the crash: `attnlab run` shows every step up to it."
IN_INIT = "Build it by itself at these sizes: the constructor must take what the task states."
PLAIN_TENSOR = "Let forward return the output alone: one dense tensor on the CPU."
HANGS = "Look for a loop that never ends, or that takes too long at these sizes."
BASIC = 3  # checks that are enough to see most leaks and layouts that mix
PLAIN = ("call", "calls", "gradients")  # what `attnlab run` shows or nearly shows
# How PyTorch says that it has an operation elsewhere. That there is none for a type, such as a
# softmax of integers, is the file's own mistake.
NO_KERNEL = "does not support backward on CPU"
Known = dict[str, CheckResult]  # results by check
Doing = Callable[[], Failure | None]


@dataclass(frozen=True)
class Plan:
    """How many rounds there are, and which of them has the sizes that tell most."""

    count: int
    telling: int


class State:
    """The latest result of every check, and the round it came from."""

    def __init__(self) -> None:
        self.results: dict[str, CheckResult] = {}
        self.rounds: dict[str, int] = {}
        self.crashes: dict[str, tuple[str, int | None]] = {}  # check -> where the candidate raised
        self.over = ""  # why nothing more can be asked

    def open(self, check: Check) -> bool:
        """A check goes on to the next round until it fails or cannot be made."""
        result = self.results.get(check.id)
        if self.passed(check):
            return not check.once
        return result is None or result.outcome == "skipped"

    def passed(self, check: Check) -> bool:
        result = self.results.get(check.id)
        return result is not None and result.outcome == "passed"

    @property
    def right(self) -> bool:
        """Whether the values are those of the reference so far."""
        values = self.results.get(VALUES)
        return values is not None and values.outcome == "passed"

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


class Round:
    """The checks at one set of sizes; values first, for they say which others are worth a call."""

    def __init__(self, probe: HostProbe, state: State, number: int, plan: Plan) -> None:
        self.probe, self.state = probe, state
        self.number, self.telling, self.last = number, plan.telling, number + 1 == plan.count
        self.until = probe.bench.until
        self.ready = False
        self.sure = False  # values are known, right or wrong

    def make(self, checks: list[Check]) -> None:
        values = next((c for c in checks if c.id == VALUES), None)
        early = self._early(values, checks[0]) if values and not self.state.over else None
        worth = self._worthwhile(checks, values, early)
        known = self._together(worth) if self.sure and not self.state.over else {}
        if early is not None:
            known[early.id] = early
        for check in worth:
            if not self.state.open(check):  # the early look ended in it
                continue
            self._put(self._result(check, known.get(check.id)))

    def _put(self, result: CheckResult) -> None:
        self.state.put(result, self.number)
        if self.until != "end" and result.outcome == "failed" and not self.state.over:
            self.state.over = (
                f"not looked at: {result.id} failed before it; --all looks at everything"
            )

    def _early(self, values: Check, basic: Check) -> CheckResult | None:
        """Whether values are right; None where the module fails in a way that others say better."""
        try:
            return self._verdict(values, lambda: values.run(self.probe))
        except Raised as error:
            first = error.verb in PLAIN and not self.probe.pool.samples
            # So will this check's; and what the call left behind may let the next pass.
            if first or error.error == HUNG:
                self._put(self._fell(basic, error))
            self.ready = False
        except Died as death:
            self._put(self._died(basic, death))
        return None

    def _worthwhile(
        self, checks: list[Check], values: Check | None, early: CheckResult | None
    ) -> list[Check]:
        """Values that are right imply most properties at these sizes, values that are wrong call
        for the reason, and where they cannot be compared properties are all there is."""
        if values is None or early is None or early.outcome not in ("passed", "failed"):
            return checks
        if early.outcome == "failed":
            self.sure = self.until == "reason"
            if self.until == "verdict":
                return [values]
            return self._explaining(checks, values) if self.sure else checks
        self.probe.light = self.sure = True
        if self.number < self.telling:  # what takes long takes longer at larger sizes
            return [values, *(c for c in checks if c.on_demand)]
        if self.number == self.telling and not self.last:
            return [c for c in checks if c.few or not c.once]
        return [c for c in checks if c is values or not self.state.passed(c)]

    def _explaining(self, checks: list[Check], values: Check) -> list[Check]:
        """The check of values, and before it those whose failure explains that one's. What calls
        leave behind is no reason where each length was called once."""
        late = self.number >= self.telling
        basic = [c for c in checks if c.id in values.after and (late or not c.once)]
        return [*basic, values]

    def _together(self, checks: list[Check]) -> Known:
        """Checks that say beforehand what they want to call, by calls in one go; where the first
        failure is enough, the most basic ones by themselves.

        Where one of these fails nothing is known, and each check is made by itself.
        """
        some = [c for c in checks if c.steps and self.state.open(c)]
        basic = BASIC if self.until == "reason" and not self.probe.light else 0
        known: Known = {}
        try:
            for number, group in enumerate(filter(None, (some[:basic], some[basic:]))):
                if number or not basic:
                    self.probe.prefetch()
                known |= self._in_one_go(group)
                if basic and any(result.outcome == "failed" for result in known.values()):
                    break
        except (Raised, Odd) as error:
            self.ready = False
            if isinstance(error, Raised) and error.error == HUNG:
                self._put(self._fell(some[0], error))
            return {}
        except Died as death:
            self._put(self._died(some[0], death))
            return {}
        return known

    def _in_one_go(self, checks: list[Check]) -> Known:
        known: Known = {}
        wanted: dict[str, list[Inputs]] = {}
        pairs = [(check, check.steps(self.probe)) for check in checks if check.steps]
        for check, steps in pairs:
            result = self._verdict(check, partial(_begin, check, steps, wanted))
            known |= {} if check.id in wanted else {check.id: result}
        asked = [inputs for given in wanted.values() for inputs in given]
        outputs = iter(self.probe.calls(asked) if asked else ())
        for check, steps in (pair for pair in pairs if pair[0].id in wanted):
            mine = [next(outputs) for _ in wanted[check.id]]
            known[check.id] = self._verdict(check, partial(driven, steps, self.probe, mine))
        return known

    def _result(self, check: Check, known: CheckResult | None) -> CheckResult:
        reason = self.state.over or self.state.shapeless(check)
        if reason:
            return unseen(check, reason)
        if known is not None:
            return known
        try:
            return self._verdict(check, lambda: check.run(self.probe))
        except Raised as error:
            return self._fell(check, error)
        except Died as death:
            return self._died(check, death)

    def _verdict(self, check: Check, doing: Doing) -> CheckResult:
        if not self.ready:
            self.probe.equip()
            self.ready = True
        self.probe.back()  # the check before may have looked at other sizes
        return _verdict(check, self.probe, doing)

    def _fell(self, check: Check, error: Raised) -> CheckResult:
        self.ready = False  # weights may have been on loan
        if error.error == HUNG:
            self.state.over = LATE
        self.state.crashes[check.id] = (error.file, error.line)
        return _crashed(check, error, self.probe.latest.sizes)

    def _died(self, check: Check, death: Died) -> CheckResult:
        self.ready = False
        if death.reason == "timeout":
            self.state.over = LATE
        else:
            self.probe.host = self.probe.bench.host = self.probe.bench.renew()
        return _died(check, death, self.probe.latest.sizes)


def _begin(check: Check, steps: Steps, wanted: dict[str, list[Inputs]]) -> Failure | None:
    """What the check wants to call, unless it knows its answer without."""
    try:
        wanted[check.id] = next(steps)
    except StopIteration as end:
        failure: Failure | None = end.value
        return failure
    return None


def _verdict(check: Check, probe: HostProbe, doing: Doing) -> CheckResult:
    probe.strict = SHAPE in check.after
    try:
        failure = doing()
    except Skip as skip:
        return result_of(check, "skipped", str(skip))
    except CannotTell as unknown:
        return replace(result_of(check, "error", str(unknown)), reason=unknown.reason)
    except Odd as odd:
        failed = replace(result_of(check, "failed", str(odd)), advice=PLAIN_TENSOR, reason="odd")
        return replace(failed, sizes=probe.latest.sizes)
    except (Raised, Died):
        raise
    except Exception as fault:  # ours, or an output that no check foresaw: never a pass
        message = f"the check itself failed: {type(fault).__name__}: {fault}"
        return replace(result_of(check, "error", message), reason="internal")
    if failure is None:
        return result_of(check, "passed", "")
    return replace(
        result_of(check, "failed", failure.message),
        advice=failure.advice or check.advice,
        sizes=failure.sizes or probe.latest.sizes,
    )


def _crashed(check: Check, error: Raised, sizes: Sizes) -> CheckResult:
    if error.error == HUNG:
        return _hung(check, error, sizes)
    if error.error == "NotImplementedError" and NO_KERNEL in error.message:
        message = f"PyTorch cannot do this on this machine: {error.message}"
        found = replace(result_of(check, "error", message), sizes=sizes, reason="no-kernel")
        return replace(found, file=error.file, line=error.line)
    building = error.verb == "build"
    own = check.once or error.verb not in PLAIN  # a call of another kind: its advice speaks of it
    advice = check.advice if own else IN_FORWARD
    return replace(
        result_of(
            check, "failed", f"{'building the module' if building else 'the module'} raised {error}"
        ),
        file=error.file,
        line=error.line,
        sizes=sizes,
        reason="memory" if error.memory else "crashed",
        advice=IN_INIT if building else advice,
    )


def _hung(check: Check, error: Raised, sizes: Sizes) -> CheckResult:
    """What was running when the time was up."""
    message = f"still running when the time was up: {error.source or 'the module'}"
    return replace(
        result_of(check, "failed", message),
        file=error.file,
        line=error.line,
        sizes=sizes,
        reason="timeout",
        advice=HANGS,
    )


def _died(check: Check, death: Died, sizes: Sizes) -> CheckResult:
    return replace(
        result_of(check, "failed", f"the candidate {death}"),
        sizes=sizes,
        reason=death.reason,
        advice="Run the file by itself at these sizes to see where it ends.",
    )


def unseen(check: Check, reason: str) -> CheckResult:
    return replace(result_of(check, "skipped", reason), reason="unseen")


@lru_cache(maxsize=256)  # most are the same: a check that holds at one more set of sizes
def result_of(check: Check, outcome: Outcome, message: str) -> CheckResult:
    return CheckResult(
        id=check.id,
        title=check.title,
        outcome=outcome,
        message=message,
        advice=check.advice if outcome == "failed" else "",
        trusted=check.trusted,
    )
