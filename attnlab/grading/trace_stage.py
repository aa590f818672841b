"""The trace stage: run the example, run it again at sizes that tell axes apart, name the axes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from attnlab.candidate.host import Died, Host, Raised, checked_answer
from attnlab.grading.example_run import (
    LONGEST,
    SEED,
    build_example,
    raw_trace,
    read_trace,
    run_example,
    surroundings,
)
from attnlab.probe.answers import Mask
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.sizes import counts_keys, naming
from attnlab.records import Contract, Finding, Input, Job, NextCall, Trace, TraceOptions, from_json
from attnlab.sizes import Sizes, UnknownSize, with_head_dim
from attnlab.target.conventions import CACHES
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace, sizes_suffix, unique_findings
from attnlab.tracer.findings import Rows, find
from attnlab.tracer.raw_trace import RawTrace
from attnlab.tracer.size_coincidence import Broken, find_relation

LENGTHS = {"S", "Sq", "Sk", "T", "L"}  # what tables of positions and masks have a limit for
GAP = 1e-4  # that float32 may leave between a step and a pass over all positions
UNTAKEN = "call 1 returned more than its output; --feed NAME says which argument takes it"
ONCE = "a demo runs once: name its class for several calls, as in file.py:Net"
FED = "a demo makes its own inputs: name its class for --preset {}, as in file.py:Net"


def trace_example(job: Job, host: Host, renew: Callable[[], Host] | None = None) -> Trace:
    """The trace of the job's example, with names, findings and the crash explained.

    `renew` is called where the host died after it had shown the example."""
    contract = job.contract
    if contract is None:
        raw = read_trace(host, "demo", **surroundings(job), options=asdict(job.options))
        demo = build_trace(SizedTrace(raw, raw.sizes), None)
        return replace(demo, notes=(*demo.notes, *_left_out(job.options)))
    several, contract = contract, _of_one_call(contract)
    sizes = with_head_dim(contract.sizes)
    run = SizedTrace(run_example(job, host, contract, sizes, job.options), sizes)
    telling, trace = None, None
    try:
        telling = _telling(job, host, contract)
        trace = _confirmed(job, host, run, telling) if telling else None
    except Died as death:  # the example ran: that is what was asked
        if renew is not None and death.reason != "timeout":
            renew()
    trace = trace or build_trace(run, telling)
    wanted = job.options.calls > 1 and trace.crash is None
    return _with_calls(job, host, several, trace) if wanted else trace


def _of_one_call(contract: Contract) -> Contract:
    """In a first call the keys are those of the new positions: Sk is S, and not another length."""
    sizes = dict(contract.sizes)
    if not counts_keys(contract) or "S" not in sizes or sizes.pop("Sk", None) is None:
        return contract
    inputs = tuple(
        replace(i, axes=tuple("S" if axis == "Sk" else axis for axis in i.axes))
        for i in contract.inputs
    )
    return replace(contract, sizes=sizes, inputs=inputs)


def _left_out(options: TraceOptions) -> Iterator[str]:
    """What a demo cannot be asked."""
    if options.calls > 1:
        yield ONCE
    if options.fill != "noise":
        yield FED.format(options.fill)


def _with_calls(job: Job, host: Host, contract: Contract, trace: Trace) -> Trace:
    """The trace with further calls of the same module, and where a step parts from a full pass."""
    options, sizes = job.options, with_head_dim(contract.sizes)
    cached = [
        i for i in contract.inputs if i.argument in ((options.feed,) if options.feed else CACHES)
    ]
    symbol = _first_length(i for i in contract.inputs if i not in cached)
    if options.decode and not symbol:
        note = "no input has an axis of positions (S, T or L), so there is nothing to decode"
        return replace(trace, notes=(*trace.notes, note))
    if options.decode:
        sizes = {**sizes, symbol: sizes[symbol] + options.calls - 1}
    build_example(job, host, contract, sizes)
    inputs = draw.inputs(contract, sizes, Dice(SEED), _mask_of_calls(contract, options.decode))
    answer = checked_answer(
        host.ask(
            "trace_calls",
            inputs=list(draw.filled(contract, inputs, options.fill).items()),
            seed=SEED,
            axes={i.name: list(i.axes) for i in contract.inputs},
            sizes=dict(sizes),
            calls=options.calls,
            symbol=symbol if options.decode else "",
            feed=options.feed,
            past=_first_length(cached),
        )
    )
    tokens = 1 if options.decode else sizes.get(symbol, 0)
    calls = tuple(_next_calls(answer, options.calls, tokens))
    found, notes = (*trace.findings, *_later_findings(trace, calls)), trace.notes
    name = answer.get("unfed")
    if isinstance(name, str):  # steps without their cache are no steps
        without = f"call 1 returned nothing that could be fed to {name}"
        told = f"{without}, so steps are not compared with one pass" if options.decode else without
        notes = (*notes, told if name else UNTAKEN)
    elif differs := answer.get("differs"):
        found = (*found, from_json(Finding, str(differs)[:LONGEST]))
    elif isinstance(gap := answer.get("gap"), float) and gap <= GAP:
        notes = (*notes, f"every step equals one pass over all positions, but for {gap:.2g}")
    elif isinstance(gap, float):
        found = (*found, _unpaired(job, trace, gap))
    crash = calls[-1].trace.crash if calls else None
    return replace(trace, calls=calls, crash=crash, findings=found, notes=notes)


def _mask_of_calls(contract: Contract, decode: bool) -> Mask:
    """The example's mask. Steps equal a pass over all positions where none sees those after it: the
    module sees to that itself, or a mask that it needs does."""
    needed = any(i.role == "mask" and not i.optional for i in contract.inputs)
    return contract.example_mask if not decode else "causal" if needed else "none"


def _first_length(inputs: Iterable[Input]) -> str:
    """The first axis of positions; "" where none has one."""
    return next((axis for i in inputs for axis in i.axes if axis in LENGTHS), "")


def _next_calls(answer: Mapping[str, Any], total: int, tokens: int) -> Iterator[NextCall]:
    """The calls after the first, each with what was new to it; `tokens` = 0 where none are."""
    texts, lengths = answer.get("traces"), answer.get("lengths")
    if not isinstance(texts, list) or not isinstance(lengths, list):
        return
    for number, (text, length) in enumerate(list(zip(texts, lengths, strict=False))[1:], 2):
        raw = raw_trace(text)
        trace = build_trace(SizedTrace(raw, raw.sizes), None)
        crash = replace(trace.crash, call=number) if trace.crash else None
        ops = tuple(replace(op, call=number) for op in trace.ops)
        new = [f"{tokens} token{'s' * (tokens > 1)}"] if tokens else []
        new += [f"cache {length[0]} -> {length[1]}"] if _is_pair(length) else []
        trace = replace(trace, ops=ops, crash=crash)
        yield NextCall(number=number, total=total, inputs=", ".join(new), trace=trace)


def _later_findings(trace: Trace, calls: Sequence[NextCall]) -> tuple[Finding, ...]:
    """What is wrong in later calls alone; it stands at no row of the first one."""
    known = {(finding.rule, finding.line) for finding in trace.findings}
    return unique_findings(
        [
            replace(finding, index=None, message=f"in call {call.number}: {finding.message}")
            for call in calls
            for finding in call.trace.grave
            if (finding.rule, finding.line) not in known
        ]
    )


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and [type(n) for n in value] == [int, int]


def _confirmed(job: Job, host: Host, run: SizedTrace, telling: SizedTrace) -> Trace:
    """The trace, with what depends on the example's sizes, for which it runs at others."""
    chance = _by_chance(job, host, run, telling)
    trace = build_trace(run, telling)
    found = _with_chance(trace.findings, chance) if chance else trace.findings
    return replace(trace, findings=tuple(_hidden(job, host, telling, f) for f in found))


def _with_chance(found: Sequence[Finding], chance: Finding) -> tuple[Finding, ...]:
    """One finding for axes that meet by a coincidence of sizes, and for that coincidence."""
    same = [f for f in found if f.rule == "axes-meet" and f.line == chance.line]
    others = tuple(f for f in found if f not in same)
    why = f": {same[0].message.partition(':')[0]}; elsewhere" if same else ": elsewhere"
    message = chance.message.replace(": elsewhere", why, 1)
    return unique_findings((*others, replace(chance, message=message)))


def _hidden(job: Job, host: Host, telling: SizedTrace, finding: Finding) -> Finding:
    """A finding of the telling sizes, with the equality of the example's sizes that hides it."""
    where, contract = sizes_suffix(telling.sizes), job.contract
    if contract is None or finding.rule == "size-coincidence":
        return finding
    if not finding.message.endswith(where):
        return finding

    def shown(sizes: Sizes) -> bool | None:
        try:
            run = SizedTrace(run_example(job, host, contract, sizes), sizes)
        except (Raised, UnknownSize):
            return None
        found = (*find(Rows(run)), *run.raw.findings)
        return any((f.rule, f.line) == (finding.rule, finding.line) for f in found)

    words = find_relation(contract, telling.sizes, shown, strict=False)
    said = finding.message.removesuffix(where)
    return replace(finding, message=f"{said}; here {words} hides it{where}") if words else finding


def _by_chance(job: Job, host: Host, run: SizedTrace, telling: SizedTrace) -> Finding | None:
    """A finding where the telling sizes raise: on which sizes the run of the example depends."""
    crash = telling.raw.crash
    if run.raw.crash is not None or crash is None or not job.contract:
        return None
    contract = job.contract

    def broken(sizes: Sizes) -> bool | None:
        try:
            raw = run_example(job, host, contract, sizes)
        except (Raised, UnknownSize):
            return None
        return _same_fall(raw, telling.raw)

    words = find_relation(contract, telling.sizes, broken)
    if words:
        return _coincidence(run, telling, f"runs only because {words}")
    if (
        len(crash.operands) < 2
        or crash.op == "embedding"
        or not _at_less(contract, telling, broken)
    ):
        return None
    return _coincidence(run, telling, "runs only because sizes of the example coincide")


def _same_fall(raw: RawTrace, other: RawTrace) -> bool:
    """Whether both raised at the same place, or the first one before it."""
    if raw.crash is None or other.crash is None:
        return False
    here = (raw.crash.op, raw.crash.line) == (other.crash.op, other.crash.line)
    return here or len(raw.ops) < len(other.ops)


def _at_less(contract: Contract, telling: SizedTrace, broken: Broken) -> bool:
    """Whether it raises below the example's lengths as well, where no table ends."""
    smaller = {s: contract.sizes[s] - 1 for s in LENGTHS & telling.sizes.keys()}
    if min(smaller.values(), default=1) < 1:
        return False
    return broken({**telling.sizes, **smaller}) is True


def _coincidence(run: SizedTrace, telling: SizedTrace, because: str) -> Finding:
    crash = telling.raw.crash
    assert crash is not None
    here = (o.index for o in run.raw.ops if (o.op, o.line) == (crash.op, crash.line))
    return Finding(
        rule="size-coincidence",
        file=crash.file,
        line=crash.line,
        op=crash.op,
        index=next(here, None),
        severity="warning",
        message=f"{because}: elsewhere {crash.op or 'this line'} raises {crash.error}: "
        f"{crash.message}{sizes_suffix(telling.sizes)}",
    )


def _unpaired(job: Job, trace: Trace, gap: float) -> Finding:
    """The finding where outputs of steps are wrong and no row could be blamed."""
    last = trace.ops[-1] if trace.ops else None
    return Finding(
        rule="decode-differs",
        file=last.file if last else job.candidate.file,
        line=last.line if last else 0,
        op=last.op if last else "",
        severity="error",
        message=f"decode steps end up to {gap:.2g} away from one pass over all positions; "
        "their rows could not be paired with those of the pass",
    )


def _telling(job: Job, host: Host, contract: Contract) -> SizedTrace | None:
    """The run at sizes that tell axes apart; None for code that is written for fixed sizes."""
    sizes = naming(contract)
    fixed = [a for i in contract.inputs for a in i.axes if a.isdigit() and a != "1"]
    if sizes is None or fixed or any(type(v) is int for v in contract.init.values()):
        return None
    try:
        return SizedTrace(run_example(job, host, contract, sizes), sizes)
    except (Raised, UnknownSize):
        return None
