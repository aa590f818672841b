"""Checks of a module in this process: copies, references, promises, and the cause that is told."""

from dataclasses import replace

import pytest
import torch
from modules import PLAIN
from torch import nn

from attnlab.candidate.host import Raised
from attnlab.grading.in_process import (
    LiveHost,
    LiveReference,
    Subject,
    examine,
    output_of,
    with_promises,
)
from attnlab.probe.inputs.draw import Dice

SIZES = {"B": 2, "S": 4, "D": 8}


class Layer(nn.Module):
    def __init__(self, wrong=""):
        super().__init__()
        self.proj, self.wrong = nn.Linear(8, 8), wrong

    def forward(self, x):
        if self.wrong == "batch":
            x = x - x.mean(0)
        if self.wrong == "crash":
            x = x @ x
        return self.proj(x + torch.rand(8) if self.wrong == "noise" else x)


def subject(module, **more):
    contract = replace(PLAIN, init={}, vary=("B", "S"), sizes=SIZES)
    return Subject(module=module, contract=contract, seed=3, **more)


def test_one_check_is_made_and_nothing_else_asked():
    """What passes needs no trace."""
    found = examine(subject(Layer()), "batch-independence")
    assert (found.result.id, found.result.outcome) == ("batch-independence", "passed")
    assert found.trace is None


def test_a_failure_comes_with_the_rows_of_its_sizes():
    """The trace is of one call at the sizes where the check failed."""
    found = examine(subject(Layer("batch")), "batch-independence")
    assert found.result.outcome == "failed"
    sizes = found.result.sizes
    assert found.trace.ops[-1].shape == (sizes["B"], sizes["S"], 8)


def test_the_cause_is_told_in_place_of_what_follows():
    """A module that answers differently each time fails nearly everything."""
    assert examine(subject(Layer("noise")), "batch-independence").result.id == "no-hidden-state"


def test_a_crash_shows_the_rows_up_to_it():
    """And advises to look at them, not to run a command."""
    found = examine(subject(Layer("crash")), "finite")
    assert found.result.reason == "crashed"
    assert found.trace.crash.op == "matmul"
    assert "attnlab run" not in found.result.advice


def test_the_users_module_is_copied():
    """In float32 on the CPU, in eval mode; the original keeps its dtype and mode."""
    module = Layer().double().train()
    host = LiveHost(subject(module))
    assert host.ask("build", name=None, init={}, seed=0) == {}
    host.ask(
        "set_parameters", tensors={"proj.weight": torch.zeros(8, 8), "proj.bias": torch.zeros(8)}
    )
    out = host.ask("call", inputs=[("x", torch.randn(1, 2, 8))])["output"]
    assert (out.dtype, out.count_nonzero().item()) == (torch.float32, 0)
    assert module.training
    assert module.proj.weight.dtype is torch.float64
    assert module.proj.weight.count_nonzero().item()


def test_kept_weights_are_not_replaced():
    """Both sides stay as they are."""
    module = Layer()
    given = subject(module, reference=module, keep=True)
    host, reference = LiveHost(given), LiveReference(given)
    host.ask("build", name=None, init={}, seed=0)
    weights = reference.equip({}, Dice(0))
    assert torch.equal(weights["proj.weight"], module.proj.weight)
    assert host.ask("set_parameters", tensors={"proj.weight": torch.zeros(8, 8)}) == {}
    assert host.ask("parameters")["tensors"]["proj.weight"].count_nonzero().item()


def test_a_reference_is_computed_in_float64():
    """With weights of its own drawing, which the module gets too."""
    module = Layer()
    reference = LiveReference(subject(module, reference=module))
    weights = reference.equip({}, Dice(0))
    assert not torch.equal(weights["proj.weight"], module.proj.weight)
    assert reference.call({"x": torch.randn(1, 2, 8)}).dtype is torch.float64


def test_output_of_one_call():
    """A tensor, or what else it is; what is picked counts; what raises is raised."""
    assert output_of(subject(Layer()), SIZES).shape == (2, 4, 8)
    both = f"a tuple with {' and '.join(['a float32 tensor of shape (2, 4, 8)'] * 2)}"
    assert output_of(subject(lambda x: (x, x)), SIZES) == both
    assert output_of(subject(lambda x: (x, x), pick=lambda o: o[0]), SIZES).shape == (2, 4, 8)
    with pytest.raises(Raised):
        output_of(subject(Layer("crash")), SIZES)


@pytest.mark.parametrize(
    ("module", "promises"),
    [
        (nn.Linear(8, 8), ("causal",)),
        (nn.Dropout(0.1), ("causal", "dropout")),
        (nn.Dropout(0.0), ("causal",)),
        (nn.MultiheadAttention(8, 2, dropout=0.1), ("causal", "dropout")),
        (torch.relu, ("causal",)),
    ],
)
def test_dropout_is_promised_where_it_is_seen(module, promises):
    """A layer of it, or a number that a module keeps."""
    assert with_promises(subject(module), "causal").contract.promises == promises
