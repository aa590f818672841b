"""A small training script with one slip at a time is found; its right twins raise nothing."""

import pytest
import torch

from attnlab.tracer.raw_trace import display_path
from attnlab.training.rules import find
from attnlab.training.run import Wanted, watch_script

SCRIPT = """
from pathlib import Path as P
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
PAD = 0

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.drop = nn.Embedding(11, 16), nn.Dropout(0.1)
        self.mix, self.head = nn.Linear(16, 16), nn.Linear(16, 11)

    def forward(self, ids):
        return self.head(self.drop(torch.tanh(self.mix(self.embed(ids).cumsum(1)))))

def draw():
    ids = torch.randint(1, 11, (4, 9))
    {draw}
    return ids

model = Net()
{setup}
optimizer = torch.optim.AdamW({parameters})
losses = []
for step in range(30):
    ids = draw()
    x, y = {pair}
    {before}
    logits = model(x)
    loss = {loss}
    {backward}
    {step}
    {after}
"""
RIGHT = {
    "draw": "pass",
    "setup": "pass",
    "parameters": "model.parameters(), lr=1e-3",
    "pair": "ids[:, :-1], ids[:, 1:]",
    "before": "optimizer.zero_grad()",
    "loss": "F.cross_entropy(logits.reshape(-1, 11), y.reshape(-1))",
    "backward": "loss.backward()",
    "step": "optimizer.step()",
    "after": "losses.append(loss.item())",
}
CLEARED = "optimizer.zero_grad(); optimizer.step()"
ORDER = "optimizer.step(); optimizer.zero_grad()"
ONCE = "step or globals().update(s=torch.optim.lr_scheduler.StepLR(optimizer, 50)); s.step()"
SHIFTED = "F.cross_entropy(logits[:, :-1].reshape(-1, 11), y[:, 1:].reshape(-1))"
SOFT = "F.cross_entropy(logits.softmax(-1).reshape(-1, 11), y.reshape(-1))"
IGNORING = "F.cross_entropy(logits.reshape(-1, 11), y.reshape(-1), ignore_index=PAD)"
PART = "(F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / 2)"
BACK = f"{PART}.backward()"
FROZEN = "model.embed.weight.requires_grad_(False)"
BODY = "[*model.embed.parameters(), *model.mix.parameters()]"
COUPLED = (
    "model.parameters()); optimizer = torch.optim.RMSprop(model.parameters(), weight_decay=0.9"
)
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
SCHEDULE = "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50)"
EVALUATE = """if step % 4 == 3:
        {mode}
        with torch.no_grad():
            model(x)
        {back}"""
PADDED = "ids[0, 4:] = PAD; ids[1, 6:] = PAD; ids[2, 7:] = PAD"


def watched(folder, changes, steps=12):
    text = SCRIPT.format(**{**RIGHT, **changes})
    path = folder / "train.py"
    path.write_text(text)
    space = {"__name__": "__main__", "__file__": str(path)}
    code = compile(text, str(path), "exec")
    return text, path, watch_script(lambda: exec(code, space), steps, str(path))


def grave(seen):
    return [f for f in find(seen.log) if f.severity != "note"]


def test_what_was_kept_before_is_no_loss_of_this_loop(tmp_path):
    """As where another loop of the notebook kept its losses, or summed them up."""
    weight = torch.ones((), requires_grad=True)
    total = torch.zeros(())
    for _ in range(40):
        total = total + weight * 2
    _, _, seen = watched(tmp_path, {})
    assert total.grad_fn is not None
    assert grave(seen) == []


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("gradients-left-over", {"before": "pass"}),
        ("no-backward", {"backward": "pass"}),
        ("no-step", {"step": "pass"}),
        ("step-before-backward", {"before": ORDER, "step": "pass"}),
        ("cleared-before-step", {"before": "pass", "step": CLEARED}),
        ("cleared-between-parts", {"backward": f"{BACK}; {RIGHT['before']}; {BACK}"}),
        ("clip-late", {"after": CLIP}),
        ("schedule-before-step", {"before": f"optimizer.zero_grad(); {ONCE}"}),
        ("optimizer-made-again", {"before": "optimizer = torch.optim.AdamW(model.parameters())"}),
        ("graph-kept", {"after": "losses.append(loss)"}),
        ("labels-not-shifted", {"pair": "ids, ids"}),
        ("labels-shifted-twice", {"pair": "ids[:, :-2], ids[:, 2:]"}),
        ("labels-shifted-twice", {"loss": SHIFTED}),
        ("padding-counted", {"draw": PADDED}),
        ("probabilities-into-loss", {"loss": SOFT}),
        ("logits-into-nll", {"loss": "F.nll_loss(logits.reshape(-1, 11), y.reshape(-1))"}),
        ("scores-mixed", {"loss": "F.cross_entropy(logits.reshape(4, 11, 8), y)"}),
        ("loss-not-finite", {"after": "model.head.weight.data.fill_(float('nan'))"}),
        ("not-in-optimizer", {"parameters": BODY}),
        ("not-in-optimizer", {"setup": "old = model", "parameters": "Net().parameters()"}),
        ("no-gradient", {"setup": "model.extra = nn.Linear(16, 16)"}),
        ("learning-rate", {"parameters": "model.parameters(), lr=3.0"}),
        ("rate-zero", {"parameters": "model.parameters(), lr=0.0"}),
        ("weight-decay", {"parameters": "model.parameters(), lr=1e-2, weight_decay=10.0"}),
        ("weight-decay", {"parameters": COUPLED}),
        ("eval-while-training", {"after": EVALUATE.format(mode="model.eval()", back="pass")}),
        ("flag-on-module", {"setup": f"{FROZEN}\nmodel.embed.requires_grad = True"}),
        ("train-while-evaluating", {"after": EVALUATE.format(mode="pass", back="pass")}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step:UserWarning")
def test_a_slip_of_the_loop_is_found(rule, changes, tmp_path):
    """By this rule, in the script."""
    _, path, seen = watched(tmp_path, changes)
    found = grave(seen)
    assert rule in [f.rule for f in found], found
    assert {f.file for f in found} == {display_path(str(path))}
    assert all(f.line > 0 for f in found)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"before": "pass", "after": "optimizer.zero_grad(); losses.append(loss.detach())"},
        {"before": "model.zero_grad(set_to_none=False)"},
        {"before": "for p in model.parameters(): p.grad = None"},
        {"step": f"{CLIP}; optimizer.step()"},
        {"loss": "F.cross_entropy(logits.transpose(1, 2), y)"},
        {"loss": "nn.CrossEntropyLoss(label_smoothing=0.1)(logits.flatten(0, 1), y.flatten())"},
        {"loss": "F.nll_loss(logits.log_softmax(-1).reshape(-1, 11), y.reshape(-1))"},
        {"draw": PADDED, "loss": IGNORING},
        {"pair": "ids, ids", "loss": SHIFTED},
        {"after": EVALUATE.format(mode="model.eval()", back="model.train()")},
        {"backward": f"for part in range(2): {PART}.backward()"},
        {"setup": f"{FROZEN}; model.embed.requires_grad = False",
         "parameters": "[p for p in model.parameters() if p.requires_grad]"},
        {"loss": "-F.log_softmax(logits, -1).gather(-1, y[..., None]).mean()"},
        {"after": "with torch.no_grad(): [model(x[:2]) for draw in range(4)]"},
    ],
)  # fmt: skip
def test_the_same_written_rightly_raises_nothing(changes, tmp_path):
    """Gradients cleared anywhere, losses in every layout, accumulation, frozen parts."""
    assert [(f.rule, f.message) for f in grave(watched(tmp_path, changes)[2])] == []


@pytest.mark.parametrize(
    ("given", "drop", "told"), [("x", 0.0, 0), ("x", 0.1, 1), ("x + 1", 0.0, 1)]
)
def test_batch_statistics_may_be_those_of_the_batch_learned_from(given, drop, told, tmp_path):
    """A monitor runs the model once more on it; dropout, and any other batch, are another thing."""
    text = f"""
import torch
from torch import nn
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout({drop}), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(6, 3)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    with torch.no_grad():
        model({given})
"""
    assert ("train-while-evaluating" in rules_of(text, tmp_path)) == told


def test_the_script_ends_after_the_steps_and_its_files_are_kept_apart(tmp_path, monkeypatch):
    """Nothing is written beside it; what it reads back is what it wrote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text("mine")
    write = "P('log.txt').write_text('new'); torch.save(loss.detach(), 'best.pt')"
    read = "torch.load('best.pt'); assert P('log.txt').read_text() == 'new'"
    seen = watched(tmp_path, {"after": f"{write}; {read}"}, 5)[2]
    assert len(seen.log.steps) == 5
    assert seen.log.crash == ""
    assert (tmp_path / "log.txt").read_text() == "mine"
    assert not (tmp_path / "best.pt").exists()
    assert seen.log.redirected == ("best.pt", "log.txt")


def test_a_crash_is_told_with_its_line(tmp_path):
    """What was seen up to there is kept."""
    text, path, seen = watched(tmp_path, {"after": "assert step < 3, 'over'"})
    line = next(n for n, t in enumerate(text.splitlines(), 1) if "over" in t)
    assert seen.log.crash == f"{display_path(str(path))}:{line}: AssertionError: over"
    assert len(seen.log.steps) == 4


def test_what_catches_every_exception_is_ended_all_the_same(tmp_path):
    """The end is no `Exception`."""
    catch = "try: loss.backward()\n    except Exception: pass"
    assert len(watched(tmp_path, {"backward": catch}, 3)[2].log.steps) == 3


def test_one_step_is_traced(tmp_path):
    """The second, from the batch to the loss."""
    raw = watched(tmp_path, {})[2].raw
    assert "cross_entropy" in [op.op for op in raw.ops]
    assert len([op for op in raw.ops if op.op == "embedding"]) == 1


def test_nothing_of_the_users_is_changed_in_other_ways(tmp_path, monkeypatch):
    """Files cut short, data bases; a shell command is not run, and that is told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.txt").write_text("mine")
    words = "import os, sqlite3; os.system('echo new > kept.txt'); os.truncate('kept.txt', 0)"
    log = watched(tmp_path, {"after": f"{words}; sqlite3.connect('runs.db').close()"}, 3)[2].log
    assert (tmp_path / "kept.txt").read_text() == "mine"
    assert not (tmp_path / "runs.db").exists()
    assert log.crash == ""
    assert "a shell command, which was not run: echo new > kept.txt" in log.not_seen


def test_of_several_processes_the_first_runs_here(tmp_path):
    """As one of one: its steps are seen, and that is told."""
    begin = "torch.distributed.init_process_group('gloo', rank=rank, world_size=2, store=store)"
    spawn = f"""import torch.multiprocessing as mp
store = torch.distributed.HashStore()
def work(rank):
    {begin}
    torch.distributed.destroy_process_group()
mp.spawn(work, nprocs=2)"""
    log = watched(tmp_path, {"setup": spawn}, 3)[2].log
    assert (log.crash, len(log.steps)) == ("", 3)
    assert any("2 processes: the first ran alone" in text for text in log.not_seen)


UNCALLED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 4))
        self.head = nn.Linear(4, 4)

    def encode(self, x):
        return self.head(x @ self.table)

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(9):
    loss = model.encode(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_gradients_are_cleared_of_a_model_that_is_never_called_itself(tmp_path):
    """Its parameters belong to no module that a hook sees, and zero_grad() clears them."""
    path = tmp_path / "train.py"
    path.write_text(UNCALLED)
    code = compile(UNCALLED, str(path), "exec")
    seen = watch_script(lambda: exec(code, {"__name__": "__main__"}), 8, str(path))
    assert not grave(seen)


def test_log_softmax_over_another_axis_is_not_asked_for_again(tmp_path):
    """Logarithms along the batch are no logits: applying log_softmax once more would not do."""
    wrong = "F.nll_loss(logits.reshape(-1, 11).log_softmax(0), y.reshape(-1))"
    _, _, seen = watched(tmp_path, {"loss": wrong})
    said = next(f.message for f in grave(seen) if f.rule == "logits-into-nll")
    assert "another axis" in said
    assert "apply log_softmax first" not in said


OWN = """
import torch
import torch.nn.functional as F

torch.manual_seed(0)
w = {{"a": torch.randn(6, 8) * 0.3, "b": torch.randn(8, 3) * 0.3}}
for t in w.values():
    t.requires_grad_()
for _ in range(9):
    x = torch.randn(16, 6)
    loss = F.cross_entropy((x @ w["a"]).relu() @ w["b"], x[:, :3].argmax(1))
    {gradients}
    with torch.no_grad():
        for name, t in w.items():
            t -= 0.1 * {gradient}
            {after}
"""


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        (("loss.backward()", "t.grad", "pass"), {"gradients-left-over"}),
        (("loss.backward()", "t.grad", "t.grad = None"), set()),
        (("loss.backward()", "t.grad", "t.grad.zero_()"), set()),
        (("g = dict(zip(w, torch.autograd.grad(loss, w.values())))", "g[name]", "pass"), set()),
    ],
)
def test_steps_without_an_optimizer_are_seen(changes, rules, tmp_path):
    """Weights that the script changes itself, between backward passes of any kind."""
    text = OWN.format(**dict(zip(("gradients", "gradient", "after"), changes, strict=True)))
    path = tmp_path / "train.py"
    path.write_text(text)
    code = compile(text, str(path), "exec")
    seen = watch_script(lambda: exec(code, {"__name__": "__main__"}), 5, str(path))
    assert len(seen.log.steps) >= 5
    assert {f.rule for f in grave(seen)} == rules
    assert "matmul" in [op.op for op in seen.raw.ops]


LOOP = """
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CTC = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
model = torch.nn.Linear(6, 5)
""" + LOOP.format(
    loss="""x, y = torch.randn(12, 3, 6), torch.randint(1, 5, (3, 4))
    scores = F.{softmax}(model(x), dim=-1)
    loss = F.ctc_loss(scores, y, torch.full((3,), 12), torch.full((3,), 4))"""
)
TURNS = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.state, self.action, self.head = nn.Linear(3, 8), nn.Embedding(7, 8), nn.Linear(8, 7)
    def forward(self, states, actions):
        before = F.pad(self.action(actions), (0, 0, 1, -1))
        return self.head(self.state(states) + before)

model = Policy()
""" + LOOP.format(
    loss="""states, actions = torch.randn(4, 9, 3), torch.randint(0, 7, (4, 9))
    loss = F.cross_entropy(model(states, actions).flatten(0, 1), actions.flatten())"""
)


def rules_of(text, folder):
    path = folder / "train.py"
    path.write_text(text)
    space = {"__name__": "__main__", "__file__": str(path)}
    code = compile(text, str(path), "exec")
    seen = watch_script(lambda: exec(code, space), 6, str(path))
    return {finding.rule for finding in find(seen.log)}


@pytest.mark.parametrize("softmax", ["softmax", "log_softmax"])
def test_ctc_takes_logarithms(softmax, tmp_path):
    """Of probabilities it can fall below 0, and nothing else says so."""
    rules = rules_of(CTC.replace("{softmax}", softmax), tmp_path)
    assert ("probabilities-into-loss" in rules) == (softmax == "softmax")


@pytest.mark.parametrize("lengths", ["torch.full((3,), 4)", "torch.tensor([4, 2, 1])"])
def test_ctc_counts_each_target_by_its_own_length(lengths, tmp_path):
    """The rows are filled up with 0, which nothing ever sounds like."""
    padded = CTC.replace("{softmax}", "log_softmax").replace("torch.full((3,), 4)", lengths)
    filled = padded.replace(
        "torch.randint(1, 5, (3, 4))", "torch.tensor([[1, 2, 3, 4], [2, 3, 0, 0], [4, 0, 0, 0]])"
    )
    assert ("padding-counted" in rules_of(filled, tmp_path)) == ("full" in lengths)


def test_an_action_is_predicted_from_the_state_before_it(tmp_path):
    """The model is given actions, but knows each only after the state that it answers."""
    assert "labels-not-shifted" not in rules_of(TURNS, tmp_path)


PLAYERS = """
import torch
from torch import nn
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
first = torch.optim.Adam(critic.parameters())
second = torch.optim.Adam(actor.parameters())
for _ in range(9):
    x, act = torch.randn(8, 4), torch.randn(8, 2)
    {before}
    loss = (critic(torch.cat([x, act], 1)) - 1).square().mean()
    loss.backward()
    first.step()
    {after}
    loss = -critic(torch.cat([x, actor(x)], 1)).mean()
    loss.backward()
    second.step()
    second.zero_grad()
"""


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [("pass", "first.zero_grad()", True), ("first.zero_grad()", "pass", False)],
)
def test_gradients_of_another_loss_are_cleared_before_they_are_added_to(
    before, after, wrong, tmp_path
):
    """An actor's loss leaves gradients in its critic, which are to go before the critic's own."""
    text = PLAYERS.format(before=before, after=after)
    path = tmp_path / "train.py"
    path.write_text(text)
    code = compile(text, str(path), "exec")
    seen = watch_script(lambda: exec(code, {"__name__": "__main__"}), 8, str(path))
    assert ("gradients-left-over" in [f.rule for f in grave(seen)]) == wrong


ASSIGNED = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(9):
    loss = (model(torch.randn(8, 4)) - 1).square().mean()
    for p, g in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
        p.grad = {set}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "wrong"), [("g", False), ("g if p.grad is None else p.grad.add_(g)", True)]
)
def test_gradients_that_are_set_anew_are_not_left_over(given, wrong, tmp_path):
    """`p.grad = g` needs no zero_grad; what is added to the old one does."""
    text = ASSIGNED.format(set=given)
    path = tmp_path / "train.py"
    path.write_text(text)
    code = compile(text, str(path), "exec")
    seen = watch_script(lambda: exec(code, {"__name__": "__main__"}), 8, str(path))
    assert ("gradients-left-over" in [f.rule for f in grave(seen)]) == wrong


CLIMBS = """
import torch
from torch import nn
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(9):
    x = torch.randn(8, 4)
    net(x).square().mean().backward()
    {climb}
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("climb", "wrong"),
    [("pass", True), ("[p.data.add_(0.01) for p in net.parameters()]", False),
     ("[p.detach().add_(0.01 * p.grad) for p in net.parameters()]", False)],
)  # fmt: skip
def test_gradients_taken_at_other_weights_may_be_cleared(climb, wrong, tmp_path):
    """Sharpness-aware steps climb first, and take the gradient there."""
    path = tmp_path / "train.py"
    path.write_text(CLIMBS.format(climb=climb))
    code = compile(path.read_text(), str(path), "exec")
    seen = watch_script(lambda: exec(code, {"__name__": "__main__"}), 8, str(path))
    found = {f.rule: f.line for f in grave(seen)}
    assert ("cleared-between-parts" in found) == wrong
    if wrong:
        text = path.read_text().splitlines()[found["cleared-between-parts"] - 1]
        assert text.strip() == "optimizer.zero_grad()"


MASKED = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(9):
    ids = torch.randint(1, 11, (8, 12))
    hidden = torch.rand(ids.shape) < 0.3
    {hide}
    logits = net(seen)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HIDE = "seen = ids.masked_fill(hidden, 0)"


@pytest.mark.parametrize(
    ("hide", "found"),
    [
        (f"{HIDE}; labels = ids.clone()\n    labels[hidden] = -100", {"loss-of-what-is-seen": 13}),
        (f"{HIDE}\n    labels = torch.where(hidden, -100, ids)", {"loss-of-what-is-seen": 13}),
        (f"{HIDE}; labels = ids.masked_fill(~hidden, -100)", {}),
        ("seen = labels = ids", {"labels-not-shifted": 14}),
        ("seen = ids; labels = ids.masked_fill(hidden, -100)", {"labels-not-shifted": 14}),
        (
            "ids[:, 9:] = 0; seen = ids; labels = ids.masked_fill(ids == 0, -100)",
            {"labels-not-shifted": 14},
        ),
    ],
)
def test_a_masked_model_is_asked_for_what_is_hidden(hide, found, tmp_path):
    """Where only what it sees counts, it copies; padding and what is not hidden are told apart."""
    path = tmp_path / "train.py"
    path.write_text(MASKED.format(hide=hide))
    code = compile(path.read_text(), str(path), "exec")
    seen = watch_script(
        lambda: exec(code, {"__name__": "__main__"}), 6, str(path), wanted=Wanted(path.read_text())
    )
    rules = ("loss-of-what-is-seen", "labels-not-shifted")
    assert {f.rule: f.line for f in grave(seen) if f.rule in rules} == found


@pytest.mark.parametrize(
    ("targets", "found"),
    [
        ("torch.tensor([[1, 0, 3, 4], [2, 3, 1, 2], [4, 1, 2, 1]])", True),
        ("torch.tensor([1, 0, 3, 4, 2, 3, 1, 2, 4, 1, 2, 1])", True),
        ("torch.tensor([[1, 4, 3, 4], [2, 3, 1, 2], [4, 1, 2, 1]])", False),
        ("torch.tensor([[1, 2, 3, 4], [2, 3, 0, 0], [4, 0, 0, 0]])", False),
    ],
)
def test_the_blank_of_ctc_is_no_label(targets, found, tmp_path):
    """What stands before other labels is no padding; 0 is the blank by default."""
    text = CTC.replace("{softmax}", "log_softmax").replace("torch.randint(1, 5, (3, 4))", targets)
    assert ("blank-in-targets" in rules_of(text, tmp_path)) == found
