"""What the text of a training script gives to its losses, and what it freezes."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

DISTIL = """
def distill(student, teacher, T):
    scores = F.{softmax}(student / T, dim=-1)
    return F.kl_div(scores, F.softmax(teacher / T, dim=-1), reduction="batchmean")
"""
CRITERION = """
criterion = nn.{loss}()
def train(model, x, y):
    probs = torch.{through}(model(x))
    loss = criterion(probs, y)
"""
MASKING = """
def mask_tokens(inputs, masked):
    inputs = inputs.clone()
    {before}
    inputs[masked] = MASK
    {after}
    return inputs, labels
"""
FROZEN = """
class Backbone(nn.Module):
    def __init__(self):
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8{tracks}))

class Head(nn.Module):
    def __init__(self):
        self.backbone = Backbone()
        for p in self.backbone.parameters():
            p.requires_grad = False

def train(model):
    model.train()
    {still}
"""


def rules(text):
    return [(f.rule, f.line) for f in source_findings(dedent(text), "a.py")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DISTIL.format(softmax="softmax"), [("probabilities-into-loss", 4)]),
        (DISTIL.format(softmax="log_softmax"), []),
        (CRITERION.format(loss="CrossEntropyLoss", through="softmax"),
         [("probabilities-into-loss", 5)]),
        (CRITERION.format(loss="BCELoss", through="sigmoid"), []),
        (CRITERION.format(loss="BCEWithLogitsLoss", through="sigmoid"),
         [("probabilities-into-loss", 5)]),
    ],
)  # fmt: skip
def test_a_loss_gets_what_it_takes(text, expected):
    """Also in a part of the script that is never reached while one watches."""
    assert rules(text) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("pass", "labels = torch.where(masked, inputs, -100 * one)", [("labels-overwritten", 6)]),
        ("pass", "labels = inputs.masked_fill(~masked, -100)", [("labels-overwritten", 6)]),
        ("labels = inputs.masked_fill(~masked, -100)", "pass", []),
    ],
)
def test_labels_are_kept_from_before_the_masking(before, after, expected):
    """Else the model is taught to write the mask token."""
    assert rules(MASKING.format(before=before, after=after)) == expected


@pytest.mark.parametrize(
    ("still", "tracks", "expected"),
    [
        ("pass", "", [("frozen-statistics", 9)]),
        ("model.backbone.eval()", "", []),
        ("pass", ", track_running_stats=False", []),
    ],
)
def test_frozen_batch_norms_stand_still(still, tracks, expected):
    """train() of the whole sets the frozen part in train mode, and its averages move."""
    assert rules(FROZEN.format(still=still, tracks=tracks)) == expected
