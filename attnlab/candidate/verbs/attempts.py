"""The verb that calls a module with inputs that may not be what it takes."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.tracer.cast import Given, fresh
from attnlab.tracer.nested_tensors import tensors_in

# Functions with weights: what they take as it comes has the axes that they ask for.
LAYERS: frozenset[Any] = frozenset(
    {F.linear, F.embedding, F.layer_norm, F.multi_head_attention_forward}
    | {torch.conv1d, torch.conv2d, F.conv1d, F.conv2d}
)
MERGES: frozenset[Any] = frozenset({Tensor.flatten, torch.flatten})


class Progress(TorchFunctionMode):
    """Counts the operations that ran, and notes which inputs a layer took."""

    def __init__(self, inputs: dict[str, Tensor]) -> None:
        super().__init__()
        self.count = 0
        self.idle: set[str] = set()  # inputs whose axes were to be merged, and there were none
        self.taken: set[str] = set()
        self.sources = {id(tensor): {name} for name, tensor in inputs.items()}
        self.kept: list[Tensor] = []  # an id is of one tensor as long as that lives

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.count += 1
        if func in MERGES and out.shape == args[0].shape:
            self.idle |= self.sources.get(id(args[0]), set())
        given = list(tensors_in((args, kwargs)))
        names = set[str]().union(*(self.sources.get(id(t), ()) for t in given))
        if func in LAYERS and any(isinstance(t, nn.Parameter) for t in given):
            self.taken |= names
        for tensor in tensors_in(out) if names else ():
            self.kept.append(tensor)
            self.sources[id(tensor)] = names | self.sources.get(id(tensor), set())
        return out


@verb
def attempt(session: Session, inputs: Given, arguments: dict[str, Any]) -> Any:
    """How many operations a call comes to, the inputs that a layer took and those that had no axes
    to flatten, what it raised, "" for nothing, and how long it took, in seconds of CPU. `arguments`
    of forward are no tensors."""
    session.arguments = arguments
    given = fresh(inputs)
    progress = Progress({name: t for name, t in given if t is not None})
    raised, start = "", time.process_time()
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for tensors this small several cost more than they save
    try:
        with torch.no_grad(), progress:
            session.invoke(given)
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
    finally:
        torch.set_num_threads(threads)
    return {
        "count": progress.count,
        "idle": sorted(progress.idle),
        "taken": sorted(progress.taken),
        "error": raised,
        "seconds": time.process_time() - start,
    }
