"""The check stage: every check that applies, at every round of sizes, folded and ordered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from attnlab.catalogue.contract_facts import abilities
from attnlab.checks.base import Check, lacks, load_checks
from attnlab.grading.host_probe import Bench, HostProbe
from attnlab.grading.inputs.patterns import FIRSTS, USUAL, manner_of
from attnlab.grading.inputs.sizes import rounds
from attnlab.grading.pacing import LENGTHS, pairs
from attnlab.grading.round import Plan, Round, State, result_of, unseen
from attnlab.records import CheckResult, Outcome
from attnlab.sizes import Sizes

FIRST = 2  # rounds at which every check is made: the example's sizes, and the first that are drawn
PATIENCE = 1.0  # seconds that a call of a round that confirms may take
USUALLY = 3  # rounds from the telling one on drawn as usual, but for a first mask
INPUTS = "input-unchanged"
ORDER: dict[Outcome, int] = {"failed": 0, "error": 1, "passed": 2, "skipped": 3}


def run_checks(bench: Bench) -> tuple[CheckResult, ...]:
    """What to look at first stands first: failures, those they explain, then the rest.

    The first round has the example's sizes, so a failure that the user can see in `run` comes
    before one that only other sizes bring out. Where values are right at these, the properties that
    explain a wrong one are left to sizes that tell more.
    """
    state = State()
    applying = list(_applying(bench, state))
    sizes_of = rounds(
        bench.contract, bench.dice.plain, bench.numbers, narrow=bench.reference is not None
    )
    confirms = 0  # rounds whose inputs were drawn in a manner of their own
    plan = Plan(len(sizes_of), telling=1 if bench.contract.vary and len(sizes_of) > 1 else 0)
    for number, sizes in enumerate(sizes_of):
        if state.over:
            break
        if number > plan.telling and _endless(bench, sizes):
            continue
        left = [c for c in applying if state.open(c) and (number < FIRST or not c.few)]
        apart = number >= plan.telling + USUALLY and state.right and sizes.get("S", 2) > 1
        usual = FIRSTS.get(number - plan.telling, USUAL) if state.right else USUAL
        manner = manner_of(confirms) if apart else usual
        confirms += apart
        probe = HostProbe(bench, sizes, thorough=number == plan.telling, manner=manner)
        Round(probe, state, number, plan).make(left)
    _written(bench, applying, state)
    for check in (c for c in applying if c.id not in state.results):
        state.put(unseen(check, state.over), 0)
    return _ordered(_asked(bench), state)


def _endless(bench: Bench, sizes: Sizes) -> bool:
    """Whether a call would take all the time of a module that goes through pairs one by one."""
    length = max((sizes.get(s, 1) for s in LENGTHS), default=1)
    return (bench.pace or 0.0) * sizes.get("B", 1) * pairs(sizes, length) > PATIENCE


def _written(bench: Bench, applying: list[Check], state: State) -> None:
    """Inputs are looked at closely in few calls; that one was written into is noticed in all."""
    check = next((c for c in applying if c.id == INPUTS), None)
    if bench.wrote is None or check is None or not state.passed(check):
        return
    name, sizes = bench.wrote
    failed = result_of(check, "failed", f"forward wrote into its argument {name} at these sizes")
    state.put(replace(failed, sizes=sizes), state.rounds[check.id])


def _asked(bench: Bench) -> tuple[Check, ...]:
    return tuple(c for c in load_checks() if not bench.only or c.id in bench.only)


def _applying(bench: Bench, state: State) -> Iterator[Check]:
    have = abilities(bench.contract) | ({"reference"} if bench.reference else set())
    for check in _asked(bench):
        reason = lacks(check, have)
        if check.on_demand and not bench.full:
            reason = "made on demand only"
        if reason is None:
            yield check
        else:
            state.put(result_of(check, "skipped", reason), 0)


# ---------------------------------------------------------------- folding and order


def _ordered(checks: tuple[Check, ...], state: State) -> tuple[CheckResult, ...]:
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
    earlier: list[Check], check: Check, state: State, results: dict[str, CheckResult]
) -> str:
    """The earlier failure that a failure follows from: a more basic property, or the same crash."""
    for other in earlier:
        same = state.crashes.get(other.id)
        if other.id in check.after or (same is not None and same == state.crashes.get(check.id)):
            return results[other.id].folded_under or other.id
    return ""
