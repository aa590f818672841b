"""The probe that a check talks through: its verbs, and what they answer.

Seeds, sizes, inputs and expected values are drawn on the trusted side. What rests on the word of
the process that runs the candidate says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from attnlab.records import Contract, Op, record

T = TypeVar("T")
Tensor = Any  # a torch.Tensor; torch itself stays out of this package
Inputs = dict[str, Tensor]
LOUD, SMALL = 30.0, 0.1  # scales of inputs: where softmax is sharp, and where it is nearly flat
Mask = Literal["none", "random", "causal", "empty-rows", "padding", "one-key", "open"]


@record
class Gradients:
    """Gradients of one scalar: the output times a random cotangent, summed.

    What no path leads to has none, and is left out. Inputs may have been `still`: they required
    none. `train` is the mode. Where the cotangent that was sent had another size, these are what
    they are at this one.
    """

    cotangent: Tensor
    inputs: Mapping[str, Tensor]
    parameters: Mapping[str, Tensor]
    still: bool = False
    train: bool = False
    dtype: str = ""  # of the output, as the candidate's process says


@record
class InterleavedGradients:
    """What came of several calls amid a network: inputs that another layer made, outputs that go on
    to one, calls before the gradients of others came back. The candidate process's own word."""

    outputs: tuple[Tensor, ...]
    inputs: tuple[Mapping[str, Tensor], ...]  # gradients, of each call
    parameters: Mapping[str, Tensor]  # the sum of all
    cotangents: tuple[Tensor, ...]
    frozen: Mapping[str, Tensor]  # gradients of the first inputs where no parameter requires one
    after: Tensor  # the output for the first inputs in eval mode, after all that


@record
class AttentionInternals:
    """The insides of attention, as the operations of one forward pass show them."""

    scores: tuple[Tensor, ...]  # what each softmax over the keys was given, or a fused kernel's
    sums: tuple[Tensor, ...]  # of each row of the weights by which values were mixed
    lowest: float = 0.0  # of all these weights


@record
class InputsAfterCall:
    """What a call did to its inputs. The candidate process's own word."""

    inputs: Inputs  # as the module left them
    alias: str = ""  # the one whose memory the output shares
    learns: str = ""  # the one that requires a gradient now
    overwritten: bool = False  # whether the next call changed this output


@record
class FreshInstance:
    """What came of calls of a new instance. The candidate process's own word."""

    outputs: tuple[Tensor, ...]
    before: Mapping[str, Tensor]  # the parameters that the calls changed, as they had been
    after: Mapping[str, Tensor]  # and as they are; what is not there any more is left out


@record
class ModuleFacts:
    """What the module is made of. The candidate process's own word."""

    trained: tuple[str, ...]  # parameters that require a gradient, tied ones by their first name
    tied: tuple[tuple[str, ...], ...]  # groups of names of one parameter
    copies: tuple[tuple[str, ...], ...]  # groups of names whose parameters share memory only
    held: tuple[str, ...]  # parameters by all their names
    buffers: tuple[str, ...]
    learning: tuple[str, ...]  # buffers that require a gradient
    saved: tuple[str, ...]  # what state_dict() holds
    modules: tuple[str, ...]  # classes of torch.nn among the submodules, as "nn.Linear"


class Probe(Protocol):
    """The verbs. Seeds, sizes, inputs and expected values are drawn on the trusted side."""

    @property
    def contract(self) -> Contract: ...

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of this round by symbol: B, S, D, H, hd, ..."""

    @property
    def inputs_description(self) -> str:
        """What is unusual of the inputs and weights of this round, for a message, or ""."""

    @property
    def thorough(self) -> bool:
        """False at sizes that only confirm what was looked at closely at others."""

    @property
    def confirming(self) -> bool:
        """True where the values at this round's sizes are known to be right: what follows is to
        confirm."""

    def sample(self, mask: Mask = "random", scale: float = 1.0) -> tuple[Inputs, Tensor]:
        """Inputs as `draw` makes them and the module's output for them, the same for every check of
        a round: not to be written into."""

    def draw(
        self, mask: Mask = "random", scale: float = 1.0, longer: int = 0, alone: bool = False
    ) -> Inputs:
        """Fresh inputs in the contract's order, `longer` positions more where S may vary, of one
        sequence `alone` where B may.

        Masks other than "empty-rows" leave every query at least one key; "none" passes None where
        the mask is optional, else a mask that forbids nothing, as "open" does; "padding"
        forbids the ends of ragged sequences; "one-key" leaves each query one key. Floats are
        N(0, scale**2).
        """

    def noise(self, like: Tensor, scale: float = 1.0) -> Tensor:
        """A tensor of the same shape and dtype, drawn from N(0, scale**2)."""

    def choose_ways(self, ways: Sequence[T]) -> list[T]:
        """All ways to look at a property; one at random where the values at this round's sizes are
        known to be right."""

    def expected_seconds(self, length: int) -> float:
        """What a call of one sequence of this length may take, as one of a few positions lets
        expect: in plain Python each pair of positions takes its time."""

    def random_integer(self, low: int, high: int) -> int:
        """A random integer in [low, high)."""

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        """The module's output, under no_grad and in eval mode unless `train`."""

    def calls(
        self, several: Sequence[Inputs], train: bool | Sequence[bool] = False
    ) -> list[Tensor]:
        """The outputs of several calls, one after the other; cheaper than to ask for each. `train`
        is of all, or of each."""

    def expected(self, inputs: Inputs, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """The reference's output in float64, with the same weights or others of its own names;
        raises `CannotTell`."""

    def expected_each(self, several: Sequence[Inputs]) -> list[Tensor]:
        """What `expected` gives for each; cheaper than to ask for each."""

    def expected_in_training(self, inputs: Inputs, times: int) -> list[Tensor]:
        """The reference's outputs for these inputs in train mode, of so many calls."""

    def expected_in_float32(self, inputs: Inputs) -> Tensor:
        """The reference's output in float32: what it is off by is nobody's fault."""

    def gradient_sample(self, mask: Mask = "random") -> tuple[Inputs, Gradients]:
        """Inputs and the module's gradients at them, shared as those of `sample` are. The first
        query may attend to one key alone where the mask is "random". Under a causal mask it is in
        train mode, where no dropout is promised. With none it is, too, of one long sequence, with a
        small cotangent, and inputs are still where there are other kinds."""

    def gradients(self, inputs: Inputs) -> Gradients:
        """Gradients with respect to every floating-point input and every parameter."""

    def expected_gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        """The reference's gradients in float64, with the same weights; raises `CannotTell`."""

    def interleaved_gradients(
        self, several: Sequence[Inputs], train: bool = False
    ) -> InterleavedGradients:
        """Gradients as a network makes them, from outputs that are to be changed by a lot."""

    def inputs_after_call(self, inputs: Inputs) -> InputsAfterCall:
        """What a call does to its inputs."""

    def with_changed_buffer(self, buffer: str, inputs: Inputs) -> tuple[Tensor, Tensor] | None:
        """The outputs of two new instances, of which the second has other values in a buffer; None
        where the call gives it new ones, or does not go on with these."""

    def after_sibling(self, sizes: Mapping[str, int], inputs: Inputs) -> Tensor:
        """The output after an instance of other sizes was built and called, and its parameters were
        changed."""

    def parameters(self) -> Mapping[str, Tensor]:
        """Parameters by dotted name, as the module holds them."""

    def buffers(self) -> Mapping[str, Tensor]:
        """Buffers by dotted name, as the module holds them."""

    def call_lines(self, *names: str) -> tuple[int, ...]:
        """The lines of the candidate's text that call something of these names, where there is a
        text."""

    def exception_at(self, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
        """The exception that building and calling at these sizes raises, as the names of its class
        and of that one's bases; None when nothing is raised."""

    def fresh_instance(
        self, several: Sequence[Inputs], train: bool | Sequence[bool] = False
    ) -> FreshInstance:
        """Calls of a new instance with the same parameters, which knows nothing of former calls;
        the module itself stays as it is."""

    def uninitialised_memory(
        self, several: Sequence[Inputs]
    ) -> tuple[list[tuple[Inputs, Tensor]], tuple[str, ...]]:
        """Calls as `anew` makes them, where memory that nobody wrote holds NaN, or the largest
        integer, or either boolean: inputs and outputs; and the parameters that such an instance
        begins with. The candidate process's own word."""

    def weights(self) -> Mapping[str, Tensor]:
        """The weights of this round by the reference's names, or by the module's own where there is
        no reference; raises `Skip` where the reference's have no place in the module."""

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Replace weights, by the names that `weights` gives."""

    def with_weights(
        self,
        several: Sequence[tuple[Mapping[str, Tensor], Inputs]],
        back: Mapping[str, Tensor],
        own: bool = False,
    ) -> list[Tensor]:
        """The outputs of calls, each with other weights, after which `back` are put; by the names
        that `weights` gives, or by the module's own."""

    def call_rebuilt(
        self, sizes: Mapping[str, int], weights: Mapping[str, Tensor], inputs: Inputs
    ) -> Tensor:
        """The output of an instance of other sizes with these weights; then the module is built
        anew."""

    def cached_steps(
        self,
        calls: Sequence[Inputs],
        parents: Tensor | None = None,
        train: bool = False,
        beside: bool = False,
    ) -> list[Tensor]:
        """The outputs of calls that share one cache, empty at first. With `parents` the cache is
        reordered after the first: row b goes on from what row parents[b] has seen. There, too,
        another instance may be called `beside` this one."""

    def attention_internals(self, inputs: Inputs) -> AttentionInternals:
        """What softmax was given and what values were mixed by. The candidate process's word."""

    def variant(self, sizes: Mapping[str, int] | None = None, dtype: str = "float32") -> Probe:
        """A probe at other sizes, or in another dtype. The module of this one is gone after it, so
        a check that wants both asks this one first."""

    def cast_calls(self, dtypes: Sequence[str], several: Sequence[Inputs]) -> list[list[Tensor]]:
        """The outputs of copies of the module in other dtypes, for the inputs in that dtype: those
        of each dtype."""

    def cast_gradients(
        self, dtypes: Sequence[str], inputs: Inputs, train: bool = False
    ) -> list[Gradients]:
        """The gradients of copies of the module in other dtypes, for the inputs in that dtype and
        the same cotangent: those of each dtype."""

    def float64_variant(self) -> Probe | None:
        """A probe in float64, or None where the module does not run in it."""

    def gradient_sample_in_float64(self) -> tuple[Probe, Inputs, Gradients] | None:
        """A probe in float64 with inputs and the module's gradients at them, or None where it does
        not run in float64."""

    def given_parameters(self) -> Mapping[str, Tensor] | None:
        """The parameters that the module was given for this round, by its own names; None where it
        has its own."""

    def call_on_device(self, device: str, inputs: Inputs) -> Tensor | None:
        """The output of a call on another device, brought back; None where there is no such."""

    def strided_calls(self, several: Sequence[Inputs], ways: Sequence[str]) -> list[Tensor]:
        """The outputs of calls with the same values at other strides, each in its way: "turned",
        the axes laid out backwards; "cropped", a corner of a larger tensor; "expanded", in memory
        once where all along the first axis are alike."""

    def positional_calls(self, several: Sequence[Inputs], bare: bool = False) -> list[Tensor]:
        """The outputs of a new instance with the same parameters that is built and called by
        position, in the contract's order; inputs at the end that are None are left out, and when
        `bare` the constructor's arguments that have a default, too."""

    def call_reloaded(self, inputs: Inputs) -> Tensor | None:
        """The output of another instance that loaded this one's state_dict, or None where it could
        not; then `at` holds."""

    def call_exported(self, inputs: Inputs) -> Tensor:
        """The output of the program that torch.export makes of the module."""

    def set_parameters(self, parameters: Mapping[str, Tensor]) -> None:
        """Give parameters other values, by the module's own names."""

    def initial_parameters(self) -> Mapping[str, Tensor]:
        """The parameters of a fresh module, as its constructor left them; then as after `at`."""

    def module_facts(self) -> ModuleFacts:
        """What the module is made of."""

    def operations(self, inputs: Inputs) -> Sequence[Op]:
        """The operations of one forward pass. The candidate process's own word."""

    def side_effects(self, inputs: Inputs) -> Sequence[str]:
        """What importing, building and calling changed outside the module, one phrase each."""

    def measure(self, axis: str) -> int:
        """The size of an axis such as "B" or "3*D" in this round."""

    def tolerance(self, expected: Tensor) -> float:
        """The largest absolute difference that rounding in float32 explains."""
