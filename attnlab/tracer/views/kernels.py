"""The kernels below each operation: what PyTorch's dispatcher ran."""

from dataclasses import replace
from typing import Any, Self

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from attnlab.records.trace import Kernel
from attnlab.tracer.call_setup import TracedCall, repeat_call
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.op_kinds import Kind
from attnlab.tracer.raw_trace import RawTrace
from attnlab.tracer.rerun import Args, Call, RerunMode, matching_rows, note_divergence


def add_kernels(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with the kernels of each row; all outputs of one operation have the same ones."""
    mode = KernelMode()
    repeat_call(traced, mode)
    same = matching_rows(raw, mode)
    ops = (
        replace(op, kernels=mode.below.get(op.index, ())) if op.index < same else op
        for op in raw.ops
    )
    return note_divergence(replace(raw, ops=tuple(ops)), same, "the kernels")


def add_flops(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with the FLOPs of each operation, which its first output has."""
    mode = KernelMode()
    repeat_call(traced, mode)
    same = matching_rows(raw, mode)
    ops = []
    for op in raw.ops:
        below = mode.below.get(op.index, ()) if op.index < same else ()
        first = op.index == 0 or mode.below.get(op.index - 1) is not below
        ops.append(replace(op, flops=sum(k.flops for k in below) if first else 0))
    return note_divergence(replace(raw, ops=tuple(ops)), same, "the FLOPs")


def _flops(func: Any, args: Args, kwargs: dict[str, Any], out: Any) -> int:
    """The FLOPs of a kernel by PyTorch's formulas, which do not know every fused attention."""
    packet = func._overloadpacket
    if str(packet).startswith("aten._scaled_dot_product") and "backward" not in str(packet):
        query, key, value = args[:3]
        pairs = query.numel() // query.shape[-1] * key.shape[-2]
        return int(2 * pairs * (query.shape[-1] + value.shape[-1]))
    if str(packet) == "aten.mkldnn_rnn_layer":  # an LSTM: (T, B, in), (4 H, in), (4 H, H)
        steps, into, recurrent = args[:3]
        return int(2 * steps.shape[0] * steps.shape[1] * (into.numel() + recurrent.numel()))
    count = flop_registry.get(packet)
    return int(count(*args, **kwargs, out_val=out)) if count is not None else 0


class KernelDispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes each kernel that runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[Kernel] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else entering the mode imports the compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = next(tensors_in(out), None)
        self.seen.append(
            Kernel(
                op=str(func),
                shape=tuple(made.shape) if made is not None else (),
                dtype=str(made.dtype).removeprefix("torch.") if made is not None else "",
                flops=_flops(func, args, kwargs or {}, out),
            )
        )
        return out


class KernelMode(RerunMode):
    """The kernels between the beginning and the end of each operation."""

    def __init__(self) -> None:
        super().__init__()
        self.below: dict[int, tuple[Kernel, ...]] = {}
        self._mode = KernelDispatchMode()

    def __enter__(self) -> Self:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._mode.__exit__(*error)  # type: ignore[no-untyped-call]

    def begin_call(self, kind: Kind, args: Args, kwargs: dict[str, Any]) -> Call:
        self._mode.seen.clear()  # what ran before belongs to an operation that makes no row
        return super().begin_call(kind, args, kwargs)

    def on_outputs(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:  # noqa: ARG002
        self.below |= dict.fromkeys(range(row, row + len(outs)), tuple(self._mode.seen))
