"""Record every value that a module computes, and put others in their place.

What `attnlab diff` compares. Unlike a trace, which keeps descriptions, this keeps the numbers; and
a call can be repeated with some results replaced, which tells whether a line is what is wrong.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlab.tracer.cast import Given
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.op_kinds import kind_of, outputs
from attnlab.tracer.recorder import TORCH, reentered, user_location

MOST = 30_000  # values
MOST_NUMBERS = 1 << 25  # in all of them: a table that is filled entry by entry is kept each time
SETTING_UP = ("__init__", "reset_parameters")  # of PyTorch's modules: initial values say nothing
FUSED = "scaled_dot_product_attention"


@dataclass
class Value:
    """One tensor: what made it of which others, where, and its numbers."""

    op: str
    file: str
    line: int
    module: str  # or the name of a weight that was filled unseen
    call: int  # the number of the operation; -1 of what came from outside
    slot: int  # which of its results
    inputs: list[int]  # indices of values
    numbers: Tensor  # float64, or bool
    scalars: str = ""  # the arguments that are no tensors
    name: str = ""  # of an input or parameter
    callers: list[int] = field(default_factory=list)  # lines of the file that called, inner first
    # What only a backward pass tells, see gradient_recorder.py:
    gradient: Tensor | None = None  # None where none reaches it
    live: bool = False  # whether a gradient can reach it
    tracked: bool = True  # whether autograd was on when it was made
    hooked: list[Any] = field(default_factory=list)  # file and line that put a hook on its gradient
    # The name, file and lines of the backward that the user wrote for it.
    backward: list[Any] = field(default_factory=list)


@dataclass
class Values:
    """All values of a call in order; `output` is the index of a tensor that was returned, `result`
    what it holds."""

    values: list[Value] = field(default_factory=list)
    output: int = -1
    result: Tensor | None = None
    returned: int = 0  # how many tensors were returned
    alone: bool = True  # whether it was one, and no container of it


class ValueRecorder(TorchFunctionMode):
    """Records while it is entered; results of `patches`, by call and slot, are put in place."""

    def __init__(self, patches: Mapping[tuple[int, int], Tensor]) -> None:
        super().__init__()
        self.patches = patches
        self.values: list[Value] = []
        self.calls = 0
        self.names: dict[int, str] = {}  # of modules by identity, where values are to have theirs
        self._room = MOST_NUMBERS
        self._known: dict[tuple[int, int], int] = {}  # index by id and version
        self._alive: list[Tensor] = []  # ids are not used again

    def name(self, name: str, tensor: Tensor) -> None:
        """What comes from outside."""
        if (id(tensor), tensor._version) not in self._known:
            numbers = numbers_of(tensor)
            source = [] if name else self._copied_from(numbers)
            held = _name_in_module(tensor) if source else ""
            self._add(Value("", "", 0, held, -1, 0, source, numbers, name=name), tensor)

    def _copied_from(self, numbers: Tensor) -> list[int]:
        """The value that something holds which was filled unseen, as a weight by a state dict."""
        if numbers.numel() < 2:
            return []
        late = reversed(range(len(self.values)))
        same = (i for i in late if torch.equal(self.values[i].numbers, numbers))
        return list(islice(same, 1))

    def widen(self, module: Any) -> None:
        """Cast a module to float64; its buffers stay the values that they were made as."""
        if not isinstance(module, nn.Module):
            return
        before = {name: self.index(buffer) for name, buffer in module.named_buffers()}
        module.double()
        for name, buffer in module.named_buffers():
            self._known.setdefault((id(buffer), buffer._version), before[name])
            self._alive.append(buffer)

    def index(self, tensor: Tensor) -> int:
        """Of a value; what was made unseen is one as well."""
        key = (id(tensor), tensor._version)
        if key not in self._known:
            self.name("", tensor)
        return self._known[key]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kind = kind_of(func)
        if not kind.name or _sets_up(sys._getframe(1)):
            return func(*args, **kwargs)
        if kind.twin is not None or kind.name == FUSED:
            with reentered(self):
                return (kind.twin or _attention)(*args, **kwargs)
        inputs = [self.index(t) for t in tensors_in((args, kwargs))]
        out = self.compute(func, args, kwargs)
        outs = outputs(kind, args, out)
        if not outs or self.is_full:
            return out
        call, self.calls = self.calls, self.calls + 1
        out, outs = self._put(call, kind.writes, out, outs)
        self._note(kind.name, call, outs, inputs, _scalars(args, kwargs))
        return out

    @property
    def is_full(self) -> bool:
        """Whether nothing more is recorded: what follows counts as coming from outside."""
        return len(self.values) >= MOST or self._room < 0

    def _note(
        self, op: str, call: int, outs: tuple[Tensor, ...], inputs: list[int], scalars: str
    ) -> None:
        """The results of an operation as values."""
        frame = sys._getframe(2)
        code, line, module = user_location(frame, self.names)
        callers = _callers(frame, code)
        for slot, made in enumerate(outs):
            self._room -= made.numel()
            value = Value(
                op=op,
                file=code.co_filename if code else "",
                line=line,
                module=module,
                call=call,
                slot=slot,
                inputs=inputs,
                numbers=numbers_of(made),
                scalars=scalars,
                callers=callers,
            )
            self._add(value, made)

    def compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation."""
        return func(*args, **kwargs)

    def _put(
        self, call: int, writes: bool, out: Any, outs: tuple[Tensor, ...]
    ) -> tuple[Any, tuple[Tensor, ...]]:
        """The results with those of the patches in their place."""
        lent = {s: p for s in range(len(outs)) if (p := self.patches.get((call, s))) is not None}
        if not lent:
            return out, outs
        for slot, value in lent.items():
            if writes:
                outs[slot].copy_(_lend(value, outs[slot]).reshape(outs[slot].shape))
        if writes:
            return out, outs
        fresh = tuple(_lend(lent[s], t) if s in lent else t for s, t in enumerate(outs))
        return (fresh[0] if isinstance(out, Tensor) else type(out)(fresh)), fresh

    def prepare(self, given: Given) -> Given:
        """The inputs as they are given to the module."""
        return given

    def record(self, call: Callable[[Given], Any], given: Given) -> Any:
        """What the call returns."""
        with self:
            return call(given)

    def _add(self, value: Value, tensor: Tensor) -> None:
        self._known[id(tensor), tensor._version] = len(self.values)
        self._alive.append(tensor)
        self.values.append(value)


def _lend(value: Tensor, like: Tensor) -> Tensor:
    """A value for use in place of another; floats stay wide, so that rounding is no fault. Complex
    numbers are recorded as pairs of real ones."""
    if like.is_complex() and value.dim() and value.size(-1) == 2:
        return torch.view_as_complex(value.double().contiguous())
    wide = value.is_floating_point() and like.is_floating_point()
    return value.clone() if wide else value.to(like.dtype)


def _attention(  # noqa: PLR0913, PLR0917  PyTorch's signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,  # noqa: ARG001
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The fused kernel in its steps, as its documentation gives them; without dropout."""
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1) @ value


def _name_in_module(tensor: Tensor) -> str:
    """What the outermost module that is running calls a weight; "" where none holds it."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None:
        module = frame.f_locals.get("self")
        if isinstance(module, nn.Module):
            held = module.named_parameters()
            found = next((name for name, weight in held if weight is tensor), found)
        frame = frame.f_back
    return found


def _sets_up(frame: FrameType | None) -> bool:
    """Whether one of PyTorch's modules is being constructed."""
    while frame is not None and frame.f_code.co_filename.startswith(TORCH):
        if frame.f_code.co_name in SETTING_UP:
            return True
        frame = frame.f_back
    return False


def _callers(frame: FrameType | None, code: CodeType | None) -> list[int]:
    """The lines of a file that led to a function of it."""
    found = []
    while frame is not None and code is not None:
        if frame.f_code.co_filename == code.co_filename:
            found.append(frame.f_lineno)
        frame = frame.f_back
    return found[1:]


def _scalars(args: Any, kwargs: Mapping[str, Any]) -> str:
    """`dim=-1`, `2.0`: the arguments that are no tensors, as Python writes them."""
    plain = [repr(a) for a in args if not isinstance(a, list) and not _is_unsaid(a)]
    own = ((n, v) for n, v in kwargs.items() if not n.startswith("_"))  # not PyTorch's own
    plain += [f"{n}={v!r}" for n, v in own if not _is_unsaid(v)]
    return ", ".join(plain)[:80]


def _is_unsaid(value: Any) -> bool:
    """Whether nothing is said of a value: a tensor takes long to be written; None says nothing."""
    if isinstance(value, (tuple, list)):
        return any(isinstance(each, Tensor) for each in value)
    return value is None or isinstance(value, Tensor)


def numbers_of(tensor: Tensor) -> Tensor:
    """A copy in float64; bool stays. What holds no numbers, as on the meta device, gives none."""
    found = tensor.detach()
    if found.is_meta or found.layout is not torch.strided:
        return torch.empty(0, dtype=torch.float64)
    if found.is_complex():
        found = torch.view_as_real(found.resolve_conj())
    return found.clone() if found.dtype is torch.bool else found.to(torch.float64, copy=True)


def record_values(
    build: Callable[[], Any],
    load: Callable[[], Any],
    call: Callable[[Given], Any],
    given: Given,
    recorder: ValueRecorder,
    pick: int = 0,
) -> Values:
    """Build a module and call it, in float64 and without gradients, unless the recorder has its own
    way.

    `build()` gives the module, `load()` its weights, `call(inputs)` what it returns; of its tensors
    number `pick` is looked at.
    """
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            with recorder:
                module = build()
            recorder.widen(module)
            load()
            for name, weight in _held(module):
                recorder.name(name, weight)
            given = recorder.prepare(given)
            for name, tensor in given:
                if tensor is not None:
                    recorder.name(name, tensor)
            out = recorder.record(call, given)
    finally:
        torch.set_default_dtype(default)
    outs = list(tensors_in([out]))
    told = Values(recorder.values, returned=len(outs), alone=isinstance(out, Tensor))
    if pick < len(outs):
        told.output, told.result = recorder.index(outs[pick]), numbers_of(outs[pick])
    return told


def _held(module: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(module, nn.Module):
        yield from module.named_parameters()
        yield from module.named_buffers()
