"""The check stage: every check that applies, at every round of sizes, folded and ordered."""

from collections.abc import Iterator
from dataclasses import replace

from attnlab.catalogue.contract_facts import known_facts
from attnlab.checks.base import Part, load_checks, parts_of
from attnlab.grading.round import Round, State, result_of, unseen
from attnlab.probe.inputs.patterns import FIRSTS, USUAL, pattern_of
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.pacing import LENGTHS, pairs
from attnlab.probe.probe import GradingContext, Probe
from attnlab.records import CheckResult, Outcome
from attnlab.sizes import Sizes
from attnlab.verdict import UNSEEN

FIRST = 2  # rounds at which every check is made: the example's sizes, and the first that are drawn
PATIENCE = 1.0  # seconds that a call of a round that confirms may take
USUALLY = 3  # rounds from the telling one on drawn as usual, but for a first mask
INPUTS = "input-unchanged"
ORDER: dict[Outcome, int] = {"failed": 0, "error": 1, "passed": 2, "skipped": 3}


def run_checks(context: GradingContext) -> tuple[CheckResult, ...]:
    """What to look at first stands first: failures, those they explain, then the rest.

    The first round has the example's sizes, so a failure that the user can see in `run` comes
    before one that only other sizes bring out. Where values are right at these, the properties that
    explain a wrong one are left to sizes that tell more."""
    state = State()
    only = context.only
    parts = tuple(p for p in parts_of(load_checks()) if not only or p.id in only)
    applying = list(_applying(context, parts, state))
    sizes_of = rounds(
        context.contract, context.dice.plain, context.numbers, narrow=context.reference is not None
    )
    if context.quick:
        sizes_of = sizes_of[:FIRST]
    confirms = 0  # rounds whose inputs were drawn in a pattern of their own
    telling = 1 if context.contract.vary and len(sizes_of) > 1 else 0
    for number, sizes in enumerate(sizes_of):
        if state.over:
            break
        if number > telling and _endless(context, sizes):
            continue
        left = [p for p in applying if state.open(p) and (number < FIRST or not p.few)]
        apart = number >= telling + USUALLY and state.right and sizes.get("S", 2) > 1
        usual = FIRSTS.get(number - telling, USUAL) if state.right else USUAL
        pattern = pattern_of(confirms) if apart else usual
        confirms += apart
        probe = Probe(context, sizes, thorough=number == telling, pattern=pattern)
        Round(probe, state, number, telling, last=number + 1 == len(sizes_of)).make(left)
    _blame_written_input(context, applying, state)
    for part in (p for p in applying if p.id not in state.results):
        state.put(part, unseen(part, state.over), 0)
    return _in_reading_order(parts, state)


def _endless(context: GradingContext, sizes: Sizes) -> bool:
    """Whether a call would take all the time of a module that goes through pairs one by one."""
    length = max((sizes.get(s, 1) for s in LENGTHS), default=1)
    return (context.pace or 0.0) * sizes.get("B", 1) * pairs(sizes, length) > PATIENCE


def _blame_written_input(context: GradingContext, applying: list[Part], state: State) -> None:
    """Inputs are looked at closely in few calls; that one was written into is noticed in all."""
    part = next((p for p in applying if p.id == INPUTS), None)
    if context.wrote is None or part is None or not state.passed(part):
        return
    name, sizes = context.wrote
    failed = result_of(part, "failed", f"forward wrote into its argument {name} at these sizes")
    state.put(part, replace(failed, sizes=sizes), state.rounds[part.id])


def _applying(context: GradingContext, parts: tuple[Part, ...], state: State) -> Iterator[Part]:
    have = known_facts(context.contract) | ({"reference"} if context.reference else set())
    for part in parts:
        reason = part.missing(have)
        if part.on_demand and not context.full and part.promise not in have:
            reason = "made on demand only"
        if reason is None:
            yield part
        else:
            state.put(part, result_of(part, "skipped", reason), 0)


# ---------------------------------------------------------------- folding and order


def _in_reading_order(parts: tuple[Part, ...], state: State) -> tuple[CheckResult, ...]:
    """One result for each check: that of its part which says most."""
    failed = [p for p in parts if state.results[p.id].outcome == "failed"]
    failed.sort(key=lambda p: state.rounds[p.id])
    results = dict(state.results)
    for i, part in enumerate(failed):
        under = _explaining(failed[:i], part, state, results)
        results[part.id] = replace(results[part.id], folded_under=under)
    ranked = [*failed, *(p for p in parts if p not in failed)]
    by_check: dict[str, list[CheckResult]] = {}
    for result in sorted(
        (results[p.id] for p in ranked), key=lambda r: (ORDER[r.outcome], bool(r.folded_under))
    ):
        by_check.setdefault(result.id, []).append(result)
    return tuple(_merge(several) for several in by_check.values())


def _merge(parts: list[CheckResult]) -> CheckResult:
    """The result of a check: that of the first part that failed; it has passed where all parts that
    apply were looked at."""
    first = parts[0]
    if first.outcome in ("passed", "skipped"):
        first = next((part for part in parts if part.reason == UNSEEN), first)
    return replace(first, trusted=any(p.trusted for p in parts if p.outcome == first.outcome))


def _explaining(
    earlier: list[Part], part: Part, state: State, results: dict[str, CheckResult]
) -> str:
    """The earlier failure that a failure follows from: a more basic property, or the same crash."""
    for other in earlier:
        same = state.crashes.get(other.id)
        crashed_alike = same is not None and same == state.crashes.get(part.id)
        if other.tier.explains(part.tier) or crashed_alike:
            return results[other.id].folded_under or results[other.id].id
    return ""
