"""Verbs about the contract of a module: other forms, what it is made of, what it leaves behind."""

from __future__ import annotations

import pytest
import torch
from modules import HEAD, called, loaded, made, module, randn
from torch.nn import functional as F

INIT = "self.proj = nn.Linear(width, width)"
LINEAR = module("return self.proj(x)", INIT)
X = randn(2, 3, 4)


def told(session, verb, *inputs, **more):
    answer = session.ask(verb, inputs=[("x", t) for t in inputs], **more)
    assert "raised" not in answer, answer
    return answer


# ---------------------------------------------------------------- in another form


def test_a_cast_module_answers_in_its_type():
    """Parameters and the output are float64 after it."""
    session = made(LINEAR)
    session.ask("cast", dtype="float64")
    assert called(session, ("x", X.double()))["output"].dtype is torch.float64


def test_what_is_put_aside_comes_back():
    """Another module is built and called, then the first one answers as before."""
    session = made(LINEAR)
    before = called(session, ("x", X))["output"]
    session.ask("put_aside")
    session.ask("build", name="Net", init={"width": 6}, seed=1)
    assert called(session, ("x", randn(2, 3, 6)))["output"].shape[-1] == 6
    session.ask("take_back")
    session.ask("take_back")  # once too often does no harm
    assert torch.equal(called(session, ("x", X))["output"], before)


def test_a_twin_has_the_same_weights_and_is_another_module():
    """What is done to the twin does not reach the one that was put aside."""
    session = made(LINEAR)
    before = called(session, ("x", X))["output"]
    assert session.ask("cast_twin", dtype="float32") == {}
    assert torch.equal(called(session, ("x", X))["output"], before)
    session.ask(
        "set_parameters", tensors={"proj.bias": torch.ones(4), "proj.weight": torch.zeros(4, 4)}
    )
    session.ask("take_back")
    assert torch.equal(called(session, ("x", X))["output"], before)


def test_a_module_that_cannot_be_copied_says_so():
    """A tensor with a history as an attribute: deepcopy refuses."""
    session = made(module("return x", f"{INIT}\nself.kept = self.proj.weight * 2"))
    assert session.ask("cast_twin", dtype="float32") == {"failed": True}
    assert session.ask("cast_calls", dtypes=["float64"], inputs=[]) == {"failed": True}


@pytest.mark.parametrize("way", ["turned", "cropped"])
def test_strided_inputs_have_the_same_values_and_no_order_in_memory(way):
    """The module sees the values; a view that needs order raises."""
    seen = module("return torch.tensor(float(x.is_contiguous())) + 0 * x")
    assert laid(made(seen), way)["answers"][0]["output"].max() == 0
    assert torch.equal(laid(made(module("return x * 2")), way)["answers"][0]["output"], X * 2)
    answer = laid(made(module("return x.view(-1)")), way)
    assert "view size is not compatible" in answer["raised"]["message"]


def test_what_is_alike_along_the_batch_lies_in_memory_once():
    """Only where it is alike: the values are always those that were given."""
    session = made(module("return torch.tensor(float(x.stride(0))) + 0 * x"))
    assert laid(session, "expanded", torch.ones(3, 4))["answers"][0]["output"].max() == 0
    assert laid(session, "expanded")["answers"][0]["output"].max() > 0


def laid(session, way, x=X):
    return session.ask("strided_calls", inputs=[[("x", x)]], ways=[way])


def test_a_second_instance_that_loads_the_checkpoint_is_the_same():
    """What is not saved comes from its own seed; the first instance stays."""
    session = made(LINEAR)
    before = called(session, ("x", X))["output"]
    asked = {"name": "Net", "init": {"width": 4}, "seed": 7}
    assert torch.equal(told(session, "call_reloaded", X, **asked)["output"], before)
    drawn = made(module("return self.w * x", "self.w = torch.randn(width)"))
    before = called(drawn, ("x", X))["output"]
    assert not torch.equal(told(drawn, "call_reloaded", X, **asked)["output"], before)
    assert torch.equal(called(drawn, ("x", X))["output"], before)


ANEW = {"name": "Net", "init": {"width": 4}, "seed": 7}


def test_a_new_instance_has_the_same_parameters_and_no_past():
    """What calls leave on a module is not there; the module itself is not called."""
    counting = module("self.n += 1\nreturn self.proj(x) * self.n", f"{INIT}\nself.n = 0")
    session = made(counting)
    first = called(session, ("x", X))["output"]
    answer = session.ask("fresh_instance", **ANEW, inputs=[[("x", X)], [("x", X)]], train=False)
    again, twice = (told["output"] for told in answer["answers"])
    assert torch.equal(again, first)
    assert torch.equal(twice, first * 2)
    assert (answer["before"], answer["after"]) == ({}, {})
    assert torch.equal(called(session, ("x", X))["output"], first * 2)


def test_what_calls_did_to_the_parameters_of_a_new_instance_is_told():
    """As they were and as they are; in train mode where that was asked for."""
    busy = "if self.training:\n    self.proj.bias.data += 1\nreturn self.proj(x)"
    session = made(module(busy, INIT))
    before = session.ask("parameters")["tensors"]["proj.bias"]
    calls = [[("x", X)], [("x", X)]]
    answer = session.ask("fresh_instance", **ANEW, inputs=calls, train=[False, True])
    assert list(answer["before"]) == ["proj.bias"]
    assert torch.equal(answer["before"]["proj.bias"], before)
    assert torch.equal(answer["after"]["proj.bias"], before + 1)
    assert torch.equal(session.ask("parameters")["tensors"]["proj.bias"], before)
    assert session.ask("fresh_instance", **ANEW, inputs=calls, train=False)["after"] == {}


def test_a_parameter_that_is_gone_has_no_value_after_the_calls():
    """And a module of another make is built all the same."""
    session = made(module("self.proj.bias = None\nreturn self.proj(x)", INIT))
    answer = session.ask("fresh_instance", **ANEW, inputs=[[("x", X)]], train=False)
    assert (list(answer["before"]), answer["after"]) == (["proj.bias"], {})


def test_what_the_task_says_is_built_and_called_by_position():
    """With the same parameters; what is None at the end is left out, and the first module stays."""
    session = made(module("return self.proj(x)", INIT))
    before = called(session, ("x", X))["output"]
    (answer,) = session.ask("positional_calls", **ANEW, inputs=[[("x", X), ("mask", None)]])[
        "answers"
    ]
    assert torch.equal(answer["output"], before)
    answer = session.ask("positional_calls", **ANEW, inputs=[[("x", X), ("mask", X)]])
    assert answer["raised"]["error"] == "TypeError"
    assert torch.equal(called(session, ("x", X))["output"], before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_function_of_weights_gets_them_in_the_container_that_was_declared():
    """What the judge sends by dotted names is a dict in every call; another file knows none."""
    text = "def scale(w, x):\n    return w['gain'] * x + w['shift']\n"
    session = loaded(text)
    held = {"name": "w", "kind": "dict", "keys": ["gain", "shift"]}
    assert session.ask("declare_containers", containers=[held]) == {}
    session.ask("build", name="scale", init={}, seed=0)
    given = [("w.gain", torch.full((3,), 2.0)), ("w.shift", torch.ones(3)), ("x", torch.ones(2, 3))]
    assert torch.equal(session.ask("call", inputs=given)["output"], torch.full((2, 3), 3.0))
    session.clear()
    assert session.containers == {}


def test_a_device_that_is_not_there():
    """Said, not tried."""
    assert told(made(LINEAR), "call_on_device", X, device="cuda") == {"absent": True}


def test_what_torch_prints_of_an_export_is_not_the_files(capfd):
    """Its listing quotes the line that cannot be exported, which the verdict leaves to be found."""
    session = made(module("return x if x.sum() > 0 else -x"))
    answer = session.ask("call_exported", inputs=[("x", X)])
    assert "raised" in answer
    assert capfd.readouterr() == ("", "")


def test_an_exported_program_gives_the_same():
    """Functions too; the module itself is called again afterwards."""
    session = made(LINEAR)
    before = called(session, ("x", X))["output"]
    assert torch.allclose(told(session, "call_exported", X)["output"], before)
    assert torch.equal(called(session, ("x", X))["output"], before)


# ---------------------------------------------------------------- what it is made of


def test_facts_name_what_is_trained_tied_shared_and_saved():
    """A tie is one object; shared memory is not."""
    init = """\
self.a = nn.Linear(width, width, bias=False)
self.b = nn.Linear(width, width, bias=False)
self.c = nn.Linear(width, width, bias=False)
self.b.weight = self.a.weight
self.c.weight.data = self.a.weight.data
self.c.weight.requires_grad_(False)
self.register_buffer("pe", torch.zeros(3))
self.register_buffer("own", torch.ones(3, requires_grad=True), persistent=False)"""
    facts = made(module("return x", init)).ask("module_facts")
    assert facts == {
        "trained": ["a.weight"],
        "tied": [["a.weight", "b.weight"]],
        "copies": [["a.weight", "c.weight"]],
        "held": ["a.weight", "b.weight", "c.weight"],
        "buffers": ["pe", "own"],
        "learning": ["own"],
        "saved": ["pe", "a.weight", "b.weight", "c.weight"],
        "modules": ["nn.Linear"],
    }


def test_a_function_is_made_of_nothing():
    """No parameter, no name."""
    session = made(f"{HEAD}def Net(x):\n    return x * 2\n")
    assert set(map(str, session.ask("module_facts").values())) == {"[]"}


@pytest.mark.parametrize(
    ("returned", "name"), [("x", "x"), ("x[:1]", "x"), ("x * 1", ""), ("[x]", "")]
)
def test_an_output_in_the_memory_of_an_input(returned, name):
    """The argument itself or a view of it."""
    assert told(made(module(f"return {returned}")), "inputs_after_call", X)["alias"] == name


def test_a_copy_in_another_type_leaves_the_module_as_it_is():
    """The inputs are cast with it; whole numbers stay."""
    session = made(module("return self.proj(x) + ids.unsqueeze(-1)", INIT, "self, x, ids"))
    ids = torch.arange(6).view(2, 3)
    given = [("x", torch.ones(2, 3, 4)), ("ids", ids)]
    dtypes = ["float64", "bfloat16"]
    answers = session.ask("cast_calls", dtypes=dtypes, inputs=[given])["answers"]
    assert [a["output"].dtype for a in answers] == [torch.float64, torch.bfloat16]
    assert session.ask("parameters")["tensors"]["proj.weight"].dtype is torch.float32


def test_weights_are_lent_for_a_call_each():
    """And given back, also where a call raises or they do not fit."""
    session = made(LINEAR)
    own = session.ask("parameters")["tensors"]
    lent = {n: torch.zeros_like(t) for n, t in own.items()}
    given = [("x", X)]
    answer = session.ask("with_weights", weights=[lent, own], inputs=[given, given], back=own)
    zero, usual = (a["output"] for a in answer["answers"])
    assert not zero.any()
    assert torch.equal(usual, called(session, ("x", X))["output"])
    misfit = session.ask("with_weights", weights=[{"no": X}], inputs=[given], back=own)
    assert misfit["missing"] == ["no"]
    session.ask("with_weights", weights=[lent], inputs=[[("x", None)]], back=own)
    assert torch.equal(session.ask("parameters")["tensors"]["proj.bias"], own["proj.bias"])


# ---------------------------------------------------------------- what it leaves behind

LEAVES = {
    "torch.set_default_dtype(torch.float64)": "the default dtype is torch.float64, it was",
    "torch.set_grad_enabled(False)": "grad mode is False, it was True",
    "torch.manual_seed(3)": "the random seed was set by a call",
    "torch.rand(2)": "a call in eval mode drew random numbers",
    "F.gelu = lambda x: x": "F.gelu was replaced",
    "torch.use_deterministic_algorithms(True)": "deterministic algorithms is True, it was False",
}


@pytest.mark.parametrize(("line", "said"), LEAVES.items())
def test_trespasses_are_told(line, said):
    """One phrase each; what belongs to everybody is put back here."""
    real = F.gelu
    try:
        session = made(module(f"{line}\nreturn x"))
        asked = {"name": "Net", "init": {"width": 4}, "seed": 5}
        found = told(session, "side_effects", X, **asked)["changes"]
    finally:
        F.gelu = real
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
    assert len(found) == 1
    assert found[0].startswith(said)
    assert torch.is_grad_enabled()


def test_a_seed_in_the_constructor_is_told_and_drawing_weights_is_not():
    """Building may draw, and nothing else."""
    asked = {"name": "Net", "init": {"width": 4}, "seed": 5}
    assert told(made(LINEAR), "side_effects", X, **asked) == {"changes": []}
    seeded = made(module("return x", "torch.manual_seed(0)"))
    assert told(seeded, "side_effects", X, **asked)["changes"] == [
        "the random seed was set while building"
    ]
