"""Checks and hosts made up for tests of the check stage."""

from __future__ import annotations

import torch
from modules import PLAIN

from attnlab.checks.base import Check, Failure, Part, Tier
from attnlab.grading import runner
from attnlab.grading.runner import run_checks
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext


def check(name, run=lambda probe: None, tier=Tier.SHAPE, needs=(), **more):
    facts = {"id": name, "title": name, "needs": needs, "tier": tier, "advice": f"do {name}"}
    part = Part(**facts, run=run, check=name, check_title=name, **more)
    return Check(id=name, title=name, doc="", parts=(part,))


class Host:
    """A host that answers everything, until it is told to die."""

    isolation, missing, printed = (), (), ""

    def __init__(self, dies=None):
        self.dies, self.asked = dies, []

    def ask(self, verb, **args):
        self.asked.append(verb)
        if self.dies is not None:
            raise self.dies
        return {"output": torch.zeros(1)} if verb == "call" else {}

    def close(self):
        pass


def grade(monkeypatch, *checks, host=None, renew=None, contract=PLAIN, reference=None):
    """The results of these checks alone, over a host that answers everything."""
    monkeypatch.setattr(runner, "load_checks", lambda: checks)
    context = GradingContext(
        contract=contract,
        name="Net",
        host=host or Host(),
        renew=renew or Host,
        dice=Dice(0),
        reference=reference,
    )
    return run_checks(context)


def ids(results):
    return [r.id for r in results]


def fails(message="no", when=lambda sizes: True):
    return lambda probe: Failure(message=message) if when(probe.sizes) else None


def calls(probe):
    """The body of a check that calls the module and finds nothing to say."""
    probe.call(probe.draw())


def raises(error):
    def run(probe):
        raise error

    return run
