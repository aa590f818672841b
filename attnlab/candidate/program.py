"""A candidate's program: its files as modules, and what its training half does when it is called.

`ExactNumbers` makes two right programs agree in all digits: numbers are float64 also where float32
is asked for by name, and dropout scales in place of dropping. `TrainingWatch` notes what can be
seen from outside while a program trains: losses, modes, dropout.
"""

import inspect
import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib.machinery import ModuleSpec
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode

from attnlab.candidate.load import compile_source, remember
from attnlab.records import Trace
from attnlab.records.program import FORWARD
from attnlab.tracer.in_process import BlockRecorder

HALF = (torch.float16, torch.bfloat16)
HALVING = {Tensor.half, Tensor.bfloat16}
FUSED = F.scaled_dot_product_attention
FUSED_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
DROPOUTS: set[Any] = {
    F.dropout,
    F.dropout1d,
    F.dropout2d,
    F.dropout3d,
    F.alpha_dropout,
    torch.dropout,
}
# What `ExactNumbers` does in another way.
CHANGED = {*DROPOUTS, *HALVING, FUSED, F.multi_head_attention_forward, Tensor.float}


class MissingName(Exception):
    """A declared name that the program does not define, or that is not what it should be."""


class SourceModules:
    """Modules of texts instead of files: importing `model` executes the text of model.py."""

    def __init__(self, files: dict[str, str], label: str) -> None:
        self.texts = {Path(file).stem: text for file, text in files.items()}
        self.label = label

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in self.texts else None  # type: ignore[arg-type]

    def create_module(self, _: ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        file = f"{self.label}{module.__name__}.py"
        text = self.texts[module.__name__]
        module.__file__ = file
        remember(file, text)
        exec(compile_source(text, file), module.__dict__)

    def install(self) -> None:
        """Let `import` find these modules, and none that was here before."""
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, SourceModules)]
        sys.meta_path.insert(0, self)
        for name in self.texts:
            sys.modules.pop(name, None)

    def load(self) -> dict[str, types.ModuleType]:
        """Import every module afresh."""
        self.install()
        return {name: __import__(name) for name in self.texts}


class CandidateProgram:
    """The modules of a program and its declared names."""

    def __init__(
        self, modules: dict[str, types.ModuleType], entries: dict[str, str], exact: bool = False
    ) -> None:
        self.modules, self.entries, self.exact = modules, entries, exact
        self.model: Any = None  # a module, or a dict of weights
        self.optimizer: Any = None
        self.first_weights: dict[str, Tensor] = {}  # of the model, before it was given others
        self.allocates = False  # whether its text can ask for memory that nobody wrote
        self.loose: dict[str, int] = {}  # constants for the run in which gradients are seen

    def name(self, dotted: str) -> Any:
        """What `train.STEPS` is; raises `MissingName`."""
        module, _, name = dotted.partition(".")
        if not hasattr(self.modules.get(module), name):
            raise MissingName(f"{name} is missing from {module}.py: put it back")
        return getattr(self.modules[module], name)

    def call(self, entry: str, *args: Any) -> Any:
        function = self.name(self.entries[entry])
        if not callable(function):
            raise MissingName(f"{self.entries[entry]} is not a function")
        return function(*args)

    def evaluate(self, expression: str, **names: Any) -> Any:
        """The value of an expression of the challenge over the program's modules."""
        space = {**self.modules, "torch": torch, **names}
        return eval(expression, space)  # noqa: S307  the challenge's own text

    def make(self, weights: dict[str, Tensor] | None = None) -> Any:
        """A fresh model, with these weights where they fit, and its optimizer."""
        with ExactNumbers() if self.exact else nullcontext():
            model = self.call("make_model")
        functional = FORWARD in self.entries
        own = named_weights(model) if functional or isinstance(model, nn.Module) else {}
        if not own:
            wanted = "a dict of weights" if functional else "an nn.Module with parameters"
            raise MissingName(f"make_model returned {_kind(model)}, not {wanted}")
        self.model = model
        self.first_weights = {name: p.detach().clone() for name, p in own.items()}
        if weights:
            with torch.no_grad():
                for name, tensor in weights.items():
                    if name in own and own[name].shape == tensor.shape:
                        own[name].copy_(tensor)
        self.optimizer = self.call("make_optimizer", model)
        if not hasattr(self.optimizer, "step"):
            raise MissingName(f"make_optimizer returned {_kind(self.optimizer)}, not an optimizer")
        return model

    def change(self, settings: dict[str, int]) -> dict[str, int]:
        """Give constants other values; those that they had."""
        before = {}
        for dotted, value in settings.items():
            before[dotted] = self.name(dotted)
            module, _, name = dotted.partition(".")
            setattr(self.modules[module], name, value)
        return before

    def set_mode(self, training: bool) -> None:
        """Put the model into train or eval mode; a dict of weights has none."""
        if isinstance(self.model, nn.Module):
            self.model.train(training)

    def train(self, steps: int) -> list[Any]:
        """The losses that the training loop returns, as it returns them."""
        losses = self.call("train", self.model, self.optimizer, steps)
        if not isinstance(losses, (list, tuple)) or not all(map(_is_number, losses)):
            raise MissingName(
                f"train returned {_kind(losses)}; it is to return a list with the loss of each step"
            )
        return list(losses)


def named_weights(model: Any) -> dict[str, Tensor]:
    """The parameters of a module, or the tensors of nested dicts and lists ("layers.0.wq"); one
    that is tied under each of its names."""
    if isinstance(model, nn.Module):
        return dict(model.named_parameters(remove_duplicate=False))
    if isinstance(model, Tensor):
        return {"": model}
    if not isinstance(model, (Mapping, list, tuple)):
        return {}  # a number among the weights, such as how many heads there are
    parts = model.items() if isinstance(model, Mapping) else enumerate(model)
    return {
        f"{key}.{name}".rstrip("."): tensor
        for key, part in parts
        for name, tensor in named_weights(part).items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.numel() == 1)


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def as_floats(losses: Iterable[Any]) -> Tensor:
    return torch.tensor([float(loss) for loss in losses], dtype=torch.float64)


class ExactNumbers(TorchFunctionMode):
    """Float32 asked for by name is float64, and dropout scales by the share that it would keep, so
    that its rate and its place show in every digit; `active` counts the calls that would drop."""

    def __init__(self, keep_half: bool = False) -> None:
        super().__init__()
        self.keep_half = keep_half  # numbers of 16 bits stay as they are
        self.active = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func not in CHANGED:
            if torch.dtype in map(type, args):
                args = tuple(map(self._widened, args))
            if kwargs:
                kwargs = {n: self._widened(value) for n, value in kwargs.items()}
            return func(*args, **kwargs)
        if func in DROPOUTS:
            return self._without_dropout(func, args, kwargs)
        if func is FUSED:
            return self._fused(args, kwargs)
        if func is F.multi_head_attention_forward:
            args, kwargs = self._multi_head(args, kwargs)
        elif func is Tensor.float or (func in HALVING and not self.keep_half):
            func, args = Tensor.double, args[:1]
        return func(
            *map(self._widened, args), **{n: self._widened(value) for n, value in kwargs.items()}
        )

    def _without_dropout(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        named = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
        training = named.get("train", named.get("training", True))
        output = func(named["input"], 0.0, False)
        return output * self._kept(named.get("p", 0.5)) if training else output

    def _widened(self, value: Any) -> Any:
        if not isinstance(value, torch.dtype):
            return value
        narrow = value is torch.float32 or (value in HALF and not self.keep_half)
        return torch.float64 if narrow else value

    def _kept(self, rate: float) -> float:
        """The share that a call keeps."""
        self.active += bool(rate)
        return 1.0 - rate

    def _fused(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = dict(zip(FUSED_ARGUMENTS, args, strict=False)) | kwargs
        kept = self._kept(named.pop("dropout_p", 0.0))
        return FUSED(**named) * kept

    def _multi_head(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What `nn.MultiheadAttention` calls in train mode, with its dropout in the projection."""
        function = inspect.signature(F.multi_head_attention_forward)
        named = function.bind(*args, **kwargs).arguments
        kept = self._kept(named["dropout_p"]) if named.get("training", True) else 1.0
        weight = named["out_proj_weight"] * kept
        return (), named | {"dropout_p": 0.0, "out_proj_weight": weight}


class TrainingWatch(AbstractContextManager["TrainingWatch"]):
    """Notes the loss of every backward pass, the modes in which the model is called, and the
    gradients that an optimizer has at its first step, and the learning rate of each."""

    def __init__(self, model: Any, optimizer: Any = None) -> None:
        self.model, self.optimizer = model, optimizer
        self.gradients: dict[str, Tensor] = {}
        self.rates: list[float] = []  # of each update: the largest of its groups
        self.losses: list[float] = []
        self.ends: list[int] = []  # of each step of an optimizer: how many losses there were
        self.training_modes: list[bool] = []  # of calls that build a graph
        self.other_modes: list[bool] = []  # of calls that do not
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        if isinstance(self.model, nn.Module):
            handle = self.model.register_forward_pre_hook(self._note_mode)
            self._undo.callback(handle.remove)
        if isinstance(self.optimizer, torch.optim.Optimizer):
            hook = self.optimizer.register_step_pre_hook(self._note_update)
            self._undo.callback(hook.remove)
        ends = register_optimizer_step_post_hook(lambda *_: self.ends.append(len(self.losses)))
        self._undo.callback(ends.remove)
        self._watch_losses(Tensor, "backward")
        self._watch_losses(torch.autograd, "grad")
        return self

    def _watch_losses(self, owner: Any, name: str) -> None:
        """Note what is differentiated by a function whose first argument is the loss."""
        differentiate = getattr(owner, name)

        def watched(loss: Any, *args: Any, **kwargs: Any) -> Any:
            single = isinstance(loss, Tensor) and loss.numel() == 1
            self.losses.append(float(loss.detach()) if single else math.nan)
            return differentiate(loss, *args, **kwargs)

        setattr(owner, name, watched)
        self._undo.callback(setattr, owner, name, differentiate)

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def step_losses(self) -> list[float]:
        """The loss of each step whose gradients were used: the sum of those of its backward passes,
        as of micro-batches; each by itself where no optimizer of PyTorch takes steps."""
        starts = [0, *self.ends]
        sums = [sum(self.losses[a:b]) for a, b in pairwise(starts) if b > a]
        return sums if self.ends else self.losses

    def _note_update(self, *_: object) -> None:
        self.rates.append(max(float(group["lr"]) for group in self.optimizer.param_groups))
        if not self.gradients:
            self.gradients = {
                n: torch.zeros_like(p) if p.grad is None else p.grad.detach().clone()
                for n, p in named_weights(self.model).items()
            }

    def _note_mode(self, model: nn.Module, _: object) -> None:
        modes = self.training_modes if torch.is_grad_enabled() else self.other_modes
        modes.append(model.training)


class StopTraining(BaseException):
    """Ends training once the step that is traced has ended."""


class StepRecorder:
    """Records what runs between two steps of an optimizer: batch, forward, loss and backward."""

    def __init__(self, register: Callable[[Callable[..., None]], Any], step: int) -> None:
        """`register` puts a hook after the steps of one optimizer, or of all."""
        self.step, self.done = step, 0  # the one to record, from 1; those that have ended
        self.recorder = BlockRecorder({}, None)
        self.recording = False
        self.hook = register(self._after_step)

    def record(self, train: Callable[[], Any]) -> BaseException | None:
        """Train up to the end of the step; what training raised before that, if anything."""
        try:
            self._before_step()
            train()
        except StopTraining:
            return None
        except BaseException as error:
            return error
        finally:
            self._end()
            self.hook.remove()
        return None

    def trace(self, train: Callable[[], Any]) -> Trace:
        """The trace of the step, up to what it raised."""
        return self.recorder.trace_of_block(self.record(train)).trace

    def leave_out_optimizer(self, _: object, args: tuple[Any, ...], kwargs: Any) -> None:
        """Show no rows of the optimizer's own: a hook before its steps. One that is given a
        closure runs the model itself."""
        self.recorder.active = not self.recording or len(args) > 1 or bool(kwargs)

    def _before_step(self) -> None:
        if self.done == self.step - 1:
            self.recording = True
            self.recorder.__enter__()

    def _end(self) -> None:
        if self.recording:
            self.recording = False
            self.recorder.__exit__(None, None, None)

    def _after_step(self, *_: object) -> None:
        self.done += 1
        if self.recording:
            self._end()
            raise StopTraining
        self._before_step()
