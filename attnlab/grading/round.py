"""One set of sizes: which checks are worth a call there, and what comes of each."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial

from attnlab.candidate.host import Died, Raised
from attnlab.candidate.session import HUNG
from attnlab.checks.base import Failure, Part, Steps, Tier, run_steps
from attnlab.probe.answers import CannotTell, Inputs, Skip, Tensor
from attnlab.probe.decode import UnexpectedOutput
from attnlab.probe.probe import Probe
from attnlab.records import CheckResult, Outcome
from attnlab.sizes import Sizes
from attnlab.verdict import UNSEEN

LATE = "the time was up before its turn"
SHAPE = "output-shape"
FINITE = "finite"
VALUES = "matches-reference"
REPEATS = "deterministic-eval"
IN_FORWARD = "Look at the last operations of the trace before the crash."
IN_INIT = "Build it by itself at these sizes: the constructor must take what the task states."
PLAIN_TENSOR = "Let forward return the output alone: one dense tensor on the CPU."
SHAPES = "Print the shapes of this call step by step: squeeze() drops every axis of size 1."
OUT_OF_PLACE = "Make a new tensor where += or a method that ends in _ changes one in place."
SPOILED = "spoiled"  # by an output that is not finite
ODD = "odd"  # the reason of a failure by an output that is no tensor of the right shape
IN_PLACE = ("in-place operation", "inplace operation")  # how autograd says what it cannot follow
ENDS = "A call ends in time"
WRITTEN = "Every part of the module is written"
HANGS = "Look for a loop that never ends, or that takes too long at these sizes."
BASIC = 3  # checks that are enough to see most leaks and layouts that mix
PLAIN = ("call", "calls", "gradients")  # what `attnlab run` shows or nearly shows
# Calls of another kind: where these raise, the check's own advice, which speaks of it, is right.
SPECIAL = ("positional_calls", "strided_calls", "cast_calls", "cast_gradients", "cached_steps",
           "call_on_device", "call_reloaded", "call_exported", "after_sibling")  # fmt: skip
# How PyTorch says that it has an operation elsewhere. That there is none for a type, such as a
# softmax of integers, is the file's own mistake.
NO_KERNEL = "does not support backward on CPU"
Known = dict[str, CheckResult]  # results by part
Given = Iterable[tuple[Tensor, Inputs]]
Doing = Callable[[], Failure | None]


class State:
    """The latest result of every check, and the round it came from."""

    def __init__(self) -> None:
        self.results: dict[str, CheckResult] = {}
        self.rounds: dict[str, int] = {}
        self.crashes: dict[str, tuple[str, int | None]] = {}  # part -> where the candidate raised
        self.over = ""  # why nothing more can be asked

    def outcome(self, part: str) -> Outcome | None:
        """That of the latest result of a part; None where it was not looked at."""
        result = self.results.get(part)
        return None if result is None else result.outcome

    def open(self, part: Part) -> bool:
        """A check goes on to the next round until it fails or cannot be made."""
        return not part.once if self.passed(part) else self.outcome(part.id) in (None, "skipped")

    def passed(self, part: Part) -> bool:
        return self.outcome(part.id) == "passed"

    @property
    def right(self) -> bool:
        """Whether the values are those of the reference so far."""
        return self.outcome(VALUES) == "passed"

    def tells_without(self, part: Part) -> bool:
        """Whether another part has failed that says more than that values differ."""
        said = (r.id for r in self.results.values() if r.outcome == "failed")
        return any(failed not in (part.id, VALUES) for failed in said)

    def shapeless(self, part: Part) -> str:
        """Checks index outputs by the axes of the contract, so they need its shape."""
        failed = part.tier > Tier.SHAPE and self.outcome(SHAPE) == "failed"
        return f"not looked at, because {SHAPE} failed" if failed else ""

    def put(self, part: Part, result: CheckResult, number: int) -> None:
        before = self.results.get(part.id)
        if result.outcome == "skipped" and before is not None and before.outcome == "passed":
            return  # it held at other sizes
        self.results[part.id] = result
        self.rounds[part.id] = number


class Round:
    """The checks at one set of sizes; values first, for they say which others are worth a call."""

    def __init__(self, probe: Probe, state: State, number: int, telling: int, last: bool) -> None:
        """`telling` is the number of the round whose sizes tell most."""
        self.probe, self.state = probe, state
        self.number, self.telling, self.last = number, telling, last
        self.until = probe.context.until
        self.ready = False
        self.sure = False  # values are known, right or wrong
        self.basic: dict[str, Part | None] = {}  # by the reason of a failure, whose it is

    def make(self, parts: list[Part]) -> None:
        values = next((c for c in parts if c.id == VALUES), None)
        early = self._early(values, parts[0]) if values and not self.state.over else None
        worth = self._worthwhile(parts, values, early)
        known = self._together(worth) if self.sure and not self.state.over else {}
        if early is not None:
            known[VALUES] = early
        for reason, name in ((ODD, SHAPE), (SPOILED, FINITE)):
            self.basic[reason] = next((p for p in parts if p.id == name), None)
        for part in worth:
            if not self.state.open(part):  # the early look ended in it
                continue
            result = self._result(part, known.get(part.id))
            crashed = result.reason == "crashed" and self.until == "reason"
            self._put(*((crashed and self._cause(worth)) or (part, result)))

    def _cause(self, parts: list[Part]) -> tuple[Part, CheckResult] | None:
        """What calls leave behind, where that is wrong: later ones may raise for this reason."""
        part = next((p for p in parts if p.id == REPEATS and self.state.open(p)), None)
        if part is None or self.state.over:
            return None
        result = self._result(part, None)
        return (part, result) if result.outcome == "failed" and not result.reason else None

    def _put(self, part: Part, result: CheckResult) -> None:
        first = self.basic.get(result.reason)
        if first and first.id == FINITE and self.state.tells_without(first):
            first = None
        if first and first.tier < part.tier and (first.id == FINITE or part.tier <= Tier.VALUES):
            # Whichever part met it: the output itself is wrong at these sizes.
            if self.state.outcome(first.id) != "failed":
                said = replace(result_of(first, "failed", result.message), sizes=result.sizes)
                self._put(
                    first, said if first.id == FINITE else replace(said, advice=result.advice)
                )
            result = unseen(part, f"not looked at, because {first.check} failed")
        self.state.put(part, result, self.number)
        if self.until != "end" and result.outcome == "failed" and not self.state.over:
            self.state.over = (
                f"not looked at: {result.id} failed before it; --all looks at everything"
            )

    def _early(self, values: Part, basic: Part) -> CheckResult | None:
        """Whether values are right; None where the module fails in a way that others say better."""
        try:
            return self._verdict(values, lambda: values.failure(self.probe))
        except Raised as error:
            first = error.verb in PLAIN and not self.probe.pool.samples
            # So will this check's; and what the call left behind may let the next pass.
            if first or error.error == HUNG:
                self._put(basic, self._crash_result(basic, error))
            self.ready = False
        except Died as death:
            self._put(basic, self._death_result(basic, death))
        return None

    def _worthwhile(
        self, parts: list[Part], values: Part | None, early: CheckResult | None
    ) -> list[Part]:
        """Values that are right imply most properties at these sizes, values that are wrong call
        for the reason, and where they cannot be compared properties are all there is."""
        if values is None or early is None or early.outcome not in ("passed", "failed"):
            return parts
        if early.outcome == "failed":
            self.sure = self.until == "reason"
            if self.until == "verdict":
                return [values]
            return self._explaining(parts, values) if self.sure else parts
        self.probe.confirming = self.sure = True
        if self.number < self.telling:  # what takes long takes longer at larger sizes
            return [values, *(c for c in parts if c.on_demand)]
        if self.number == self.telling and not self.last:
            return [c for c in parts if c.few or not c.once]
        return [c for c in parts if c is values or not self.state.passed(c)]

    def _explaining(self, parts: list[Part], values: Part) -> list[Part]:
        """The check of values, and before it those whose failure explains that one's. What calls
        leave behind is no reason where each length was called once."""
        late = self.number >= self.telling
        basic = [c for c in parts if c.tier.explains(values.tier) and (late or not c.once)]
        return [*basic, values]

    def _together(self, parts: list[Part]) -> Known:
        """Checks that say beforehand what they want to call, by calls in one go; where the first
        failure is enough, the most basic ones by themselves.

        Where one of these fails nothing is known, and each check is made by itself."""
        some = [c for c in parts if c.steps and self.state.open(c)]
        basic = BASIC if self.until == "reason" and not self.probe.confirming else 0
        known: Known = {}
        try:
            for number, group in enumerate(filter(None, (some[:basic], some[basic:]))):
                if number or not basic:
                    self.probe.prefetch()
                known |= self._in_one_go(group)
                if basic and any(result.outcome == "failed" for result in known.values()):
                    break
        except (Raised, UnexpectedOutput) as error:
            self.ready = False
            if isinstance(error, Raised) and error.error == HUNG:
                self._put(some[0], self._crash_result(some[0], error))
            return {}
        except Died as death:
            self._put(some[0], self._death_result(some[0], death))
            return {}
        return known

    def _in_one_go(self, parts: list[Part]) -> Known:
        known: Known = {}
        wanted: dict[str, list[Inputs]] = {}
        pairs = [(part, part.steps(self.probe)) for part in parts if part.steps]
        for part, steps in pairs:
            result = self._verdict(part, partial(_begin, part, steps, wanted))
            known |= {} if part.id in wanted else {part.id: result}
        asked = [inputs for given in wanted.values() for inputs in given]
        outputs = iter(self.probe.calls(asked) if asked else ())
        for part, steps in (pair for pair in pairs if pair[0].id in wanted):
            mine = [next(outputs) for _ in wanted[part.id]]
            given = zip(mine, wanted[part.id], strict=True)
            known[part.id] = self._verdict(part, partial(run_steps, steps, self.probe, mine), given)
        return known

    def _result(self, part: Part, known: CheckResult | None) -> CheckResult:
        reason = self.state.over or self.state.shapeless(part)
        if reason:
            return unseen(part, reason)
        if known is not None:
            return known
        try:
            return self._verdict(part, lambda: part.failure(self.probe))
        except Raised as error:
            if part.tier < Tier.REGIMES and any(text in error.message for text in IN_PLACE):
                self.ready = False  # that is for the checks of gradients to say
                return result_of(part, "skipped", f"forward raised with gradients: {error.message}")
            return self._crash_result(part, error)
        except Died as death:
            return self._death_result(part, death)

    def _verdict(self, part: Part, doing: Doing, given: Given = ()) -> CheckResult:
        """`given` is what the part asked for before, outputs and inputs."""
        if not self.ready:
            self.probe.equip()
            self.ready = True
        self.probe.back()  # the check before may have looked at other sizes
        self.probe.context.spoiled = ""
        for out, inputs in given:
            self.probe.note_spoiled(out, inputs)
        return _verdict(part, self.probe, doing)

    def _crash_result(self, part: Part, error: Raised) -> CheckResult:
        self.ready = False  # weights may have been on loan
        if error.error == HUNG and self._out_of_time():
            return unseen(part, LATE)
        self.state.crashes[part.id] = (error.file, error.line)
        found = _crashed(part, error, self.probe.latest.sizes_of(error.shapes))
        return _unwritten(found, error, self.probe.context.name) if _is_open(error) else found

    def _out_of_time(self) -> bool:
        """Nothing more can be asked. Returns whether that is so because every call is slow, and not
        because this one does not end: then no property has failed."""
        self.state.over = LATE
        context = self.probe.context
        context.too_slow = context.times.slow()
        return context.too_slow

    def _death_result(self, part: Part, death: Died) -> CheckResult:
        self.ready = False
        if death.reason == "timeout":
            if self._out_of_time():
                return unseen(part, LATE)
        else:
            self.probe.host = self.probe.context.replace_host()
        return _died(part, death, self.probe.latest.sizes)


def _odd_output(part: Part, message: str) -> CheckResult:
    advice = SHAPES if "shape" in message else PLAIN_TENSOR
    return replace(result_of(part, "failed", message), advice=advice, reason=ODD)


def _begin(part: Part, steps: Steps, wanted: dict[str, list[Inputs]]) -> Failure | None:
    """What the check wants to call, unless it knows its answer without."""
    try:
        wanted[part.id] = next(steps)
    except StopIteration as end:
        failure: Failure | None = end.value
        return failure
    return None


def _verdict(part: Part, probe: Probe, doing: Doing) -> CheckResult:
    probe.strict = part.tier > Tier.SHAPE
    try:
        failure = doing()
    except Skip as skip:
        return result_of(part, "skipped", str(skip))
    except CannotTell as unknown:
        return replace(result_of(part, "error", str(unknown)), reason=unknown.reason)
    except UnexpectedOutput as odd:
        return replace(_odd_output(part, str(odd)), sizes=probe.latest.sizes)
    except (Raised, Died):
        raise
    except Exception as fault:  # ours, or an output that no check foresaw: never a pass
        message = f"the check itself failed: {type(fault).__name__}: {fault}"
        return replace(result_of(part, "error", message), reason="internal")
    if failure is None:
        return result_of(part, "passed", "")
    told = part.tier <= Tier.FINITE or "NaN" in failure.message
    spoiled = "" if told else probe.context.spoiled
    return replace(
        result_of(part, "failed", spoiled or failure.message),
        advice=failure.advice or part.advice,
        sizes=failure.sizes or probe.latest.sizes,
        reason=SPOILED if spoiled else "",
    )


def _crashed(part: Part, error: Raised, sizes: Sizes) -> CheckResult:
    building = error.verb == "build"
    outcome: Outcome = "failed"
    message = f"{'building the module' if building else 'the call'} raised {error}"
    reason, advice = "memory" if error.memory else "crashed", IN_FORWARD
    advice = part.advice if error.verb in SPECIAL else advice
    advice = OUT_OF_PLACE if any(text in error.message for text in IN_PLACE) else advice
    if error.error == HUNG:  # what was running when the time was up
        message = f"still running when the time was up: {error.source or 'the module'}"
        reason, advice = "timeout", HANGS
    elif error.error == "NotImplementedError" and NO_KERNEL in error.message:
        outcome, message = "error", f"PyTorch cannot do this on this machine: {error.message}"
        reason, advice = "no-kernel", ""
    elif building:
        advice = IN_INIT
    return replace(
        result_of(part, outcome, message),
        title=ENDS if error.error == HUNG else result_of(part, outcome, message).title,
        file=error.file,
        line=error.line,
        sizes=sizes,
        reason=reason,
        advice=advice,
    )


def _is_open(error: Raised) -> bool:
    """Whether a starter's own line says that something is still to be written."""
    return error.error == "NotImplementedError" and error.source.startswith("raise")


def _unwritten(crashed: CheckResult, error: Raised, name: str | None) -> CheckResult:
    part = "building it" if error.verb == "build" else "calling it"
    message = f"{name or 'the module'} is not written yet: {part} raises {error}"
    return replace(crashed, title=WRITTEN, message=message, reason="unwritten", advice="")


def _died(part: Part, death: Died, sizes: Sizes) -> CheckResult:
    return replace(
        result_of(part, "failed", f"the candidate {death}"),
        sizes=sizes,
        reason=death.reason,
        advice="Run the file by itself at these sizes to see where it ends.",
    )


def unseen(part: Part, reason: str) -> CheckResult:
    return replace(result_of(part, "skipped", reason), reason=UNSEEN)


@lru_cache(maxsize=256)  # most are the same: a check that holds at one more set of sizes
def result_of(part: Part, outcome: Outcome, message: str) -> CheckResult:
    return CheckResult(
        id=part.check,
        title=part.title if outcome == "failed" else part.check_title,
        outcome=outcome,
        message=message,
        advice=part.advice if outcome == "failed" else "",
        trusted=part.trusted,
    )
