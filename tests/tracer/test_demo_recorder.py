"""The first call of a script is one that it makes itself."""

import torch
from torch import nn

from attnlab.tracer.demo_recorder import FirstCallRecorder, StopDemo


class Probing(nn.Module):
    """Calls its stem in the constructor, to see how many tokens it makes."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(3, 4, 5)
        self.head = nn.Linear(self.stem(torch.zeros(1, 3, 20)).shape[-1], 2)

    def forward(self, x):
        return self.head(self.stem(x))


def test_a_call_in_a_constructor_is_not_the_one_to_record():
    """A module that asks a part for its shape is looked at as a whole."""
    recorder = FirstCallRecorder()
    try:
        with recorder:
            model = Probing()
            model(torch.randn(2, 3, 20))
    except StopDemo:
        pass
    assert recorder.root is model
