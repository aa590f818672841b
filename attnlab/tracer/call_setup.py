"""The traced call, and how it is run: seeded, without gradients, uncompiled."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import isgenerator
from typing import Any

import torch
from torch import nn

from attnlab.records.trace import Op, TraceOptions
from attnlab.tracer.cast import Given, fresh

MAX_ITEMS = 1000  # items taken from a generator
FAST_PATH = (nn.MultiheadAttention, nn.TransformerEncoderLayer)


@dataclass(frozen=True)
class TracedCall:
    """A call that can be repeated, and what is known about it."""

    call: Callable[[Given], Any]
    given: Given  # names and values of the inputs; None for one that is left out
    root: nn.Module | None = None  # gives submodules, weights and buffers their names
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of the inputs, by their names
    sizes: dict[str, int] = field(default_factory=dict)  # what the names of axes stand for
    file: str = ""  # the candidate's, where an exception is placed
    entry: object = None  # the function that is called, for calls that do not fit
    seed: int = 0
    options: TraceOptions = field(default_factory=TraceOptions)


def run_call(
    traced: TracedCall, watcher: contextlib.AbstractContextManager[Any], given: Given
) -> Any:
    """Run the call under `watcher` and return its output; a generator is consumed."""
    torch.manual_seed(traced.seed)
    with torch.no_grad(), uncompiled(), watcher:
        out = traced.call(given)
        return list(itertools.islice(out, MAX_ITEMS)) if isgenerator(out) else out


def repeat_call(traced: TracedCall, watcher: contextlib.AbstractContextManager[Any]) -> None:
    """Run the call once more under `watcher`; exceptions are known from the first run."""
    with contextlib.suppress(Exception):
        run_call(traced, watcher, fresh(traced.given))


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Run compiled modules eagerly: only eager code has lines."""
    if "torch._dynamo" not in sys.modules:  # then nothing is compiled, and it stays out
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def setup_notes(root: nn.Module | None, ops: Sequence[Op]) -> Iterator[str]:
    """Notes on what runs differently under the trace, and on what it cannot see."""
    modules = dict(root.named_modules()) if root is not None else {}
    compiled = (m._compiled_call_impl is not None for m in modules.values())
    if any("_orig_mod" in m._modules for m in modules.values()) or any(compiled):
        yield "torch.compile is bypassed: these are the operations of the original module"
    slow = {
        type(module).__name__
        for name, module in modules.items()
        if isinstance(module, FAST_PATH) and not module.training and _ran(name, ops)
    }
    if slow:
        names = " and ".join(f"nn.{name}" for name in sorted(slow))
        yield (
            f"{names} took the slow path: tracing switches off the fused fast path of eval mode "
            "(the result is the same up to rounding)"
        )
    wrapped = sum(bool(op.shape) and not op.stride for op in ops)
    if wrapped:
        yield (
            f"{wrapped} rows have no values and no views: inside vmap and other torch.func "
            "transforms, and for sparse and nested tensors, memory cannot be read"
        )


def _ran(name: str, ops: Sequence[Op]) -> bool:
    return not name or any(f"{op.module}.".startswith(f"{name}.") for op in ops)
