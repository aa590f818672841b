"""What belongs to the whole process: each change of it is a phrase."""

import pytest
import torch
from torch import nn

from attnlab.candidate.process_state import Surroundings


def hooked():
    return nn.modules.module.register_module_forward_hook(lambda *_: None)


CHANGES = {
    "the smallest number that is not 0": (
        lambda: torch.set_flush_denormal(True),
        lambda _: torch.set_flush_denormal(False),
    ),
    "the number of hooks for all modules": (hooked, lambda handle: handle.remove()),
    "the use of oneDNN": (
        lambda: setattr(torch.backends.mkldnn, "enabled", False),
        lambda _: setattr(torch.backends.mkldnn, "enabled", True),
    ),
    "the default dtype": (
        lambda: torch.set_default_dtype(torch.float64),
        lambda _: torch.set_default_dtype(torch.float32),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_changed_is_told_until_it_is_put_back(what):
    """One phrase that says what, and how it was."""
    change, restore = CHANGES[what]
    before = Surroundings()
    done = change()
    try:
        found = before.changes()
    finally:
        restore(done)
    assert [phrase for phrase in found if phrase.startswith(what)] == found
    assert found
    assert before.changes() == []
