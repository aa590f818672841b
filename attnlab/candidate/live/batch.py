"""A copy of a model and one batch of its own inputs, which can be changed and given to it again."""

import copy
import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.target.conventions import names_mask
from attnlab.tracer.bind_arguments import bound_arguments, named_tensors
from attnlab.tracer.call_setup import uncompiled
from attnlab.tracer.nested_tensors import copy_arguments, map_tensors

Role = Literal["ids", "floats", "mask", "targets", "other"]
Changes = Mapping[int, Tensor]  # other values of inputs, by the inputs' identity
ASIDE = ("pos", "type", "segment", "len", "step", "time", "cache", "index", "indices")
TARGETS = {"labels", "label", "targets", "target", "y", "answers"}
HEADS = {"q", "k", "v", "query", "key", "value", "queries", "keys", "values"}
CLASSES = (0, 1)  # of a mask that is no boolean
NOISE = 0.05  # put into parameters that are zero everywhere: they hide what is multiplied by them
WIDENED = 3  # samples that a batch of one is made into
ROUNDING = {torch.float64: 1e-7, torch.float32: 3e-5}


class CannotTry(Exception):
    """A property cannot be looked at; the message says why."""


class Leaf(NamedTuple):
    """One tensor among the inputs; one that is given for several arguments has the first name."""

    name: str
    value: Tensor
    role: Role

    @property
    def key(self) -> int:
        return id(self.value)

    @property
    def sequence_axis(self) -> int | None:
        """The axis of positions, where the second axis is that."""
        if self.role == "ids" and self.value.dim() == 2:
            return 1
        if self.role == "floats" and self.value.dim() == 3:
            return 1
        heads = self.role == "floats" and self.value.dim() == 4
        return 2 if heads and self.name.rpartition(".")[2] in HEADS else None


class Output(NamedTuple):
    """What a call returned: its floating-point tensors by name."""

    tensors: dict[str, Tensor]

    @property
    def main(self) -> Tensor:
        """The first of them with several axes, else the first with one: a number for each
        sample."""
        several = [t for t in self.tensors.values() if t.dim()]
        return next((t for t in several if t.dim() > 1), next(iter(several), Tensor()))


class LiveModel:
    """A copy in eval mode, in float64 where it runs in that; the model itself stays as it is."""

    def __init__(self, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.given = (tuple(args), dict(kwargs))
        self.model = _copied(model)
        self.dtype = torch.float64
        plain, self.unused = self.model, copy.deepcopy(self.model).double()
        named = dict(named_tensors(bound_arguments(model, *self.given)))
        self.leaves = self._leaves(named)
        try:
            self.forget()
            if not all(t.isfinite().all() for t in self.call({}).tensors.values()):
                raise CannotTry("float64 overflows")  # noqa: TRY301
        except Exception:  # a dtype that is written down somewhere
            self.unused, self.dtype = plain, torch.float32
            self.leaves = self._leaves(named)
        self.forget()

    def forget(self) -> None:
        """Go on with a copy that was never called."""
        self.model = copy.deepcopy(self.unused)

    def _leaves(self, named: Mapping[str, Tensor]) -> list[Leaf]:
        held: dict[int, Tensor] = {}  # copies by the identity of what was given

        def own(tensor: Tensor) -> Tensor:
            made = tensor.detach().cpu()
            made = made.to(self.dtype) if made.is_floating_point() else made
            return held.setdefault(id(tensor), made.clone())

        self.inputs = map_tensors(own, self.given)
        found: dict[int, Leaf] = {}
        for name, tensor in named.items():
            if id(tensor) in held:
                value = held[id(tensor)]
                found.setdefault(id(value), Leaf(name, value, role_of(name, value)))
        return list(found.values())

    def call(
        self,
        changes: Changes,
        *,
        train: bool = False,
        seed: int | None = 0,
        watch: AbstractContextManager[Any] | None = None,
        graded: bool = False,
    ) -> Output:
        """What the copy returns for the inputs with these changes. Copies are given to it; where
        it is `graded`, gradients lead back."""
        args, kwargs = fresh(self.inputs, changes)
        self.model.train(train)
        if seed is not None:
            torch.manual_seed(seed)
            random.seed(seed)
        with torch.set_grad_enabled(graded), uncompiled(), watch or nullcontext():
            return Output(dict(floats_in(self.model(*args, **kwargs), graded)))

    def replace(self, changes: Changes) -> None:
        """Go on with other values of the inputs."""
        self.inputs = map_tensors(lambda t: changes.get(id(t), t), self.inputs)
        self.leaves = [
            leaf._replace(value=changes.get(leaf.key, leaf.value)) for leaf in self.leaves
        ]

    def add(self, name: str, value: Tensor) -> Leaf:
        """Give a keyword argument that the batch does not have, or another value of it."""
        self.inputs[1][name] = value
        self.leaves = [leaf for leaf in self.leaves if leaf.name != name]
        self.leaves.append(Leaf(name, value, "mask"))
        return self.leaves[-1]

    def remove(self, leaf: Leaf) -> None:
        """Leave out a keyword argument that was added."""
        self.inputs[1].pop(leaf.name, None)
        self.leaves.remove(leaf)

    def tolerance(self, out: Tensor) -> float:
        """How far outputs may differ by rounding."""
        largest = out.abs().nan_to_num(0, 0, 0).max().item() if out.numel() else 0.0
        return ROUNDING[self.dtype] * max(largest, 1e-3)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Random numbers of the process go on as if nothing had been called."""
    state = random.getstate()
    with torch.random.fork_rng(devices=()):
        try:
            yield
        finally:
            random.setstate(state)


def role_of(name: str, value: Tensor) -> Role:
    """What an input is, by its name and values."""
    word = name.rpartition(".")[2].lower()
    hides = value.dtype is torch.bool and word == "hidden"
    if names_mask(word) or "pad" in word or hides or word.endswith("bias"):
        return "mask" if value.dim() > 1 else "other"
    if word in TARGETS:
        return "targets"
    if value.dim() < 2 or value.dtype is torch.bool or any(part in word for part in ASIDE):
        return "other"
    return "floats" if value.is_floating_point() else "ids"


def _copied(model: nn.Module) -> nn.Module:
    """In eval mode on the CPU; parameters that are zero get a little noise."""
    try:
        made = copy.deepcopy(model).cpu().float().eval()
    except Exception as error:
        raise CannotTry(f"the model cannot be copied: {type(error).__name__}: {error}") from error
    dice = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        if parameter.is_floating_point() and parameter.numel() and not parameter.any():
            parameter.data.add_(torch.randn(parameter.shape, generator=dice), alpha=NOISE)
    return made


def fresh(value: Any, changes: Changes) -> Any:
    """Copies of arguments; also of caches and other objects, which a call may fill."""
    return copy_arguments(lambda t: changes.get(id(t), t).clone(), value)


def floats_in(value: Any, graded: bool = False) -> Iterator[tuple[str, Tensor]]:
    found = {"": value} if not isinstance(value, (dict, list, tuple)) else value
    for at, tensor in named_tensors(found):
        if tensor.is_floating_point() and tensor.numel():
            yield (at or "output"), tensor if graded else tensor.detach()
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, dict):
        yield from floats_in({n: getattr(value, n) for n in value.__dataclass_fields__}, graded)
