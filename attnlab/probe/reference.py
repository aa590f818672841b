"""The right answer: a unit of references/ in this process, or a solution file in its own child."""

import inspect
import math
import sys
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from attnlab.candidate.gradient_recorder import Backward
from attnlab.candidate.host import Died, Host, LocalHost, Raised, checked_answer
from attnlab.candidate.input_copies import cast_floats
from attnlab.candidate.value_recorder import Values
from attnlab.probe.answers import CannotTell, Gradients, Inputs
from attnlab.probe.inputs.draw import Dice, weights
from attnlab.probe.recorded_values import values_in
from attnlab.records import Code, Contract, UserEnvironment, plain

SYNONYMS = {"max_len": "max_seq_len"}  # a task's name for an argument: ours
USES = 20  # jobs that one process of a solution serves
MOST_HELD = 6  # processes of solutions; a program has one for each of its units


class BadReference(Exception):
    """The reference itself failed, so nothing can be said of the candidate."""


class NotOneTensor(BadReference):
    """It returns a tuple, or something else that is not compared as it is."""


class Reference(Protocol):
    weights: dict[str, Tensor]  # the current ones, by name
    names: Mapping[str, str]  # its constructor's arguments by the candidate's, where they differ
    own_init: Mapping[str, object] | None  # its constructor's, where they are not the candidate's
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

    def values(self, inputs: Inputs, backward: Backward | None = None, pick: int = 0) -> Values:
        """Every value of a call, with the current weights, in float64; with gradients, where they
        are asked for. Of the tensors that it returns number `pick` is the output."""


class HostedReference:
    """A module that answers through a host, in float64 where it is `wide`, else in float32."""

    takes_floats = False

    def __init__(self, host: Host, name: str | None, label: str, wide: bool = True) -> None:
        """`name` is that of its class, `label` what messages call it."""
        self.host, self.name, self.label, self.wide = host, name, label, wide
        self.names: Mapping[str, str] = {}
        self.own_init: Mapping[str, object] | None = None
        self.init: dict[str, object] = {}
        self.weights: dict[str, Tensor] = {}
        self.contract: Contract | None = None
        self.sound = True

    def equip(self, init: dict[str, object], dice: Dice, bias: bool = True) -> dict[str, Tensor]:
        self.init = {self.names.get(n, n): v for n, v in init.items()}
        if self.own_init is not None:
            self.init = dict(self.own_init)
        self._build(seed=0)
        shapes = {n: p.shape for n, p in self._ask("parameters")["tensors"].items()}
        self.put(weights(shapes, dice, bias))
        return self.weights

    def _build(self, seed: int) -> None:
        self._ask("build", name=self.name, init=self.init, seed=seed)
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
            raise NotOneTensor(f"the reference {self.label} returned {kind}, not one tensor")
        out: Tensor = answer["output"]
        return out

    def rounded(self, inputs: Inputs) -> Tensor:
        if not self.wide:
            return self.call(inputs)
        copied = not self._ask("cast_twin", dtype="float32").get("failed")
        if not copied:  # weights were float32 before: nothing of them is lost
            self._ask("cast", dtype="float32")
        out = self._tensor(self._ask("call", inputs=list(inputs.items())))
        self._ask("take_back") if copied else self._ask("cast", dtype="float64")
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

    def values(self, inputs: Inputs, backward: Backward | None = None, pick: int = 0) -> Values:
        recipe = {"name": self.name, "init": self.init, "seed": 0, "weights": self.weights}
        asked = {"inputs": list(inputs.items()), "backward": backward and vars(backward)}
        return values_in(self._ask("values", **recipe, **asked, pick=pick))

    def _ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """One that raises or dies is a fault of the challenge, not of the candidate."""
        try:
            return checked_answer(self.host.ask(verb, **args))
        except (Raised, Died) as error:
            self.sound = False
            what = f"raised {error}" if isinstance(error, Raised) else str(error)
            built = ", ".join(f"{name}={value}" for name, value in self.init.items())
            how = f" (built with {built})" if built else ""
            raise BadReference(f"the reference {self.label} {what}{how}") from error


class FileReference(HostedReference):
    """A challenge's own solution, in a child like any candidate's: in float64 if its contract
    names it."""

    def __init__(
        self,
        code: Code,
        host: Host,
        contract: Contract | None = None,
        own: UserEnvironment | None = None,
    ) -> None:
        wide = contract is not None and "float64" in contract.dtypes
        super().__init__(host, code.name, code.file, wide)
        self.code, self.contract, self.uses = code, contract, 1
        self.takes_floats = own is None  # the solution of a challenge does all that its task asks
        self._ask(
            "load",
            file=code.file,
            text=code.text,
            path=code.path,
            own=plain(own) if own else None,
            siblings=dict(code.siblings),
        )
        if contract and contract.cache:
            self._ask("declare_cache", **plain(contract.cache))
        if contract and contract.containers:
            self._ask("declare_containers", containers=plain(contract.containers))

    def answers(self) -> bool:
        """Whether its process still answers: a candidate of the job before may have ended it."""
        try:
            self.host.ask("module_facts")
        except Died:
            return False
        return True


class UndisturbedHost(LocalHost):
    """A session in this process that leaves its random numbers as they are."""

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        with torch.random.fork_rng(devices=()):
            return super().ask(verb, **args)


class UnitReference(HostedReference):
    """A class of `attnlab/references/`, run here in float64. Its masks are True where a key may not
    be attended to; those of the inputs that are `turned` say the opposite."""

    def __init__(self, name: str, turned: Collection[str] = ()) -> None:
        from attnlab.references import unit

        try:
            kind = unit(name)
        except KeyError as error:
            raise BadReference(str(error.args[0])) from None
        host = UndisturbedHost()
        host.session.module = sys.modules[kind.__module__]
        super().__init__(host, name, name)
        self.takes, self.turned = inspect.signature(kind).parameters, turned

    def equip(self, init: dict[str, object], dice: Dice, bias: bool = True) -> dict[str, Tensor]:
        own = {self.names.get(n, n): v for n, v in init.items()}
        named = {n if n in self.takes else SYNONYMS.get(n, n): v for n, v in own.items()}
        return super().equip(named, dice, bias)

    def _own(self, inputs: Inputs) -> list[tuple[str, Tensor | None]]:
        turned = {n: ~inputs[n] for n in self.turned if inputs.get(n) is not None}
        return super()._own({**inputs, **turned})


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
