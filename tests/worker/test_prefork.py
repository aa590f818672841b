"""What the zygote runs before it forks must not show in any child."""

import ctypes
import linecache
import mmap
import re
import sys
from pathlib import Path

import torch

from attnlab.worker import prefork


def test_it_leaves_no_random_state_and_no_module_behind():
    """A child that finds another random state, or a module, could tell that something ran."""
    state = torch.get_rng_state()
    prefork.warm()
    assert torch.equal(torch.get_rng_state(), state)
    assert "attnlab_warming" not in sys.modules
    assert prefork.FILE not in linecache.cache


def test_its_module_really_runs(monkeypatch):
    """Verbs answer with what was raised, so a module that cannot run would warm nothing."""
    answers = []
    ask = prefork.Session.ask

    def heard(self, verb, **args):
        answers.append(ask(self, verb, **args))
        return answers[-1]

    monkeypatch.setattr(prefork.Session, "ask", heard)
    prefork.warm()
    assert not any("raised" in answer for answer in answers)
    assert answers[-1]["output"].shape == (2, 3, 4)


def test_memory_in_large_pages_is_what_it_was():
    """To move memory of a process that is running must lose nothing of it; where the system has
    large pages and knows how to make them, there are more afterwards."""
    held = bytes(range(256)) * (32 << 12)
    before = _large()
    prefork.large_pages()
    assert held == bytes(range(256)) * (32 << 12)
    assert _large() >= before + (len(held) >> 11 if _can_collapse() else 0)


def _large() -> int:
    """KiB of this process in large pages."""
    rollup = Path("/proc/self/smaps_rollup")
    told = re.search(r"AnonHugePages:\s+(\d+)", rollup.read_text()) if rollup.exists() else None
    return int(told[1]) if told else 0


def _can_collapse() -> bool:
    """Whether one page of our own can be made large."""
    if sys.platform != "linux" or not Path("/proc/self/smaps_rollup").exists():
        return False
    room = mmap.mmap(-1, 2 * prefork.LARGE)
    room.write(bytes(2 * prefork.LARGE))
    begin = ctypes.addressof(ctypes.c_char.from_buffer(room))
    begin += -begin % prefork.LARGE
    asked = ctypes.c_void_p(begin), ctypes.c_size_t(prefork.LARGE), prefork.COLLAPSE
    return ctypes.CDLL(None).madvise(*asked) == 0
