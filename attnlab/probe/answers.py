"""What the probe returns: records without torch, so that checks can be read without it."""

from collections.abc import Mapping
from typing import Any, Literal

from attnlab.records import record

Tensor = Any  # a torch.Tensor; torch itself stays out of this package
Inputs = dict[str, Tensor]
LOUD, SMALL = 30.0, 0.1  # scales of inputs: where softmax is sharp, and where it is nearly flat
Mask = Literal[
    "none", "random", "causal", "empty-rows", "padding", "left-padding", "one-key", "open"
]


class Skip(Exception):
    """The property does not apply at these sizes; the message says why."""


class CannotTell(Exception):
    """The check could not be made. `reason` is a short key, such as "no-weights"."""

    def __init__(self, message: str, reason: str = "error") -> None:
        super().__init__(message)
        self.reason = reason


@record
class Gradients:
    """Gradients of one scalar: the output times a random cotangent, summed.

    Tensors without a gradient are left out. With `still`, inputs did not require one. `train` is
    the mode. Gradients of a scaled cotangent are divided by the scale again."""

    cotangent: Tensor
    inputs: Mapping[str, Tensor]
    parameters: Mapping[str, Tensor]
    still: bool = False
    train: bool = False
    dtype: str = ""  # of the output, as the candidate's process says


@record
class InterleavedGradients:
    """Gradients of several calls inside a network: inputs that another layer made, outputs that the
    next one takes, calls before the gradients of others came back. The candidate process's own
    word."""

    outputs: tuple[Tensor, ...]
    inputs: tuple[Mapping[str, Tensor], ...]  # gradients, of each call
    parameters: Mapping[str, Tensor]  # the sum of all
    cotangents: tuple[Tensor, ...]
    frozen: Mapping[str, Tensor]  # gradients of the first inputs where no parameter requires one
    skips: Mapping[
        str, Tensor
    ]  # gradients of what outputs were added to, by the number of the call
    after: Tensor  # the output for the first inputs in eval mode, after all that


@record
class HeldByCache:
    """What a cache holds after a call. The candidate process's own word."""

    numbers: int  # of all its tensors
    places: tuple[int, ...]  # of their memory


@record
class AttentionInternals:
    """Scores and weights of attention, recorded from the operations of one forward pass."""

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
    """Outputs of a new instance, and parameters that changed. The candidate process's own word."""

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
