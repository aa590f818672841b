"""The probe: what a check can ask of a candidate and of the reference.

The judge holds it. It draws seeds, sizes, inputs and weights, asks the candidate's process, a
`Host`, a verb of the same name as the method, and compares nothing: that is what checks do. Where
a method rests on the candidate process's own word, its docstring says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from attnlab.candidate.gradient_recorder import Backward
from attnlab.candidate.host import Died, Host, Raised, checked_answer
from attnlab.candidate.input_copies import cast_floats
from attnlab.candidate.value_recorder import Values
from attnlab.catalogue.contract_facts import data_inputs
from attnlab.probe.answers import (
    AttentionInternals,
    CannotTell,
    FreshInstance,
    Gradients,
    HeldByCache,
    Inputs,
    InputsAfterCall,
    InterleavedGradients,
    Mask,
    ModuleFacts,
    Skip,
)
from attnlab.probe.decode import (
    UnexpectedOutput,
    gradients_in,
    in_units,
    is_plain,
    list_in,
    names_in,
    output_in,
    refuse,
    tensors_in,
)
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.batching import call_in_batch
from attnlab.probe.inputs.cache import EXPLAINING, SampleCache
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.inputs.patterns import USUAL, InputPattern, apply_pattern, is_row
from attnlab.probe.inputs.sizes import within
from attnlab.probe.pacing import LENGTHS, PILOT, QUICK, CallTimes, TimedHost, pairs
from attnlab.probe.recorded_values import values_in
from attnlab.probe.reference import Reference, finite
from attnlab.probe.source_text import lines_calling, numbers_in
from attnlab.probe.weights.layouts import map_weights
from attnlab.probe.weights.match import LoadedWeights, MatchContext, WeightMatcher
from attnlab.records import Contract, Op, Until, from_json, plain
from attnlab.sizes import Sizes, constructor_arguments, measure, with_head_dim
from attnlab.tracer.raw_trace import RawTrace

Weights = Mapping[str, Tensor]
T = TypeVar("T")
SLACK = 64  # matmuls, a softmax and a norm, one after the other, with room
STEEP = 2.0**12  # a cotangent as of a loss that is scaled up; a power of two rounds nothing
SPAN = 20  # positions of the one sequence whose gradients are taken
LONGEST = 32 << 20  # characters of a trace


@dataclass
class GradingContext:
    """What the rounds of one job share."""

    contract: Contract
    name: str | None  # the class to build; None = the only one
    host: Host
    renew: Callable[[], Host]  # makes another host
    dice: Dice
    reference: Reference | None
    weight_matcher: WeightMatcher = field(default_factory=WeightMatcher)
    text: str = ""  # the candidate's source, to be read and not run
    numbers: tuple[int, ...] = ()  # that it names
    full: bool = False  # also the checks that are made on demand only
    quick: bool = False  # only the sizes that tell most
    until: Until = "end"
    only: frozenset[str] = frozenset()  # the checks to make; none named = all
    pace: float | None = None  # seconds for a pair of positions in a head, once it is known
    wrote: tuple[str, Sizes] | None = None  # the argument that a call wrote into, at which sizes
    times: CallTimes = field(default_factory=CallTimes)
    spoiled: str = ""  # what a call of this check gave that is not finite, for finite inputs
    too_slow: bool = False  # whether the time was up though every call ended

    def __post_init__(self) -> None:
        self.host = TimedHost(self.host, self.times)

    def replace_host(self) -> Host:
        """A fresh host, after the last one died."""
        self.host = TimedHost(self.renew(), self.times)
        return self.host


class Probe:
    """One round: one set of sizes, one freshly built module, one set of weights."""

    def __init__(
        self,
        context: GradingContext,
        sizes: Sizes,
        dtype: str = "float32",
        thorough: bool = True,
        pattern: InputPattern = USUAL,
    ) -> None:
        self.context = context
        self.pattern = pattern
        self.thorough = thorough
        self.confirming = False  # True where values are right: what follows is to confirm
        self.pool = SampleCache(self)
        self.compared = context.reference is not None
        self.contract = context.contract
        self.sizes = sizes
        self.host = context.host
        self.dice = context.dice
        self.reference = context.reference
        self.strict = False  # True once output-shape has passed: the shape must not change again
        self.loaded = LoadedWeights()
        self.dtype = dtype
        self.fall: Raised | None = None  # of the first call of all
        self.shapes: dict[tuple[torch.Size, ...], tuple[int, ...]] = {}  # of outputs, by inputs
        self.latest = self  # the probe that was asked last: a `variant`, or this one
        self.away = False  # whether the host has that one's module
        self.seed = self.dice.plain.getrandbits(32)  # of instances that are to be alike

    def equip(self) -> None:
        """Build the module and give it the reference's weights, where they fit."""
        if self.contract.cache:
            self._ask("declare_cache", **plain(self.contract.cache))
        if self.contract.containers:
            self._ask("declare_containers", containers=plain(self.contract.containers))
        self.pool, self.away = SampleCache(self), False
        if self.reference is not None:
            drawn = self.pool.usual()
            given = list(drawn.values())
            match = self.match_context(given)
            self.loaded = loaded = self.context.weight_matcher.build(match, self.sizes)
            if "answers" in loaded.answer:
                self.pool.fetch(drawn, lambda: self.outputs(loaded.answer, given))
            fell = loaded.answer.get("fell")
            self.fall = Raised({"verb": "call", **fell}) if isinstance(fell, dict) else None
        else:
            self._build(self.sizes)
        self.latest = self

    def match_context(self, calls: Sequence[Inputs]) -> MatchContext:
        """The two sides, to search for a way to load the weights."""
        context = self.context
        assert self.reference is not None
        return MatchContext(
            self.host,
            context.name,
            self.reference,
            self.contract,
            self.dice,
            calls,
            self.pattern.bias,
            context.weight_matcher.choices,
        )

    def recipe(self, seed: int | None = None) -> dict[str, Any]:
        """How to build an instance at this round's sizes, by a drawn seed unless one is given."""
        init = constructor_arguments(self.contract.init, self.sizes)
        seed = self.dice.plain.getrandbits(32) if seed is None else seed
        return {"name": self.context.name, "init": init, "seed": seed}

    def _ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """What the candidate's process answers; raises `Raised` where its code did."""
        return checked_answer(self.host.ask(verb, **args))

    def _build(self, sizes: Sizes, weights: Weights | None = None) -> None:
        recipe = {**self.recipe(), "init": constructor_arguments(self.contract.init, sizes)}
        self._ask("build", **recipe, put=dict(weights) if weights is not None else None)

    def variant(
        self, sizes: Mapping[str, int] | None = None, dtype: str = "float32", fresh: bool = False
    ) -> Probe:
        """A probe at other sizes, or in another dtype. Its module takes the place of this one's
        until `back`, so a check that needs both calls this one first."""
        self.back()
        other = Probe(self.context, self._other_sizes(sizes or {}), dtype, thorough=False)
        other.reference, other.strict, self.latest = None, self.strict, other
        recipe = other.recipe()
        same = recipe["init"] == self.recipe()["init"]
        if same and dtype == self.dtype:  # other sizes need no other module
            return other
        self.away = True
        if same and not fresh and not self._ask("cast_twin", dtype=dtype).get("failed"):
            return other
        weights = self.parameters()
        self._ask("put_aside")
        self._ask("build", **recipe)
        if not same:
            weights = draw.weights({n: p.shape for n, p in other.parameters().items()}, self.dice)
        other.set_parameters(weights)
        if dtype != self.dtype:  # or tables in float64 and in complex numbers would be cast, too
            self._ask("cast", dtype=dtype)
        return other

    def _other_sizes(self, sizes: Mapping[str, int]) -> Sizes:
        """The sizes of this round but for these; hd is D / H again, where the contract has none."""
        other, own = {**self.sizes, **sizes}, "hd" in self.contract.sizes
        return with_head_dim({s: n for s, n in other.items() if own or s != "hd"})

    def float64_variant(self) -> Probe | None:
        """A probe in float64, or None where the module does not run in it."""
        try:
            wide = self.variant(dtype="float64")
            return wide if wide.call(wide.draw()).dtype is torch.float64 else None
        except Raised:
            return None

    def initial_parameters(self) -> Mapping[str, Tensor]:
        """The parameters of a fresh module, as its constructor left them; it takes the place of
        this probe's module, as in `variant`."""
        self.back()
        self.latest, self.away = Probe(self.context, self.sizes), True
        self._ask("put_aside")
        self._ask("build", **self.recipe())
        return self.parameters()

    def back(self) -> None:
        """Go back to the module of this probe, after `variant`."""
        self.latest = self
        if self.away:
            self.away = False
            self._ask("take_back")

    # ------------------------------------------------------------ drawing

    def draw(
        self, mask: Mask = "random", scale: float = 1.0, longer: int = 0, alone: bool = False
    ) -> Inputs:
        """Fresh inputs in the contract's order, `longer` positions more where S may vary, of one
        sequence `alone` where B may.

        Masks other than "empty-rows" and "left-padding" leave every query at least one key; "none"
        passes None where the mask is optional, else a mask that forbids nothing, as "open" does;
        "padding" forbids the ends of ragged sequences, "left-padding" their starts; "one-key"
        leaves each query one key. Floats are N(0, scale**2)."""
        sizes = self.sizes
        if alone and "B" in self.contract.vary and "B" in sizes:
            sizes = {**sizes, "B": 1}
        lengths = [s for s in LENGTHS if s in self.contract.vary and s in sizes]
        if longer and lengths:
            sizes = within({**sizes, **{s: max(sizes[s] + longer, 1) for s in lengths}})
        open_mask = self.pattern.open and mask == "none"
        drawn = draw.inputs(self.contract, sizes, self.dice, "open" if open_mask else mask, scale)
        if self.pattern is not USUAL:
            drawn = apply_pattern(self.pattern, self.contract, drawn, self.dice, mask)
        return _cast(drawn, self.dtype)

    def mask_name(self, mask: Mask) -> str:
        """The kind of inputs, as messages call it: by its mask, where there is one."""
        masked = any(i.role == "mask" for i in self.contract.inputs)
        return f"{mask} mask" if masked else "random inputs"

    def with_mask(self, mask: Mask) -> str:
        """The same in brackets; nothing where there is no mask to speak of."""
        return f" ({name})" if (name := self.mask_name(mask)).endswith("mask") else ""

    @property
    def inputs_description(self) -> str:
        """What is unusual of the inputs and weights of this round, for a message, or ""."""
        masked = any(i.role == "mask" for i in self.contract.inputs)
        ordered = not any(map(is_row, self.contract.inputs))
        weighted = bool(self.reference and self.reference.weights)
        return self.pattern.description(masked, weighted, ordered)

    def noise(self, like: Tensor, scale: float = 1.0) -> Tensor:
        """A tensor of the same shape and dtype, drawn from N(0, scale**2)."""
        if like.dtype is torch.bool:
            return self.dice.chance(tuple(like.shape), 0.5)
        if not like.is_floating_point():
            return self.dice.integers(like.shape, self.sizes.get("V", 16))
        return self.dice.normal(like.shape, scale).to(like.dtype)

    def choose_ways(self, ways: Sequence[T]) -> list[T]:
        """All ways to look at a property; one at random where the values at this round's sizes are
        known to be right."""
        return [self.dice.plain.choice(ways)] if self.confirming and ways else list(ways)

    def random_integer(self, low: int, high: int) -> int:
        """A random integer in [low, high)."""
        return self.dice.plain.randrange(low, high)

    def sample(self, mask: Mask = "random", scale: float = 1.0) -> tuple[Inputs, Tensor]:
        """Inputs as `draw` makes them and the module's output for them, the same for every check of
        a round: not to be written into."""
        if self.fall:
            raise self.fall
        inputs, out = self.pool.sample(mask, scale)
        self._same_shape(out, inputs)
        return inputs, out

    def gradient_sample(self, mask: Mask = "random") -> tuple[Inputs, Gradients]:
        """Inputs and the module's gradients at them, shared as those of `sample` are. The first
        query may attend to one key alone where the mask is "random". Under a causal mask it is in
        train mode, where no dropout is promised. With none it is, too, of one long sequence, with a
        small cotangent, and inputs are still where there are other kinds."""
        return self.pool.gradient_sample(mask)

    def gradient_sample_in_float64(self) -> tuple[Probe, Inputs, Gradients] | None:
        """A probe in float64 with inputs and the module's gradients at them, or None where it does
        not run in float64."""
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

    def prefetch(self) -> None:
        """Call the module once for all samples that explain wrong values or confirm right ones."""
        self.pool.fetch(self.pool.usual(EXPLAINING))

    def cotangent(self, inputs: Inputs) -> Tensor:
        shape = self._shape(inputs) if self.strict else self.call(inputs).shape
        return self.dice.normal(shape)

    # ------------------------------------------------------------ calls

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        """The module's output, under no_grad and in eval mode unless `train`."""
        answer = self._ask("call", inputs=list(inputs.items()), train=train)
        return self.output(answer, inputs)

    def calls(
        self, several: Sequence[Inputs], train: bool | Sequence[bool] = False
    ) -> list[Tensor]:
        """The outputs of several calls, one after the other; cheaper than to ask for each. `train`
        is of all, or of each."""
        return self.outputs(self._ask("calls", inputs=_pairs(several), train=train), several)

    def fresh_instance(
        self, several: Sequence[Inputs], train: bool | Sequence[bool] = False
    ) -> FreshInstance:
        """Calls of a new instance with the same parameters, which knows nothing of former calls;
        the module itself stays as it is."""
        recipe = self.recipe(self.seed)
        answer = self._ask("fresh_instance", **recipe, inputs=_pairs(several), train=train)
        return FreshInstance(
            outputs=tuple(self.outputs(answer, several)),
            before=tensors_in(answer, "before"),
            after=tensors_in(answer, "after"),
        )

    def positional_calls(self, several: Sequence[Inputs], bare: bool = False) -> list[Tensor]:
        """The outputs of a new instance with the same parameters that is built and called by
        position, in the contract's order; inputs at the end that are None are left out, and when
        `bare` the constructor's arguments that have a default, too."""
        recipe, own = self.recipe(self.seed), self.contract.defaults if bare else ()
        recipe["init"] = {n: v for n, v in recipe["init"].items() if n not in own}
        return self.outputs(
            self._ask("positional_calls", **recipe, inputs=_pairs(several)), several
        )

    def with_weights(
        self, several: Sequence[tuple[Weights, Inputs]], back: Weights, own: bool = False
    ) -> list[Tensor]:
        """The outputs of calls, each with other weights, after which `back` is loaded; by the names
        that `weights` gives, or by the module's own."""
        given = [inputs for _, inputs in several]
        answer = self._ask(
            "with_weights",
            weights=[self._placed(lent, own) for lent, _ in several],
            inputs=_pairs(given),
            back=self._placed(back, own),
        )
        refuse(answer)
        return self.outputs(answer, given)

    def call_rebuilt(
        self, sizes: Mapping[str, int], weights: Mapping[str, Tensor], inputs: Inputs
    ) -> Tensor:
        """The output of an instance of other sizes with these weights; then the module is built
        again."""
        held = self.parameters()
        try:
            self._build(with_head_dim({**self.sizes, **sizes}))
            self.set_weights(weights)
            return self.call(inputs)
        finally:
            self._build(self.sizes, held)

    def call_reloaded(self, inputs: Inputs) -> Tensor | None:
        """The output of another instance that loaded this one's state_dict, or None where it could
        not; then the module of this probe is back."""
        answer = self._ask("call_reloaded", **self.recipe(), inputs=list(inputs.items()))
        return None if "refused" in answer else self.output(answer, inputs)

    def call_exported(self, inputs: Inputs) -> Tensor:
        """The output of the program that torch.export makes of the module."""
        answer = self._ask("call_exported", inputs=list(inputs.items()))
        if "unable" in answer:
            why = str(answer["unable"])[:200]
            raise CannotTell(
                f"torch.export does not load where the candidate runs: {why}", "export"
            )
        return self.output(answer, inputs)

    def call_on_device(self, device: str, inputs: Inputs) -> Tensor | None:
        """The output of a call on another device, brought back; None where there is no such."""
        if not getattr(torch, device).is_available():
            return None
        answer = self._ask("call_on_device", device=device, inputs=list(inputs.items()))
        if answer.get("absent"):
            return None
        if answer.get("device", device) != device:
            place = str(answer.get("device"))[:20]
            raise UnexpectedOutput(f"inputs on {device} gave an output on {place}")
        return self.output(answer, inputs)

    def strided_calls(self, several: Sequence[Inputs], ways: Sequence[str]) -> list[Tensor]:
        """The outputs of calls with the same values at other strides, each in its way: "turned",
        the axes laid out backwards; "cropped", a corner of a larger tensor; "expanded", in memory
        once where all along the first axis are alike."""
        answer = self._ask("strided_calls", inputs=_pairs(several), ways=list(ways))
        return self.outputs(answer, several)

    def cast_calls(self, dtypes: Sequence[str], several: Sequence[Inputs]) -> list[list[Tensor]]:
        """The outputs of copies of the module in other dtypes, for the inputs in that dtype: those
        of each dtype."""
        self.back()  # another type may have needed an instance of its own
        answer = self.host.ask("cast_calls", dtypes=list(dtypes), inputs=_pairs(several))
        if "raised" not in answer and not answer.get("failed"):
            outputs = iter(self.outputs(answer, [*several] * len(dtypes)))
            return [[next(outputs) for _ in several] for _ in dtypes]
        # No copy can be made of it, or what a copy holds belongs to the first one: new instances.
        return [
            self.variant(dtype=dtype, fresh=True).calls([_cast(i, dtype) for i in several])
            for dtype in dtypes
        ]

    def values(
        self, inputs: Inputs, patches: Mapping[tuple[int, int], Tensor], pick: int = 0
    ) -> Values:
        """Every value of a call of a new instance in float64, with the module's weights; some
        results, by call and slot, replaced. Of the tensors that are returned number `pick` is the
        output. Says what the candidate's process says."""
        lent = [{"call": c, "slot": s, "value": v} for (c, s), v in patches.items()]
        return self._values(inputs, patches=lent, pick=pick)

    def gradient_values(self, inputs: Inputs, asked: Backward) -> Values:
        """As `values`, with the gradients of a backward pass."""
        return self._values(inputs, backward=vars(asked))

    def _values(self, inputs: Inputs, **asked: Any) -> Values:
        return values_in(self._ask("values", **self._instance(inputs), **asked))

    def _instance(self, inputs: Inputs) -> dict[str, Any]:
        """How to build and call an instance with the module's weights."""
        weights = dict(self.parameters())
        return {**self.recipe(self.seed), "weights": weights, "inputs": _pairs([inputs])[0]}

    def edited_values(
        self, text: str, change: tuple[int, int, str], inputs: Inputs, pick: int = 0
    ) -> Values:
        """As `values`, with one change of its text, as in `edited_results`."""
        asked = {"text": text, "change": change, "pick": pick, **self._instance(inputs)}
        return values_in(self._ask("edited_values", **asked))

    def edited_results(
        self,
        text: str,
        changes: Sequence[tuple[int, int, str]],
        inputs: Inputs,
        seconds: float,
        pick: int = 0,
    ) -> tuple[list[Tensor | None], float]:
        """Tensor `pick` of what the module returns, as `values` calls it, with each change of its
        text: what stands in place of its lines from one to another. None where it raises. What
        takes more than so many seconds of CPU together is left out; and how many it took, by the
        candidate process's own word."""
        asked = {"text": text, "changes": list(changes), "seconds": seconds, "pick": pick}
        answer = self._ask("edited_results", **self._instance(inputs), **asked)
        told, took = list_in(answer.get("results")), answer.get("took")
        found = [each if isinstance(each, Tensor) else None for each in told[: len(changes)]]
        return found, took if isinstance(took, float) and took > 0 else seconds

    def cached_steps(
        self,
        calls: Sequence[Inputs],
        parents: Tensor | None = None,
        train: bool = False,
        beside: bool = False,
        negate: bool = False,
        others: Sequence[Inputs] | None = None,
    ) -> list[Tensor]:
        """The outputs of calls that share one cache, empty at first. With `parents` the cache is
        reordered after the first call: row b continues from row parents[b]. At the same place
        another instance is called, where `beside` is True, and all weights change their sign for
        the calls that follow, where `negate` is. With `others` each cache goes on with these inputs
        as well, after the call."""
        sibling = {"other": list(calls[0].items()), **self.recipe()} if beside else None
        answer = self._ask(
            "cached_steps",
            **self._steps(calls, negate),
            parents=parents,
            train=train,
            sibling=sibling,
            others=None if others is None else _pairs(others),
        )
        outputs = list(tensors_in(answer, "outputs").values())
        if len(outputs) != len(calls) or not all(map(is_plain, outputs)):
            raise UnexpectedOutput(
                "forward with a cache returned something else than one plain tensor"
            )
        return outputs

    def held_by_cache(self, calls: Sequence[Inputs]) -> list[HeldByCache]:
        """What the cache holds after each of these calls."""
        answer = self._ask("cached_steps", **self._steps(calls, negate=False))
        held = [each for each in list_in(answer.get("held")) if isinstance(each, dict)]
        if len(held) != len(calls):
            raise UnexpectedOutput("the calls with a cache did not come to their end")
        return [
            HeldByCache(
                numbers=sum(n for n in [each.get("numbers")] if isinstance(n, int)),
                places=tuple(n for n in list_in(each.get("places")) if isinstance(n, int)),
            )
            for each in held
        ]

    def _steps(self, calls: Sequence[Inputs], negate: bool) -> dict[str, Any]:
        spec = data_inputs(self.contract, "S")[0]
        return {
            "calls": _pairs(calls),
            "batch": calls[0][spec.name].shape[spec.axes.index("B")] if "B" in spec.axes else 1,
            "length": sum(inputs[spec.name].shape[spec.axes.index("S")] for inputs in calls),
            "negate": negate,
        }

    def expected_steps(self, calls: Sequence[Inputs], negate: bool = False) -> list[Tensor]:
        """What `cached_steps` must give: the reference's outputs in float64; raises `CannotTell`,
        and `Skip` where the reference keeps no cache."""
        found = self._comparable().in_steps(self._steps(calls, negate))
        if found is None:
            raise Skip("the reference keeps no cache")
        return [finite(right) for right in found]

    def after_sibling(self, sizes: Mapping[str, int], inputs: Inputs) -> Tensor:
        """The output after an instance of other sizes was built and called, and its parameters were
        changed."""
        others = with_head_dim({**self.sizes, **sizes})
        given = draw.inputs(self.contract, others, self.dice)
        recipe = {**self.recipe(), "init": constructor_arguments(self.contract.init, others)}
        asked = {"other": list(given.items()), "inputs": list(inputs.items())}
        return self.output(self._ask("after_sibling", **recipe, **asked), inputs)

    def with_changed_buffer(self, buffer: str, inputs: Inputs) -> tuple[Tensor, Tensor] | None:
        """The outputs of two new instances, of which the second has other values in a buffer; None
        where the call gives it new ones, or does not go on with these."""
        asked = {**self.recipe(self.seed), "buffer": buffer, "inputs": list(inputs.items())}
        answer = self.host.ask("with_changed_buffer", **asked)
        if "raised" in answer or answer.get("spoiled") is not True:
            return None
        usual, other = self.outputs(answer, [inputs, inputs])
        return usual, other

    def uninitialised_memory(
        self, several: Sequence[Inputs]
    ) -> tuple[list[tuple[Inputs, Tensor]], tuple[str, ...]]:
        """Inputs and outputs of calls of a new instance, as in `fresh_instance`, where memory that
        nobody wrote holds NaN, or the largest integer, or either boolean; and the names of the
        parameters that are so at first. The candidate process's own word."""
        recipe = self.recipe(self.seed)
        answer = self._ask("uninitialised_memory", **recipe, inputs=_pairs(several))
        twice = len(list_in(answer.get("answers"))) == 2 * len(several)
        given = [*several] * (2 if twice else 1)
        found = zip(given, self.outputs(answer, given), strict=True)
        return list(found), names_in(answer.get("begun"))

    def inputs_after_call(self, inputs: Inputs) -> InputsAfterCall:
        """What a call does to its inputs."""
        answer = self._ask("inputs_after_call", inputs=list(inputs.items()))
        return InputsAfterCall(
            inputs=tensors_in(answer, "tensors"),
            alias=str(answer.get("alias") or "")[:100],
            learns=str(answer.get("learns") or "")[:100],
            overwritten=answer.get("overwritten") is True,
        )

    def outputs(self, answer: dict[str, Any], several: Sequence[Inputs]) -> list[Tensor]:
        answers = answer.get("answers")
        if not isinstance(answers, list) or len(answers) != len(several):
            answers = [{}] * len(several)
        return [
            self.output(each if isinstance(each, dict) else {}, inputs)
            for each, inputs in zip(answers, several, strict=True)
        ]

    def output(self, answer: dict[str, Any], inputs: Inputs) -> Tensor:
        self.note_written(answer, inputs)
        out = output_in(answer)
        self._same_shape(out, inputs)
        return out

    def note_written(self, answer: dict[str, Any], inputs: Inputs) -> None:
        """Remember that a call wrote into an argument, where its answer says so."""
        wrote = answer.get("wrote")  # which may be anything
        if isinstance(wrote, str) and wrote in inputs and self.context.wrote is None:
            self.context.wrote = wrote, self.latest.sizes

    def _same_shape(self, out: Tensor, inputs: Inputs) -> None:
        """Differences to an empty or a broadcast output can hide everything."""
        if not self.strict:
            return
        given = tuple(t.shape for t in inputs.values() if t is not None)
        shape = self.shapes.get(given)
        if shape is None:
            shape = self.shapes[given] = self._shape(inputs)
        if tuple(out.shape) != shape:
            raise UnexpectedOutput(
                f"forward returned shape {tuple(out.shape)} this time, expected {shape}"
            )
        self.note_spoiled(out, inputs)

    def note_spoiled(self, out: Tensor, inputs: Inputs) -> None:
        """Remember an output that is not finite: it differs from all it is compared with. Where
        a query may see no key, `fully-masked-row` says so."""
        if self.dtype != "float32" or out.sum().isfinite() or out.isfinite().all():
            return  # a sum is the quicker look
        causal = "causal" in self.contract.promises
        masks = [(inputs.get(i.name), i) for i in self.contract.inputs if i.role == "mask"]
        shut = [mask == spec.forbids for mask, spec in masks if mask is not None]
        if any(m.all(-1).any() or (causal and m[..., 0].any()) for m in shut):
            return
        bad, given = ~out.isfinite(), [t for t in inputs.values() if t is not None and t.numel()]
        if all(t.isfinite().all() for t in given):
            top = max(t.double().abs().max().item() for t in given)
            self.context.spoiled = (
                f"{int(bad.sum())} of {out.numel()} output values are NaN or infinite, the first "
                f"at {bad.nonzero()[0].tolist()}, for inputs of up to {top:.3g} in size"
            )

    def _shape(self, inputs: Inputs) -> tuple[int, ...]:
        """What a call with these inputs should return."""
        sizes = self.sizes_of({n: t.shape for n, t in inputs.items() if t is not None})
        return tuple(measure(axis, sizes) for axis in self.contract.output)

    def sizes_of(self, shapes: Mapping[str, Sequence[int]]) -> Sizes:
        """The sizes of a call with inputs of these shapes: batch and lengths may be others than
        this round's."""
        sizes = dict(self.sizes)
        for axis in ("B", *LENGTHS):
            for spec in data_inputs(self.contract, axis):
                if len(shape := shapes.get(spec.name, ())) == len(spec.axes):
                    sizes[axis] = shape[spec.axes.index(axis)]
        return sizes

    # ------------------------------------------------------------ gradients

    def gradients(
        self,
        inputs: Inputs,
        train: bool = False,
        still: bool = False,
        size: float = 1.0,
        cotangent: Tensor | None = None,
    ) -> Gradients:
        """Gradients with respect to every floating-point input and every parameter."""
        cotangent = self.cotangent(inputs) if cotangent is None else cotangent
        asked = {"inputs": list(inputs.items()), "cotangent": cotangent * size, "train": train}
        answer = self._ask("gradients", **asked, still=still)
        self.note_written(answer, inputs)
        return gradients_in(answer, cotangent, size, train, still)

    def cast_gradients(
        self, dtypes: Sequence[str], inputs: Inputs, train: bool = False
    ) -> list[Gradients]:
        """The gradients of copies of the module in other dtypes, for the inputs in that dtype and
        the same cotangent: those of each dtype."""
        self.back()
        cotangent = self.cotangent(inputs)
        asked = {"inputs": list(inputs.items()), "cotangent": cotangent, "train": train}
        answer = self.host.ask("cast_gradients", dtypes=list(dtypes), **asked)
        answers = [a for a in list_in(answer.get("answers")) if isinstance(a, dict)]
        if "raised" not in answer and len(answers) == len(dtypes):
            return [gradients_in(answer, cotangent, 1.0, train) for answer in answers]
        return [
            self.variant(dtype=dtype, fresh=True).gradients(
                _cast(inputs, dtype), train, cotangent=cotangent
            )
            for dtype in dtypes
        ]

    def interleaved_gradients(
        self, several: Sequence[Inputs], train: bool = False
    ) -> InterleavedGradients:
        """Gradients inside a network, from large incoming gradients."""
        cotangents = [self.cotangent(inputs) for inputs in several]
        asked = {"inputs": _pairs(several), "cotangents": [c * STEEP for c in cotangents]}
        answer = self._ask("interleaved_gradients", **asked, train=train)
        *outputs, after = self.outputs(answer, [*several, several[0]])
        slopes = [tensors_in({"inputs": i}, "inputs") for i in list_in(answer.get("inputs"))]
        slopes += [{}] * (len(several) - len(slopes))
        return InterleavedGradients(
            outputs=tuple(outputs),
            inputs=tuple(in_units(each, STEEP) for each in slopes[: len(several)]),
            parameters=in_units(tensors_in(answer, "weights"), STEEP),
            cotangents=tuple(cotangents),
            frozen=in_units(tensors_in(answer, "frozen"), STEEP),
            skips=in_units(tensors_in(answer, "skips"), STEEP),
            after=after,
        )

    # ------------------------------------------------------------ what is right

    def expected(self, inputs: Inputs, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """The reference's output in float64, with the same weights or others of its own names;
        raises `CannotTell`."""
        reference = self._comparable()
        if weights is None:
            return finite(self.pool.expected(inputs, reference.call))
        held = dict(reference.weights)
        reference.put(weights)
        right = reference.call(inputs)
        reference.put(held)
        return finite(right)

    def expected_each(self, several: Sequence[Inputs]) -> list[Tensor]:
        """What `expected` gives for each; cheaper than to ask for each."""
        found = call_in_batch(self.contract, several, self._comparable().call)
        return [finite(right) for right in found]

    def expected_in_training(self, inputs: Inputs, times: int) -> list[Tensor]:
        """The reference's outputs for these inputs in train mode, of so many calls."""
        seed = self.dice.plain.getrandbits(32)
        return [finite(t) for t in self._comparable().in_training(inputs, times, seed)]

    def expected_in_float32(self, inputs: Inputs) -> Tensor:
        """The reference's output in float32: what it is off by is nobody's fault."""
        return finite(self._comparable().rounded(inputs))

    def expected_gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        """The reference's gradients in float64, with the same weights; raises `CannotTell`."""
        found = self._comparable().gradients(inputs, cotangent)
        return replace(found, parameters=self.loaded.gradients(found.parameters))

    @property
    def reference_takes_floats(self) -> bool:
        """Whether what a mask of floats must give can be asked of the reference."""
        known = self.reference is not None and not self.loaded.refusal
        return known and self._comparable().takes_floats

    def _comparable(self) -> Reference:
        if self.reference is None:
            raise CannotTell("there is no reference for this module", "no-reference")
        if self.loaded.refusal:
            raise CannotTell(self.loaded.refusal, "no-weights")
        return self.reference

    def tolerance(self, expected: Tensor) -> float:
        """The largest absolute difference that rounding in float32 explains."""
        largest = expected.abs().max().item() if expected.numel() else 1.0
        terms = max(self.sizes.values(), default=1)
        eps: float = torch.finfo(getattr(torch, self.dtype)).eps
        return SLACK * math.sqrt(terms) * eps * max(1.0, largest)

    def measure(self, axis: str) -> int:
        """The size of an axis such as "B" or "3*D" in this round."""
        return measure(axis, self.sizes)

    # ------------------------------------------------------------ weights

    def parameters(self) -> Mapping[str, Tensor]:
        """Parameters by dotted name, as the module holds them."""
        return tensors_in(self._ask("parameters"), "tensors")

    def given_parameters(self) -> Mapping[str, Tensor] | None:
        """The parameters that the module was given for this round, by its own names; None where it
        has its own."""
        if self.context.reference is None or self.loaded.refusal:
            return None
        return self._placed(self.context.reference.weights)

    def weights(self) -> Mapping[str, Tensor]:
        """The weights of this round by the reference's names, or by the module's own where there is
        no reference; raises `Skip` where the reference's have no place in the module."""
        if self.loaded.refusal:
            raise Skip(f"its weights cannot be told apart: {self.loaded.refusal}")
        return self.parameters() if self.reference is None else self.reference.weights

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Replace weights, by the names that `weights` gives."""
        refuse(self._ask("set_parameters", tensors=self._placed(weights)))

    def set_parameters(self, parameters: Mapping[str, Tensor]) -> None:
        """Give parameters other values, by the module's own names."""
        self._ask("set_parameters", tensors=dict(parameters))

    def _placed(self, weights: Weights, own: bool = False) -> dict[str, Tensor]:
        """By the module's own names and layouts."""
        at = None if own else self.loaded.indices
        return dict(weights) if at is None else map_weights(dict(weights), at)

    # ------------------------------------------------------------ insides

    def attention_internals(self, inputs: Inputs) -> AttentionInternals:
        """What softmax was given and what values were mixed by. The candidate process's word."""
        answer = self._ask("attention_internals", inputs=list(inputs.items()))
        lowest = answer.get("lowest")
        return AttentionInternals(
            scores=tuple(tensors_in(answer, "scores").values()),
            sums=tuple(tensors_in(answer, "sums").values()),
            lowest=lowest if isinstance(lowest, float) else math.nan,
        )

    def scores_and_expected(self, inputs: Inputs) -> list[tuple[Tensor, Tensor]]:
        """What each softmax is given in the module and in the reference, to explain a wrong output;
        empty where the calls raise, or where no explanation is asked for."""
        if self.context.until == "verdict":
            return []
        try:
            scores = self.attention_internals(inputs).scores
        except Raised:
            return []
        return list(zip(scores, self._comparable().scores(inputs), strict=False))

    def module_facts(self) -> ModuleFacts:
        """What the module is made of."""
        answer = self._ask("module_facts")
        return ModuleFacts(
            trained=names_in(answer.get("trained")),
            tied=tuple(map(names_in, list_in(answer.get("tied")))),
            copies=tuple(map(names_in, list_in(answer.get("copies")))),
            held=names_in(answer.get("held")),
            buffers=names_in(answer.get("buffers")),
            learning=names_in(answer.get("learning")),
            saved=names_in(answer.get("saved")),
            modules=names_in(answer.get("modules")),
        )

    def operations(self, inputs: Inputs) -> Sequence[Op]:
        """The operations of one forward pass. The candidate process's own word."""
        answer = self._ask("trace", inputs=list(inputs.items()), seed=0)
        text = str(answer.get("trace", ""))
        try:
            if len(text) > LONGEST:
                raise ValueError("too long")  # noqa: TRY301 - both are no trace
            raw = from_json(RawTrace, text)
        except (TypeError, ValueError) as error:
            raise Died("crashed", "answered with no trace") from error
        if raw.crash is not None:
            raise Raised({**plain(raw.crash), "verb": "trace"})
        return raw.ops

    def side_effects(self, inputs: Inputs) -> Sequence[str]:
        """What importing, building and calling changed outside the module, one phrase each."""
        asked = {**self.recipe(), "inputs": list(inputs.items())}
        return names_in(self._ask("side_effects", **asked).get("changes"))

    def numbers(self, least: int, most: int) -> tuple[int, ...]:
        """The whole numbers of this range that the candidate's text names, in order."""
        return numbers_in(self.context.text, least, most)

    def call_lines(self, *names: str) -> tuple[int, ...]:
        """The lines of the candidate's text that call something of these names, where there is a
        text."""
        return lines_calling(self.context.text, frozenset(names))

    def defines(self, name: str) -> bool:
        """Whether the candidate's text defines a function of this name."""
        return f"def {name}(" in self.context.text

    # ------------------------------------------------------------ refusals

    def exception_at(self, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
        """The exception that building and calling at these sizes raises, as the names of its class
        and of that one's bases; None when nothing is raised."""
        other = self._other_sizes(sizes)
        given = draw.inputs(self.contract, other, self.dice)
        try:
            self._build(other)
        except Raised as error:
            kinds: tuple[str, ...] | None = error.kinds
        else:  # what is impossible is so the second time, and in training
            raised = [self._refusal("call", given, train=train) for train in (False, True)]
            self._accepted(other)
            raised.append(self._refusal("call", given))
            raised.append(self._refusal("gradients", given, cotangent=torch.zeros(())))
            kinds = raised[0] if all(raised) else None
        self.equip()
        return kinds

    def _accepted(self, other: Sizes) -> None:
        """Make a call that must not be refused: at the usual sizes, but for the constructor's."""
        given = {str(value) for value in self.contract.init.values()}
        sizes = {s: n if s in given else self.sizes.get(s, n) for s, n in other.items()}
        inputs = draw.inputs(self.contract, within(with_head_dim(sizes)), self.dice)
        self._refusal("call", inputs)

    def _refusal(self, verb: str, inputs: Inputs, **args: Any) -> tuple[str, ...] | None:
        """The exception that a call or its gradients raise, as in `exception_at`."""
        try:
            self._ask(verb, inputs=list(inputs.items()), **args)
        except Raised as error:
            return error.kinds
        return None

    # ------------------------------------------------------------ time

    def expected_seconds(self, length: int) -> float:
        """How long a call of one sequence of this length may take, estimated from a short one: in
        plain Python each pair of positions takes its time."""
        return pairs(self.sizes, length) * self._pace()

    def _pace(self) -> float:
        """Seconds for a pair of positions in a head; 0 where all pairs are computed at once."""
        if self.context.pace is None:
            now = next((self.sizes[s] for s in LENGTHS if s in self.sizes), PILOT)
            inputs = self.draw("none", longer=PILOT - now, alone=True)
            took = self._timed(inputs)
            if took > QUICK:  # the machine may have been busy
                took = min(took, self._timed(inputs))
            self.context.pace = took / pairs(self.sizes, PILOT) if took > QUICK else 0.0
        return self.context.pace

    def _timed(self, inputs: Inputs) -> float:
        start = time.monotonic()
        self.call(inputs)
        return time.monotonic() - start


def _cast(inputs: Inputs, dtype: str) -> Inputs:
    """The inputs with their floating-point tensors in this dtype."""
    return {n: cast_floats(t, getattr(torch, dtype)) for n, t in inputs.items()}


def _pairs(several: Sequence[Inputs]) -> list[list[tuple[str, Tensor | None]]]:
    """The inputs of several calls, as a message takes them."""
    return [list(inputs.items()) for inputs in several]
