"""A verb of the probe, on the trusted side: how long a long call may take.

What goes through pairs of positions one by one, in plain Python, is right and slow; a few calls of
hundreds of positions would use up its time.
"""

from __future__ import annotations

import time
from typing import Any

from attnlab.checks.base import Inputs, Tensor
from attnlab.sizes import Sizes

PILOT = 32  # positions of the call by which longer ones are judged
QUICK = 0.01  # seconds that such a call takes at most where nothing goes one by one
LENGTHS = ("S", "Sq", "Sk")  # what a longer sequence has more of


class Pacing:
    """Mixed into `HostProbe`."""

    bench: Any  # which keeps the pace for all rounds
    sizes: Sizes

    def draw(
        self, mask: Any = "random", scale: float = 1.0, longer: int = 0, alone: bool = False
    ) -> Inputs:
        raise NotImplementedError

    def call(self, inputs: Inputs, train: bool = False) -> Tensor:
        raise NotImplementedError

    def expected_seconds(self, length: int) -> float:
        return pairs(self.sizes, length) * self._pace()

    def _pace(self) -> float:
        """Seconds for a pair of positions in a head; 0 where all pairs are had in one go."""
        if self.bench.pace is None:
            now = next((self.sizes[s] for s in LENGTHS if s in self.sizes), PILOT)
            inputs = self.draw("none", longer=PILOT - now, alone=True)
            took = self._timed(inputs)
            if took > QUICK:  # the machine may have been busy
                took = min(took, self._timed(inputs))
            self.bench.pace = took / pairs(self.sizes, PILOT) if took > QUICK else 0.0
        pace: float = self.bench.pace
        return pace

    def _timed(self, inputs: Inputs) -> float:
        start = time.monotonic()
        self.call(inputs)
        return time.monotonic() - start


def pairs(sizes: Sizes, length: int) -> int:
    """Of positions in one sequence, in all heads."""
    return sizes.get("H", 1) * length**2
