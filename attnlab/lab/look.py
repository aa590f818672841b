"""The trace stage: run the example once, run it again at telling sizes, name what was seen."""

from __future__ import annotations

from dataclasses import replace

from attnlab.lab import draw
from attnlab.lab.axes import Axes, Symbols, name_operands, name_rows
from attnlab.lab.draw import Dice
from attnlab.lab.explain import crash
from attnlab.lab.findings import Rows, find
from attnlab.lab.host import Host, Raised, answered
from attnlab.lab.raw import RawTrace
from attnlab.lab.sizes import Sizes, Unmeasured, built, naming, with_hd
from attnlab.records import Contract, Job, Trace, from_json

SEED = 0  # the example is the same every time: a puzzle must not change while one looks at it


def look(job: Job, host: Host) -> Trace:
    """The trace of the job's example, with names, findings and the crash explained."""
    if job.contract is None:
        return named(_read(host, "demo"), {}, None, None)
    sizes = with_hd(job.contract.sizes)
    raw = _run(job, host, job.contract, sizes)
    telling = naming(job.contract)
    return named(raw, sizes, _shadow(job, host, job.contract, telling), telling)


def named(
    raw: RawTrace, sizes: Sizes, shadow: RawTrace | None, shadow_sizes: Sizes | None
) -> Trace:
    """A raw trace as the record that everybody reads."""
    axes = name_rows(raw, sizes, shadow, shadow_sizes)
    rows = Rows(raw, axes, _input_axes(raw, sizes, shadow, shadow_sizes))
    return Trace(
        ops=tuple(replace(op, axes=a) for op, a in zip(raw.ops, axes, strict=True)),
        findings=find(rows),
        crash=crash(rows, name_operands(raw, sizes, shadow, shadow_sizes)),
        notes=raw.notes,
    )


def _run(job: Job, host: Host, contract: Contract, sizes: Sizes) -> RawTrace:
    init = built(contract.init, sizes)
    answered(host.ask("build", name=job.candidate.name, init=init, seed=SEED))
    inputs = draw.inputs(contract, sizes, Dice(SEED), contract.example_mask)
    return _read(host, "trace", inputs=list(inputs.items()), seed=SEED)


def _shadow(job: Job, host: Host, contract: Contract, sizes: Sizes | None) -> RawTrace | None:
    """The same at sizes that tell axes apart; code that cannot take them names nothing."""
    if sizes is None:
        return None
    try:
        return _run(job, host, contract, sizes)
    except (Raised, Unmeasured):
        return None


def _read(host: Host, verb: str, **args: object) -> RawTrace:
    return from_json(RawTrace, answered(host.ask(verb, **args))["trace"])


def _input_axes(
    raw: RawTrace, sizes: Sizes, shadow: RawTrace | None, shadow_sizes: Sizes | None
) -> list[Axes]:
    if shadow is None or len(shadow.inputs) != len(raw.inputs):
        return [Symbols(sizes).axes(s) for s in raw.inputs]
    return [Symbols(shadow_sizes or {}).axes(s) for s in shadow.inputs]
