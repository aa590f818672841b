"""What a loss shows is told at the line that made it: labels, a graph that is cut."""

import pytest

from attnlab.training.report import build_report
from attnlab.training.run import Wanted, watch_script

SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 16), nn.Linear(16, 11)

    def forward(self, ids, {name}):
        hidden = {hidden}
        logits = self.head(hidden)
        return {loss}

def draw():
    start = torch.randint(1, 11, (4, 9))
    x = start[:, :-1]
    y = {made}
    return x, y

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for step in range(9):
    x, y = draw()
    loss = model(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PLAIN = "F.cross_entropy(logits.flatten(0, 1), {name}.flatten())"
SHIFTED = "F.cross_entropy(logits[:, :-1].flatten(0, 1), {name}[:, 1:].flatten())"
EMBEDDED = "torch.tanh(self.embed(ids))"


@pytest.fixture
def suspect(tmp_path):
    """The rule and the text of the line of each warning about a script."""

    def look(name, loss, made, hidden=EMBEDDED):
        changes = {"name": name, "loss": loss.format(name=name), "made": made, "hidden": hidden}
        text = SCRIPT.format(**changes)
        path = tmp_path / "train.py"
        path.write_text(text)
        code, space = compile(text, str(path), "exec"), {"__name__": "__main__"}
        seen = watch_script(lambda: exec(code, space), 6, str(path), wanted=Wanted(text))
        found = build_report(seen.log, seen.raw).findings
        lines = text.splitlines()
        return [(f.rule, lines[f.line - 1].strip()) for f in found if f.severity != "note"]

    return look


@pytest.mark.parametrize(
    ("name", "loss", "made", "rule", "at"),
    [
        ("targets", PLAIN, "torch.stack(list(start[:, :-1]))", "labels-not-shifted", "y = torch"),
        ("labels", PLAIN, "torch.stack(list(start[:, :-1]))", "labels-not-shifted", "return F."),
        ("targets", PLAIN, "x", "labels-not-shifted", "return F."),
        ("targets", SHIFTED, "start[:, 1:]", "labels-shifted-twice", "return F."),
        ("labels", SHIFTED, "start[:, 1:]", "labels-shifted-twice", "y = start"),
    ],
)
def test_labels_are_suspected_where_they_should_have_been_shifted(
    suspect, name, loss, made, rule, at
):
    """A model that takes `labels` shifts them, as those of transformers do; one that takes targets
    is given the next ids. Labels that are the input itself are told at the loss."""
    ((found, line),) = suspect(name, loss, made)
    assert found == rule
    assert line.startswith(at)


def test_a_part_without_gradient_is_told_where_the_graph_is_cut(suspect):
    """By the one line that takes a layer's output out of it, and not at the optimizer."""
    cut = "self.embed(ids).data.tanh()"
    assert suspect("y", PLAIN, "start[:, 1:]", cut) == [("no-gradient", f"hidden = {cut}")]
