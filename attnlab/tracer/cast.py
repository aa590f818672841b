"""Cast a module and its inputs to another dtype or device for the length of a run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.records.job import Container
from attnlab.records.trace import TraceOptions

Given = list[tuple[str, Tensor | None]]
CONTAINERS = {"tuple": tuple, "list": list}


@contextmanager
def cast(root: nn.Module | None, options: TraceOptions) -> Iterator[None]:
    """Cast parameters and buffers as `options` says, and restore them bit by bit afterwards."""
    modules = list(root.modules()) if root is not None else []
    weights = [(p, p.data) for p in (root.parameters() if root is not None else ())]
    buffers = [(m, n, b) for m in modules for n, b in m._buffers.items() if b is not None]
    changed = [(m, n, b) for m, n, b in buffers if cast_tensor(b, options) is not b]
    try:
        for weight, data in weights:
            weight.data = cast_tensor(data, options)
        for module, name, buffer in changed:
            module._buffers[name] = cast_tensor(buffer, options)
        yield
    finally:
        for weight, data in weights:
            weight.data = data
        for module, name, buffer in changed:
            module._buffers[name] = buffer


def cast_tensor(t: Tensor, options: TraceOptions) -> Tensor:
    """The tensor in the dtype and on the device of `options`; the defaults change nothing."""
    if options.device != "cpu":
        t = t.to(options.device)
    if t.is_floating_point() and options.dtype != "float32":
        t = t.to(getattr(torch, options.dtype))
    return t


def cast_inputs(given: Given, options: TraceOptions) -> Given:
    return [(n, t if t is None else cast_tensor(t, options)) for n, t in given]


def refill(mine: Given, given: Given) -> Given:
    """The values of `given`, in the very tensors of the call before where they have room, as of a
    loop that fills one buffer: what is known of a tensor by its identity is then not true."""
    old = dict(mine)
    found: Given = []
    for name, t in given:
        held = old.get(name)
        if t is None or held is None or held.requires_grad or not _same_layout(held, t):
            held = None
        found.append((name, t if t is None else t.clone() if held is None else held.copy_(t)))
    return found


def _same_layout(held: Tensor, t: Tensor) -> bool:
    return held.shape == t.shape and held.dtype == t.dtype and held.stride() == t.stride()


def pack(given: Given, containers: Mapping[str, Container]) -> list[tuple[str, Any]]:
    """The arguments of a call: parts such as `cache.0` and `cache.1` in their container, which
    stands where the first of them stood."""
    tensors = dict(given)

    def value(name: str) -> Any:
        if name not in containers:
            return tensors[name]
        held = containers[name]
        parts = {key: value(f"{name}.{key}") for key in held.keys}
        return parts if held.kind == "dict" else CONTAINERS[held.kind](parts.values())

    names = dict.fromkeys(name.partition(".")[0] for name in tensors)
    return [(name, value(name)) for name in names]


def fresh(given: Given) -> Given:
    """Copies of the inputs: in-place changes by the candidate must not reach the caller's."""
    return [(n, t.clone() if t is not None else None) for n, t in given]
