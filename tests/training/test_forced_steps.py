"""Tokens that a decoder is fed step by step: those of the step before, and not its own."""

import pytest

from attnlab.training.rules import find
from attnlab.training.run import Wanted, watch_script

SCRIPT = """
import random
import torch
import torch.nn.functional as F
from torch import nn

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(9, 8), nn.GRUCell(8, 8), nn.Linear(8, 9)

    def forward(self, token, state):
        state = self.cell(self.embed(token), state)
        return self.head(state), state

class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, trg):  # teacher forcing
        state, scores, token = torch.zeros(trg.shape[0], 8), [], torch.zeros_like(trg[:, 0])
        for t in range(trg.shape[1]):
            {before}
            score, state = self.decoder(token, state)
            scores.append(score)
            {after}
        return torch.stack(scores, {axis})

torch.manual_seed(0)
model = Translator()
decoder = model.decoder
optimizer = torch.optim.Adam(model.parameters())
for _ in range(9):
    trg = torch.randint(1, 9, (8, 6))
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WHOLE = "loss = F.cross_entropy(model(trg).flatten(0, 1), trg.flatten())"
STEPS = """loss, state, token = 0.0, torch.zeros(8, 8), torch.zeros_like(trg[:, 0])
    for t in range(6):
        {before}
        score, state = decoder(token, state)
        loss = loss + F.cross_entropy(score, trg[:, t])
        {after}"""
OWN, NEXT = "token = trg[:, t]", "token = score.argmax(-1)"


def told(folder, **parts):
    """The lines at which a token is said to be the one that is asked for."""
    text = SCRIPT.format(**{"before": "pass", "after": "pass", "axis": 1, "loss": WHOLE, **parts})
    path = folder / "train.py"
    path.write_text(text)
    code = compile(text, str(path), "exec")
    space = {"__name__": "__main__"}
    seen = watch_script(lambda: exec(code, space), 6, str(path), wanted=Wanted(text))
    lines = text.splitlines()
    return [lines[f.line - 1].strip() for f in find(seen.log) if f.rule == "labels-not-shifted"]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (OWN, "pass", True),
        (f"if random.random() < 0.7: {OWN}", NEXT, True),
        ("pass", OWN, False),
        ("pass", NEXT, False),
        ("if t: token = trg[:, t - 1]", "pass", False),
    ],
)
def test_a_step_is_fed_the_token_before_it(before, after, found, tmp_path):
    """All steps in one loss, in rows or by time, and each step in a loss of its own."""
    parts = {"before": before, "after": after}
    fed = [next(part for part in parts.values() if part.endswith(OWN))] if found else []
    assert told(tmp_path, **parts) == fed
    by_time = "loss = F.cross_entropy(model(trg).flatten(0, 1), trg.T.flatten())"
    assert told(tmp_path, **parts, axis=0, loss=by_time) == fed
    assert told(tmp_path, loss=STEPS.format(**parts)) == fed


def test_one_token_may_be_that_of_all_steps(tmp_path):
    """Targets of one id for all rows say nothing of where they come from."""
    same = "trg = torch.full((8, 6), 3); " + WHOLE
    assert told(tmp_path, after=OWN, loss=same) == []
