"""The arguments of a call by name, the tensors among them, and the names of their axes."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from torch import Tensor, nn

from attnlab.sizes import with_head_dim
from attnlab.tracer.axes import input_names
from attnlab.tracer.axes.module_sizes import module_sizes
from attnlab.tracer.cast import Given
from attnlab.tracer.nested_tensors import copy_arguments
from attnlab.tracer.raw_trace import KnownAxes


def name_inputs(
    tensors: Mapping[str, Tensor],
    axes: Mapping[str, input_names.Axes],
    root: nn.Module | None,
    time_first: bool = False,
) -> tuple[dict[str, input_names.Axes], dict[str, int]]:
    """Axis names for every input, and the sizes of the names."""
    said = {n: axes[n] for n in axes if n in tensors}
    sizes = {**module_sizes(root), **input_names.sizes_of(tensors, said)}
    rest = {n: t for n, t in tensors.items() if n not in said}
    found = {**said, **input_names.guess_axes(rest, sizes, root, time_first)}
    for name, names in found.items():
        for axis, n in zip(names, tensors[name].shape, strict=True):
            if axis.isidentifier() and n != 1:
                sizes.setdefault(axis, n)
    return found, with_head_dim(sizes) if "hd" not in sizes else sizes


def guess_known_axes(
    given: list[tuple[str, Tensor]], root: nn.Module | None, time_first: bool = False
) -> KnownAxes:
    """Guessed axes and sizes of inputs that the user did not name."""
    axes, sizes = name_inputs(dict(given), {}, root, time_first)
    return KnownAxes([axes[name] for name, _ in given], sizes)


def bound_arguments(
    function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by parameter name; `input0`, ... where they do not fit the signature."""
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        return dict(inspect.signature(target).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"input{i}": a for i, a in enumerate(args)}, **kwargs}


def named_tensors(given: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors among arguments, with dotted names for those inside lists and dicts."""
    if isinstance(given, Tensor):
        if not given.is_nested:  # it has as many shapes as pieces
            yield name, given
    elif isinstance(given, (list, tuple)):
        for i, value in enumerate(given):
            yield from named_tensors(value, f"{name}.{i}")
    elif isinstance(given, Mapping):
        for key, value in given.items():
            inner = name if key in ("args", "kwargs") else f"{name}.{key}".lstrip(".")
            yield from named_tensors(value, inner.lstrip("."))


def repeatable_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Tensor], Callable[[Given], Any]]:
    """The tensors that a call is given, by name, and the same call with other tensors."""
    tensors = dict(named_tensors(bound_arguments(function, args, kwargs)))
    names = {id(t): n for n, t in tensors.items()}

    def call(fresh: Given) -> Any:
        new = dict(fresh)
        given = (args, {**kwargs})
        again, named = copy_arguments(lambda t: new.get(names.get(id(t), ""), t), given)
        return function(*again, **named)

    return tensors, call


def keyword_arguments(frame: FrameType | None) -> dict[str, Any]:
    """The keyword arguments of a module call, which global hooks do not receive."""
    while frame is not None:
        if "kwargs" in frame.f_locals and "self" in frame.f_locals:
            found = frame.f_locals["kwargs"]
            return found if isinstance(found, dict) else {}
        frame = frame.f_back
    return {}
