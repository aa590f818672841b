"""A verb of the probe, on the trusted side: whether what must be refused is refused, always."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from attnlab.candidate.host import Host, Raised, answered
from attnlab.checks.base import Inputs
from attnlab.grading.inputs import draw
from attnlab.grading.inputs.draw import Dice
from attnlab.grading.inputs.sizes import within
from attnlab.records import Contract
from attnlab.sizes import Sizes, with_hd


class Refusing:
    """Mixed into `HostProbe`, by way of `Asking`."""

    host: Host
    contract: Contract
    sizes: Sizes
    dice: Dice

    def equip(self) -> None:
        """Build the module of this round."""
        raise NotImplementedError

    def _build(self, sizes: Sizes) -> None:
        """Build a module of these sizes."""
        raise NotImplementedError

    def exception_at(self, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
        """Builds a module of its own for the purpose, then builds this round's again."""
        other = {**self.sizes, **sizes}
        if "hd" not in self.contract.sizes:
            other.pop("hd", None)  # it was D / H, and these may be others
        other = with_hd(other)
        given = draw.inputs(self.contract, other, self.dice)
        try:
            self._build(other)
        except Raised as error:
            kinds: tuple[str, ...] | None = error.kinds
        else:  # what is impossible is so the second time, and in training
            told = [self._refusal(given, train) for train in (False, True)]
            self._accepted(other)
            told += [self._refusal(given, False), self._refused_while_it_learns(given)]
            kinds = told[0] if all(told) else None
        self.equip()
        return kinds

    def _accepted(self, other: Sizes) -> None:
        """A call that is no reason to refuse: what the constructor was told is as it was there."""
        told = {str(value) for value in self.contract.init.values()}
        sizes = {s: n if s in told else self.sizes.get(s, n) for s, n in other.items()}
        given = draw.inputs(self.contract, within(with_hd(sizes)), self.dice)
        self._refusal(given, train=False)

    def _refused_while_it_learns(self, inputs: Inputs) -> tuple[str, ...] | None:
        try:
            asked = {"inputs": list(inputs.items()), "cotangent": torch.zeros(())}
            answered(self.host.ask("gradients", **asked))
        except Raised as error:
            return error.kinds
        return None

    def _refusal(self, inputs: Inputs, train: bool) -> tuple[str, ...] | None:
        try:
            answered(self.host.ask("call", inputs=list(inputs.items()), train=train))
        except Raised as error:
            return error.kinds
        return None
