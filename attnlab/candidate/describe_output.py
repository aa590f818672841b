"""What a call returned, as an answer that can leave the process: a tensor, or words for it.

Nothing of it is asked to describe itself: it may be anything.
"""

import types
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

PLAIN = {Tensor, nn.Parameter, nn.Buffer}  # types whose values are all there is to them
SHOWN = 3  # parts of a container
NAME = 40  # characters of a name


def output(out: Any) -> dict[str, Any]:
    """What a call returned, in an answer."""
    if isinstance(out, Tensor) and (type(out) not in PLAIN or out.is_nested):
        return {"kind": _tensor(out)}
    if isinstance(out, Tensor):  # a copy: a module may write into what it returned before
        return {"output": out.detach().clone()}
    return {"kind": kind(out)}


def kind(out: object) -> str:
    """Words for it: "a tuple with a float32 tensor of shape (2, 4, 8) and None"."""
    if isinstance(out, types.CoroutineType):
        out.close()  # or Python complains that nobody awaited it
        return "a coroutine: its forward is an `async def`"
    if isinstance(out, types.GeneratorType):
        return "a generator: its forward has a `yield`"
    if type(out) is list or type(out) is tuple:
        return _container(type(out).__name__, [_part(part) for part in out[: SHOWN + 1]])
    if type(out) is dict:
        keys = list(islice(out, SHOWN + 1))
        return _container("dict", [repr(k)[:NAME] if type(k) is str else _part(k) for k in keys])
    return _part(out)


def _container(name: str, parts: list[str]) -> str:
    """With what is in it, or the first of that."""
    if not parts:
        return f"an empty {name}"
    if len(parts) > SHOWN:
        return f"a {name} with {', '.join(parts[:SHOWN])} and more"
    *more, last = parts
    return f"a {name} with {', '.join(more)} and {last}" if more else f"a {name} with {last}"


def _part(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return _tensor(value)
    name = type(value).__name__[:NAME]
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def _tensor(t: Tensor) -> str:
    """Its type and shape, where torch itself can tell them."""
    if type(t) not in PLAIN:
        return f"a {type(t).__name__[:NAME]}, a subclass of Tensor"
    if t.is_nested:
        return "a nested tensor"
    layout = "" if t.layout is torch.strided else f"{t.layout} ".removeprefix("torch.")
    place = f" on the {t.device.type} device" if t.device.type != "cpu" else ""
    return (
        f"a {t.dtype} ".replace("torch.", "") + f"{layout}tensor of shape {tuple(t.shape)}{place}"
    )
