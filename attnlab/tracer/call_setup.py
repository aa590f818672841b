"""How a call is made that somebody watches: the same way every time, and as it was written."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from inspect import isgenerator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attnlab.records.trace import Op
from attnlab.tracer.cast import Given, fresh

if TYPE_CHECKING:
    from attnlab.tracer.capture import TracedCall

MAX_ITEMS = 1000  # that a generator may yield
FAST_PATH = (nn.MultiheadAttention, nn.TransformerEncoderLayer)


def run_call(
    traced: TracedCall, watcher: contextlib.AbstractContextManager[Any], given: Given
) -> Any:
    """What the call returns, watched; one that returns a generator is run to its end."""
    torch.manual_seed(traced.seed)
    with torch.no_grad(), uncompiled(), watcher:
        out = traced.call(given)
        return list(itertools.islice(out, MAX_ITEMS)) if isgenerator(out) else out


def repeat_call(traced: TracedCall, watcher: contextlib.AbstractContextManager[Any]) -> None:
    """A further run, for something else to be seen; how it ends is known from the first."""
    with contextlib.suppress(Exception):
        run_call(traced, watcher, fresh(traced.given))


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """What `torch.compile` has wrapped runs as it was written, for only that has lines."""
    if "torch._dynamo" not in sys.modules:  # then nothing is compiled, and it stays out
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def setup_notes(root: nn.Module | None, ops: Sequence[Op]) -> Iterator[str]:
    """What is run otherwise because it is watched, and what cannot be seen of it."""
    modules = dict(root.named_modules()) if root is not None else {}
    if any(_compiled(m) for m in modules.values()):
        yield "torch.compile was left out: these are the operations of the original module"
    slow = {
        type(module).__name__
        for name, module in modules.items()
        if isinstance(module, FAST_PATH) and not module.training and _ran(name, ops)
    }
    if slow:
        names = " and ".join(f"nn.{name}" for name in sorted(slow))
        yield (
            f"{names} took the slow path: the fused fast path of evaluation is switched off while "
            "somebody looks on (its result is the same up to rounding)"
        )
    wrapped = sum(bool(op.shape) and not op.stride for op in ops)
    if wrapped:
        yield (
            f"{wrapped} rows have no numbers and no views: inside vmap, grad and their like, and "
            "of sparse and nested tensors, memory cannot be looked at"
        )


def _ran(name: str, ops: Sequence[Op]) -> bool:
    return not name or any(f"{op.module}.".startswith(f"{name}.") for op in ops)


def _compiled(module: nn.Module) -> bool:
    return "_orig_mod" in module._modules or module._compiled_call_impl is not None
