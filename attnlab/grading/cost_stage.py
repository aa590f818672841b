"""The cost stage: count one call, at other sizes too, and once at those that are asked for."""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import prod

from attnlab.candidate.host import Died, Host, Raised
from attnlab.errors import Refused
from attnlab.grading.cost_sizes import Draft, free_symbols, small
from attnlab.grading.example_run import read_trace, run_example, surroundings
from attnlab.grading.refusals import size_refusal
from attnlab.records import Contract, Job, Trace
from attnlab.records.cost import CostReport
from attnlab.sizes import Sizes, UnknownSize, measure, with_head_dim
from attnlab.target.conventions import CACHES
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace
from attnlab.tracer.cost import Costs, cost_of
from attnlab.tracer.counted_run import Run
from attnlab.tracer.formulas import LENGTHS, evaluate
from attnlab.tracer.views.attention import NONE_FOUND

SHARE = 0.3  # of the time limit, for the runs at other sizes
QUICK = 10**9  # FLOPs, and a tenth of it elements, that are run for real
TOO_LARGE = re.compile(r"overflow|too (large|big)|out of memory", re.IGNORECASE)
NEVER = "a whole encoder keeps none: no position is masked from those after it"


def count_cost(job: Job, host: Host) -> tuple[Trace, CostReport | None]:
    """The trace of the example, and its cost at `job.at`, or at the example's sizes; raises
    `Refused` where the module takes none of these sizes."""
    whole = _is_whole(job.contract)
    job = replace(job, options=replace(job.options, cost=True, attention=whole))
    counter = _Counter(job, host)
    if job.contract is None:
        raw = read_trace(host, "demo", **surroundings(job), options=asdict(job.options))
        trace = build_trace(SizedTrace(raw, raw.sizes), None)
        once = "no formulas: a demo runs once; name its class, as in file.py:Net"
        how = "counted in a run"
        report = replace(cost_of(trace, inputs=raw.inputs), how=how, checks=(once,))
        return trace, None if trace.crash else report
    example = counter.count(counter.example)
    trace = replace(example.trace, notes=tuple(n for n in example.trace.notes if n != NONE_FOUND))
    if trace.crash is not None:
        return trace, None
    job = counter.job = replace(job, options=replace(job.options, attention=False))
    later = [a.causal is False or a.coverage == 1 for a in trace.attention]  # keys that are seen
    without = NEVER if whole and later and all(later) else ""
    fitted, proof, held = counter.runs(example)
    costs = Costs(fitted, (*proof, example), without)
    if not job.at:
        report = costs.report(example, trace.sizes)
        said = (*_proof(costs, report, proof), *held)
        return trace, replace(report, how="counted in a run", checks=said)
    wanted = with_head_dim({**counter.contract.sizes, **job.at})
    run, how = counter.at(wanted, costs)
    if run:
        costs.prove(run)
    report = costs.report(run, run.trace.sizes if run else trace.sizes | wanted)
    said = (*counter.said, *_proof(costs, report, proof), *held)
    notes = run.trace.notes if run else ()
    return replace(run.trace if run else trace, notes=notes), replace(report, how=how, checks=said)


class _Counter:
    """Runs of one module, at the example's sizes and at others."""

    def __init__(self, job: Job, host: Host) -> None:
        self.job, self.host, self.contract = job, host, job.contract or Contract()
        self.example = with_head_dim(self.contract.sizes)
        self.until = time.monotonic() + SHARE * job.limits.seconds
        self.said: tuple[str, ...] = ()

    def count(self, sizes: Sizes, device: str = "cpu") -> Run:
        """The run at these sizes, which may have crashed; raises what building raises."""
        job = self.job
        raw = run_example(job, self.host, self.contract, sizes, job.options, device)
        return Run(build_trace(SizedTrace(raw, sizes), None), sizes, raw.inputs)

    def attempt(self, sizes: Sizes, device: str = "cpu") -> tuple[Run | None, str]:
        """The run, or why there is none."""
        try:
            run = self.count(sizes, device)
        except (Raised, Died, UnknownSize) as error:
            return None, str(error)
        crash = run.trace.crash
        where = f"{crash.file}:{crash.line}: {crash.error}: " if crash else ""
        return (None, f"{where}{crash.message}") if crash else (run, "")

    # ------------------------------------------------------------ for formulas

    def runs(self, example: Run) -> tuple[list[Run], list[Run], tuple[str, ...]]:
        """Runs to solve formulas from, runs to try them on, and what is to be said of symbols that
        could not be changed."""
        heavy = example.count("flops") > QUICK or example.count("weights") > QUICK
        device = "meta" if heavy else "cpu"
        draft = Draft(self.contract)
        first = self.attempt(self.example, device)[0] if heavy else example
        if first is None:  # it needs values: those of small tensors are as good
            draft, device = Draft(small(self.contract)), "cpu"
            first = self.attempt(draft.first)[0]
        if first is None:
            first, draft = example, Draft(self.contract)
        fitted, changes = [first], dict[str, int]()
        symbols = free_symbols(self.contract)
        for symbol in symbols:
            for size in draft.others(symbol):
                run = self._other(draft.change({symbol: size}), device)
                if run:
                    fitted.append(run)
                    changes[symbol] = size
                    break
        joint = self._joint(draft, changes, device)
        late = time.monotonic() > self.until
        proof = [] if late else self._joint(draft, draft.further(changes), device)
        held = [s for s in self.example if s not in changes and s not in draft.follows]
        return [*fitted, *joint], proof or joint, _held(held, self.example, late)

    def _other(self, sizes: Sizes, device: str) -> Run | None:
        late = time.monotonic() > self.until
        return None if late else self.attempt(sizes, device)[0]

    def _joint(self, draft: Draft, changes: Sizes, device: str) -> list[Run]:
        """A run with all changes, or with fewer where it takes them one at a time alone."""
        for without in ((), ("H", "Hkv"), (*LENGTHS, "M")):
            some = {s: n for s, n in changes.items() if s not in without}
            if some and (run := self._other(draft.change(some), device)):
                return [run]
        return []

    # ------------------------------------------------------------ at sizes that are asked for

    def at(self, wanted: Sizes, costs: Costs) -> tuple[Run | None, str]:
        """The run at these sizes, for real where that is quick, else without data; None where the
        formulas are all there is. Raises `Refused` where the module does not take the sizes."""
        named = _at(self.job.at)
        if "hd" in self.example and "hd" not in wanted:
            raise self._refused("heads would have no whole width")
        self._must_reach(wanted)
        if self._is_quick(wanted, costs):
            run, problem = self.attempt(wanted)
            if run:
                return run, f"counted in a run{named}"
            raise self._refused(problem)
        run, problem = self.attempt(wanted, "meta")
        if run:
            return run, f"counted{named}, with tensors without data"
        usual = self.attempt(self.example, "meta")[1]
        alike = re.sub(r"\d+", "", usual) == re.sub(r"\d+", "", problem)
        if not TOO_LARGE.search(problem) and not (usual and alike):
            raise self._refused(problem)
        short = {**wanted, **{s: n for s, n in self.example.items() if s in ("B", *LENGTHS)}}
        if self._is_quick(short, costs) and (why := self.attempt(short)[1]):
            raise self._refused(why)
        self.said = (f"nothing could be counted at these sizes: {problem}",)
        return (
            None,
            f"extrapolated by the formulas of runs at small sizes, first{_at(self.example)}",
        )

    def _is_quick(self, sizes: Sizes, costs: Costs) -> bool:
        given = sum(prod(measure(a, sizes) for a in i.axes) for i in self.contract.inputs)
        formulas = [costs.formula(kind) for kind in ("flops", "weights", "pairs")]
        known = [evaluate(f, sizes) for f in formulas if f is not None]
        return len(known) == 3 and max(known[0], 10 * given, *(10 * n for n in known[1:])) <= QUICK

    def _must_reach(self, wanted: Sizes) -> None:
        """Raise `Refused` where a table of M rows ends before: that tensors without data do not
        notice, so that one position more than M is tried for real."""
        most = wanted.get("M", 0)
        long = [s for s in LENGTHS if most and wanted.get(s, 0) > most]
        if not long or "M" not in self.contract.sizes:
            return
        sizes = {**self.example, "M": most, **dict.fromkeys(long, most + 1)}
        if max(most, self.example.get("D", 1)) <= 4096 and (problem := self.attempt(sizes)[1]):
            here = f"{long[0]}={wanted[long[0]]}"
            raise self._refused(f"{here} is beyond M={most}: {problem}", {"M": wanted[long[0]]})

    def _refused(self, problem: str, more: Sizes | None = None) -> Refused:
        refusal = size_refusal(self.job, problem, more or {})
        return Refused(refusal.message, refusal.hint, "--at")


def _is_whole(contract: Contract | None) -> bool:
    """Whether it takes tokens or pictures, and nothing that holds keys of earlier calls: a model,
    and no layer that may be used anywhere."""
    inputs = contract.inputs if contract else ()
    cached = any(i.argument in CACHES or i.name != i.argument for i in inputs)
    ids = any(i.dtype == "int" and i.role == "data" for i in inputs)
    return not cached and (ids or any(len(i.axes) == 4 and i.axes[-1].isdigit() for i in inputs))


def _at(sizes: Sizes) -> str:
    known = " ".join(f"{symbol}={n}" for symbol, n in sizes.items())
    return f" at {known}" if known else ""


def _held(symbols: Sequence[str], sizes: Sizes, late: bool) -> tuple[str, ...]:
    if not symbols:
        return ()
    why = "for lack of time (--timeout gives more)" if late else "nothing else runs"
    fixed = " ".join(f"{symbol}={sizes[symbol]}" for symbol in symbols)
    return (f"{fixed} held fixed ({why}): formulas have the number, not the symbol",)


def _proof(costs: Costs, report: CostReport, proof: Sequence[Run]) -> tuple[str, ...]:
    """What the formulas were tried on, and which numbers have none."""
    lacking = [c.title for c in report.costs if c.value != 0 and not c.formula]
    lacking += [m.name or "(itself)" for m in report.modules if m.flops != 0 and not m.formula]
    if not proof:
        return ("no formulas: it runs at no other sizes than these",)
    first, other = costs.fitted[0].sizes, proof[0].sizes
    where = _at({s: n for s, n in other.items() if first.get(s) != n})
    said = f"each formula gives exactly what was counted{where}, too"
    names = ", ".join(dict.fromkeys(lacking))
    none = f"no formula fits {names}: none gives what was counted at each set of sizes"
    return (said, none) if lacking else (said,)
