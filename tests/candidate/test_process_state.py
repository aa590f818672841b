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


def test_harmless_settings_are_undone():
    """Threads and deterministic algorithms go back; the default dtype is left to be reported."""
    before = Surroundings()
    try:
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(before.flags["the number of threads"] + 1)
        torch.set_default_dtype(torch.float64)
        assert before.undo_settings() == ["the number of threads", "deterministic algorithms"]
        assert before.changes() == ["the default dtype is torch.float64, it was torch.float32"]
    finally:
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)


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
