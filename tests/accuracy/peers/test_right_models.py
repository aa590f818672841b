"""Models that nobody here wrote are right: nothing is found on them, and their axes have names."""

from __future__ import annotations

import warnings

import pytest
import torch

from benchmarks.accuracy import pages
from benchmarks.accuracy.measure import right
from benchmarks.accuracy.right import Model, models

MODELS = list(models())
# Below the aim, for a reason: what must be named nevertheless, in percent.
LEAST = {
    "GPT-J": 91,  # the rotated part of a head
    "GLM": 93,
    "CodeGen": 80,  # a literal 4 of which the code alone knows what it counts
    "BEiT": 87,  # tables of distances between patches
    "Longformer": 80,  # windows made by as_strided
    "LED": 85,
    "ProphetNet": 86,  # buckets of relative positions, viewed in an unusual order
    "ViT-MAE": 65,  # patches shuffled by the order of noise
}


@pytest.mark.parametrize("model", MODELS, ids=[f"{m.library}: {m.name}" for m in MODELS])
def test_a_right_model_raises_nothing(model: Model):
    """No finding, every row with its line, and at least 95 % of all axes named."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the other libraries, about their own parts
        try:
            found = right(model)
        except ImportError:
            pytest.skip(f"{model.library} is not installed")
    assert not found.crash
    assert not [f"{f.file}:{f.line} {f.rule}: {f.message}" for f in found.findings]
    assert found.placed == found.rows > 0
    assert found.axes.percent >= LEAST.get(model.name, pages.AIM)
