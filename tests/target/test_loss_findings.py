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
    ("target", "more", "found"),
    [
        ("F.log_softmax(teacher, -1)", "", True),
        ("teacher.softmax(-1).log().flatten(0, 1)", "", True),
        ("F.softmax(teacher, -1)", "", False),
        ("F.log_softmax(teacher, -1)", ", log_target=True", False),
    ],
)
@pytest.mark.parametrize("call", ["F.kl_div", "nn.KLDivLoss(reduction='sum')"])
def test_a_divergence_takes_probabilities_as_its_target(call, target, more, found):
    """Unless it says that they are logarithms; a change of shape hides nothing."""
    made, given = (f"{call[:-1]}{more})", "") if call.endswith(")") else (call, more)
    text = (
        f"soft = {target}\ndivergence = {made}\nloss = divergence(x.log_softmax(-1), soft{given})"
    )
    text = text.replace("divergence(", "F.kl_div(") if "Loss" not in call else text
    assert [line for rule, line in rules(text) if rule == "divergence-target"] == [3] * found


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


ELBO = """
def elbo(logits, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(logits, x{reduction})
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
    return recon + {weight}kl
"""


@pytest.mark.parametrize(
    ("reduction", "weight", "expected"),
    [
        ("", "", [("terms-uneven", 3)]),
        (", reduction='sum'", "", []),
        ("", "0.01 * ", []),
    ],
)
def test_terms_of_a_loss_are_reduced_alike(reduction, weight, expected):
    """A mean over all pixels beside a sum over latents leaves the sum alone to be trained."""
    assert rules(ELBO.format(reduction=reduction, weight=weight)) == expected


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("ema = (1 - decay) * ema + decay * new", True),
        ("ema = decay * ema + (1 - decay) * new", False),
        ("target = (1 - tau) * target + tau * online", False),
        ("ema_p.mul_(1 - decay).add_(p, alpha=decay)", True),
        ("tree_map(lambda e, p: (1 - decay) * e + decay * p, ema, params)", True),
        ("tree_map(lambda p, e: (1 - decay) * p + decay * e, params, ema)", False),
    ],
)
def test_the_decay_weighs_the_average(line, wrong):
    """With tau it is the other way round, and right."""
    assert [rule for rule, _ in rules(line)] == ["average-too-fast"] * wrong


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("std = torch.exp(logvar)", ["variance-as-deviation"]),
        ("std = torch.exp(0.5 * logvar)", []),
        ("std = log_std.exp()", []),
        ("label = F.interpolate(label[None], size=9, mode='bilinear')", ["labels-blurred"]),
        ("label = F.interpolate(label[None], size=9, mode='nearest')", []),
        ("target = F.interpolate(target, size=9, mode='bilinear'); F.l1_loss(x, target)", []),
        ("image = F.interpolate(image[None], size=9, mode='bilinear')", []),
    ],
)
def test_variances_and_classes_are_what_they_are(line, expected):
    """exp(logvar) is no deviation, and a mean of classes is no class."""
    assert [rule for rule, _ in rules(line)] == expected


TWO_WAYS = """
class Net(nn.Module):
    def __init__(self):
        self.rnn = nn.GRU(8, 8, batch_first=True, bidirectional={both})
    def forward(self, x):
        out, h_n = self.rnn(x)
        return {read}
"""


@pytest.mark.parametrize(
    ("both", "read", "lines"),
    [
        ("True", "out[:, -1]", [7]),
        ("False", "out[:, -1]", []),
        ("True", "torch.cat([h_n[-2], h_n[-1]], -1)", []),
    ],
)
def test_the_way_back_ends_at_the_first_step(both, read, lines):
    """At the last step it has read one token."""
    assert [line for _, line in rules(TWO_WAYS.format(both=both, read=read))] == lines


BY_NAME = """
class Trunk(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8))

class Net(nn.Module):
    def __init__(self):
        self.trunk = Trunk()

for name, p in model.named_parameters():
    if {test}:
        p.requires_grad = False
model.train()
"""


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ('name.startswith("trunk")', [10]),
        ('"head" not in name', [10]),
        ('name.startswith("other")', []),
    ],
)
def test_parts_are_also_frozen_by_their_names(test, lines):
    """A loop over named parameters freezes what its test names, or all but that."""
    found = rules(BY_NAME.format(test=test))
    assert [line for rule, line in found if rule == "frozen-statistics"] == lines
