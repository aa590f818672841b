"""The hot path of a trace: what must be noted while the model runs, and nothing more.

A `TorchFunctionMode` sees every call before PyTorch takes it apart, so a row is a line of the
user's code and not one of the kernels below it. Everything that can wait until the run is over
waits: the recorder logs plain tuples, which `rows.replay` turns into rows. For the statistics it
keeps a copy of a small output, and the three 0-d tensors of one `aminmax` and one `sum` of a large
one. It keeps no tensor of the model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode

TORCH = str(Path(torch.__file__).parent)
HERE = Path(__file__).parent
OURS = (str(HERE), str(HERE.parent / "worker"))
MACHINERY = ("nn/modules/module.py", "_contextlib.py")  # of torch: frames that say nothing
# Attribute access is no operation, but for these getters, which make a new view.
VIEW_GETTERS = {"T", "mT", "H", "mH", "real", "imag", "data"}
MAX_ROWS = 20_000
SMALL = 1024  # elements: below, a copy costs less than two reductions
KEEP = 1 << 18  # elements that may be copied in all, 1 MiB of float32
Sample = Tensor | tuple[Tensor, Tensor, Tensor, int] | None
_foreign: dict[CodeType, bool] = {}
_ranges: dict[torch.dtype, bool] = {}


# A tensor that came in: id, storage, shape. One that went out: also stride, dtype, sample.
In = tuple[int, int, torch.Size]
Made = tuple[int, int, torch.Size, tuple[int, ...], torch.dtype, Sample]
# One operation: name, code and line of the user's frame, submodule, tensors. A plain tuple: a
# named one costs ten times as much to make.
Seen = tuple[str, CodeType | None, int, str, list[In], list[Made]]


class Fall(NamedTuple):
    """The operation that raised."""

    op: str
    code: CodeType | None
    line: int
    module: str
    ins: list[In]
    dtypes: tuple[torch.dtype, ...]
    details: dict[str, Any]
    error: BaseException


class Recorder(TorchFunctionMode):
    """Records what happens while it is entered. `root` gives submodules their dotted names."""

    def __init__(self, root: nn.Module | None = None, watch: int = -1) -> None:
        super().__init__()
        self.log: list[Seen] = []
        self.inputs: list[tuple[int, int]] = []  # id and storage
        self.fall: Fall | None = None
        self.full = False  # MAX_ROWS reached: later operations are not recorded
        self.watch = watch  # the row whose first operand is looked at more closely
        self.watched: Any = None
        self.active = True
        self._count = 0  # output tensors so far, which is the index of the next record
        self._kept = 0  # elements copied so far
        self._names = {id(m): n for n, m in root.named_modules()} if root is not None else {}
        self._path: list[str] = [""]
        self._hooks: list[Any] = []

    def name_inputs(self, tensors: list[Tensor]) -> None:
        self.inputs = [(id(t), _storage(t)) for t in tensors]

    def __enter__(self) -> Self:
        self._hooks = [
            hooks.register_module_forward_pre_hook(self._enter_module),
            hooks.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _enter_module(self, module: nn.Module, args: Any) -> None:  # noqa: ARG002 - a hook's signature
        self._path.append(self._names.get(id(module), self._path[-1]))

    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:  # noqa: ARG002
        if len(self._path) > 1:
            self._path.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name: str = getattr(func, "__name__", "?")
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", "")
            name = name if name in VIEW_GETTERS else ""
        if not name or not self.active or self.full:
            return func(*args, **kwargs)
        tensors = _gathered(args, kwargs)
        if self._count == self.watch and tensors:
            self.watched = _masked_rows(tensors[0], args, kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception as error:
            self._fell(name, tensors, args, kwargs, error)
            raise
        if isinstance(out, Tensor):
            self._note(name, tensors, (out,))
        elif isinstance(out, (tuple, list)):
            outs = tuple(t for t in out if isinstance(t, Tensor))
            if outs:
                self._note(name, tensors, outs)
        elif name == "__setitem__":
            self._note(name, tensors, (args[0],))
        return out

    def _note(self, name: str, tensors: list[Tensor], outs: tuple[Tensor, ...]) -> None:
        code, line = _where(sys._getframe(2))
        ins = [(id(t), _storage(t), t.shape) for t in tensors]
        shared = {storage for _, storage, _ in ins}
        first = tensors[0] if tensors else None
        made = []
        for t in outs:
            storage = _storage(t)
            strided = t.layout is torch.strided
            view = storage in shared and t is not first
            sample = None if view or not strided else self._sample(t)
            stride = t.stride() if strided else ()
            made.append((id(t), storage, t.shape, stride, t.dtype, sample))
        self._count += len(made)
        self.full = self._count >= MAX_ROWS
        self.log.append((name, code, line, self._path[-1], ins, made))

    def _sample(self, t: Tensor) -> Sample:
        """A copy, or min, max and sum; None where they mean nothing."""
        count = t.numel()
        if count == 0 or t.is_meta or not _has_range(t.dtype):
            return None
        if t.requires_grad:
            t = t.detach()
        if count <= SMALL and self._kept + count <= KEEP:
            self._kept += count
            return t.clone()
        return _reduced(t)

    def _fell(
        self, name: str, tensors: list[Tensor], args: Any, kwargs: Any, error: BaseException
    ) -> None:
        if self.fall is not None and self.fall.error is error:
            return  # the innermost operation is the one that raised
        code, line = _where(sys._getframe(2))
        self.fall = Fall(
            name,
            code,
            line,
            self._path[-1],
            [(id(t), _storage(t), t.shape) for t in tensors],
            tuple(t.dtype for t in tensors),
            _details(args, kwargs),
            error,
        )


class Enough(BaseException):
    """Stops a script once the call that was to be recorded is over."""


class FirstCall(Recorder):
    """Records the first outermost call of a module in whatever runs, and stops after it."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False
        self.began = False
        self.given: list[tuple[str, Tensor]] = []

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        if not self.began:
            self.began = self.active = True
            self._names = {id(m): n for n, m in module.named_modules()}
            self.given = [(f"input{i}", t) for i, t in enumerate(args) if isinstance(t, Tensor)]
            self.name_inputs([t for _, t in self.given])
        super()._enter_module(module, args)

    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:
        super()._leave_module(module, args, out)
        if self.active and len(self._path) == 1:
            self.active = False
            if self.fall is None:
                raise Enough


def _gathered(args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors among the arguments, also inside one level of lists (cat, einsum, indices)."""
    tensors = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, (tuple, list)):
            tensors += [t for t in value if isinstance(t, Tensor)]
    return tensors


def _storage(t: Tensor) -> int:
    try:
        storage: int = t.untyped_storage()._cdata
    except Exception:  # functorch wrappers and sparse tensors have no storage
        return id(t)
    return storage


def _reduced(t: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """Min, max and sum as 0-d tensors, the sum in float32 or wider; and the number of elements."""
    count = t.numel()
    if t.dtype is torch.bool:
        t = t.to(torch.uint8)
    low, high = torch.aminmax(t)
    if t.dtype is torch.float16 or t.dtype is torch.bfloat16:
        return low, high, t.sum(dtype=torch.float32), count
    total = t.sum() if t.is_floating_point() else t.sum(dtype=torch.float64)
    return low, high, total, count


def _has_range(dtype: torch.dtype) -> bool:
    """Complex numbers have no order, and the 8-bit floats no kernels."""
    known = _ranges.get(dtype)
    if known is None:
        known = not (dtype.is_complex or (dtype.is_floating_point and dtype.itemsize == 1))
        _ranges[dtype] = known
    return known


def _is_foreign(code: CodeType) -> bool:
    """True for PyTorch's code and ours: a row belongs to the nearest frame of neither."""
    foreign = _foreign.get(code)
    if foreign is None:
        foreign = code.co_filename.startswith((TORCH, *OURS, "<frozen"))
        _foreign[code] = foreign
    return foreign


def _where(start: FrameType | None) -> tuple[CodeType | None, int]:
    frame = start
    while frame is not None and _is_foreign(frame.f_code):
        frame = frame.f_back
    if frame is None:  # one of PyTorch's own modules is being traced: its outermost line
        frame = _outermost(start)
    return (frame.f_code, frame.f_lineno) if frame is not None else (None, 0)


def _outermost(frame: FrameType | None) -> FrameType | None:
    found = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(TORCH) and not file.endswith(MACHINERY):
            found = frame
        frame = frame.f_back
    return found


def _details(args: Any, kwargs: Any) -> dict[str, Any]:
    """The small arguments of a call that raised: sizes, axes, names."""
    plain = [a for a in args[1:] if isinstance(a, (int, float, str, tuple, list, torch.Size))]
    named = {k: v for k, v in kwargs.items() if isinstance(v, (int, float, str, tuple))}
    return {"args": [a for a in plain if not _gathered([a], {})], **named}


def _masked_rows(t: Tensor, args: Any, kwargs: Any) -> tuple[int, list[int]]:
    """How many rows of a softmax operand are all -inf, and the index of the first."""
    dim = kwargs.get("dim", next((a for a in args[1:] if isinstance(a, int)), -1))
    if not t.is_floating_point() or t.dim() == 0:
        return 0, []
    rows = (t == -torch.inf).all(dim).nonzero()
    return len(rows), rows[0].tolist() if len(rows) else []
