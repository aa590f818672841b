"""One batch is learned again and again, and what becomes of it is told."""

import pytest
import torch
from torch import nn

from attnlab.records import OneBatch
from attnlab.training.log import TrainingLog
from attnlab.training.one_batch import learn_with_module
from attnlab.training.rules import find, summary
from attnlab.training.run import Wanted, watch_script

LONG = 300  # seconds that no test needs
SCRIPT = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 5))
{setup}
for step in range(9):
    x, y = torch.randn(6, 8), torch.randint(5, (6,))
    {body}
"""
BODY = "optimizer.zero_grad(); loss = {loss}; loss.backward(); optimizer.step()"
ADAM = "optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)"
LBFGS = "optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5)"
CLOSED = """def closure():
        optimizer.zero_grad(); loss = F.cross_entropy(net(x), y); loss.backward(); return loss
    optimizer.step(closure)"""
LOSS = "F.cross_entropy(net(x), y)"
USUAL = BODY.format(loss=LOSS)


def learned(tmp_path, setup=ADAM, body=USUAL):
    text = SCRIPT.format(setup=setup, body=body)
    path = tmp_path / "train.py"
    path.write_text(text)
    code = compile(text, str(path), "exec")
    space = {"__name__": "__main__"}
    log = watch_script(lambda: exec(code, space), 4, str(path), wanted=Wanted(overfit=LONG)).log
    return log, [f.rule for f in find(log)]


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        (ADAM, USUAL),
        (LBFGS, CLOSED),
        (ADAM, BODY.format(loss="-net(x).log_softmax(-1).gather(1, y[:, None]).mean()")),
        (ADAM, USUAL.replace("loss.", "(loss / 2).backward(); loss.", 1)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_right_script_learns_a_batch_with_its_own_settings(setup, body, tmp_path):
    """Any optimizer and any loss; closures, and several backward passes of one step."""
    body = body.replace("(loss / 2).backward()", "(loss / 2).backward(retain_graph=True)")
    log, rules = learned(tmp_path, setup, body)
    assert [(run.learned, run.usual) for run in log.one_batch] == [(True, False)]
    assert log.one_batch[0].losses[0] > 10 * log.one_batch[0].losses[-1]
    assert not {"one-batch-not-learned", "settings-do-not-learn"} & set(rules)
    assert "model and loss can learn it" in " ".join(summary(log))


def test_a_model_that_cannot_learn_a_batch_is_a_finding(tmp_path):
    """Here the gradient is cut before all but the last bias."""
    body = BODY.format(loss="F.cross_entropy(0 * net(x) + net[2].bias.mean(), y)")
    log, rules = learned(tmp_path, body=body)
    assert "one-batch-not-learned" in rules
    assert len(log.one_batch) == 2


def test_settings_that_do_not_learn_are_told_from_a_model_that_cannot(tmp_path):
    """The same step with Adam does."""
    log, rules = learned(tmp_path, ADAM.replace("1e-2", "1e-9"))
    assert "settings-do-not-learn" in rules
    assert [run.learned for run in log.one_batch] == [False, True]


def test_a_step_that_cannot_be_repeated_is_told(tmp_path):
    """Nothing is claimed of it."""
    log, _ = learned(tmp_path, body="loss = None; optimizer.step()")
    assert log.one_batch == ()
    assert any(text.startswith("overfitting one batch") for text in log.not_seen)


class Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 32), nn.Linear(32, 9)
        self.place = nn.Parameter(torch.randn(6, 32))

    def forward(self, ids):
        return self.head((self.embed(ids) + self.place).tanh())


@pytest.mark.parametrize(
    ("module", "given", "says"),
    [
        (Ids(), torch.arange(6)[None], "random ids among 9"),
        (nn.Linear(4, 4), torch.randn(3, 5, 4), "other weights"),
    ],
)
def test_a_module_alone_is_given_a_target(module, given, says):
    """It is told which; the module itself stays as it is."""
    before = [p.clone() for p in module.parameters()]
    (run,) = learn_with_module(module, (given,), {}, LONG).one_batch
    assert says in run.how
    assert run.learned
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_a_curve_that_still_falls_is_no_finding():
    """More time may show it."""
    run = OneBatch(how="Adam", steps=70, losses=(2.0, 1.9), learned=False, falling=True, usual=True)
    log = TrainingLog(one_batch=(run,))
    assert list(find(log)) == []
    assert "--seconds" in " ".join(summary(log))
