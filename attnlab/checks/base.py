"""What a check is, and the probe it talks through.

A check is one module in this folder. Its file name is its id (`mask_effect.py` -> `mask-effect`),
its docstring is what `attnlab explain` shows. It defines

* `TITLE`   the property, as a short sentence that is true of right code;
* `NEEDS`   what must be known of the module for the property to apply (see `NEEDS_TEXT`);
* `AFTER`   the more basic checks whose failure explains a failure of this one;
* `ADVICE`  the one thing to do next when it fails;
* `run(probe)`  None when the property holds, else a `Failure`; it may raise `Skip` or `CannotTell`.

Checks import no torch: they use the probe's verbs and the methods of the tensors it returns. The
same check therefore serves the grader (the probe is a remote process), the tracer and a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, Protocol

from attnlab.records import Contract, Input, record

Tensor = Any  # a torch.Tensor; torch itself stays out of this package
Inputs = dict[str, Tensor]
Mask = Literal["none", "random", "causal", "empty-rows"]
SAME = 1e-5  # of the largest output: how far two runs of the same float32 module may differ

# Each need, and why a check that has it is skipped without it.
NEEDS_TEXT = {
    "reference": "there is no reference for this module",
    "output": "the shape of the output is not known",
    "batch": "input and output have no batch axis B in common",
    "sequence": "input and output have no sequence axis S in common",
    "mask": "the module takes no attention mask",
    "floats": "the module takes no floating-point input to differentiate",
    "causal": "the module neither takes a mask nor promises to be causal",
    "averaging": "the module does not promise to average values without positions",
    "empty-rows": "fully masked rows are not part of its contract",
    "position": "the module does not promise a positional encoding formula",
    "buffers": "the contract names no buffers",
    "refusals": "the contract names no input to refuse",
}


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
        the mask is optional, else a mask that forbids nothing. Floats are N(0, scale**2).
        """

    def noise(self, like: Tensor, scale: float = 1.0) -> Tensor:
        """A tensor of the same shape and dtype, drawn from N(0, scale**2)."""

    def pick(self, low: int, high: int) -> int:
        """A random integer in [low, high)."""

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        """The module's output, under no_grad and in eval mode unless `train`."""

    def expected(self, inputs: Inputs) -> Tensor:
        """The reference's output in float64, with the same weights; raises `CannotTell`."""

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


def lacks(check: Check, contract: Contract, has_reference: bool) -> str | None:
    """Why `check` does not apply to a module of this contract, or None when it does."""
    have = abilities(contract) | ({"reference"} if has_reference else set())
    return next((NEEDS_TEXT[need] for need in check.needs if need not in have), None)


def _by_query(spec: Input) -> bool:
    """A mask that can be causal has an axis of queries before that of the keys."""
    return spec.role == "mask" and len(spec.axes) > 1 and spec.axes[-2] not in ("B", "H", "1")


def abilities(contract: Contract) -> set[str]:
    """The needs that a contract meets."""
    data = [i for i in contract.inputs if i.role == "data"]
    masks = any(i.role == "mask" for i in contract.inputs)
    found = set(contract.promises)
    facts = {
        "output": bool(contract.output),
        "batch": "B" in contract.output and any("B" in i.axes for i in data),
        "sequence": "S" in contract.output and any("S" in i.axes for i in data),
        "mask": masks,
        "causal": any(_by_query(i) for i in contract.inputs),
        "floats": any(i.dtype == "float" for i in data),
        "position": contract.position is not None,
        "buffers": bool(contract.buffers),
        "refusals": bool(contract.refusals),
    }
    return found | {name for name, holds in facts.items() if holds}


@cache
def load_checks() -> tuple[Check, ...]:
    """Every check of this folder, the more basic ones first."""
    package = importlib.import_module("attnlab.checks")
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "base"]
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


def data_inputs(contract: Contract, axis: str) -> list[Input]:
    """The inputs that carry data along `axis`."""
    return [i for i in contract.inputs if i.role == "data" and axis in i.axes]


def mask_input(contract: Contract) -> Input:
    """The input that is the attention mask."""
    return next(i for i in contract.inputs if i.role == "mask")


def masks(contract: Contract, *kinds: Mask) -> tuple[Mask, ...]:
    """The kinds of mask to probe: those given, and empty rows where they are promised."""
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
