"""The properties of a module through a session: on the example's inputs, and on a demo's own."""

import os
import sys

import pytest
import torch
from modules import HEAD, called, made, module, randn

from attnlab.candidate.session import Session
from attnlab.records import LiveReport, UserEnvironment, from_json, plain
from attnlab.records.ablation import AblationReport

SAID = {"promised": [], "unpromised": []}
DEMO = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 4)
    def forward(self, x, *, gain):
        return self.w(x - x.mean((0, 1))) * gain
for step in range(2):
    Net()(torch.randn(3, 5, 4), gain=torch.ones(1))
"""


LOSS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.h = nn.Embedding(9, 4), nn.Linear(4, 9)
    def forward(self, ids):
        x = self.e(ids)
        return self.h(x + x.mean(1, keepdim=True))
data = torch.randint(0, 9, (3, 8), generator=torch.Generator().manual_seed(0))
logits = Net()(data[:, :-1])
{loss}
raise ValueError("what follows the loss ends no look at the first call")
"""


def failed(answer):
    assert "raised" not in answer, answer
    found = from_json(LiveReport, answer["report"])
    return {check.id for check in found.checks if check.outcome == "failed"}


def test_the_properties_of_the_target():
    """They are looked at on the inputs that are sent."""
    session = made(
        module("return self.w(x - x.mean(0)) + x.mean(1, True)", "self.w = nn.Linear(4, 4)")
    )
    answer = called(session, ("x", randn(3, 5, 4)), verb="look_at_properties", **SAID)
    assert failed(answer) == {"batch-independence", "edge-shapes"}


def test_a_mask_that_was_given_as_none_is_tried():
    """An example without a mask passes None by position; the mask is given there all the same."""
    ignores = "return (x @ x.mT).softmax(-1) @ self.w(x)"
    session = made(module(ignores, "self.w = nn.Linear(4, 4)", head="self, x, attn_mask=None"))
    given = ("x", randn(3, 5, 4)), ("attn_mask", None)
    assert failed(called(session, *given, verb="look_at_properties", **SAID)) == {"mask-effect"}


def demo(text, tmp_path, verb="look_at_demo"):
    own = plain(UserEnvironment(cwd=str(tmp_path)))
    before, argv, main = os.getcwd(), sys.argv, sys.modules["__main__"]  # noqa: PTH109
    environ = dict(os.environ)
    try:
        code = {"file": "demo.py", "text": HEAD + text, "path": "", "own": own}
        return Session().ask(verb, **code, **(SAID if verb == "look_at_demo" else {}))
    finally:
        os.chdir(before)
        os.environ.update(environ)
        sys.argv, sys.modules["__main__"] = argv, main


def test_the_properties_of_a_demos_module(tmp_path):
    """Keyword arguments come along, and it is the first call that counts."""
    assert failed(demo(DEMO, tmp_path)) == {"batch-independence", "edge-shapes"}


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten())",
        "nn.CrossEntropyLoss()(logits.flatten(0, 1), data[:, 1:].flatten())",
        "nn.functional.cross_entropy(logits[:, :-1].mT, data[:, 1:-1])",
    ],
)
def test_the_targets_of_a_demos_loss_promise_causality(loss, tmp_path):
    """A model without any mask that is to predict the next token reads it."""
    assert "causality" in failed(demo(LOSS.format(loss=loss), tmp_path))


CALLED = """
def {name}(x):
    return x.cumsum(1) / x.exp().sum(1, keepdim=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(4, 4)
    def forward(self, x):
        return {name}(self.w(x))
Net()(torch.randn(3, 5, 4))
"""


@pytest.mark.parametrize(
    ("name", "promised"),
    [("causal_attention", True), ("attention", False), ("noncausal_attention", False)],
)
def test_attention_that_is_called_causal_promises_it(name, promised, tmp_path):
    """As a causal linear attention does that divides by the sum over all keys."""
    assert ("causality" in failed(demo(CALLED.format(name=name), tmp_path))) == promised


RESIDUAL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
    def forward(self, x):
        return x + self.w(self.norm(x))
Net()(torch.randn(3, 5, 4))
"""


def test_parts_are_switched_off_in_an_example_and_in_a_demo(tmp_path):
    """What they do stands in a report, those that change most first."""
    session = made(module("return x + self.w(x)", "self.w = nn.Linear(4, 4)"))
    alone = called(session, ("x", randn(3, 5, 4)), verb="ablate_example")
    whole = demo(RESIDUAL, tmp_path, "ablate_demo")
    for answer, kinds in ((alone, {"residual"}), (whole, {"residual", "norm"})):
        parts = from_json(AblationReport, answer["report"]).parts
        assert kinds <= {part.kind for part in parts}
        changes = [part.change for part in parts]
        assert changes == sorted(changes, reverse=True)
        assert min(changes) > 0


def test_a_function_has_properties_too():
    """It is looked at as a module without parameters."""
    session = Session()
    session.target = lambda x: x.softmax(0) + x.sum(1, True)
    answer = called(session, ("x", torch.randn(3, 5, 4)), verb="look_at_properties", **SAID)
    assert "batch-independence" in failed(answer)


DECODER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.p, self.h = nn.Embedding(9, 8), nn.Embedding(32, 8), nn.Linear(8, 9)
    def forward(self, ids, start, past):
        x = self.e(ids) + self.p(torch.arange(start, start + ids.shape[1]))
        k = past[0] = x if past[0] is None else torch.cat((past[0], x), 1)
        mask = torch.ones(ids.shape[1], k.shape[1]).tril(k.shape[1] - ids.shape[1]).bool()
        return self.h(x + nn.functional.scaled_dot_product_attention(x, k, k, attn_mask=mask))
class Bot:
    def __init__(self, net):
        self.net, self.past, self.seen = net, [None], 0
    def read(self, ids):
        out = self.net(ids, self.seen, self.past)
        self.seen += {counted}
        return out
    def answer(self, ids, count):
        self.past, self.seen = {kept}
        for _ in range(count):
            out = self.read(ids)
            ids = out[:, -1:].argmax(-1)
        return out
torch.manual_seed(0)
bot = Bot(Net().eval())
if __name__ == "__main__":
    for _ in range(2):
        bot.answer(torch.tensor([[1, 5, 2, 7]]), 3)
    print("done", torch.rand(1))
"""
RIGHT = {"counted": "ids.shape[1]", "kept": "[None], 0"}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, set()),
        ({"counted": "4"}, {"prefill-equals-decode"}),
        ({"kept": "self.past, self.seen"}, {"second-call"}),
    ],
)
def test_a_demo_is_followed_to_its_end(change, broken, tmp_path):
    """The steps of its own loop equal one pass, and its equal calls give equal results."""
    text = DECODER.format(**RIGHT | change)
    assert failed(demo(text, tmp_path)) == broken


@pytest.mark.parametrize(
    "text",
    [
        "def draw(x): return x * torch.rand(1)",
        "seen = []\ndef push(x):\n    seen.append(x)\n    return sum(seen)",
        "def net_of(x): return Net()(x)",
        "def halve(x): return x.mul_(0.5)",
    ],
)
def test_equal_calls_that_are_meant_to_differ_are_no_fault(text, tmp_path):
    """Random numbers, a name that says that it goes on, weights of its own, another argument."""
    name = text.partition("(")[0].rpartition(" ")[2]
    head = "Net = lambda: nn.Linear(4, 4)\nNet()(torch.ones(1, 3, 4))\n"
    calls = f"\ngiven = torch.ones(1, 3, 4)\nfor _ in range(3):\n    {name}(given)\n"
    assert "second-call" not in failed(demo(head + text + calls, tmp_path))


def test_a_demo_without_an_end_is_left(tmp_path, monkeypatch):
    """Its time is up at its next call of a function, and what it wrote is nowhere."""
    monkeypatch.setattr("attnlab.candidate.live.demo_run.SECONDS", 0.05)
    monkeypatch.setattr("attnlab.candidate.verbs.live.SECONDS", 0.05)
    # Written once: a file that is being opened when the time is up is closed by nobody.
    forever = "def idle(): pass\nwith open('left.txt', 'wb'): pass\nwhile True: idle()\n"
    assert "finite" not in failed(
        demo(f"nn.Linear(4, 4)(torch.ones(2, 3, 4))\n{forever}", tmp_path)
    )
    assert not (tmp_path / "left.txt").exists()
