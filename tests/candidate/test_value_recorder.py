"""What is recorded of the values of a call."""

import torch
from torch import nn

from attnlab.candidate.value_recorder import ValueRecorder, record_values

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def halve(x):
    return x / 2


class Filled(nn.Module):
    """Fills a layer inside of its call, as a port does."""

    def forward(self, x):
        layer = nn.Linear(4, 4, bias=False)
        layer.weight = nn.Parameter(halve(x[:1].T @ x[:1]))
        return layer(x)


def test_a_weight_that_was_filled_knows_its_source_and_a_step_its_callers():
    """A parameter is made unseen; without the link nothing before it could be wrong."""
    found = record_values(Filled, lambda: None, built, [("x", X)], ValueRecorder({}))
    halved = next(i for i, v in enumerate(found.values) if v.scalars == "2")
    weight = next(v for v in found.values if v.call < 0 and v.inputs)
    assert weight.inputs == [halved]
    assert halve.__code__.co_firstlineno + 1 == found.values[halved].line
    first = Filled.forward.__code__.co_firstlineno
    assert found.values[halved].callers[0] == first + 2


def built(given):
    return Filled()(*(tensor for _, tensor in given))
