"""Runs of any callable with everything that a `TraceOptions` may ask for."""

import torch
from torch import Tensor, nn

from attnlab.records import Trace, TraceOptions, from_json, to_json
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.capture import capture
from attnlab.tracer.raw_trace import RawTrace

CAUSAL = torch.ones(5, 5).triu(1).bool()


def shot(
    f: object, *inputs: Tensor, axes: str = "", sizes: dict | None = None, **options
) -> TracedCall:
    """The call of `f`; `axes` are those of the first input, "B S D"."""
    return TracedCall(
        call=lambda given: f(*[t for _, t in given]),  # type: ignore[operator]
        given=[(f"x{i}", t) for i, t in enumerate(inputs)],
        root=f if isinstance(f, nn.Module) else None,
        axes={"x0": tuple(axes.split())} if axes else {},
        sizes=sizes or {},
        options=TraceOptions(**options),
    )


def capture_of(f: object, *inputs: Tensor, **more) -> Trace:
    """What a person sees of it, after the way through JSON."""
    raw = from_json(RawTrace, to_json(capture(shot(f, *inputs, **more))))
    return build_trace(SizedTrace(raw, {}), None)


def told(f: object, *inputs: Tensor, **more) -> list[tuple[str, str]]:
    """Rule and severity of every finding."""
    return [(f.rule, f.severity) for f in capture_of(f, *inputs, **more).findings]


def message(f: object, *inputs: Tensor, rule: str, **more) -> str:
    (found,) = [f for f in capture_of(f, *inputs, **more).findings if f.rule == rule]
    return found.message
