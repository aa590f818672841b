"""What a check is, and the probe it talks through.

A check is one module in this folder. Its file name is its id (`mask_effect.py` -> `mask-effect`),
its docstring is what `attnlab explain` shows. It defines

* `TITLE`   the property, as a short sentence that is true of right code;
* `NEEDS`   what must be known of the module for the property to apply (see `abilities`);
* `AFTER`   the more basic checks whose failure explains a failure of this one;
* `ADVICE`  the one thing to do next when it fails;
* `run(probe)`  None when the property holds, else a `Failure`; it may raise `Skip` or `CannotTell`.

Checks import no torch: they use the probe's verbs and the methods of the tensors it returns. The
same check therefore serves the grader (the probe is a remote process), the tracer and a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Protocol

from attnlab.abilities import (
    NEEDS_TEXT,
    abilities,
    data_inputs,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.records import Contract, Op, record

__all__ = ["data_inputs", "key_axis", "mask_input", "query_axis"]

Tensor = Any  # a torch.Tensor; torch itself stays out of this package
Inputs = dict[str, Tensor]
Mask = Literal["none", "random", "causal", "empty-rows", "padding", "one-key"]
SHARED = ("base", "encoding", "pieces")  # files of this folder that are no check
SAME = 1e-5  # of the largest output: how far two runs of the same float32 module may differ


class Skip(Exception):
    """The property does not apply at these sizes; the message says why."""


class CannotTell(Exception):
    """The check could not be made. `reason` is a short key, such as "no-weights"."""

    def __init__(self, message: str, reason: str = "error") -> None:
        super().__init__(message)
        self.reason = reason


@record
class Failure:
    """What was done, what was expected and what came, in one sentence."""

    message: str
    advice: str = ""  # replaces the check's own advice when this failure knows better


@record
class Gradients:
    """Gradients of one scalar: the output times a random cotangent, summed.

    What no path leads to has none, and is left out.
    """

    cotangent: Tensor
    inputs: Mapping[str, Tensor]
    parameters: Mapping[str, Tensor]


@record
class Seen:
    """The insides of attention, as the operations of one forward pass show them."""

    scores: tuple[Tensor, ...]  # what each softmax over the keys was given, or a fused kernel's
    sums: tuple[Tensor, ...]  # of each row of the weights by which values were mixed
    lowest: float = 0.0  # of all these weights


@record
class Facts:
    """What the module is made of. The candidate process's own word."""

    trained: tuple[str, ...]  # parameters that require a gradient, tied ones by their first name
    tied: tuple[tuple[str, ...], ...]  # groups of names of one parameter
    copies: tuple[tuple[str, ...], ...]  # groups of names whose parameters share memory only
    saved: tuple[str, ...]  # what state_dict() holds
    modules: tuple[str, ...]  # classes of torch.nn among the submodules, as "nn.Linear"


class Probe(Protocol):
    """The verbs. Seeds, sizes, inputs and expected values are drawn on the trusted side."""

    @property
    def contract(self) -> Contract: ...

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of this round by symbol: B, S, D, H, hd, ..."""

    def draw(self, mask: Mask = "random", scale: float = 1.0, longer: int = 0) -> Inputs:
        """Fresh inputs in the contract's order, `longer` positions more where S may vary.

        Masks other than "empty-rows" leave every query at least one key; "none" passes None where
        the mask is optional, else a mask that forbids nothing; "padding" forbids the ends of ragged
        sequences; "one-key" leaves each query one key. Floats are N(0, scale**2).
        """

    def noise(self, like: Tensor, scale: float = 1.0) -> Tensor:
        """A tensor of the same shape and dtype, drawn from N(0, scale**2)."""

    def pick(self, low: int, high: int) -> int:
        """A random integer in [low, high)."""

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        """The module's output, under no_grad and in eval mode unless `train`."""

    def calls(self, several: Sequence[Inputs], train: bool = False) -> list[Tensor]:
        """The outputs of several calls, one after the other; cheaper than to ask for each."""

    def expected(self, inputs: Inputs, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """The reference's output in float64, with the same weights or others of its own names;
        raises `CannotTell`."""

    def gradients(self, inputs: Inputs) -> Gradients:
        """Gradients with respect to every floating-point input and every parameter."""

    def expected_gradients(self, inputs: Inputs, cotangent: Tensor) -> Gradients:
        """The reference's gradients in float64, with the same weights; raises `CannotTell`."""

    def inputs_after(self, inputs: Inputs) -> Inputs:
        """The inputs as the module left them. Rests on the candidate process's own word."""

    def parameters(self) -> Mapping[str, Tensor]:
        """Parameters by dotted name, as the module holds them."""

    def buffers(self) -> Mapping[str, Tensor]:
        """Buffers by dotted name, as the module holds them."""

    def raised(self, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
        """The exception that building and calling at these sizes raises, as the names of its class
        and of that one's bases; None when nothing is raised."""

    def renew(self) -> None:
        """A new instance with the same weights, which knows nothing of the calls before."""

    def weights(self) -> Mapping[str, Tensor]:
        """The weights of this round by the reference's names, or by the module's own where there is
        no reference; raises `Skip` where the reference's have no place in the module."""

    def put(self, weights: Mapping[str, Tensor]) -> None:
        """Replace weights, by the names that `weights` gives."""

    def rebuilt(
        self, sizes: Mapping[str, int], weights: Mapping[str, Tensor], inputs: Inputs
    ) -> Tensor:
        """The output of an instance of other sizes with these weights; then `renew`."""

    def steps(self, calls: Sequence[Inputs], parents: Tensor | None = None) -> list[Tensor]:
        """The outputs of calls that share one cache, empty at first. With `parents` the cache is
        reordered before the last call: row b goes on from what row parents[b] has seen."""

    def seen(self, inputs: Inputs) -> Seen:
        """What softmax was given and what values were mixed by. The candidate process's word."""

    def at(self, sizes: Mapping[str, int] | None = None, dtype: str = "float32") -> Probe:
        """A probe at other sizes, or in another dtype. The module of this one is gone after it, so
        a check that wants both asks this one first."""

    def in_float64(self) -> Probe | None:
        """A probe in float64, or None where the module does not run in it."""

    def on(self, device: str, inputs: Inputs) -> Tensor | None:
        """The output of a call on another device, brought back; None where there is no such."""

    def strided(self, inputs: Inputs) -> Tensor:
        """The output of a call with the same values at other strides: no input is contiguous."""

    def reloaded(self, inputs: Inputs) -> Tensor:
        """The output of another instance that loaded this one's state_dict; then `at` holds."""

    def exported(self, inputs: Inputs) -> Tensor:
        """The output of the program that torch.export makes of the module."""

    def overwrite(self, parameters: Mapping[str, Tensor]) -> None:
        """Give parameters other values, by the module's own names."""

    def as_built(self) -> Mapping[str, Tensor]:
        """The parameters of a fresh module, as its constructor left them; then as after `at`."""

    def facts(self) -> Facts:
        """What the module is made of."""

    def operations(self, inputs: Inputs) -> Sequence[Op]:
        """The operations of one forward pass. The candidate process's own word."""

    def trespasses(self, inputs: Inputs) -> Sequence[str]:
        """What importing, building and calling changed outside the module, one phrase each."""

    def aliased(self, inputs: Inputs) -> str:
        """The input whose memory the output shares, or "". The candidate process's own word."""

    def measure(self, axis: str) -> int:
        """The size of an axis such as "B" or "3*D" in this round."""

    def tolerance(self, expected: Tensor) -> float:
        """The largest absolute difference that rounding in float32 explains."""


@record
class Check:
    """A check as the rest of attnlab sees it."""

    id: str
    title: str
    needs: tuple[str, ...]
    after: tuple[str, ...]
    advice: str
    doc: str
    run: Callable[[Probe], Failure | None]
    trusted: bool = True
    once: bool = False  # where it held once it is not made again
    on_demand: bool = False  # made only when everything is asked for
    few: bool = False  # not at all sizes: at the example's and at the first that are drawn


def lacks(check: Check, contract: Contract, has_reference: bool) -> str | None:
    """Why `check` does not apply to a module of this contract, or None when it does."""
    have = abilities(contract) | ({"reference"} if has_reference else set())
    return next((NEEDS_TEXT[need] for need in check.needs if need not in have), None)


@cache
def load_checks() -> tuple[Check, ...]:
    """Every check of this folder, the more basic ones first."""
    package = importlib.import_module("attnlab.checks")
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in SHARED]
    return _in_order([_read(name) for name in names])


def _read(name: str) -> Check:
    module = importlib.import_module(f"attnlab.checks.{name}")
    return Check(
        id=name.replace("_", "-"),
        title=module.TITLE,
        needs=module.NEEDS,
        after=module.AFTER,
        advice=module.ADVICE,
        doc=module.__doc__ or "",
        run=module.run,
        trusted=getattr(module, "TRUSTED", True),
        once=getattr(module, "ONCE", False),
        on_demand=getattr(module, "ON_DEMAND", False),
        few=getattr(module, "FEW", False),
    )


def _in_order(checks: list[Check]) -> tuple[Check, ...]:
    """Sorted so that each check stands after all that it names in `after`; then by id."""
    depth: dict[str, int] = {}
    by_id = {check.id: check for check in checks}

    def deep(check: Check) -> int:
        if check.id not in depth:
            depth[check.id] = 1 + max((deep(by_id[a]) for a in check.after), default=0)
        return depth[check.id]

    return tuple(sorted(checks, key=lambda check: (deep(check), check.id)))


# ---------------------------------------------------------------- what several checks need


def masks(contract: Contract, *kinds: Mask) -> tuple[Mask, ...]:
    """The kinds of mask to probe: those given, and empty rows where they are promised.

    To a module that takes no mask they are all one.
    """
    if not any(i.role == "mask" for i in contract.inputs):
        return kinds[:1]
    return (*kinds, "empty-rows") if "empty-rows" in contract.promises else kinds


def expected_shape(probe: Probe) -> tuple[int, ...]:
    """The contract's output axes at this round's sizes."""
    return tuple(probe.measure(axis) for axis in probe.contract.output)


def describe(out: Tensor, probe: Probe) -> str:
    """A shape with the sizes it was made at: "(3, 35) at B=3, S=7, D=30"."""
    sizes = ", ".join(f"{k}={v}" for k, v in probe.sizes.items())
    return f"{tuple(out.shape)} at {sizes}"


def far(a: Tensor, b: Tensor) -> Tensor:
    """Where two outputs of the same module differ by more than another summation order explains.

    A NaN differs from everything.
    """
    scale = max(1.0, a.abs().nan_to_num(0.0, 1.0, 1.0).max().item() if a.numel() else 1.0)
    return ~((a - b).abs() <= SAME * scale)


def first_index(where: Tensor) -> str:
    """The first True, as "[0, 3, 1]"."""
    return str(where.nonzero()[0].tolist())
