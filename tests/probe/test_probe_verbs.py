"""Verbs of the probe about a module's contract: other sizes and types, and answers that lie."""

from __future__ import annotations

import pytest
import torch
from modules import PLAIN, SIZES, hosted, module

from attnlab.candidate.host import Died, Raised
from attnlab.probe.answers import CannotTell, InputsAfterCall, ModuleFacts
from attnlab.probe.decode import UnexpectedOutput
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext, Probe
from attnlab.sizes import with_head_dim

NET = module("return self.proj(x)", "self.proj = nn.Linear(width, width)\nself.width = width")


def probe(text: str = NET) -> Probe:
    host = hosted(text, PLAIN)
    context = GradingContext(
        contract=PLAIN, name="Net", host=host, renew=lambda: host, dice=Dice(0), reference=None
    )
    made = Probe(context, with_head_dim(SIZES))
    made.equip()
    return made


def answering(answer: object) -> Probe:
    """A probe whose host says this to whatever is asked."""
    made = probe()
    made.host.ask = lambda verb, **args: answer
    return made


def test_other_lengths_use_the_same_module():
    """Nothing is built where the constructor's arguments stay."""
    made = probe()
    weights = {n: p.clone() for n, p in made.parameters().items()}
    other = made.variant({"S": 9})
    assert other.call(other.draw()).shape == (2, 9, 8)
    assert all(torch.equal(w, other.parameters()[n]) for n, w in weights.items())


def test_another_width_is_another_module_and_the_first_comes_back():
    """Its weights are drawn; after `back` the first one answers as before."""
    made = probe()
    inputs = made.draw()
    before = made.call(inputs)
    other = made.variant({"D": 12})
    assert other.call(other.draw()).shape == (2, 4, 12)
    assert made.latest is other
    made.back()
    assert made.latest is made
    assert torch.equal(made.call(inputs), before)


def test_another_type_is_a_copy_with_the_same_weights():
    """Inputs are drawn in that type too, and the tolerance is that type's."""
    made = probe()
    inputs = made.draw()
    before = made.call(inputs)
    wide = made.variant(dtype="float64")
    out = wide.call({"x": inputs["x"].double()})
    assert out.dtype is wide.draw()["x"].dtype is torch.float64
    assert (out - before).abs().max() <= made.tolerance(before)
    assert wide.tolerance(out) < 1e-6 * made.tolerance(before)


def test_a_module_that_only_knows_float32_is_not_widened():
    """A crash there, or an output in float32, is no float64."""
    assert probe().float64_variant() is not None
    assert probe(module("return x.float()")).float64_variant() is None
    assert probe(module("return x @ torch.ones(8, 8)")).float64_variant() is None


def test_a_new_instance_is_called_in_the_modes_that_are_asked_for():
    """Twice the same instance, though buffers are drawn: what two of them give can be compared."""
    text = "self.register_buffer('b', torch.randn(width))\nself.w = nn.Parameter(torch.ones(width))"
    busy = "if self.training:\n    self.w.data += 1\nreturn x + self.b"
    made = probe(module(busy, text))
    inputs = made.draw()
    first, second = (
        made.fresh_instance([inputs]),
        made.fresh_instance([inputs, inputs], train=[False, True]),
    )
    assert torch.equal(first.outputs[0], second.outputs[0])
    assert (first.before, list(second.before), len(second.outputs)) == ({}, ["w"], 2)
    assert torch.equal(second.after["w"], torch.full((8,), 2.0))
    assert torch.equal(made.parameters()["w"], torch.ones(8))


def test_as_built_shows_what_the_constructor_drew():
    """Not the weights that were put in since."""
    made = probe(module("return x * self.w", "self.w = nn.Parameter(torch.ones(width))"))
    made.set_parameters({"w": torch.zeros(8)})
    assert made.initial_parameters()["w"].sum() == 8
    made.back()
    assert made.parameters()["w"].sum() == 0


def test_operations_are_rows_and_a_crash_is_the_candidate_s():
    """Names as the user wrote them."""
    made = probe()
    assert [op.op for op in made.operations(made.draw())] == ["linear"]
    broken = probe(module("return x @ x"))
    with pytest.raises(Raised, match="RuntimeError"):
        broken.operations(broken.draw())


@pytest.mark.parametrize("answer", [{}, {"trace": "{"}, {"trace": None}, {"trace": '{"ops": 3}'}])
def test_an_answer_that_is_no_trace_ends_the_candidate(answer):
    """Whatever its process sends."""
    with pytest.raises(Died, match="no trace"):
        answering(answer).operations({})


@pytest.mark.parametrize(
    "answer", [{}, {"tied": 3, "saved": None}, {"tied": [3], "copies": {"a": 1}, "trained": "ab"}]
)
def test_facts_that_make_no_sense_are_none(answer):
    """Names are read from lists alone."""
    facts = answering(answer).module_facts()
    assert isinstance(facts, ModuleFacts)
    assert facts.trained == facts.saved == ()
    assert not any(facts.tied + facts.copies)


def test_names_that_make_no_sense_are_cut():
    """A process may send any number of names of any length."""
    told = answering({"changes": ["x" * 999] * 999}).side_effects({})
    assert len(told) == 200
    assert max(map(len, told)) == 200
    told = answering({"alias": "y" * 999, "learns": "z" * 999}).inputs_after_call({})
    assert told == InputsAfterCall(inputs={}, alias="y" * 100, learns="z" * 100)
    assert answering({}).inputs_after_call({}) == InputsAfterCall(inputs={})


def test_a_spoiled_buffer_that_nobody_kept_tells_nothing():
    """A call that made it anew, or did not go on with it, is no proof."""
    two = {"answers": [{"output": torch.zeros(1)}, {"output": torch.ones(1)}]}
    assert answering({**two, "spoiled": False}).with_changed_buffer("pe", {}) is None
    assert answering({"raised": {}}).with_changed_buffer("pe", {}) is None
    usual, other = answering({**two, "spoiled": True}).with_changed_buffer("pe", {})
    assert (usual.item(), other.item()) == (0.0, 1.0)


def test_an_output_on_another_device_is_odd(monkeypatch):
    """Inputs on the GPU, an output elsewhere: told by both places."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    made = answering({"output": torch.zeros(1), "device": "cpu"})
    with pytest.raises(UnexpectedOutput, match="inputs on cuda gave an output on cpu"):
        made.call_on_device("cuda", {})
    assert answering({"absent": True}).call_on_device("cuda", {}) is None


def test_an_exporter_that_does_not_load_is_no_fault_of_the_candidate():
    """It cannot be told, which is neither a pass nor a failure."""
    with pytest.raises(CannotTell, match="export does not load where the candidate runs") as caught:
        answering({"unable": "OSError: no"}).call_exported({})
    assert caught.value.reason == "export"


@pytest.mark.parametrize(("wrote", "told"), [("x", "x"), ("other", None), (["x"], None)])
def test_what_a_call_wrote_into_is_one_of_its_inputs(wrote, told):
    """The process may say anything; only the first is kept."""
    made = probe()
    inputs = made.draw()
    made.output({"output": torch.zeros(2), "wrote": wrote}, inputs)
    found = made.context.wrote
    assert (found and found[0]) == told
