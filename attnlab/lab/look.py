"""The trace stage: run the example once, run it again at telling sizes, name what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from attnlab.lab import draw
from attnlab.lab.axes import Run, input_axes, name_operands, name_rows
from attnlab.lab.draw import Dice
from attnlab.lab.explain import crash
from attnlab.lab.findings import Rows, find
from attnlab.lab.host import Died, Host, Raised, answered
from attnlab.lab.raw import RawTrace, sound
from attnlab.lab.sizes import Sizes, Unmeasured, built, naming, with_hd
from attnlab.records import Contract, Finding, Job, Trace, from_json, plain

HIDDEN = {"silent-broadcast", "leftover-axis"}  # findings that equal sizes can hide
LENGTHS = {"S", "Sq", "Sk", "T", "L"}  # what tables of positions and masks have a limit for
LONGEST = 32 << 20  # characters of a trace: 20,000 rows take about half of it
SEED = 0  # the example is the same every time: a puzzle must not change while one looks at it


def look(job: Job, host: Host, renew: Callable[[], Host] | None = None) -> Trace:
    """The trace of the job's example, with names, findings and the crash explained.

    `renew` is called where the host died after it had shown the example.
    """
    contract = job.contract
    if contract is None:
        return named(Run(_read(host, "demo", **surroundings(job)), {}), None)
    sizes = with_hd(contract.sizes)
    run = Run(_run(job, host, contract, sizes), sizes)
    telling, bound = None, False
    try:
        telling = _telling(job, host, contract)
        bound = telling is not None and _bound(job, host, run, telling)
    except Died as death:  # the example ran: that is what was asked
        if renew is not None and death.reason != "timeout":
            renew()
    trace = named(run, telling)
    if telling is not None and bound:
        trace = replace(trace, findings=(*trace.findings, _coincidence(telling)))
    return trace


def surroundings(job: Job) -> dict[str, Any]:
    """The candidate's source and where it lives, as the verbs `load` and `demo` take them."""
    code = job.candidate
    own = plain(job.own) if job.own else None
    return {"file": code.file, "text": code.text, "path": code.path, "own": own}


def named(run: Run, telling: Run | None) -> Trace:
    """A raw trace as the record that everybody reads."""
    raw = run.raw
    axes = name_rows(run, telling)
    rows = Rows(raw, axes, input_axes(run, telling))
    found = find(rows)
    if telling is not None:
        found = (*found, *_only_there(run, telling, found))
    return Trace(
        ops=tuple(replace(op, axes=a) for op, a in zip(raw.ops, axes, strict=True)),
        findings=found,
        crash=crash(rows, name_operands(run, telling)),
        notes=raw.notes,
    )


def _only_there(run: Run, telling: Run, found: tuple[Finding, ...]) -> Iterator[Finding]:
    """What the example's sizes hide: with B = 1 or S = H an accident has the right shape."""
    if run.raw.fall is not None:
        return
    at = _at(telling.sizes)
    known = {(f.rule, f.line) for f in found}
    names = name_rows(telling, None)
    for finding in find(Rows(telling.raw, names, input_axes(telling, None))):
        if finding.rule in HIDDEN and (finding.rule, finding.line) not in known:
            yield replace(finding, message=finding.message + at)


def _bound(job: Job, host: Host, run: Run, telling: Run) -> bool:
    """The run at the telling sizes raised, and not because they are too large for a table."""
    fall = telling.raw.fall
    if run.raw.fall is not None or fall is None or len(fall.operands) < 2 or not job.contract:
        return False
    smaller = {s: job.contract.sizes[s] - 1 for s in LENGTHS & telling.sizes.keys()}
    if fall.op == "embedding" or min(smaller.values(), default=1) < 1:
        return False
    try:
        other = _run(job, host, job.contract, {**telling.sizes, **smaller}).fall
    except (Raised, Unmeasured):
        return False
    return other is not None and (other.op, other.line) == (fall.op, fall.line)


def _coincidence(telling: Run) -> Finding:
    fall = telling.raw.fall
    assert fall is not None
    return Finding(
        rule="size-coincidence",
        file=fall.file,
        line=fall.line,
        op=fall.op,
        severity="warning",
        message=f"runs only because sizes of the example coincide: elsewhere {fall.op} raises "
        f"{fall.error}: {fall.message}{_at(telling.sizes)}",
    )


def _at(sizes: Sizes) -> str:
    return f" (at {', '.join(f'{k}={v}' for k, v in sizes.items())})"


def _run(job: Job, host: Host, contract: Contract, sizes: Sizes) -> RawTrace:
    init = built(contract.init, sizes)
    answered(host.ask("build", name=job.candidate.name, init=init, seed=SEED))
    inputs = draw.inputs(contract, sizes, Dice(SEED), contract.example_mask)
    return _read(host, "trace", inputs=list(inputs.items()), seed=SEED)


def _telling(job: Job, host: Host, contract: Contract) -> Run | None:
    """The same at sizes that tell axes apart; None for code that is bound to fixed sizes."""
    sizes = naming(contract)
    fixed = [a for i in contract.inputs for a in i.axes if a.isdigit() and a != "1"]
    if sizes is None or fixed or any(type(v) is int for v in contract.init.values()):
        return None
    try:
        return Run(_run(job, host, contract, sizes), sizes)
    except (Raised, Unmeasured):
        return None


def _read(host: Host, verb: str, **args: object) -> RawTrace:
    """The trace in an answer. A candidate may send anything: what makes no sense ends it."""
    answer = answered(host.ask(verb, **args))
    if len(str(answer.get("trace", ""))) > LONGEST:
        raise Died("crashed", f"answered with a trace of over {LONGEST >> 20} MiB")
    try:
        raw = from_json(RawTrace, answer["trace"])
    except (KeyError, TypeError, ValueError) as error:
        raise Died("crashed", "answered with no trace") from error
    if not sound(raw):
        raise Died("crashed", "answered with a trace that makes no sense")
    return raw
