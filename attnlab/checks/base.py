"""What a check is.

A check is one module in this folder. Its file name is its id (`output_shape.py` -> `output-shape`)
and its docstring is what `attnlab explain` shows. It defines a function of a probe, which `@check`
declares to be a part of the check, with

* `title`   the property, as a short sentence that is true of right code;
* `needs`   what must be known of the module for the property to apply (see `contract_facts`);
* `tier`    how basic the property is (see `Tier`);
* `advice`  the one thing to do next when it fails.

The function returns None when the property holds, else a `Failure`; it may raise `Skip` or
`CannotTell`. Where no call depends on another's output it is a generator of `Steps`. A property
that is seen in several ways has a part for each, with an `id`, and a `TITLE` for all of them.

Checks import no torch: they use the probe's methods and those of the tensors it returns. So the
same check serves the grader (the probe is a remote process), `attnlab.testing` and a test.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Generator, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from attnlab.catalogue.contract_facts import FACTS
from attnlab.probe.answers import Inputs, Tensor
from attnlab.records import record

if TYPE_CHECKING:
    from attnlab.probe import probe

    Probe = probe.Probe
else:
    Probe = Any  # so that checks are read without torch


@record
class Failure:
    """What was done, what was expected and what came, in one sentence."""

    message: str
    advice: str = ""  # replaces the check's own advice when this failure knows better
    sizes: dict[str, int] = field(default_factory=dict)  # where they are others than the round's


# A check whose calls do not depend on each other: it yields the inputs and is sent the outputs, so
# that those of several checks can be had in one go.
Steps = Generator[list[Inputs], list[Tensor], "Failure | None"]


def run_steps(steps: Steps, probe: Probe, outputs: list[Tensor] | None = None) -> Failure | None:
    """The verdict of steps that are given what they ask for; `outputs` is the first of it."""
    try:
        asked = next(steps) if outputs is None else steps.send(outputs)
        while True:
            asked = steps.send(probe.calls(asked))
    except StopIteration as end:
        failure: Failure | None = end.value
        return failure


class Tier(IntEnum):
    """How basic a property is: a failure explains those of later tiers in the same grade."""

    SHAPE = 0  # the output has the contract's shape: everything else indexes it
    MEMORY = 1  # inputs are not written to, and uninitialised memory is not read
    FINITE = 2
    REPEATABLE = 3  # equal calls give equal outputs
    ASIDE = 4  # properties that no other one follows from
    SAMPLES = 5  # samples of a batch are independent
    ORDER = 6  # the future does not leak; positions differ
    MASKS = 7  # what is masked, or kept in a cache, changes nothing
    WEIGHTS = 8  # attention averages what it may see
    SYMMETRY = 9  # of positions, and of calls
    HEADS = 10
    GROUPS = 11  # of heads, and of sequences in one row
    VALUES = 12  # the output equals the reference's
    REGIMES = 13  # so it does in other dtypes, modes and sizes
    LEARNING = 14  # gradients
    SLOPES = 15  # gradients by finite differences, and in a network
    ELEMENTS = 16  # of gradients, one by one

    def explains(self, other: Tier) -> bool:
        return self < other and self is not Tier.ASIDE


Run = Callable[[Probe], Failure | None] | Callable[[Probe], Steps]


@record
class Part:
    """One way to look at the property of a check; most checks have a single one."""

    title: str
    needs: tuple[str, ...]
    tier: Tier
    advice: str
    run: Run
    id: str = ""  # that of the check, where it has no other part
    check: str = ""  # the id and title of the check, once it is loaded
    check_title: str = ""
    trusted: bool = True
    once: bool = False  # not repeated once it has passed
    on_demand: bool = False  # only when every check is asked for, or its promise is made
    promise: str = ""  # of a contract: with it the part is made without being asked for
    few: bool = False  # only at the example's sizes and at the first that are drawn

    @property
    def steps(self) -> Callable[[Probe], Steps] | None:
        """`run`, where it is a generator of `Steps`."""
        run: Any = self.run
        return run if inspect.isgeneratorfunction(run) else None

    def failure(self, probe: Probe) -> Failure | None:
        """What `run` finds."""
        found: Any = self.run(probe)
        return run_steps(found, probe) if self.steps else found

    def missing(self, have: AbstractSet[str]) -> str | None:
        """Why it does not apply to a module of which this is known, or None when it does."""
        return next((FACTS[need].missing for need in self.needs if need not in have), None)


def check(**fields: Any) -> Callable[[Run], Part]:
    """Declare the function below to be a part of its file's check, with these fields of `Part`."""
    return lambda run: Part(run=run, **fields)


@record
class Check:
    """A property, as the rest of attnlab sees it."""

    id: str
    title: str
    doc: str
    parts: tuple[Part, ...]

    @property
    def tier(self) -> Tier:
        return min(part.tier for part in self.parts)

    @property
    def explanation(self) -> str:
        """The docstring, and where there are several parts what each of them says."""
        if len(self.parts) == 1:
            return self.doc.strip()
        said = (f"- **{part.title}.** When it fails: {part.advice}" for part in self.parts)
        return "\n".join((self.doc.strip(), "\nIts parts:\n", *said))

    @property
    def advice(self) -> str:
        """What to do when it fails, where that is the same for every failure."""
        return self.parts[0].advice if len(self.parts) == 1 else ""


@cache
def load_checks() -> tuple[Check, ...]:
    """Every check of this folder, the more basic ones first."""
    package = importlib.import_module("attnlab.checks")
    found = pkgutil.iter_modules(package.__path__)
    checks = [_load(m.name) for m in found if not m.ispkg and m.name != "base"]
    return tuple(sorted(checks, key=lambda check: (check.tier, check.id)))


def _load(name: str) -> Check:
    module = importlib.import_module(f"attnlab.checks.{name}")
    id_ = name.replace("_", "-")
    own = [part for part in vars(module).values() if isinstance(part, Part)]
    title = getattr(module, "TITLE", own[0].title)
    parts = tuple(replace(p, id=p.id or id_, check=id_, check_title=title) for p in own)
    return Check(id=id_, title=title, doc=module.__doc__ or "", parts=parts)


def parts_of(checks: Iterable[Check]) -> tuple[Part, ...]:
    """Their parts, the more basic ones first."""
    return tuple(sorted((p for check in checks for p in check.parts), key=lambda p: (p.tier, p.id)))
