from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    Json,
    Timeout,
    announce,
    challenge_job_for,
    limits,
    note_reveal,
    run_job,
)
from attnlab.commands.output import Html, emit_also
from attnlab.commands.target_flags import (
    OWN_TIME,
    NamedTarget,
    Reveal,
    next_of_puzzle,
    takes_target,
)

if TYPE_CHECKING:
    from attnlab.records import Contract, Job, Limits, Report, TraceOptions

PLACE = 100
CUDA_ROOM = "1024G"  # of addresses: a CUDA context reserves far more than it uses
PRESETS = {
    "tiny": "B=1, S=4, D=8, H=2",
    "arange": "0, 1, 2, ...: values to follow by hand",
    "ones": "every value is 1",
    "eye": "identity matrices",
    "noise": "random normal values",
    "small": "normal values of standard deviation 0.02, as weights begin with",
}


def complete_preset(incomplete: str) -> list[tuple[str, str]]:
    return [pair for pair in PRESETS.items() if pair[0].startswith(incomplete)]


def complete_dtype(incomplete: str) -> list[str]:
    from attnlab.target.options import DTYPES

    return [name for name in DTYPES if name.startswith(incomplete)]


Preset = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="tiny (B=1, S=4, D=8, H=2), or what inputs hold: arange, ones, eye, small, or noise "
        "as without it.",
        autocompletion=complete_preset,
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="float32, float64, bfloat16 or float16.",
        autocompletion=complete_dtype,
    ),
]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="cpu or cuda.")]
Module = Annotated[
    str, typer.Option("--module", metavar="PATTERN", help='Only these submodules: "h.0.*".')
]
Op = Annotated[
    str, typer.Option("--op", metavar="PATTERN", help='Only these operations: "*soft*".')
]
Only = Annotated[bool, typer.Option("--only-findings", help="Only rows with a finding.")]
Depth = Annotated[
    str, typer.Option("--depth", metavar="N", help="Below N levels, one row for each submodule.")
]
NoFold = Annotated[bool, typer.Option("--all-rows", help="Do not fold layers that are alike.")]
Values = Annotated[
    list[str] | None,
    typer.Option("--values", metavar="WHAT", help='Values as a heat map: "scores", or a line.'),
]
Heads = Annotated[bool, typer.Option("--attention", help="What each head looks at.")]
Backward = Annotated[bool, typer.Option("--backward", help="Gradients, and the first bad one.")]
Time = Annotated[bool, typer.Option("--time", help="How long each operation took.")]
Memory = Annotated[
    bool, typer.Option("--memory", help="Memory that each operation took; what is not contiguous.")
]
Aten = Annotated[bool, typer.Option("--aten", help="The kernels below each operation.")]
Symbolic = Annotated[
    bool, typer.Option("--symbolic", help="Sizes it depends on, by symbolic shapes (slow).")
]
Compile = Annotated[bool, typer.Option("--compile", help="Graph breaks of torch.compile (slow).")]
Calls = Annotated[
    str, typer.Option("--calls", metavar="N", help="N calls, each fed with the cache of the last.")
]
Feed = Annotated[
    str,
    typer.Option("--feed", metavar="NAME", help="Which argument takes the cache that is returned."),
]
Decode = Annotated[
    bool,
    typer.Option("--decode", help="Further calls have one new position; compare with a full pass."),
]
Step = Annotated[
    str, typer.Option("--step", metavar="N", help="Run the file; show its Nth step of training.")
]
Most = Annotated[str, typer.Option("--max-memory", metavar="SIZE", help="Memory limit: 512M, 2G.")]


@takes_target
def command(
    named: NamedTarget,
    preset: Preset = None,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    module: Module = "",
    op: Op = "",
    only_findings: Only = False,
    depth: Depth = "",
    all_rows: NoFold = False,
    values: Values = None,
    attention: Heads = False,
    backward: Backward = False,
    time: Time = False,
    memory: Memory = False,
    aten: Aten = False,
    symbolic: Symbolic = False,
    compiled: Compile = False,
    calls: Calls = "",
    feed: Feed = "",
    decode: Decode = False,
    step: Step = "",
    timeout: Timeout = "",
    max_memory: Most = "",
    reveal: Reveal = False,
    html: Html = "",
    json: Json = False,
) -> int:
    """Trace any module: each step, and what is odd about it.

    For every operation: its source line, the shape with the names of its axes, the range of its
    values. A file with a demo or with one module needs no more than its name.
    """
    from dataclasses import replace

    from attnlab.commands.rounds import note_triage, price_of_triage
    from attnlab.records import Contract, TraceOptions
    from attnlab.render.fold import View
    from attnlab.render.trace import TracePage
    from attnlab.target import options as flags
    from attnlab.target.command_line import describe_containers, repeated_flags
    from attnlab.target.trace_advice import next_step, omitted_inputs

    fills = tuple(preset or ())
    options = TraceOptions(
        aten=aten,
        backward=backward,
        time=time,
        memory=memory,
        symbolic=symbolic,
        compile=compiled,
        attention=attention,
        values=tuple(values or ()),
        dtype=flags.parse_dtype(dtype),
        device=flags.parse_device(device),
        fill=flags.parse_presets(fills),
        calls=flags.parse_calls(calls) if calls else flags.DECODED if decode else 1,
        feed=flags.parse_feed(feed, bool(calls or decode)),
        decode=decode,
        step=flags.parse_step(step),
    )
    again: dict[str, str | bool] = {
        "--dtype": "" if dtype == "float32" else dtype,
        "--device": "" if device == "cpu" else device,
        "--decode": decode,
        "--step": step,
        "--calls": calls,
        "--feed": feed,
    }
    named = named.repeating(*repeated_flags(fills, again), tiny=flags.TINY in fills)
    view = View(
        module=module,
        op=op,
        only_findings=only_findings,
        depth=flags.parse_depth(depth),
        fold=not all_rows,
    )
    chosen = named.chosen
    patience = timeout or ("" if chosen else OWN_TIME)
    room = max_memory or (CUDA_ROOM if options.device == "cuda" else "")
    job = _job(named, limits(patience, room, "--max-memory"), options)
    contract = job.contract or Contract()
    report = run_job(job)
    outcome = _outcome(report)
    found = report.trace and report.trace.findings
    solved = chosen is not None and note_reveal(chosen, found, reveal)
    price = price_of_triage(named.ctx, named.typed.target)
    spoils = chosen is not None or bool(price)  # the bugs of an interview are a puzzle, too
    shown, hidden = (report, 0) if not spoils or solved or reveal else _hidden(report)
    if price and reveal and found:
        note_triage(named.ctx, named.typed.target, found)
    advice = (
        next_of_puzzle(chosen, outcome == "ok", solved)
        if chosen
        else next_step(named.typed, job, report, price)
    )
    page = TracePage(
        target=named.name,
        outcome=outcome,
        report=shown,
        sizes=_sizes(contract, report),
        containers=describe_containers(contract),
        view=replace(view, inputs=tuple(i.axes for i in contract.inputs), file=job.candidate.file),
        hidden=hidden,
        omitted=() if chosen else omitted_inputs(job),
        next=advice,
        code=((job.candidate.file, job.candidate.text),),
    )
    return emit_also(page, json, 0 if outcome == "ok" else 1, html)


def _sizes(contract: Contract, report: Report) -> dict[str, int]:
    """The sizes given, and those that the module's attributes tell: heads and widths."""
    more = report.trace.sizes if report.trace else {}
    return {**contract.sizes, **{s: n for s, n in more.items() if s not in ("hd", *contract.sizes)}}


# ---------------------------------------------------------------- what is traced


def _job(named: NamedTarget, bounds: Limits, options: TraceOptions) -> Job:
    """The job of a challenge, or of the user's own code with these flags."""
    from dataclasses import replace

    from attnlab.target.resolve import resized_job, tiny_job

    typed, chosen = named.typed, named.chosen
    if chosen and named.answer and not (typed.init or typed.inputs or typed.case or options.step):
        announce("tracing", chosen)
        job = replace(challenge_job_for(chosen, bounds, "trace"), options=options)
        return resized_job(tiny_job(job) if typed.tiny else job, typed.sizes)
    job = named.job(bounds, options)
    named.announce("tracing", job)
    return job


# ---------------------------------------------------------------- what came of it


def _outcome(report: Report) -> str:
    if report.trace is None or report.outcome in ("timeout", "memory", "crashed"):
        return report.outcome
    return report.trace.outcome


def _hidden(report: Report) -> tuple[Report, int]:
    """The report without the findings of a puzzle, each of which names a cause; their number."""
    from dataclasses import replace

    from attnlab.verdict import hide_findings

    if not report.trace:
        return report, 0
    return replace(report, trace=hide_findings(report.trace)), len(report.trace.findings)
