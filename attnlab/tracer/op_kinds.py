"""What kind of operation a PyTorch function is, worked out once per function.

`F.multi_head_attention_forward` is Python code that hands itself over as one operation, with
everything in it hidden. Such a function has a twin here: the same code without the override check,
so that the operations inside it are recorded instead.
"""

import types
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

# Attribute access is no operation, except for these getters, which return a new view.
VIEW_GETTERS = {"T", "mT", "H", "mH", "real", "imag", "data"}
# Factories that return uninitialised memory.
UNINITIALISED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
# Views that contain every element of their base.
SAME_ELEMENTS = {
    *("view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel", "contiguous"),
    *("transpose", "t", "T", "mT", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"),
    *("unsqueeze", "squeeze", "expand", "expand_as", "broadcast_to", "detach", "data", "to"),
}
WRITES = {
    "__setitem__",
    *(f"__i{op}__" for op in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod")),
    *(f"__i{op}__" for op in ("pow", "and", "or", "xor", "lshift", "rshift")),
}
# Functions that expose a tensor's memory to writes from outside, and that take foreign memory.
EXPOSES = {"numpy", "data_ptr", "untyped_storage", "storage", "__array__", "__dlpack__", "tobytes"}
SHARES = {"from_numpy", "frombuffer", "as_tensor", "asarray", "from_dlpack", "from_file"}
# What hands the values themselves to the program, which may decide by them.
READS = {"tolist", "item", "__bool__", "__int__", "__float__", "__index__"}
OVERRIDE_CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
DECOMPOSED = (F.multi_head_attention_forward,)
TWIN_CODES = {func.__code__ for func in DECOMPOSED}  # which the twins share
MAX_KINDS = 4096  # cached functions: a program may create new ones without end


class Kind:
    """The traits of an operation. `name` is "" for one that gets no row."""

    __slots__ = (
        "exposes",
        "name",
        "reads",
        "same_elements",
        "sets",
        "shares",
        "starts",
        "twin",
        "uninitialised",
        "writes",
    )

    def __init__(self, name: str, twin: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.twin = twin
        self.writes = name in WRITES or (name[-1:] == "_" and name[:2] != "__")
        self.exposes = self.writes or name in EXPOSES
        self.shares = name in SHARES
        self.sets = name == "__setitem__"
        self.reads = name in READS
        self.starts = name == "backward"
        self.same_elements = name in SAME_ELEMENTS
        self.uninitialised = name in UNINITIALISED


KINDS: dict[Any, Kind] = {}


def kind_of(func: Any) -> Kind:
    """The kind of a function; callers look into `KINDS` first."""
    try:
        found = KINDS.get(func)
    except TypeError:  # a callable object that has no hash
        return Kind(_name(func))
    if found is None:
        found = Kind(_name(func), _twin(func) if func in DECOMPOSED else None)
        if len(KINDS) < MAX_KINDS:
            KINDS[func] = found
    return found


def _name(func: Any) -> str:
    name: str = getattr(func, "__name__", "?")
    if name != "__get__":
        return name
    name = getattr(getattr(func, "__self__", None), "__name__", "")
    return name if name in VIEW_GETTERS else ""


def _twin(func: types.FunctionType) -> Callable[..., Any]:
    """The same function without its check for overrides."""
    space = {**func.__globals__, **dict.fromkeys(OVERRIDE_CHECKS, lambda *_: False)}
    twin = types.FunctionType(func.__code__, space, func.__name__, func.__defaults__)
    twin.__kwdefaults__ = func.__kwdefaults__
    return twin


def outputs(kind: Kind, args: tuple[Any, ...], out: Any) -> tuple[Tensor, ...]:
    """The tensors that an operation returned or wrote into."""
    if isinstance(out, Tensor):
        return (out,)
    if isinstance(out, (tuple, list)):
        return tuple(t for t in out if isinstance(t, Tensor))
    return (args[0],) if kind.sets else ()
