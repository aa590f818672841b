"""Inputs of a round with what the module makes of them, the same for every check that asks.

Most checks compare one changed call with an unchanged one. The unchanged ones are shared, and those
that nearly every check wants are asked for in one go, so that a round costs a call or two a check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from attnlab.candidate.host import Raised
from attnlab.probe.answers import LOUD, SMALL, Gradients, Inputs, Mask
from attnlab.probe.decode import UnexpectedOutput
from attnlab.probe.inputs.batching import call_in_batch
from attnlab.records import Contract, Input

if TYPE_CHECKING:
    from attnlab.probe.probe import Probe

Ids = tuple[int, ...]
Work = Callable[[], list[Tensor]]


class Kind(NamedTuple):
    """How inputs are drawn."""

    mask: Mask = "random"
    scale: float = 1.0


MANY = 70  # positions of a long sequence, alone in its batch
PATIENCE, FEWER = 0.2, 24  # seconds that a call of it may take; positions where it takes longer
FAINT = 2.0**-13  # a cotangent far from the loss; a power of two, so that it rounds nothing
SOME = (Kind(), Kind("none"))
ALL = (Kind(), Kind("causal"), Kind("none"), Kind(scale=LOUD), Kind(scale=SMALL))
EXPLAINING = (*ALL, Kind("none", SMALL))


class SampleCache:
    """The samples of one round. Nobody writes into them."""

    def __init__(self, source: Probe) -> None:

        self.source = source
        self.samples: dict[Kind, tuple[Inputs, Tensor]] = {}
        self.slopes: dict[Mask, tuple[Inputs, Gradients]] = {}
        self.right: dict[Ids, Tensor | None] = {}  # of samples: what the reference gives
        self.begun = False

    def sample(self, mask: Mask, scale: float) -> tuple[Inputs, Tensor]:
        kind = self._kind(mask, scale)
        if not self.begun:
            self.fetch(self.usual())
        if kind not in self.samples:
            inputs = self.source.draw(*kind)
            self._keep(kind, inputs, self.source.call(inputs))
        inputs, out = self.samples[kind]
        return dict(inputs), out

    def usual(self, kinds: Sequence[Kind] | None = None) -> dict[Kind, Inputs]:
        """Inputs that are not there yet, of these kinds or of those that nearly every check asks
        for."""
        wanted = kinds if kinds is not None else ALL if self.source.thorough else SOME
        found = dict.fromkeys(self._kind(*kind) for kind in wanted)
        return {kind: self.source.draw(*kind) for kind in found if kind not in self.samples}

    def fetch(self, drawn: Mapping[Kind, Inputs], work: Work | None = None) -> None:
        """Have their outputs all at once. Where one fails, each will say so for itself."""
        self.begun = True
        given = list(drawn.values())
        try:
            outputs = work() if work else self.source.calls(given) if given else []
        except (Raised, UnexpectedOutput):
            return
        for (kind, inputs), out in zip(drawn.items(), outputs, strict=True):
            self._keep(kind, inputs, out)

    def expected(self, inputs: Inputs, call: Callable[[Inputs], Tensor]) -> Tensor:
        """What the reference gives for these inputs; for samples it is worked out once, and for all
        of them."""
        key = _ids(inputs)
        if key not in self.right:
            return call(inputs)
        if self.right[key] is None:
            left = [given for given, _ in self.samples.values() if self.right[_ids(given)] is None]
            rights = call_in_batch(self.source.contract, left, call)
            self.right |= zip(map(_ids, left), rights, strict=True)
        right = self.right[key]
        assert right is not None
        return right

    def gradient_sample(self, mask: Mask) -> tuple[Inputs, Gradients]:
        """Inputs whose first query has one key, where the mask is a random one: the sum of its
        weights is 1 before it is divided by."""
        if not self.source.compared:
            mask = self._kind(mask).mask
        if mask not in self.slopes:
            inputs = self._layer() if self._trains_far(mask) else self.source.draw(mask)
            for spec in _masks(self.source.contract):
                given = inputs[spec.name]
                if mask == "random" and given is not None and given.dim() > 1:
                    given[..., :1, :] = self.source.draw("one-key")[spec.name][..., :1, :]
            self.slopes[mask] = inputs, self._slopes(inputs, mask)
        return self.slopes[mask]

    def _trains_far(self, mask: Mask) -> bool:
        """Where values can be compared, the gradients of one kind of mask are those of a layer that
        trains far from a loss; to a module without masks the kinds are one."""
        masked = bool(_masks(self.source.contract))
        return self.source.compared and mask == ("none" if masked else "random")

    def _layer(self) -> Inputs:
        """One long sequence, alone in its batch: sizes for which code has a way of its own."""
        slow = self.source.expected_seconds(MANY) > PATIENCE
        more = (FEWER if slow else MANY) - self.source.sizes.get("S", MANY)
        return self.source.draw("none", longer=max(more, 0), alone=True)

    def _slopes(self, inputs: Inputs, mask: Mask) -> Gradients:
        """Far from a loss in train mode, where there are masks of weights alone, as in a first
        layer; under a causal mask in train mode, else in eval mode."""
        source, masked = self.source, bool(_masks(self.source.contract))
        busy = source.compared and "dropout" not in source.contract.promises
        if self._trains_far(mask):
            return source.gradients(inputs, train=busy, still=masked, size=FAINT)
        still = source.compared and not masked and mask == "none"
        return source.gradients(inputs, train=busy and masked and mask == "causal", still=still)

    def _kind(self, mask: Mask, scale: float = 1.0) -> Kind:
        """To a module without masks they are all one, and so are scales to one that takes ids."""
        given = self.source.contract.inputs
        floats = any(i.role == "data" and i.dtype == "float" for i in given)
        return Kind(mask if _masks(self.source.contract) else "random", scale if floats else 1)

    def _keep(self, kind: Kind, inputs: Inputs, out: Tensor) -> None:
        self.samples[kind] = inputs, out
        self.right[_ids(inputs)] = None


def _ids(inputs: Inputs) -> Ids:
    """Which tensors these are. A sample lives as long as its pool, so no other has its ids."""
    return tuple(map(id, inputs.values()))


def _masks(contract: Contract) -> list[Input]:
    return [i for i in contract.inputs if i.role == "mask"]
