"""What the zygote runs before it forks must not show in any child."""

import linecache
import os
import sys

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


def test_huge_pages_hold_what_was_written_and_what_a_fork_writes_stays_its_own():
    """Pages are moved under objects in use, and shared with children that change them."""
    held = bytearray(b"attnlab") * (2 << 20)
    prefork.use_huge_pages()
    pid = os.fork()
    if pid == 0:
        held[::4096] = bytes(len(held[::4096]))
        os._exit(held[7] != ord("a") or held[4096] != 0)
    assert os.waitpid(pid, 0)[1] == 0
    assert held == bytearray(b"attnlab") * (2 << 20)
