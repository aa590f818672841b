"""The hot path of a trace: what must be noted while the model runs, and nothing more.

A `TorchFunctionMode` sees every call before PyTorch takes it apart, so a row is a line of the
user's code and not one of the kernels below it. Everything that can wait until the run is over
waits: the recorder logs plain tuples, which `rows.replay` turns into rows. For the statistics it
keeps a copy of a small output, and the three 0-d tensors of one `aminmax` and one `sum` of a large
one. It keeps no tensor of the model.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode

from attnlab.lab.samples import Sample, Sampler

PACKAGES = Path(torch.__file__).parents[1]
TORCH = str(PACKAGES / "torch") + os.sep
EINOPS = str(PACKAGES / "einops") + os.sep  # notation for PyTorch's own reshapes and sums
HERE = Path(__file__).parent
OURS = (str(HERE) + os.sep, str(HERE.parent / "worker") + os.sep)
MACHINERY = ("nn/modules/module.py", "_contextlib.py")  # of torch: frames that say nothing
# Attribute access is no operation, but for these getters, which make a new view.
VIEW_GETTERS = {"T", "mT", "H", "mH", "real", "imag", "data"}
SOFTMAX = {"softmax", "log_softmax", "_softmax"}
MAX_ROWS = 20_000
# Factories whose values mean nothing before they are written.
BLANKS = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
# Views that show each element of what they look at.
WHOLE = {
    *("view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel", "contiguous"),
    *("transpose", "t", "T", "mT", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"),
    *("unsqueeze", "squeeze", "expand", "expand_as", "broadcast_to", "detach", "data", "to"),
}
STRIDED = torch.strided


class Hole:
    """Stands for a tensor among the arguments of an operation."""

    def __repr__(self) -> str:
        return "tensor"


HOLE = Hole()
_foreign: dict[CodeType, bool] = {}

# A tensor that came in: id, storage, shape. One that went out: also stride, dtype, whether it is a
# view, whether of the same elements (whose numbers it then has), and the sample of one that is not.
Shape = tuple[int, ...]
In = tuple[int, int, Shape]
Made = tuple[int, int, Shape, tuple[int, ...], torch.dtype, bool, bool, Sample]
# Arguments with a `HOLE` for each tensor, in the order of the tensors that came in.
Bones = tuple[list[Any], dict[str, Any] | None]
# One operation: name, code and line of the user's frame, submodule, tensors, arguments. A plain
# tuple: a named one costs ten times as much to make.
Seen = tuple[str, CodeType | None, int, str, list[In], list[Made], Bones]


class Fall(NamedTuple):
    """The operation that raised."""

    op: str
    code: CodeType | None
    line: int
    module: str
    ins: list[In]
    dtypes: tuple[torch.dtype, ...]
    error: BaseException


class Watched(NamedTuple):
    """What the operands of one row held before it ran."""

    tainted: tuple[int, ...]  # those that had a NaN
    empty: int = 0  # of a softmax: rows that are -inf everywhere
    first: tuple[int, ...] = ()


class Recorder(TorchFunctionMode):
    """Records what happens while it is entered. `root` gives submodules their dotted names."""

    def __init__(self, root: nn.Module | None = None, watch: int = -1) -> None:
        super().__init__()
        self.log: list[Seen] = []
        self.inputs: list[In] = []
        self.fall: Fall | None = None
        self.full = False  # MAX_ROWS reached: later operations are not recorded
        self.unseen = 0  # operations on tensors that have no shape, such as nested ones
        self.watch = watch  # the row whose operands are looked at more closely
        self.watched: Watched | None = None
        self.active = True
        self._count = 0  # output tensors so far, which is the index of the next record
        self._sample = Sampler()
        self._told: set[int] = set()  # storages of which a row has the numbers
        self._blank: set[int] = set()  # storages that came without values
        self._written: set[int] = set()  # storages that were written to after they were made
        self.root = root
        self._names = {id(m): n for n, m in root.named_modules()} if root is not None else {}
        self._path: list[str] = [""]
        self._hooks: list[Any] = []

    def name_inputs(self, tensors: list[Tensor]) -> None:
        self.inputs = [(id(t), _storage(t), _shape(t)) for t in tensors]

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
        if not name or not self.active:
            return func(*args, **kwargs)
        tensors = _gathered(args, kwargs)
        if self._count == self.watch:
            self.watched = _watched(name, tensors, args, kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception as error:
            self._fell(name, tensors, error)
            raise
        if isinstance(out, Tensor):
            outs: tuple[Tensor, ...] = (out,)
        elif isinstance(out, (tuple, list)):
            outs = tuple(t for t in out if isinstance(t, Tensor))
        else:
            outs = (args[0],) if name == "__setitem__" else ()
        if outs and not self.full:
            writes = name[-1] == "_" or "out" in kwargs or kwargs.get("inplace") is True
            try:
                self._note(name, tensors, outs, writes, _bones(args, kwargs))
            except Exception:  # what cannot be described must not stop the run
                self.unseen += 1
        return out

    def _note(
        self,
        name: str,
        tensors: list[Tensor],
        outs: tuple[Tensor, ...],
        writes: bool,
        bones: Bones,
    ) -> None:
        code, line = _where(sys._getframe(2))
        ins: list[In] = []
        kin: dict[int, Tensor] = {}
        for t in tensors:
            storage = _storage(t)
            kin[storage] = t
            ins.append((id(t), storage, t.shape))
        made: list[Made] = []
        for t in outs:
            storage, dtype = _storage(t), t.dtype
            base = kin.get(storage)
            view = same = False
            if base is None:
                self._fresh(name, storage)
            elif writes and any(t is o for o in tensors):
                self._written.add(storage)
            else:
                view = True
                told = storage in self._told and storage not in self._written
                same = told and name in WHOLE and dtype is base.dtype
            # Without a storage it is not looked at: of what is inside a vmap nothing may outlive it
            strided = storage != id(t) and t.layout is STRIDED
            look = strided and not same and storage not in self._blank
            sample = self._sample(t, dtype) if look else None
            stride = t.stride() if strided else ()
            self._told.add(storage)
            made.append((id(t), storage, t.shape, stride, dtype, view, same, sample))
        self._count += len(made)
        self.full = self._count >= MAX_ROWS
        self.log.append((name, code, line, self._path[-1], ins, made, bones))

    def _fresh(self, name: str, storage: int) -> None:
        """A storage that no operand has: new, or at the address of one that is gone."""
        if name in BLANKS:
            self._blank.add(storage)
        elif self._blank:
            self._blank.discard(storage)

    def _fell(self, name: str, tensors: list[Tensor], error: BaseException) -> None:
        if self.fall is not None and self.fall.error is error:
            return  # the innermost operation is the one that raised
        code, line = _where(sys._getframe(2))
        self.fall = Fall(
            name,
            code,
            line,
            self._path[-1],
            [(id(t), _storage(t), _shape(t)) for t in tensors],
            tuple(t.dtype for t in tensors),
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
        self._before: BaseException | None = None  # what the script was handling at the call

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        if not self.began:
            self.began = self.active = True
            self._before = sys.exception()
            self.root = module
            self._names = {id(m): n for n, m in module.named_modules()}
            self.given = [(f"input{i}", t) for i, t in enumerate(args) if isinstance(t, Tensor)]
            self.name_inputs([t for _, t in self.given])
        super()._enter_module(module, args)

    def _leave_module(self, module: nn.Module, args: Any, out: Any) -> None:
        super()._leave_module(module, args, out)
        if self.active and len(self._path) == 1:
            self.active = False
            if sys.exception() is self._before:  # else the call raised, which ends the script
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


def _bones(args: Any, kwargs: Any) -> Bones:
    """The arguments without their tensors, which must not be kept alive."""
    return [_bone(a) for a in args], {n: _bone(a) for n, a in kwargs.items()} if kwargs else None


def _bone(value: Any) -> Any:
    if isinstance(value, Tensor):
        return HOLE
    if isinstance(value, (tuple, list)):
        return [HOLE if isinstance(v, Tensor) else v for v in value]
    return value


def _storage(t: Tensor) -> int:
    try:
        storage: int = t.untyped_storage()._cdata
    except Exception:  # functorch wrappers and sparse tensors have no storage
        return id(t)
    return storage


def _shape(t: Tensor) -> Shape:
    try:
        return t.shape
    except Exception:  # a nested tensor has as many shapes as pieces
        return ()


def _is_foreign(code: CodeType) -> bool:
    """True for PyTorch's code and ours: a row belongs to the nearest frame of neither."""
    foreign = _foreign.get(code)
    if foreign is None:
        foreign = code.co_filename.startswith((TORCH, EINOPS, *OURS, "<frozen"))
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


def _watched(name: str, tensors: list[Tensor], args: Any, kwargs: Any) -> Watched | None:
    try:
        tainted = tuple(i for i, t in enumerate(tensors) if t.isnan().any().item())
        dim = kwargs.get("dim", next((a for a in args[1:] if isinstance(a, int)), -1))
        if name not in SOFTMAX or type(dim) is not int:
            return Watched(tainted)
        rows = (tensors[0] == -torch.inf).all(dim).nonzero()
        return Watched(tainted, len(rows), tuple(rows[0].tolist()) if len(rows) else ())
    except Exception:  # inside a vmap, or of a sparse tensor, nothing can be told
        return None
