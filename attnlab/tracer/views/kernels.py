"""The kernels below each operation: what PyTorch's dispatcher ran."""

from dataclasses import replace
from typing import Any, Self

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

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
