"""What the zygote runs before it forks must not show in any child."""

import linecache
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
