"""More verbs of the probe, on the trusted side: those that checks of a module's contract use.

What a candidate's process answers may be anything; what is not of the form that was asked for
counts as nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.host import Died, Host, Raised, answered
from attnlab.checks.base import (
    AttentionInternals,
    CannotTell,
    FreshInstance,
    Gradients,
    Inputs,
    InputsAfterCall,
    InterleavedGradients,
    ModuleFacts,
    Probe,
    data_inputs,
)
from attnlab.grading.decode import (
    Odd,
    gradients_in,
    in_units,
    is_plain,
    list_in,
    names_in,
    tensors_in,
)
from attnlab.grading.host_probe_refusals import Refusing
from attnlab.grading.inputs import draw
from attnlab.grading.inputs.draw import Dice
from attnlab.records import Contract, Op, from_json, plain
from attnlab.sizes import Sizes, built, with_hd
from attnlab.tracer.raw_trace import RawTrace

STEEP = 2.0**12  # a cotangent as of a loss that is scaled up; a power of two rounds nothing
SPAN = 20  # positions of the one sequence whose slopes are taken
LONGEST = 32 << 20  # characters of a trace


class Asking(Refusing):
    """Mixed into `HostProbe`, which has the host and turns an answer into an output."""

    host: Host
    contract: Contract
    sizes: Sizes
    dice: Dice
    seed: int

    def recipe(self) -> dict[str, Any]:
        """What builds the module of this round."""
        raise NotImplementedError

    def variant(
        self, sizes: Mapping[str, int] | None = None, dtype: str = "float32", anew: bool = False
    ) -> Any:
        """A probe at other sizes, or in another dtype."""
        raise NotImplementedError

    def back(self) -> None:
        """The module of this probe again, after `at`."""
        raise NotImplementedError

    def cotangent(self, inputs: Inputs) -> Tensor:
        """What the output of these inputs is to be multiplied by: as large as it."""
        raise NotImplementedError

    def outputs(self, told: dict[str, Any], several: Sequence[Inputs]) -> list[Tensor]:
        """The tensors in an answer to several calls."""
        raise NotImplementedError

    def equip(self) -> None:
        """Build the module of this round."""
        raise NotImplementedError

    def _build(self, sizes: Sizes) -> None:
        """Build a module of these sizes."""
        raise NotImplementedError

    def note_written(self, answer: dict[str, Any], inputs: Inputs) -> None:
        """That a call wrote into an argument, of which its answer tells."""
        raise NotImplementedError

    def output(self, answer: dict[str, Any], inputs: Inputs) -> Tensor:
        """The tensor in an answer; raises `Odd` where there is none."""
        raise NotImplementedError

    def float64_variant(self) -> Probe | None:
        try:
            wide = self.variant(dtype="float64")
            return wide if wide.call(wide.draw()).dtype is torch.float64 else None
        except Raised:
            return None

    def gradient_sample_in_float64(self) -> tuple[Probe, Inputs, Gradients] | None:
        try:
            wide = self.variant(dtype="float64")
            more = SPAN - self.sizes.get("S", SPAN)
            inputs = wide.draw("none", longer=max(more, 0), alone=True)
            found = wide.gradients(inputs)
        except Raised:
            if self.float64_variant() is None:
                return None
            raise
        return (wide, inputs, found) if found.dtype == str(torch.float64) else None

    def gradients(
        self,
        inputs: Inputs,
        train: bool = False,
        still: bool = False,
        size: float = 1.0,
        cotangent: Tensor | None = None,
    ) -> Gradients:
        cotangent = self.cotangent(inputs) if cotangent is None else cotangent
        asked = {"inputs": list(inputs.items()), "cotangent": cotangent * size, "train": train}
        told = answered(self.host.ask("gradients", **asked, still=still))
        self.note_written(told, inputs)
        return gradients_in(told, cotangent, size, train, still)

    def interleaved_gradients(
        self, several: Sequence[Inputs], train: bool = False
    ) -> InterleavedGradients:
        cotangents = [self.cotangent(inputs) for inputs in several]
        asked = {"inputs": [list(i.items()) for i in several], "train": train}
        told = answered(
            self.host.ask(
                "interleaved_gradients", **asked, cotangents=[c * STEEP for c in cotangents]
            )
        )
        *outputs, after = self.outputs(told, [*several, several[0]])
        slopes = [tensors_in({"inputs": i}, "inputs") for i in list_in(told.get("inputs"))]
        slopes += [{}] * (len(several) - len(slopes))
        return InterleavedGradients(
            outputs=tuple(outputs),
            inputs=tuple(in_units(each, STEEP) for each in slopes[: len(several)]),
            parameters=in_units(tensors_in(told, "weights"), STEEP),
            cotangents=tuple(cotangents),
            frozen=in_units(tensors_in(told, "frozen"), STEEP),
            after=after,
        )

    def inputs_after_call(self, inputs: Inputs) -> InputsAfterCall:
        told = answered(self.host.ask("inputs_after_call", inputs=list(inputs.items())))
        return InputsAfterCall(
            inputs=tensors_in(told, "tensors"),
            alias=str(told.get("alias") or "")[:100],
            learns=str(told.get("learns") or "")[:100],
            overwritten=told.get("overwritten") is True,
        )

    def with_changed_buffer(self, buffer: str, inputs: Inputs) -> tuple[Tensor, Tensor] | None:
        recipe = {**self.recipe(), "seed": self.seed}
        told = self.host.ask(
            "with_changed_buffer", **recipe, buffer=buffer, inputs=list(inputs.items())
        )
        if "raised" in told or told.get("spoiled") is not True:
            return None
        usual, other = self.outputs(told, [inputs, inputs])
        return usual, other

    def after_sibling(self, sizes: Mapping[str, int], inputs: Inputs) -> Tensor:
        others = with_hd({**self.sizes, **sizes})
        init = built(self.contract.init, others)
        given = draw.inputs(self.contract, others, self.dice)
        asked = {**self.recipe(), "init": init, "other": list(given.items())}
        told = answered(self.host.ask("after_sibling", **asked, inputs=list(inputs.items())))
        return self.output(told, inputs)

    def parameters(self) -> Mapping[str, Tensor]:
        return tensors_in(answered(self.host.ask("parameters")), "tensors")

    def buffers(self) -> Mapping[str, Tensor]:
        return tensors_in(answered(self.host.ask("buffers")), "tensors")

    def call_on_device(self, device: str, inputs: Inputs) -> Tensor | None:
        if not getattr(torch, device).is_available():
            return None
        answer = answered(
            self.host.ask("call_on_device", device=device, inputs=list(inputs.items()))
        )
        if answer.get("absent"):
            return None
        if answer.get("device", device) != device:
            place = str(answer.get("device"))[:20]
            raise Odd(f"inputs on {device} gave an output on {place}")
        return self.output(answer, inputs)

    def strided_calls(self, several: Sequence[Inputs], ways: Sequence[str]) -> list[Tensor]:
        asked = [list(inputs.items()) for inputs in several]
        told = answered(self.host.ask("strided_calls", inputs=asked, ways=list(ways)))
        return self.outputs(told, several)

    def cast_calls(self, dtypes: Sequence[str], several: Sequence[Inputs]) -> list[list[Tensor]]:
        self.back()  # another type may have needed an instance of its own
        asked = [list(inputs.items()) for inputs in several]
        told = self.host.ask("cast_calls", dtypes=list(dtypes), inputs=asked)
        if "raised" not in told and not told.get("failed"):
            outputs = iter(self.outputs(told, [*several] * len(dtypes)))
            return [[next(outputs) for _ in several] for _ in dtypes]
        # No copy can be made of it, or what a copy holds belongs to the first one: new instances.
        return [self._in_new(dtype, several) for dtype in dtypes]

    def cast_gradients(
        self, dtypes: Sequence[str], inputs: Inputs, train: bool = False
    ) -> list[Gradients]:
        self.back()
        cotangent = self.cotangent(inputs)
        asked = {"inputs": list(inputs.items()), "cotangent": cotangent, "train": train}
        told = self.host.ask("cast_gradients", dtypes=list(dtypes), **asked)
        answers = [a for a in list_in(told.get("answers")) if isinstance(a, dict)]
        if "raised" not in told and len(answers) == len(dtypes):
            return [gradients_in(answer, cotangent, 1.0, train) for answer in answers]
        found = []
        for dtype in dtypes:
            to, other = getattr(torch, dtype), self.variant(dtype=dtype, anew=True)
            given = {n: _cast(t, to) for n, t in inputs.items()}
            found.append(other.gradients(given, train, cotangent=cotangent))
        return found

    def _in_new(self, dtype: str, several: Sequence[Inputs]) -> list[Tensor]:
        to, other = getattr(torch, dtype), self.variant(dtype=dtype, anew=True)
        found: list[Tensor] = other.calls(
            [{n: _cast(t, to) for n, t in i.items()} for i in several]
        )
        return found

    def fresh_instance(
        self, several: Sequence[Inputs], train: bool | Sequence[bool] = False
    ) -> FreshInstance:
        asked = [list(inputs.items()) for inputs in several]
        recipe = {**self.recipe(), "seed": self.seed}
        told = answered(self.host.ask("fresh_instance", **recipe, inputs=asked, train=train))
        return FreshInstance(
            outputs=tuple(self.outputs(told, several)),
            before=tensors_in(told, "before"),
            after=tensors_in(told, "after"),
        )

    def uninitialised_memory(
        self, several: Sequence[Inputs]
    ) -> tuple[list[tuple[Inputs, Tensor]], tuple[str, ...]]:
        asked = [list(inputs.items()) for inputs in several]
        recipe = {**self.recipe(), "seed": self.seed}
        told = answered(self.host.ask("uninitialised_memory", **recipe, inputs=asked))
        twice = len(list_in(told.get("answers"))) == 2 * len(several)
        given = [*several] * (2 if twice else 1)
        return list(zip(given, self.outputs(told, given), strict=True)), names_in(told.get("begun"))

    def positional_calls(self, several: Sequence[Inputs], bare: bool = False) -> list[Tensor]:
        asked = [list(inputs.items()) for inputs in several]
        recipe = {**self.recipe(), "seed": self.seed}
        if bare:
            own = self.contract.defaults
            recipe["init"] = {n: v for n, v in recipe["init"].items() if n not in own}
        return self.outputs(
            answered(self.host.ask("positional_calls", **recipe, inputs=asked)), several
        )

    def call_reloaded(self, inputs: Inputs) -> Tensor | None:
        asked = {**self.recipe(), "inputs": list(inputs.items())}
        answer = answered(self.host.ask("call_reloaded", **asked))
        if "refused" in answer:
            return None
        return self.output(answer, inputs)

    def call_exported(self, inputs: Inputs) -> Tensor:
        answer = answered(self.host.ask("call_exported", inputs=list(inputs.items())))
        if "unable" in answer:
            why = str(answer["unable"])[:200]
            raise CannotTell(
                f"torch.export does not load where the candidate runs: {why}", "export"
            )
        return self.output(answer, inputs)

    def set_parameters(self, parameters: Mapping[str, Tensor]) -> None:
        answered(self.host.ask("set_parameters", tensors=dict(parameters)))

    def cached_steps(
        self,
        calls: Sequence[Inputs],
        parents: Tensor | None = None,
        train: bool = False,
        beside: bool = False,
    ) -> list[Tensor]:
        asked = [list(inputs.items()) for inputs in calls]
        spec = data_inputs(self.contract, "S")[0]
        length = sum(inputs[spec.name].shape[spec.axes.index("S")] for inputs in calls)
        rows = calls[0][spec.name].shape[spec.axes.index("B")] if "B" in spec.axes else 1
        other = {"other": list(calls[0].items()), **self.recipe()} if beside else None
        told = answered(
            self.host.ask(
                "cached_steps",
                calls=asked,
                batch=rows,
                length=length,
                parents=parents,
                train=train,
                beside=other,
            )
        )
        found = list(tensors_in(told, "outputs").values())
        if len(found) != len(calls) or not all(map(is_plain, found)):
            raise Odd("forward with a cache returned something else than one plain tensor")
        return found

    def attention_internals(self, inputs: Inputs) -> AttentionInternals:
        told = answered(self.host.ask("attention_internals", inputs=list(inputs.items())))
        lowest = told.get("lowest")
        return AttentionInternals(
            scores=tuple(tensors_in(told, "scores").values()),
            sums=tuple(tensors_in(told, "sums").values()),
            lowest=lowest if isinstance(lowest, float) else math.nan,
        )

    def module_facts(self) -> ModuleFacts:
        told = answered(self.host.ask("module_facts"))
        return ModuleFacts(
            trained=names_in(told.get("trained")),
            tied=tuple(map(names_in, list_in(told.get("tied")))),
            copies=tuple(map(names_in, list_in(told.get("copies")))),
            held=names_in(told.get("held")),
            buffers=names_in(told.get("buffers")),
            learning=names_in(told.get("learning")),
            saved=names_in(told.get("saved")),
            modules=names_in(told.get("modules")),
        )

    def operations(self, inputs: Inputs) -> Sequence[Op]:
        answer = answered(self.host.ask("trace", inputs=list(inputs.items()), seed=0))
        text = str(answer.get("trace", ""))
        try:
            if len(text) > LONGEST:
                raise ValueError("too long")  # noqa: TRY301 - both are no trace
            raw = from_json(RawTrace, text)
        except (TypeError, ValueError) as error:
            raise Died("crashed", "answered with no trace") from error
        if raw.fall is not None:
            raise Raised({**plain(raw.fall), "verb": "trace"})
        return raw.ops

    def side_effects(self, inputs: Inputs) -> Sequence[str]:
        asked = {**self.recipe(), "inputs": list(inputs.items())}
        return names_in(answered(self.host.ask("side_effects", **asked)).get("changes"))


def _cast(t: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return t.to(dtype) if t is not None and t.is_floating_point() else t
