"""The right answer: a unit of references/ in this process, or a solution file in its own child."""

import inspect
import math
from collections.abc import Collection, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from attnlab.candidate.attention_internals import record_internals
from attnlab.candidate.gradient_recorder import Backward, GradientRecorder
from attnlab.candidate.host import Died, Host, Raised, checked_answer
from attnlab.candidate.input_copies import cast_floats
from attnlab.candidate.value_recorder import ValueRecorder, Values, record_values
from attnlab.probe.answers import CannotTell, Gradients, Inputs
from attnlab.probe.inputs.draw import Dice, weights
from attnlab.probe.recorded_values import values_in
from attnlab.records import Code, Contract, UserEnvironment, plain
from attnlab.tracer.cast import Given

SYNONYMS = {"max_len": "max_seq_len"}  # a task's name for an argument: ours
USES = 20  # jobs that one process of a solution serves
MOST_HELD = 6  # processes of solutions; a program has one for each of its units


class BadReference(Exception):
    """The reference itself failed, so nothing can be said of the candidate."""


class Reference(Protocol):
    weights: dict[str, Tensor]  # the current ones, by name
    names: Mapping[str, str]  # its constructor's arguments by the candidate's, where they differ
    takes_floats: bool  # as masks, where the contract calls them additive

    def equip(self, init: dict[str, object], dice: Dice, bias: bool = True) -> dict[str, Tensor]:
        """Build it, draw its weights and return them by name; without `bias` biases are zero."""

    def put(self, weights: Mapping[str, Tensor]) -> None:
        """Replace its weights, by name."""

    def call(self, inputs: Inputs) -> Tensor:
        """Its output, in float64."""

    def rounded(self, inputs: Inputs) -> Tensor:
        """Its output in float32, where it rounds as any module does."""

    def scores(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """The input of each softmax of attention."""

    def in_steps(self, steps: dict[str, Any]) -> list[Tensor] | None:
        """Its outputs of calls that share a cache, asked for as the candidate's are; None where it
        keeps none."""

    def in_training(self, inputs: Inputs, times: int, seed: int) -> list[Tensor]:
        """Its outputs of this many calls in train mode."""

    def gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        """Gradients of (output * cotangent).sum(), in float64."""

    def values(self, inputs: Inputs, backward: Backward | None = None) -> Values:
        """Every value of a call, with the current weights, in float64; with gradients, where they
        are asked for."""


class UnitReference:
    """A class of `attnlab/references/`, run here in float64. Its masks are True where a key may not
    be attended to; those of the inputs that are `turned` say the opposite."""

    turned: Collection[str] = ()
    takes_floats = False

    def __init__(self, name: str, turned: Collection[str] = ()) -> None:
        from attnlab.references import unit

        try:
            self.kind = unit(name)
        except KeyError as error:
            raise BadReference(str(error.args[0])) from None
        self.name = name
        self.module: nn.Module = nn.Identity()
        self.takes = inspect.signature(self.kind).parameters
        kinds = inspect.signature(self.kind.forward).parameters
        self.named = {n for n, p in kinds.items() if p.kind is p.KEYWORD_ONLY}
        self.turned = turned
        self.weights: dict[str, Tensor] = {}
        self.init: dict[str, object] = {}
        self.names: Mapping[str, str] = {}  # of constructor arguments, by the candidate's

    def equip(self, init: dict[str, object], dice: Dice, bias: bool = True) -> dict[str, Tensor]:
        own = {self.names.get(n, n): v for n, v in init.items()}
        named = {n if n in self.takes else SYNONYMS.get(n, n): v for n, v in own.items()}
        self.module, self.init = _build_reference(self.name, named), named
        shapes = {n: p.shape for n, p in self.module.named_parameters()}
        self.put(weights(shapes, dice, bias))
        return self.weights

    def put(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.module.named_parameters():
                parameter.copy_(weights[name])
        self.weights = dict(weights)

    def call(self, inputs: Inputs) -> Tensor:
        with torch.inference_mode():  # ours: nothing of it is kept for a backward pass
            out: Tensor = self._run(self._own(inputs))
        return out

    def rounded(self, inputs: Inputs) -> Tensor:
        exact, self.module = self.module, deepcopy(self.module).float()
        try:
            with torch.inference_mode():
                out: Tensor = self._run(self._own(inputs, torch.float32))
        finally:
            self.module = exact
        return out.double()

    def scores(self, inputs: Inputs) -> tuple[Tensor, ...]:
        return tuple(record_internals(lambda: self._run(self._own(inputs)))["scores"].values())

    def in_steps(self, steps: dict[str, Any]) -> None:  # noqa: ARG002
        return None

    def in_training(self, inputs: Inputs, times: int, seed: int) -> list[Tensor]:
        own = self._own(inputs)
        self.module.train()
        try:
            with torch.random.fork_rng(devices=()), torch.inference_mode():
                torch.manual_seed(seed)
                return [self._run(own) for _ in range(times)]
        finally:
            self.module.eval()

    def _own(self, inputs: Inputs, dtype: torch.dtype = torch.float64) -> Inputs:
        """Inputs in its dtype, with masks in its convention."""
        own = {n: cast_floats(t, dtype) for n, t in inputs.items()}
        return own | {n: ~t for n, t in own.items() if n in self.turned and t is not None}

    def _run(self, given: Inputs) -> Tensor:
        """By position, since names are the candidate's, but for what only has a name."""
        args = [t for n, t in given.items() if n not in self.named]
        out: Tensor = self.module(*args, **{n: t for n, t in given.items() if n in self.named})
        return out

    def gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        given = self._own(inputs)
        floats = {n: t for n, t in given.items() if t is not None and t.is_floating_point()}
        for t in floats.values():
            t.requires_grad_()
        self.module.zero_grad()
        out = self._run(given)
        if out.requires_grad:
            (out * cotangent.double()).sum().backward()  # type: ignore[no-untyped-call]
        weights = self.module.named_parameters()
        return Gradients(
            cotangent=cotangent,
            inputs={n: t.grad for n, t in floats.items() if t.grad is not None},
            parameters={n: w.grad for n, w in weights if w.grad is not None},
        )

    def values(self, inputs: Inputs, backward: Backward | None = None) -> Values:
        held, weights = self.module, self.weights

        def build() -> nn.Module:
            self.module = self._fresh()
            return self.module

        def call(given: Given) -> Tensor:
            out: Tensor = self._run(dict(given))
            return out

        try:
            given = list(self._own(inputs).items())
            recorder = GradientRecorder(backward) if backward else ValueRecorder({})
            return record_values(build, lambda: self.put(weights), call, given, recorder)
        finally:
            self.module = held

    def _fresh(self) -> nn.Module:
        """Another instance of it."""
        return self.kind(**self.init).eval()


def _build_reference(name: str, init: dict[str, object]) -> nn.Module:
    """A reference keeps no state between calls, so that the next job can use the same one."""
    try:
        return _cached_reference(name, **init)
    except TypeError:  # an argument that cannot be hashed
        return _cached_reference.__wrapped__(name, **init)


@lru_cache(maxsize=64, typed=True)
def _cached_reference(name: str, **init: object) -> nn.Module:
    from attnlab.references import unit

    module: nn.Module = unit(name)(**init).eval().double()
    return module


class FileReference:
    """A challenge's own solution, in a child like any candidate's: in float64 if its contract
    names it, else in float32."""

    def __init__(
        self,
        code: Code,
        host: Host,
        contract: Contract | None = None,
        own: UserEnvironment | None = None,
    ) -> None:
        self.code, self.host, self.contract = code, host, contract
        self.wide = contract is not None and "float64" in contract.dtypes
        self.names: Mapping[str, str] = {}
        self.init: dict[str, object] = {}
        self.weights: dict[str, Tensor] = {}
        self.uses = 1
        self.sound = True
        self.takes_floats = own is None  # the solution of a challenge does all that its task asks
        beside = dict(code.siblings)
        self._ask(
            "load",
            file=code.file,
            text=code.text,
            path=code.path,
            own=plain(own) if own else None,
            siblings=beside,
        )
        if contract and contract.cache:
            self._ask("declare_cache", **plain(contract.cache))
        if contract and contract.containers:
            self._ask("declare_containers", containers=plain(contract.containers))

    def equip(self, init: dict[str, object], dice: Dice, bias: bool = True) -> dict[str, Tensor]:
        self.init = {self.names.get(n, n): v for n, v in init.items()}
        self._build(seed=0)
        shapes = {n: p.shape for n, p in self._ask("parameters")["tensors"].items()}
        self.put(weights(shapes, dice, bias))
        return self.weights

    def _build(self, seed: int) -> None:
        self._ask("build", name=self.code.name, init=self.init, seed=seed)
        if self.wide:
            self._ask("cast", dtype="float64")

    def put(self, weights: Mapping[str, Tensor]) -> None:
        self._ask("set_parameters", tensors=dict(weights))
        self.weights = dict(weights)

    def call(self, inputs: Inputs) -> Tensor:
        out: Tensor = self._tensor(self._ask("call", inputs=self._own(inputs)))
        return out.double()

    def _tensor(self, answer: dict[str, Any]) -> Tensor:
        if "output" not in answer:
            kind = answer.get("kind", "no tensor")
            raise BadReference(f"the reference {self.code.file} returned {kind}, not one tensor")
        out: Tensor = answer["output"]
        return out

    def rounded(self, inputs: Inputs) -> Tensor:
        if not self.wide:
            return self.call(inputs)
        self._ask("cast", dtype="float32")
        out = self._tensor(self._ask("call", inputs=list(inputs.items())))
        self._ask("cast", dtype="float64")  # weights were float32 before: nothing of them is lost
        return out.double()

    def scores(self, inputs: Inputs) -> tuple[Tensor, ...]:
        return tuple(self._ask("attention_internals", inputs=self._own(inputs))["scores"].values())

    def in_steps(self, steps: dict[str, Any]) -> list[Tensor] | None:
        if not (self.contract and self.contract.cache):
            return None
        calls = [self._own(dict(given)) for given in steps["calls"]]
        outputs = self._ask("cached_steps", **{**steps, "calls": calls})["outputs"]
        return [out.double() for out in outputs.values()]

    def in_training(self, inputs: Inputs, times: int, seed: int) -> list[Tensor]:
        self._build(seed)  # what is drawn in a call follows from it
        self.put(self.weights)
        told = self._ask("calls", inputs=[self._own(inputs)] * times, train=True)
        return [self._tensor(answer) for answer in told["answers"]]

    def _own(self, inputs: Inputs) -> list[tuple[str, Tensor | None]]:
        return [(n, cast_floats(t, torch.float64) if self.wide else t) for n, t in inputs.items()]

    def gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        told = self._ask("gradients", inputs=self._own(inputs), cotangent=cotangent)
        return Gradients(
            cotangent=cotangent,
            inputs={n: t.double() for n, t in told["inputs"].items()},
            parameters={n: t.double() for n, t in told["weights"].items()},
        )

    def values(self, inputs: Inputs, backward: Backward | None = None) -> Values:
        recipe = {"name": self.code.name, "init": self.init, "seed": 0, "weights": self.weights}
        asked = {"inputs": list(inputs.items()), "backward": backward and vars(backward)}
        return values_in(self._ask("values", **recipe, **asked))

    def answers(self) -> bool:
        """Whether its process still answers: a candidate of the job before may have ended it."""
        try:
            self.host.ask("module_facts")
        except Died:
            return False
        return True

    def _ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """A solution that raises or dies is a fault of the challenge, not of the candidate."""
        try:
            return checked_answer(self.host.ask(verb, **args))
        except (Raised, Died) as error:
            self.sound = False
            what = f"raised {error}" if isinstance(error, Raised) else str(error)
            built = ", ".join(f"{name}={value}" for name, value in self.init.items())
            how = f" (built with {built})" if built else ""
            raise BadReference(f"the reference {self.code.file} {what}{how}") from error


class ReferenceCache:
    """Keeps the processes of the last solutions for the next job of their challenge or program.

    Starting one takes as long as starting a candidate, and many are compared with one solution."""

    def __init__(self) -> None:
        self.held: list[FileReference] = []  # the last one at the end

    def take(self, code: Code, contract: Contract | None, deadline: float) -> FileReference | None:
        """The one that is held for this solution, if its process still answers."""
        for held in self.held:
            if (held.code, held.contract) == (code, contract):
                self.held.remove(held)
                held.host.set_deadline(deadline)
                if held.answers():
                    held.uses += 1
                    return held
                held.host.close()
                return None
        return None

    def put(self, reference: FileReference) -> None:
        if not reference.sound or reference.uses >= USES:
            reference.host.close()
            return
        self.held.append(reference)
        if len(self.held) > MOST_HELD:
            self.held.pop(0).host.close()


def finite(right: Tensor) -> Tensor:
    """The output of a reference; raises `CannotTell` where it is not finite."""
    if not math.isfinite(right.sum().item()):  # one pass; to look at each value takes three
        raise CannotTell("the reference itself gives NaN or infinity here", "reference")
    return right
