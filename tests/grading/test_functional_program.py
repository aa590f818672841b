"""A program whose model is a dict of weights, and that predicts classes: parts are as declared."""

from pathlib import Path
from textwrap import dedent

import pytest

from attnlab.catalogue.programs import read_program
from attnlab.errors import Unreadable
from attnlab.records import Limits
from attnlab.records.program import ProgramJob

MODEL = """
import torch

def new_weights():
    draw = lambda *shape: (torch.randn(*shape) * 0.3).requires_grad_()
    layers = [{"w": draw(8, 8), "b": draw(8)}]
    return {"embed": draw(6, 8), "layers": layers, "head": draw(8, 2), "version": 3}

def bend(layer, x):
    return x + torch.tanh(torch.einsum("bsd,de->bse", x, layer["w"]) + layer["b"])

def forward(weights, ids, mask):
    x = weights["embed"][ids]
    for layer in weights["layers"]:
        x = bend(layer, x)
    x = (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    return x @ weights["head"]
"""
TRAIN = """
import torch
from torch.nn import functional as F
import data, model

STEPS = 60

def make_model():
    return model.new_weights()

def make_optimizer(weights):
    layer = weights["layers"][0]
    return torch.optim.SGD([weights["embed"], layer["w"], layer["b"], weights["head"]], lr=0.5)

def train(weights, optimizer, steps):
    losses = []
    for step in range(steps):
        ids, mask, labels = data.draw(step)
        optimizer.zero_grad()
        loss = F.cross_entropy(model.forward(weights, ids, mask), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

@torch.no_grad()
def predict(weights, ids, mask):
    return model.forward(weights, ids, mask).argmax(-1).tolist()
"""
DATA = """
import torch

def draw(step):
    dice = torch.Generator().manual_seed(step)
    ids = torch.randint(1, 6, (16, 5), generator=dice)
    mask = (torch.arange(5) < torch.randint(2, 6, (16, 1), generator=dice)).float()
    return ids * mask.long(), mask, (((ids == 1) * mask).sum(1) > 0).long()
"""
PROGRAM = """
format = 1
title = "Bags of ids"
level = 2
minutes = 20
source = "a test"
edit = ["model.py", "train.py"]
given = ["data.py"]
round = ["bad"]
symptom = "It learns nothing."
task = "Find it."
[training]
make_model = "train.make_model"
make_optimizer = "train.make_optimizer"
train = "train.train"
forward = "model.forward"
predict = "train.predict"
steps = "train.STEPS"
classes = "2"
sample = "train.predict(model, *data.draw(99)[:2])"
items = ["data.draw(98)[:2]"]
[[goals]]
id = "learned"
title = "most bags are told apart"
kind = "accuracy"
bound = 0.9
batch = "data.draw(97)"
"""
UNIT = """
title = "a layer"
class = "model.bend"
[sizes]
B = 2
S = 3
D = 4
[inputs]
layer = "dict(w=D D, b=D)"
x = "B S D"
[output]
axes = "B S D"
[contract]
promises = ["causal", "local"]
vary = ["B", "S", "D"]
"""
BUG = """
category = "optimizer"
level = 1
effect = "slow learning"
seen_by = ["training"]
symptom = "It learns slowly."
hints = ["a", "b", "c"]
why = "w"
find = "f"
source = "s"
follow_ups = [{question = "q", answer = "a"}, {question = "q", answer = "a"}]
[[edits]]
file = "train.py"
old = '        optimizer.zero_grad()'
new = '        pass'
"""


def write_program(folder: Path, description: str = PROGRAM) -> Path:
    (folder / "base").mkdir(parents=True)
    for inside in ("bugs", "units"):
        (folder / inside).mkdir()
    texts = {"program.toml": description, "bugs/bad.toml": BUG, "units/bend.toml": UNIT}
    texts |= {"base/model.py": MODEL, "base/train.py": TRAIN, "base/data.py": DATA}
    for name, text in texts.items():
        (folder / name).write_text(dedent(text).lstrip())
    return folder


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return read_program(write_program(tmp_path_factory.mktemp("programs") / "bags"))


WRONG = {
    "training": ("train.py", "optimizer.zero_grad()", "pass"),
    "prediction": ("train.py", "argmax(-1)", "argmin(-1)"),
    "bend": ("model.py", "bsd,de->bse", "bsd,ed->bse"),
}


@pytest.mark.parametrize("part", [None, *WRONG])
def test_weights_in_a_dict_are_trained_and_compared(part, program, worker):
    """The right program passes and reaches its goal; a bug is seen by the part it is in, also
    where that is a function of a dict of weights."""
    files = dict(program.files)
    if part:
        file, old, new = WRONG[part]
        files[file] = files[file].replace(old, new)
    job = ProgramJob(program=program, files=files, label="bags", stages=("grade", "goals"),
                     limits=Limits(seconds=60.0))  # fmt: skip
    report = worker.run_program(job)
    assert {p.id for p in report.parts} == {"training", "prediction", "bend"}
    assert {p.id for p in report.parts if p.outcome != "passed"} == ({part} if part else set())
    assert report.outcome == ("failed" if part else "passed"), report.message
    if part == "prediction":
        assert "predict returned other classes for 16 of 16 items" in report.message


def test_a_part_is_declared_with_its_inputs(tmp_path):
    """`predict` without items, or prompts without `generate`, is refused by name."""
    without = PROGRAM.replace('items = ["data.draw(98)[:2]"]\n', "")
    with pytest.raises(Unreadable, match="declares predict without items"):
        read_program(write_program(tmp_path / "bags", without))
