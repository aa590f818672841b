"""The verbs of a program, asked of a session in this process."""

import math

import pytest
import torch

from attnlab.candidate.program import ExactNumbers, MissingName
from attnlab.candidate.quick_optimizers import CompilerStandIn
from attnlab.candidate.session import Session

MODEL = """
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(F.dropout(self.table(ids).float(), 0.5, self.training))
"""
TRAIN = """
import torch
from torch.nn import functional as F
from model import Net

EVERY = 10


def make_model():
    return Net()


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, steps):
    losses = []
    for step in range(steps):
        model.train()
        ids = torch.arange(5)
        loss = F.cross_entropy(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def evaluate(model):
    return float(EVERY)


def generate(model, ids, count):
    return torch.cat([ids, ids.new_zeros(len(ids), count)], dim=1)
"""
NAMES = ("make_model", "make_optimizer", "train", "evaluate", "generate")


@pytest.fixture
def session(monkeypatch):
    """A session with the small program above; float64 is taken back afterwards."""
    found = Session()
    ask(found, "load_program", **program())
    yield found
    torch.set_default_dtype(torch.float32)


def program(train=TRAIN, **more):
    entries = {name: f"train.{name}" for name in NAMES}
    files = {"model.py": MODEL, "train.py": train}
    asked = {"files": files, "label": "net/", "entries": entries, "constants": ["train.EVERY"]}
    return asked | {"exact": True} | more


def ask(session, verb, **args):
    answer = session.ask(verb, **args)
    assert "raised" not in answer, answer
    return answer


def test_constants_are_told_and_settings_change_them(session):
    """A changed constant is seen as text, and the grader's value reaches the functions."""
    told = session.ask("load_program", **program(TRAIN.replace("EVERY = 10", "EVERY = 11")))
    assert told == {"constants": {"train.EVERY": "11"}}
    ask(session, "change_settings", settings={"train.EVERY": 2}, loose={})
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    assert ask(session, "observe_evaluation", weights=weights)["value"].item() == 2


def test_a_tied_parameter_has_each_of_its_names(session):
    """Weights are given by either name, and the tie is known."""
    told = ask(session, "initial_weights", seed=0)
    assert set(told["tensors"]) == {"table.weight", "head.weight"}
    assert told["tied"] == {"head.weight": "table.weight"}
    assert told["tensors"]["head.weight"].dtype is torch.float64


def test_training_is_exact_and_its_dropout_is_noted(session):
    """Float32 by name is float64 and dropout scales, so the numbers are those of hand work."""
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    run = ask(session, "observe_training", weights=weights, steps=2, exact=True)
    last = ask(session, "observe_training", weights=weights, steps=1, exact=False)
    table = weights["table.weight"]
    ids = torch.arange(5)
    right = torch.nn.functional.cross_entropy(0.5 * table @ table.T, ids)
    assert math.isclose(run["losses"][0].item(), right.item(), rel_tol=1e-12)
    assert run["dropout"]
    assert run["modes"] == [True, True]
    assert (run["exact"], last["exact"]) == (True, False)
    assert last["gradients"]["table.weight"].abs().max() > 0
    assert last["rates"].tolist() == [0.1]
    assert run["first weights"].keys() == run["parameters"].keys() == weights.keys()


def test_the_last_run_has_its_own_constants(session):
    """Evaluation, which returns the constant, has the old one again afterwards."""
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    ask(session, "change_settings", settings={}, loose={"train.EVERY": 1})
    ask(session, "observe_training", weights=weights, steps=1, exact=False)
    assert ask(session, "observe_evaluation", weights=weights)["value"].item() == 10


def test_classes_are_predicted_for_one_tensor_or_several(session):
    """An item is what the entry takes after the model; a list of ids is as good as a tensor."""
    text = TRAIN + "\ndef predict(model, *ids):\n    return [t.sum().item() for t in ids]\n"
    asked = program(text)
    ask(
        session,
        "load_program",
        **asked | {"entries": asked["entries"] | {"predict": "train.predict"}},
    )
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    items = [torch.ones(3), [torch.ones(2), torch.ones(1)]]
    told = ask(session, "observe_prediction", weights=weights, items=items)
    assert [classes.tolist() for classes in told["classes"]] == [[3], [2, 1]]


def test_expressions_logits_ids_and_samples(session):
    """What goals are made of: values over the modules, and what the trained model gives."""
    values = ask(session, "evaluate_expressions", expressions=["train.EVERY", "(1, 2)"])["values"]
    assert values == [10, [1, 2]]
    ask(session, "load_program", **program(exact=False))
    run = ask(session, "train_model", seed=0, steps=3)
    assert len(run["losses"]) == len(run["backward_losses"]) == 3
    assert len(ask(session, "continue_training", steps=2)["losses"]) == 2
    ids = torch.zeros(1, 3, dtype=torch.long)
    assert ask(session, "model_logits", inputs=[ids])["output"].shape == (1, 3, 5)
    assert ask(session, "generate_ids", prompt=ids, count=2)["output"].shape == (1, 5)
    assert ask(session, "sample_text", expression="type(model).__name__")["text"] == "Net"
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    told = ask(session, "observe_generation", weights=weights, prompts=[ids], count=2)
    assert (told["ids"][0].shape, told["dropout"]) == ((1, 5), False)


def test_a_training_is_measured_beside_its_losses(session):
    """Gradients and modes of the steps that ran, as short texts by what is asked for."""
    ask(session, "load_program", **program(exact=False))
    run = ask(session, "measure_training", seed=0, steps=3)
    assert len(run["losses"]) == 3
    assert {"gradient norms, step 1", "mode of the model in training"} <= run["evidence"].keys()
    assert all(isinstance(text, str) and text for text in run["evidence"].values())


def test_one_step_is_traced(session):
    """The rows of a step are those between two steps of the optimizer."""
    ask(session, "load_program", **program(exact=False))
    text = ask(session, "trace_training_step", seed=0, steps=5, step=2)["trace"]
    assert text.count('"op": "cross_entropy"') == 1


def test_gradients_that_are_asked_for_by_function_count_as_steps(session):
    """A loop in functional style has no backward, and its losses are noted all the same."""
    functional = TRAIN.replace(
        "loss.backward()",
        "model.table.weight.grad, = torch.autograd.grad(loss, model.table.weight)",
    ).replace("optimizer.step()", "optimizer.step()\n        assert step < 1")
    ask(session, "load_program", **program(functional, exact=False))
    run = ask(session, "train_model", seed=0, steps=4)
    assert (len(run["backward_losses"]), run["ended"]["error"]) == (2, "AssertionError")


def test_floats_of_a_batch_are_given_in_the_type_of_the_model(session):
    """What the right program computed in float64 goes into a model of float32."""
    dense = "        return self.head(ids)"
    text = MODEL[: MODEL.index("        return self.head")] + dense
    files = program(exact=False)["files"] | {"model.py": text}
    ask(session, "load_program", **program(exact=False) | {"files": files})
    ask(session, "initial_weights", seed=0)
    out = ask(session, "model_logits", inputs=[torch.ones(2, 4, dtype=torch.float64)])["output"]
    assert out.dtype is torch.float32


def test_a_crash_in_training_keeps_the_losses_before_it(session):
    """What raised is told with the losses of the steps that ended."""
    broken = TRAIN.replace("optimizer.step()", "optimizer.step()\n        assert step < 1")
    ask(session, "load_program", **program(broken, exact=False))
    run = ask(session, "train_model", seed=0, steps=4)
    assert (len(run["backward_losses"]), run["ended"]["error"]) == (2, "AssertionError")


def test_backward_passes_between_two_steps_are_one_step(session):
    """A loss that comes in parts, as of micro-batches, is their sum."""
    whole = TRAIN.replace("optimizer.step()", "optimizer.step()\n        assert step < 1")
    halves = whole.replace(
        "loss.backward()", "[(loss / 2).backward(retain_graph=True) for _ in '12']"
    )
    losses = []
    for text in (whole, halves):
        ask(session, "load_program", **program(text, exact=False))
        losses.append(ask(session, "train_model", seed=0, steps=4)["backward_losses"])
    assert losses[0] == pytest.approx(losses[1])
    assert len(losses[0]) == 2


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("def evaluate", "def evaluated", "evaluate is missing from train.py"),
        ("return Net()", "return None", "make_model returned nothing"),
        ("return torch.optim.SGD(model.parameters(), lr=0.1)", "return 3", "not an optimizer"),
        ("return losses", "return None", "train returned nothing"),
    ],
)
def test_what_is_declared_and_missing_is_named(session, old, new, says):
    """One line says which declared name is wrong, and how."""
    told = session.ask("load_program", **program(TRAIN.replace(old, new), exact=False))
    if "raised" not in told:
        told = session.ask("train_model", seed=0, steps=1)
    assert told["raised"]["error"] == MissingName.__name__
    assert says in told["raised"]["message"]


def test_exact_numbers_count_fused_dropout():
    """Attention in one call scales as well, and that it would drop is noted."""
    q = torch.ones(1, 1, 2, 2)
    with ExactNumbers() as exact:
        out = torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.9)
        assert torch.allclose(out, q * 0.1)
        assert torch.zeros(1).half().dtype is torch.float64
    assert exact.active == 1
    with ExactNumbers(keep_half=True):
        assert torch.zeros(1).half().dtype is torch.float16
        assert torch.zeros(1).float().dtype is torch.float64


def test_exact_numbers_scale_in_multi_head_attention():
    """The module's own dropout is inside one call: every call gives the same, with either path."""
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True).train()
    x = torch.randn(2, 5, 8)
    with ExactNumbers() as exact:
        found = [layer(x, x, x, need_weights=flag)[0] for flag in (True, False)]
    assert torch.allclose(*found, atol=1e-6)
    assert exact.active == 2


def test_the_stand_in_answers_what_optimizers_ask():
    """A decorator keeps its function; breaking a graph does nothing."""
    stand_in = CompilerStandIn("torch._dynamo")
    assert stand_in.disable(len) is len
    assert stand_in.disable(recursive=False)(len) is len
    assert stand_in.graph_break() is None


def test_an_expression_of_a_stage_has_its_value_and_its_cost(session):
    """After its lines of setup, with these weights: rows through a weight, the largest tensor."""
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    setup, value = "ids = torch.arange(3)", "model.table(ids) @ model.table.weight.T"
    given = {"weights": weights, "setup": setup, "expression": value}
    told = ask(session, "observe_stage", **given, metered=True)
    table = weights["table.weight"]
    assert torch.equal(told["value"], table[:3] @ table.T)
    assert (told["rows"], told["largest"]) == (3, [4, 5])
    told = ask(session, "observe_stage", **given, metered=False)
    assert (told["rows"], told["largest"]) == (0, [])


def test_memory_that_nobody_wrote_is_nan(session):
    """An evaluation that counts in `torch.empty` is wrong each time, whatever lies there."""
    counted = "    return (torch.empty(3, 3) + EVERY).mean().item()"
    ask(session, "load_program", **program(TRAIN.replace("    return float(EVERY)", counted)))
    weights = ask(session, "initial_weights", seed=0)["tensors"]
    assert math.isnan(ask(session, "observe_evaluation", weights=weights)["value"].item())
