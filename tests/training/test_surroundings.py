"""What stands around the loop, wrong and right: schedules, loaders, copies, seeds, phases."""

import pytest

from attnlab.training.rules import find
from attnlab.training.run import Wanted, watch_script

SCRIPT = """
import copy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 6), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
{data}
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
{setup}
optimizer = torch.optim.AdamW({parameters})
{schedule}
for epoch in range(4):
    for x, y in loader:
        {before}
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
        {after}
    {epoch}
{end}
"""
RIGHT = {
    "data": "val_loader = DataLoader(TensorDataset(torch.randn(9, 6)), batch_size=3)",
    "setup": "slow = copy.deepcopy(model)",
    "parameters": "model.parameters(), lr=1e-3",
    "schedule": "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)",
    "before": "pass",
    "loss": "F.cross_entropy(model(x), y)",
    "after": "[s.data.lerp_(p.data, 0.01) for s, p in zip(slow.parameters(), model.parameters())]",
    "epoch": "schedule.step()",
    "end": "pass",
}
ALIASED = """slow = {{}}
for name, p in model.named_parameters():
    slow[name] = p.data{copy}"""
AVERAGED = "[s.mul_(0.9).add_(0.1) for s in slow.values()]"
FAST = RIGHT["after"].replace("0.01", "0.99")
SHARED = "val_loader = DataLoader(Subset(data, range(8, 40)), batch_size=8)"
WINDOWS = """class Windows(torch.utils.data.Dataset):
    text = torch.arange(90)
    def __len__(self): return 80
    def __getitem__(self, i): return self.text[i : i + 6].float(), 0
windows = Windows()
loader = DataLoader(Subset(windows, range(0, 80, 2)), batch_size=8)
val_loader = DataLoader(Subset(windows, range(1, 80, 2)), batch_size=8)"""
GROUPS = """[
    {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.1},
    {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.0}], lr=1e-3"""
PHASE = """head = nn.Linear(3, 3)
head.lora_A = nn.Parameter(torch.zeros(2, 3), requires_grad=False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(5):
    loss = (head(torch.randn(4, 3)) + head.lora_A.sum()).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()"""
WARM = "schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / {}))"
RATE = (
    "schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: {} * min(1.0, (n + 1) / {}))"
)
LOGS = """F.kl_div(model(x).log_softmax(-1), model(x).detach().{}(-1), log_target={},
        reduction="batchmean")"""
NORMED = "model.insert(1, nn.BatchNorm1d(32)); slow = copy.deepcopy(model)"
WIDE = "[nn.init.normal_(m.weight) for m in model if isinstance(m, nn.Linear)]"


def grave(changes, tmp_path, steps=10):
    """The findings that are more than notes."""
    text = SCRIPT.format(**{**RIGHT, **changes})
    path = tmp_path / "train.py"
    path.write_text(text)
    space = {"__name__": "__main__", "__file__": str(path)}
    code = compile(text, str(path), "exec")
    seen = watch_script(lambda: exec(code, space), steps, str(path), wanted=Wanted(source=text))
    assert seen.log.crash == ""
    return [f for f in find(seen.log) if f.severity != "note"]


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("schedule-short", {"after": "schedule.step()"}),
        ("average-too-fast", {"after": FAST}),
        ("average-aliased", {"setup": ALIASED.format(copy=""), "after": "pass", "end": AVERAGED}),
        ("state-not-copied", {"setup": "best = model.state_dict()", "after": "pass"}),
        ("seed-in-the-loop", {"before": "torch.manual_seed(1)"}),
        ("loader-restarted", {"before": "x, y = next(iter(val_loader))",
                              "data": "val_loader = DataLoader(data, batch_size=8)"}),
        ("rows-shared", {"data": SHARED}),
        ("rows-shared", {"data": WINDOWS}),
        ("loss-broadcast", {"loss": "F.mse_loss(model(x)[:, :1], y.float())"}),
        ("logits-into-nll", {"loss": "F.kl_div(model(x).softmax(-1), F.one_hot(y, 3).float())"}),
        ("divergence-target", {"loss": LOGS.format("log_softmax", False)}),
        ("divergence-target", {"loss": LOGS.format("cumsum", False)}),
        ("rate-squared", {"schedule": RATE.format(1e-3, 100)}),
        ("weight-decay", {"parameters": GROUPS}),
        ("initialization", {"setup": WIDE.replace("weight)", "weight, std=3.0)"), "after": "pass"}),
        ("adapters-frozen", {"end": PHASE}),
        ("rate-zero", {"schedule": "schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, "
                                   "lambda step: step // 100)"}),
        ("schedule-slow", {"schedule": WARM.format(100), "epoch": "schedule.step()"}),
        ("buffers-left-behind", {"setup": NORMED}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean'")
def test_a_slip_around_the_loop_is_found(rule, changes, tmp_path):
    """By this rule; of several phases in the last one too."""
    assert rule in [f.rule for f in grave(changes, tmp_path)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"setup": "best = copy.deepcopy(model.state_dict())", "after": "pass"},
        {"schedule": "schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)",
         "after": "schedule.step()", "epoch": "pass"},
        {"data": "val_loader = DataLoader(Subset(data, range(8)), batch_size=8); "
                 "loader = DataLoader(Subset(data, range(8, 64)), batch_size=8)"},
        {"before": "torch.manual_seed(epoch)"},
        {"schedule": WARM.format(5), "epoch": "schedule.step()"},
        {"schedule": WARM.format(100), "after": "schedule.step()", "epoch": "pass"},
        {"setup": NORMED, "after": f"{RIGHT['after']}; "
         "[s.copy_(p) for s, p in zip(slow.buffers(), model.buffers())]"},
        {"loss": "F.kl_div(model(x).log_softmax(-1), F.one_hot(y, 3).float(), reduction='sum')"},
        {"loss": LOGS.format("softmax", False)},
        {"loss": LOGS.format("log_softmax", True)},
        {"loss": "F.kl_div(model(x)[..., None].log_softmax(1), x[:, :3, None].softmax(1), "
                 "reduction='sum')"},
        {"schedule": RATE.format(1.0, 100), "after": "schedule.step()", "epoch": "pass"},
        {"schedule": RATE.format(1.0, 10**5), "after": "schedule.step()", "epoch": "pass"},
        {"end": PHASE.replace("requires_grad=False", "requires_grad=True")},
    ],
)  # fmt: skip
def test_the_same_done_rightly_raises_nothing(changes, tmp_path):
    """Slow averages, warm-ups, disjoint parts, a seed per epoch."""
    assert [(f.rule, f.message) for f in grave(changes, tmp_path)] == []


def test_a_fold_is_compared_with_its_own_training_rows(tmp_path):
    """Other folds train on what this one holds out."""
    folds = """from torch.utils.data import DataLoader, Subset
for fold in range(2):
    train_loader = DataLoader(Subset(data, [i for i in range(32) if i % 2 != fold]), 4)
    val_loader = DataLoader(Subset(data, [i for i in range(32) if i % 2 == fold]), 4)
    next(iter(train_loader))"""
    text = f"""import torch
data = torch.utils.data.TensorDataset(torch.arange(32.0))
{folds}
"""
    path = tmp_path / "folds.py"
    path.write_text(text)
    log = watch_script(lambda: exec(compile(text, str(path), "exec"), {}), 3, str(path)).log
    assert [loader.shared for loader in log.loaders] == [0.0] * 4


def test_a_rate_of_zero_is_told_at_the_quotient_of_integers(tmp_path):
    """Not where its schedule is imported."""
    schedule = """from torch.optim.lr_scheduler import LambdaLR
def warm(step):
    return step // 100
schedule = LambdaLR(optimizer, warm)"""
    (found,) = [f for f in grave({"schedule": schedule}, tmp_path) if f.rule == "rate-zero"]
    assert (
        found.line
        == (tmp_path / "train.py").read_text().splitlines().index("    return step // 100") + 1
    )
