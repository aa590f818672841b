"""Other devices give the same: on a probe that plays a GPU, since few machines have one."""

from __future__ import annotations

import pytest
import torch
from trial import ATTENTION, SELF

from attnlab.candidate.host import LocalHost
from attnlab.checks.base import Failure
from attnlab.checks.device_parity import run as part
from attnlab.probe.answers import Skip
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext, Probe
from attnlab.sizes import with_head_dim


class Probe(Probe):
    """A GPU whose answers are the CPU's times a factor; none without a factor."""

    factor: float | None = None

    def call_on_device(self, device, inputs):
        return None if self.factor is None else self.call(inputs) * self.factor


def probe(factor=None, kind=Probe):
    host = LocalHost()
    host.ask("load", file="m.py", text=ATTENTION, path="", own=None)
    made = kind(
        GradingContext(SELF, "M", host, lambda: host, Dice(1), None), with_head_dim(SELF.sizes)
    )
    made.equip()
    made.factor = factor
    return made


def test_without_a_gpu_nothing_is_said():
    """Skipped, not passed."""
    with pytest.raises(Skip, match="no GPU"):
        part.failure(probe())


def test_the_same_passes_and_rounding_is_allowed():
    """Matmuls of a GPU may round more than a CPU's."""
    assert part.failure(probe(1.0)) is None
    assert part.failure(probe(1.0002)) is None


def test_something_else_fails():
    """What differs by more than rounding is told with its size."""
    found = part.failure(probe(1.1))
    assert isinstance(found, Failure)
    assert "on the GPU the output differs from the CPU's by up to" in found.message


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_real_gpu():
    """The verb moves module and inputs there and the output back."""
    assert part.failure(probe(kind=Probe)) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_verb_says_that_there_is_none():
    """Without a GPU the candidate is not even asked."""
    made = probe(kind=Probe)
    assert made.call_on_device("cuda", made.draw()) is None
