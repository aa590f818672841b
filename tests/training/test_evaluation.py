"""A function that evaluates is called after the steps, and what it does beside that is found."""

import textwrap

import pytest

SCRIPT = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

def evaluate(net, loader, top=1):
    {before}
    with {guard}:
        for x, y in loader:
            right = (net(x).argmax(-1) == y).sum()
    {after}
    open("score.txt", "w").write(str(right))

class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader

    def test(self):
        evaluate(self.net, self.loader)

def main():
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
    data = TensorDataset(torch.randn(96, 6), torch.randint(3, (96,)))
    held = TensorDataset(torch.randn(32, 6), torch.randint(3, (32,)))
    train, loader = DataLoader(data, 8, shuffle=True), {loader}
    trainer = Trainer(net, loader)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in train:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()

main()
"""
RIGHT = {
    "before": "net.eval()",
    "guard": "torch.no_grad()",
    "after": "net.train()",
    "loader": "DataLoader(held, 8)",
}
TWICE = "labels = torch.cat([y for _, y in loader]); net.eval()"


@pytest.fixture
def evaluated(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(name="evaluate", **changes):
        text = textwrap.dedent(SCRIPT).format(**{**RIGHT, **changes})
        (tmp_path / "train.py").write_text(text)
        said = shell("triage", "train.py", "--eval", name, "--json").json
        assert not (tmp_path / "score.txt").exists()
        return {s["rule"]: s for s in said["suspicions"]}, said

    return run


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("train-while-evaluating", {"before": "pass"}),
        ("eval-while-training", {"after": "pass"}),
        ("evaluation-graded", {"guard": "torch.enable_grad()"}),
        ("evaluation-trains", {"after": "net.train(); net[0].weight.data.mul_(0.9)"}),
        ("evaluation-order", {"before": TWICE, "loader": "DataLoader(held, 8, shuffle=True)"}),
        ("evaluation-shared", {"loader": "DataLoader(data, 8)"}),
    ],
)
def test_what_an_evaluation_does_wrong_is_found(evaluated, rule, changes):
    """At the function, by its name."""
    found, _ = evaluated(**changes)
    assert rule in found
    assert (found[rule]["file"], found[rule]["line"]) == ("train.py", 9)


@pytest.mark.parametrize("name", ["evaluate", "trainer.test", "evaluate(net, loader, top=2)"])
def test_a_right_evaluation_raises_nothing(evaluated, name):
    """A function, a method of what the script made, and a call with values of one's own."""
    found, said = evaluated(name)
    assert found == {}
    assert f"{name}: 4 calls of Sequential, 32 samples" in said["looked_at"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("evaluat", "NameError"),
        ("evaluate(net, 3)", "TypeError"),
    ],
)
def test_what_cannot_be_called_is_told(evaluated, name, says):
    """The rest of the report stands."""
    _, said = evaluated(name)

    assert any(f"--eval {name}: {says}" in text for text in said["not_looked_at"])
    assert said["losses"]


def test_a_module_has_nothing_to_call(shell, tmp_path):
    """--eval is refused where nothing trains."""
    (tmp_path / "net.py").write_text("import torch\nclass N(torch.nn.Linear): pass\n")
    assert "no script that trains" in shell("triage", str(tmp_path / "net.py"), "--eval", "x").err
