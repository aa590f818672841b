"""The hot path of a trace: record what is needed while the model runs, and nothing more.

A `TorchFunctionMode` sees every call before PyTorch takes it apart, so a row is a line of the
user's code and not one of the kernels below it. Everything that can wait until the run is over
waits: the recorder logs plain tuples, which `rows.replay` turns into rows. For the statistics it
keeps a copy of a small output, and the three 0-d tensors of one `aminmax` and one `sum` of a large
one. It keeps no tensor of the model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlab.tracer.barred_rows import LOOKED_AT, BarredRows
from attnlab.tracer.nested_tensors import map_tensors
from attnlab.tracer.op_kinds import KINDS, TWIN_CODES, Kind, kind_of, outputs
from attnlab.tracer.value_samples import Sample, Sampler

if TYPE_CHECKING:
    from attnlab.tracer.crash.suggest import ReplayedCall

PACKAGES = Path(torch.__file__).parents[1]
TORCH = str(PACKAGES / "torch") + os.sep
EINOPS = str(PACKAGES / "einops") + os.sep  # notation for PyTorch's own reshapes and sums
HERE = Path(__file__).parent
ROOMS = ("tracer/", "training/", "candidate/", "probe/", "grading/", "worker/", "api.py")
OURS = tuple(str(HERE.parent / room) for room in ROOMS)
CALL = nn.Module._wrapped_call_impl.__code__  # the code of every module call's frame
MACHINERY = (
    "nn/modules/module.py",
    "_contextlib.py",
    "torch/overrides.py",
)  # of torch: frames that say nothing
SOFTMAX = {"softmax", "log_softmax", "_softmax"}
MAX_ROWS = 20_000
STRIDED = torch.strided


PLACEHOLDER = object()  # stands for a tensor among the arguments of an operation
CALLER_FILE = str(HERE / "call_setup.py")  # calls what is traced: a row's line lies inside of it
_library_files: dict[str, bool] = {}  # by file
TENSORS = {Tensor, nn.Parameter}
# What else the arguments are. A look at the type is all that they cost: `isinstance` of a tensor
# is answered by Python code.
ATOMS = {int, float, bool, str, type(None), slice, type(...), torch.dtype, torch.device}

# A tensor that came in: id, storage, shape. One that went out: also stride, dtype, whether it is a
# view, whether of the same elements (whose numbers it then has), and the sample of one that is not.
Shape = tuple[int, ...]
LoggedInput = tuple[int, int, Shape]
LoggedOutput = tuple[int, int, Shape, tuple[int, ...], torch.dtype, bool, bool, Sample]
# Arguments with a `HOLE` for each tensor, in the order of the tensors that came in.
ArgumentTemplate = tuple[list[Any], dict[str, Any] | None]
# One operation: name, code and line of the user's frame, submodule, tensors, arguments. A plain
# tuple: a named one costs ten times as much to make.
LogEntry = tuple[
    str, CodeType | None, int, str, list[LoggedInput], list[LoggedOutput], ArgumentTemplate
]


@contextmanager
def reentered(mode: TorchFunctionMode) -> Iterator[None]:
    """The mode again, inside a function that it intercepts."""
    TorchFunctionMode.__enter__(mode)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        TorchFunctionMode.__exit__(mode, None, None, None)  # type: ignore[no-untyped-call]


class FailedOperation(NamedTuple):
    """The operation that raised."""

    op: str
    code: CodeType | None
    line: int
    module: str
    ins: list[LoggedInput]
    dtypes: tuple[torch.dtype, ...]
    error: BaseException
    call: ReplayedCall  # the call, with tensors of zeros


class Recorder(TorchFunctionMode):
    """Records what happens while it is entered. `root` gives submodules their dotted names."""

    def __init__(self, root: nn.Module | None = None) -> None:
        super().__init__()
        self.log: list[LogEntry] = []
        self.inputs: list[LoggedInput] = []
        self.named_at = 0  # operations before the inputs were known
        self.outputs: list[LoggedInput] = []  # what was returned, or what a backward pass began at
        self.reads: list[tuple[int, LoggedInput]] = []  # the operations before it, and the tensor
        self.failure: FailedOperation | None = None
        self.full = False  # MAX_ROWS reached: later operations are not recorded
        self.unseen = 0  # operations on tensors that have no shape, such as nested ones
        self.active = True
        self._count = 0  # output tensors so far, which is the index of the next record
        self._sample = Sampler()
        self.barred = BarredRows()
        self.graded: set[int] = set()  # output numbers that a backward pass comes back to
        self._sampled: set[int] = set()  # storages of which a row has the numbers
        self._uninitialised: set[int] = set()  # storages that came without values
        self._written: set[int] = set()  # storages that were written to after they were made
        self.caller: CodeType | None = None  # what holds the block that is recorded
        self.root = root
        self.training: bool | None = None  # the root's mode when it was called, where it may change
        self._names = module_names(root) if root is not None else {}

    def name_inputs(self, tensors: list[Tensor]) -> None:
        self.named_at = len(self.log)
        self.inputs = [(id(t), storage_of(t), _shape(t)) for t in tensors]

    def name_outputs(self, tensors: Iterable[Tensor]) -> None:
        self.outputs += [(id(t), storage_of(t), _shape(t)) for t in tensors]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            kind = KINDS[func]
        except (KeyError, TypeError):
            kind = kind_of(func)
        if not kind.name or not self.active:
            return func(*args, **kwargs) if kwargs else func(*args)
        if kind.exposes or (kwargs and ("out" in kwargs or "inplace" in kwargs)):
            self._sample.settle([storage_of(t) for t in _tensors_among(args, kwargs)])
        try:
            if kind.twin is not None:
                with reentered(self):
                    return kind.twin(*args, **(kwargs or {}))
            out = func(*args, **kwargs) if kwargs else func(*args)
        except Exception as error:
            self._note_failure(kind.name, func, args, kwargs or {}, error)
            raise
        if not self.full:
            outs = (out,) if type(out) is Tensor else outputs(kind, args, out)
            if outs:
                try:
                    self._note(kind, args, kwargs, outs)
                except Exception:  # what cannot be described must not stop the run
                    self.unseen += 1
            elif kind.starts or kind.reads:
                self._note_use(kind, _tensors_among(args, kwargs)[:1])
        return out

    def _note_use(self, kind: Kind, tensors: list[Tensor]) -> None:
        """A backward pass begins at a tensor, or its values go to the program."""
        if kind.starts:
            self.name_outputs(tensors)
        else:
            self.reads += [(len(self.log), (id(t), storage_of(t), _shape(t))) for t in tensors]

    def _note(self, kind: Kind, args: Any, kwargs: Any, outs: tuple[Tensor, ...]) -> None:
        """Append one operation to the log."""
        ins: list[LoggedInput] = []
        kin: dict[int, Tensor] = {}
        template = []
        for a in args:
            if type(a) is Tensor:
                try:
                    storage = a.untyped_storage()._cdata
                except Exception:  # functorch wrappers and sparse tensors have no storage
                    storage = id(a)
                kin[storage] = a
                ins.append((id(a), storage, a.shape))
                template.append(PLACEHOLDER)
            else:
                template.append(a if type(a) in ATOMS else _template(a, ins, kin))
        named = {n: _template(a, ins, kin) for n, a in kwargs.items()} if kwargs else None
        writes = kind.writes or (
            named is not None and ("out" in named or named.get("inplace") is True)
        )
        made = [self._log_output(kind, t, kin, ins if writes else None) for t in outs]
        code, line, module = user_location(sys._getframe(2), self._names)
        if kind.name in LOOKED_AT:
            self.barred.note(self._count, kind.name, args, kwargs)
        self.graded.update(
            self._count + i for i, t in enumerate(outs) if not made[i][2] and t.requires_grad
        )
        self._count += len(made)
        self.full = self._count >= MAX_ROWS
        self.log.append((kind.name, code, line, module, ins, made, (template, named)))

    def _log_output(
        self, kind: Kind, t: Tensor, kin: dict[int, Tensor], written: list[LoggedInput] | None
    ) -> LoggedOutput:
        """One output. `written` are the operands of an operation that writes into one of them."""
        try:
            storage = t.untyped_storage()._cdata
        except Exception:  # functorch wrappers and sparse tensors have no storage
            return id(t), id(t), t.shape, (), t.dtype, False, False, None
        dtype, base = t.dtype, kin.get(storage)
        view = same = False
        if base is None:  # new, or at the address of one that is gone
            if kind.uninitialised:
                self._uninitialised.add(storage)
            elif self._uninitialised:
                self._uninitialised.discard(storage)
        elif written is not None and any(id(t) == key for key, _, _ in written):
            self._written.add(storage)
        else:
            view = True
            told = storage in self._sampled and storage not in self._written
            same = told and kind.same_elements and dtype is base.dtype
        if type(t) not in TENSORS and t.layout is not STRIDED:
            return id(t), storage, t.shape, (), dtype, view, same, None
        sample = None
        if not same and storage not in self._uninitialised:
            sample = self._sample(t, dtype, storage, base is None and not kind.shares)
        self._sampled.add(storage)
        return id(t), storage, t.shape, t.stride(), dtype, view, same, sample

    def _note_failure(
        self, name: str, func: Any, args: Any, kwargs: Any, error: BaseException
    ) -> None:
        if self.failure is not None and self.failure.error is error:
            return  # the innermost operation is the one that raised
        from attnlab.tracer.crash.suggest import (  # most runs end well
            ReplayedCall,
            zeros_as_laid_out,
        )

        code, line, module = user_location(sys._getframe(2), self._names)
        tensors = _tensors_among(args, kwargs)
        self.failure = FailedOperation(
            name,
            code,
            line,
            module,
            [(id(t), storage_of(t), _shape(t)) for t in tensors],
            tuple(t.dtype for t in tensors),
            error,
            ReplayedCall(func, *map_tensors(zeros_as_laid_out, (args, kwargs))),
        )


def module_names(root: nn.Module) -> dict[int, str]:
    """The dotted names of submodules, without those that `torch.compile` puts in between."""
    return {id(m): f"{n}.".replace("_orig_mod.", "")[:-1] for n, m in root.named_modules()}


def _tensors_among(args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors among the arguments, also inside one level of lists (cat, einsum, indices)."""
    values = (*args, *kwargs.values()) if kwargs else args
    groups = (value if isinstance(value, (tuple, list)) else (value,) for value in values)
    return [t for group in groups for t in group if isinstance(t, Tensor)]


def _template(value: Any, ins: list[LoggedInput], kin: dict[int, Tensor]) -> Any:
    """An argument with placeholders for its tensors, which must not be kept alive."""
    kind = type(value)
    if kind in TENSORS or (kind not in ATOMS and isinstance(value, Tensor)):
        storage = storage_of(value)
        kin[storage] = value
        ins.append((id(value), storage, value.shape))
        return PLACEHOLDER
    if isinstance(value, (tuple, list)):
        return [_template(v, ins, kin) if isinstance(v, Tensor) else v for v in value]
    return value


def storage_of(t: Tensor) -> int:
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


def is_library_code(file: str) -> bool:
    """True for code of PyTorch, einops and attnlab; rows belong to the nearest other frame."""
    library = file.startswith((TORCH, EINOPS, *OURS, "<frozen"))
    _library_files[file] = library
    return library


def user_location(
    start: FrameType | None, names: dict[int, str]
) -> tuple[CodeType | None, int, str]:
    """The code and line of the user, and the name of the innermost module that has one.

    Both are read from the stack: hooks on the calls of modules would cost as much as all else.
    """
    user: FrameType | None = None
    module = None if names else ""
    frame = start
    while frame is not None:
        code = frame.f_code
        if code is CALL:
            if module is None:
                module = names.get(id(frame.f_locals["self"]))
        elif user is None:
            library = _library_files.get(code.co_filename)
            if library is None:
                library = is_library_code(code.co_filename)
            if not library:
                user = frame
            elif code.co_filename == CALLER_FILE:
                break
        if user is not None and module is not None:
            return user.f_code, user.f_lineno, module
        frame = frame.f_back
    # One of PyTorch's own modules is being traced: its outermost line
    user = user or _outermost(start)
    return (user.f_code, user.f_lineno, module or "") if user is not None else (None, 0, "")


def _outermost(frame: FrameType | None) -> FrameType | None:
    """PyTorch's outermost frame; of a call that only hands on to an opened function, that one."""
    found = twin = opened = None
    while frame is not None and frame.f_code.co_filename != CALLER_FILE:
        file = frame.f_code.co_filename
        if frame.f_code in TWIN_CODES:
            twin = twin or frame  # the innermost: the function hands itself over to its twin
        elif file.startswith(TORCH) and not file.endswith(MACHINERY):
            found, opened, twin = frame, twin, None
        frame = frame.f_back
    return opened or found
