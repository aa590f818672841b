"""A verb that tells what a candidate leaves behind in what belongs to the whole process."""

from __future__ import annotations

import random
from typing import Any

import torch

from attnlab.candidate.process_state import Surroundings
from attnlab.tracer.cast import Given, fresh

SEED = 20170612


def seeded(seed: int) -> None:
    """As torch.manual_seed does; that notes a stack for every device that is not there."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


class Leaving:
    """Mixed into `Session`, which builds and calls."""

    built: Any

    def __init__(self, before: Surroundings | None = None) -> None:
        self.before = before or Surroundings()  # nothing of the candidate has run yet
        self.words: frozenset[str] | None = None  # by which its code can reach things; None = all

    def do_build(self, name: str | None, init: dict[str, Any] | list[Any], seed: int) -> Any:
        raise NotImplementedError

    def _invoke(self, given: Given) -> Any:
        raise NotImplementedError

    def _mode(self, train: bool) -> None:
        raise NotImplementedError

    def do_side_effects(
        self, name: str | None, init: dict[str, Any], inputs: Given, seed: int
    ) -> Any:
        """What loading, building and calling changed of what belongs to everybody."""
        kept, grad, plain = self.built, torch.is_grad_enabled(), random.getstate()
        random.seed(SEED)
        marked = random.getstate()
        try:
            self.do_build(name, init, seed)
            reseeded = ["the random seed was set while building"]
            found = reseeded if torch.initial_seed() != seed else []
            given = fresh(inputs)
            seeded(SEED)
            before = torch.get_rng_state()
            self._invoke(given)  # bare: a no_grad around it would put the grad mode back
            drew = not torch.equal(torch.get_rng_state(), before)
            self._mode(train=True)
            self._invoke(fresh(inputs))
            found += ["Python's random numbers were changed"] * (random.getstate() != marked)
            found += [f"{n} requires a gradient now" for n, t in given if t is not None
                      and t.requires_grad]  # fmt: skip
            changes = self.before.changes(self.words)
        finally:
            self.built = kept
            torch.set_grad_enabled(grad)
            random.setstate(plain)
        if torch.initial_seed() != SEED:
            found = [*found, "the random seed was set by a call"]
        elif drew:
            found = [*found, "a call in eval mode drew random numbers"]
        return {"changes": [*found, *changes]}
