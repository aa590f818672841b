"""Run the example in the candidate's process, and read the trace that it answers."""

from dataclasses import asdict
from typing import Any

from attnlab.candidate.host import Died, Host, checked_answer
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.records import Contract, Job, TraceOptions, from_json, plain
from attnlab.sizes import Sizes, constructor_arguments, measure, with_head_dim
from attnlab.tracer.raw_trace import RawTrace, is_consistent

LONGEST = 32 << 20  # characters of a trace: 20,000 rows take about half of it
SEED = 0  # the example is the same every time: a puzzle must not change while one looks at it


def surroundings(job: Job) -> dict[str, Any]:
    """The candidate's source and where it lives, as the verbs `load` and `demo` take them."""
    code = job.candidate
    own = plain(job.own) if job.own else None
    found = {"file": code.file, "text": code.text, "path": code.path, "own": own}
    return found | ({"siblings": dict(code.siblings)} if code.siblings else {})


def build_example(
    job: Job, host: Host, contract: Contract, sizes: Sizes, device: str = "cpu"
) -> None:
    """Build the candidate at these sizes."""
    init = constructor_arguments(contract.init, sizes)
    arguments = constructor_arguments(contract.arguments, sizes)
    checked_answer(
        host.ask(
            "build",
            name=job.candidate.name,
            init=init,
            seed=SEED,
            arguments=arguments,
            containers=plain(contract.containers),
            **({"device": device} if device != "cpu" else {}),
        )
    )


def run_example(
    job: Job,
    host: Host,
    contract: Contract,
    sizes: Sizes,
    options: TraceOptions | None = None,
    device: str = "cpu",
) -> RawTrace:
    """One run at these sizes; `options` says what else the trace should show."""
    build_example(job, host, contract, sizes, device)
    drawn = sizes if device == "cpu" else with_head_dim(contract.sizes)
    inputs = draw.inputs(contract, drawn, Dice(SEED), contract.example_mask)
    inputs = draw.filled(contract, inputs, job.options.fill)
    shapes = {i.name: [measure(axis, sizes) for axis in i.axes] for i in contract.inputs}
    return read_trace(
        host,
        "trace",
        inputs=list(inputs.items()),
        seed=SEED,
        axes={i.name: list(i.axes) for i in contract.inputs},
        sizes=dict(sizes),
        options=None if options is None else asdict(options),
        **({} if device == "cpu" else {"shapes": shapes}),
    )


def read_trace(host: Host, verb: str, **args: object) -> RawTrace:
    """The trace in an answer. A candidate may send anything: what makes no sense ends it."""
    return raw_trace(checked_answer(host.ask(verb, **args)).get("trace"))


def raw_trace(text: object) -> RawTrace:
    if len(str(text)) > LONGEST:
        raise Died("crashed", f"answered with a trace of over {LONGEST >> 20} MiB")
    try:
        raw = from_json(RawTrace, text)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise Died("crashed", "answered with no trace") from error
    if not is_consistent(raw):
        raise Died("crashed", "answered with a trace that makes no sense")
    return raw
