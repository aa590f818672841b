"""What a check is.

A check is one module in this folder. Its file name is its id (`mask_effect.py` -> `mask-effect`),
its docstring is what `attnlab explain` shows. It defines

* `TITLE`   the property, as a short sentence that is true of right code;
* `NEEDS`   what must be known of the module for the property to apply (see `abilities`);
* `AFTER`   the more basic checks whose failure explains a failure of this one;
* `ADVICE`  the one thing to do next when it fails;
* `run(probe)`  None when the property holds, else a `Failure`; it may raise `Skip` or `CannotTell`.
  Where no call depends on another's output it is a generator of `Steps`.

Checks import no torch: they use the probe's verbs and the methods of the tensors it returns. The
same check therefore serves the grader (the probe is a remote process), the tracer and a test.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Generator
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import cache

from attnlab.catalogue.contract_facts import (
    NEEDS_TEXT,
    data_inputs,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.shared.probe import (
    After,
    Anew,
    Facts,
    Gradients,
    Inputs,
    Mask,
    Network,
    Probe,
    Seen,
    Tensor,
)
from attnlab.records import Contract, record

__all__ = [
    "After",
    "Anew",
    "Facts",
    "Gradients",
    "Inputs",
    "Mask",
    "Network",
    "Probe",
    "Seen",
    "Tensor",
    "data_inputs",
    "key_axis",
    "mask_input",
    "query_axis",
]

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
    sizes: dict[str, int] = field(default_factory=dict)  # where they are others than the round's


# A check whose calls do not depend on each other: it yields the inputs and is sent the outputs, so
# that those of several checks can be had in one go.
Steps = Generator[list[Inputs], list[Tensor], "Failure | None"]


def driven(steps: Steps, probe: Probe, outputs: list[Tensor] | None = None) -> Failure | None:
    """The verdict of steps that are given what they ask for; `outputs` is the first of it."""
    try:
        asked = next(steps) if outputs is None else steps.send(outputs)
        while True:
            asked = steps.send(probe.calls(asked))
    except StopIteration as end:
        failure: Failure | None = end.value
        return failure


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
    steps: Callable[[Probe], Steps] | None = None  # the same, where all its calls can be asked for
    trusted: bool = True
    once: bool = False  # where it held once it is not made again
    on_demand: bool = False  # made only when everything is asked for
    few: bool = False  # not at all sizes: at the example's and at the first that are drawn


def lacks(check: Check, have: AbstractSet[str]) -> str | None:
    """Why `check` does not apply to a module of these abilities, or None when it does."""
    return next((NEEDS_TEXT[need] for need in check.needs if need not in have), None)


@cache
def load_checks() -> tuple[Check, ...]:
    """Every check of this folder, the more basic ones first."""
    package = importlib.import_module("attnlab.checks")
    found = pkgutil.iter_modules(package.__path__)
    names = [m.name for m in found if not m.ispkg and m.name != "base"]
    return _in_order([_read(name) for name in names])


def _read(name: str) -> Check:
    module = importlib.import_module(f"attnlab.checks.{name}")
    steps = module.run if inspect.isgeneratorfunction(module.run) else None
    return Check(
        id=name.replace("_", "-"),
        title=module.TITLE,
        needs=module.NEEDS,
        after=module.AFTER,
        advice=module.ADVICE,
        doc=module.__doc__ or "",
        run=module.run if steps is None else lambda probe: driven(steps(probe), probe),
        steps=steps,
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


def said(contract: Contract, mask: Mask) -> str:
    """The kind of inputs, as messages call it: by its mask, where there is one."""
    return f"{mask} mask" if any(i.role == "mask" for i in contract.inputs) else "random inputs"


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
