"""The cost stage: count one call, and once more at the sizes that are asked for."""

from dataclasses import replace

from attnlab.candidate.host import Died, Host, Raised
from attnlab.grading.trace_stage import trace_once
from attnlab.records import Contract, Job, Trace
from attnlab.records.cost import CostReport
from attnlab.sizes import Sizes, UnknownSize, with_head_dim
from attnlab.tracer.cost import LENGTHS, cost_of

SLACK = 0.01  # what a formula may miss


def count_cost(job: Job, host: Host) -> tuple[Trace, CostReport | None]:
    """The trace of the example, and its cost at `job.at`, or at the example's sizes.

    Tensors without data are counted at those sizes; where that fails, the formulas of the example
    are all there is."""
    job = replace(job, options=replace(job.options, cost=True))
    contract = job.contract
    sizes = with_head_dim(contract.sizes) if contract else {}
    trace = trace_once(job, host, sizes)
    if trace.crash is not None:
        return trace, None
    report = replace(cost_of(trace), how="counted in a run")
    if contract is None:
        return trace, report
    wanted = with_head_dim({**contract.sizes, **job.at}) if job.at else _beside(contract, sizes)
    beyond = _beyond(contract, wanted) if job.at else ()
    try:
        other = trace_once(job, host, wanted, device="meta" if job.at else "cpu")
        problem = other.crash.message if other.crash else ""
    except (Raised, Died, UnknownSize) as error:
        other, problem = Trace(), str(error)
    if problem and job.at:
        how = f"extrapolated by the formulas of a run{_at(trace.sizes)}"
        said = f"nothing could be counted at these sizes: {problem}"
        report = replace(cost_of(trace, trace.sizes | wanted), how=how, checks=(said, *beyond))
        return replace(trace, notes=()), report
    if problem:
        return trace, report
    if not job.at:
        return trace, replace(report, checks=_compared(trace, other))
    how = f"counted{_at(job.at)}, with tensors without data"
    return other, replace(cost_of(other), how=how, checks=(*_compared(other, trace), *beyond))


def _at(sizes: Sizes) -> str:
    known = " ".join(f"{symbol}={n}" for symbol, n in sizes.items())
    return f" at {known}" if known else ""


def _beside(contract: Contract, sizes: Sizes) -> Sizes:
    """Another batch and other lengths, for what the module was built for."""
    given = {axis for i in contract.inputs for axis in i.axes}
    free = [s for s in sizes if s in given & {"B", *LENGTHS}]
    longest = sizes.get("M", 0)
    return {
        **sizes,
        **{s: sizes[s] - 1 if s != "B" and sizes[s] == longest else sizes[s] + 1 for s in free},
    }


def _beyond(contract: Contract, wanted: Sizes) -> tuple[str, ...]:
    """What tensors without data do not notice: positions after the end of a table."""
    longest = contract.sizes.get("M")
    long = [s for s in LENGTHS if longest and wanted.get(s, 0) > wanted.get("M", longest)]
    return tuple(
        f"{s}={wanted[s]} is beyond M={wanted['M']}: a table of M rows would end before, which "
        "tensors without data do not notice"
        for s in sorted(long)
    )


def _compared(trace: Trace, other: Trace) -> tuple[str, ...]:
    """Whether the formulas of one run give what was counted in the other."""
    pairs = zip(cost_of(other).costs, cost_of(trace, other.sizes).costs, strict=True)
    wrong = [a.title for a, b in pairs if abs(a.value - b.value) > SLACK * a.value]
    where = _at({s: n for s, n in other.sizes.items() if trace.sizes.get(s) != n})
    if not wrong:
        return (f"the formulas also give what was counted{where}",)
    return (f"the formulas do not give what was counted{where}: {', '.join(wrong)}",)
