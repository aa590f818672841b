"""The hot path of a trace: one raw row per operation as the user wrote it.

A `TorchFunctionMode` sees every call before PyTorch takes it apart, so a row is a line of the
user's code and not one of the kernels below it. Everything that can wait until the run is over
waits: the recorder keeps plain tuples, and for the statistics the three 0-d tensors of one
`aminmax` and one `sum`. It keeps no tensor of the model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode

TORCH = str(Path(torch.__file__).parent)
OURS = str(Path(__file__).parent)
# Attribute access is no operation, but for these getters, which make a new view.
VIEW_GETTERS = {"T", "mT", "H", "mH", "real", "imag", "data"}
MAX_ROWS = 20_000
_foreign: dict[CodeType, bool] = {}


class Row(NamedTuple):
    """One operation. `outs` has one entry per output tensor."""

    op: str
    code: CodeType | None
    line: int
    module: str
    parents: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    outs: tuple[Out, ...]


class Out(NamedTuple):
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    view: bool
    stats: tuple[Tensor, Tensor, Tensor | None] | None  # min, max, sum: 0-d
    kin: int = -1  # a view has the statistics of nobody: the row it shares storage with


class Fall(NamedTuple):
    """The operation that raised."""

    op: str
    code: CodeType | None
    line: int
    module: str
    parents: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    dtypes: tuple[torch.dtype, ...]
    details: dict[str, Any]
    error: BaseException


class Recorder(TorchFunctionMode):
    """Records what happens while it is entered. `root` gives submodules their dotted names."""

    def __init__(self, root: nn.Module | None = None, watch: int = -1) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.fall: Fall | None = None
        self.full = False  # MAX_ROWS reached: later operations are not recorded
        self.watch = watch  # the row whose first operand is looked at more closely
        self.watched: Any = None
        self.active = True
        self._count = 0  # output tensors so far, which is the index of the next record
        self._born: dict[int, tuple[int, int]] = {}  # id(tensor) -> (row or -1-i, storage)
        self._names = {id(m): n for n, m in root.named_modules()} if root is not None else {}
        self._path: list[str] = []
        self._hooks: list[Any] = []

    def name_inputs(self, tensors: list[Tensor]) -> None:
        for i, tensor in enumerate(tensors):
            self._born[id(tensor)] = (-1 - i, _storage(tensor))

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
        name = self._names.get(id(module))
        self._path.append(self._path[-1] if name is None and self._path else name or "")

    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:  # noqa: ARG002
        if self._path:
            self._path.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name: str = getattr(func, "__name__", "?")
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", "")
            if name not in VIEW_GETTERS:
                return func(*args, **kwargs)
        if not self.active or self.full:
            return func(*args, **kwargs)
        tensors = list(_tensors(args, kwargs))
        if self._count == self.watch and tensors:
            self.watched = _masked_rows(tensors[0], args, kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception as error:
            self._fell(name, tensors, args, kwargs, error)
            raise
        if isinstance(out, Tensor):
            outs: tuple[Tensor, ...] = (out,)
        elif isinstance(out, (tuple, list)):
            outs = tuple(t for t in out if isinstance(t, Tensor))
        elif name == "__setitem__":
            outs = (args[0],)
        else:
            return out
        if outs:
            self._record(name, tensors, outs)
        return out

    def _record(self, name: str, tensors: list[Tensor], outs: tuple[Tensor, ...]) -> None:
        born = self._born
        parents = []
        shared: dict[int, int] = {}
        for t in tensors:
            known = born.get(id(t))
            if known is None:
                shared[_storage(t)] = -1
            else:
                parents.append(known[0])
                shared[known[1]] = known[0]
        code, line = _where(sys._getframe(2))
        same = tensors[0] if tensors else None
        made = []
        for t in outs:
            storage = _storage(t)
            view = storage in shared and t is not same
            made.append(
                Out(
                    tuple(t.shape),
                    t.stride() if t.layout is torch.strided else (),
                    t.dtype,
                    view,
                    None if view else _stats(t),
                    shared.get(storage, -1) if view else -1,
                )
            )
            born[id(t)] = (self._count, storage)
            self._count += 1
        path = self._path[-1] if self._path else ""
        shapes = tuple(tuple(t.shape) for t in tensors)
        self.rows.append(Row(name, code, line, path, tuple(parents), shapes, tuple(made)))
        self.full = self._count >= MAX_ROWS

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
            self._path[-1] if self._path else "",
            tuple(self._born[id(t)][0] for t in tensors if id(t) in self._born),
            tuple(tuple(t.shape) for t in tensors),
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

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        if not self.began:
            self.began = self.active = True
            self._names = {id(m): n for n, m in module.named_modules()}
            self.name_inputs([t for t in args if isinstance(t, Tensor)])
        super()._enter_module(module, args)

    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:
        super()._leave_module(module, args, out)
        if self.active and not self._path:
            self.active = False
            if self.fall is None:
                raise Enough


def _tensors(args: Any, kwargs: Any) -> Iterator[Tensor]:
    """The tensors among the arguments, also inside one level of lists (cat, einsum, indices)."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            for inner in value:
                if isinstance(inner, Tensor):
                    yield inner


def _storage(t: Tensor) -> int:
    try:
        return int(t.untyped_storage()._cdata)
    except Exception:  # functorch wrappers and sparse tensors have no storage
        return id(t)


def _stats(t: Tensor) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Min, max and sum as 0-d tensors, or None where they mean nothing."""
    dtype = t.dtype
    if t.numel() == 0 or t.layout is not torch.strided or t.is_meta:
        return None
    if t.requires_grad:
        t = t.detach()
    if dtype is torch.float32 or dtype is torch.float64:
        return (*torch.aminmax(t), t.sum())
    if dtype is torch.float16 or dtype is torch.bfloat16:
        return (*torch.aminmax(t), t.sum(dtype=torch.float32))
    if dtype is torch.bool:
        t = t.to(torch.uint8)
    elif dtype.is_complex or (dtype.itemsize == 1 and dtype.is_floating_point):
        return None
    return (*torch.aminmax(t), t.sum(dtype=torch.float64))


def _where(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """The nearest frame of code that is neither PyTorch's nor ours."""
    while frame is not None:
        code = frame.f_code
        foreign = _foreign.get(code)
        if foreign is None:
            file = code.co_filename
            foreign = file.startswith((TORCH, OURS, "<frozen"))
            _foreign[code] = foreign
        if not foreign:
            return code, frame.f_lineno
        frame = frame.f_back
    return None, 0


def _details(args: Any, kwargs: Any) -> dict[str, Any]:
    """The small arguments of a call that raised: sizes, axes, names."""
    plain = [a for a in args[1:] if isinstance(a, (int, float, str, tuple, list, torch.Size))]
    named = {k: v for k, v in kwargs.items() if isinstance(v, (int, float, str, tuple))}
    return {"args": [a for a in plain if not any(True for _ in _tensors([a], {}))], **named}


def _masked_rows(t: Tensor, args: Any, kwargs: Any) -> tuple[int, list[int]]:
    """How many rows of a softmax operand are all -inf, and the index of the first."""
    dim = kwargs.get("dim", next((a for a in args[1:] if isinstance(a, int)), -1))
    if not t.is_floating_point() or t.dim() == 0:
        return 0, []
    rows = (t == -torch.inf).all(dim).nonzero()
    return len(rows), rows[0].tolist() if len(rows) else []
