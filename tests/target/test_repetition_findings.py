"""What is done again and again in the text of a file, each wrong line beside its right twin."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

CLONES = """
def clones(layer, n):
    return nn.ModuleList([{layer} for _ in range(n)])
"""
EXPERTS = """
def forward(self, x):
    weight, chosen = self.gate(x).topk({k}, dim=-1)
    out = torch.zeros_like(x)
    for e, expert in enumerate(self.experts):
        tok, slot = torch.where(chosen == e)
        out[tok] {sets} weight[tok, slot, None] * expert(x[tok])
    return out
"""
NAMED_FIRST = """
def forward(self, x):
    weight, chosen = torch.topk(self.gate(x), self.k, dim=-1)
    out = torch.zeros_like(x)
    for e, expert in enumerate(self.experts):
        tok, slot = torch.where(chosen == e)
        update = expert(x[tok]) * weight[tok, slot, None]
        out[tok] {sets} update
    return out
"""
HEADS = """
def forward(self, q, k, v, one):
    if one:
        return q @ k.{repeat}.mT
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
"""
WINDOW = '''
def band(row, col, window):
    """A token sees itself and the `window - 1` tokens before it."""
    return (col <= row) & (row - col {compare} window)
'''
SAMPLE = """
alphas = betas.cumprod(0)
def sample(net, n):
    x = torch.randn(n, 2)
    for t in {steps}:
        x = x - betas[t] * net(x, t)
    return x
"""
SCHEDULE = """
schedule = CosineAnnealingLR(optimizer, {plan})
for epoch in range(epochs):
    for x in loader:
        optimizer.step()
        {often}
    {seldom}
"""
TRAINER = """
class Trainer:
    def __init__(self, model, loader, epochs):
        total = len(loader) * epochs
        self.scheduler = get_linear_schedule_with_warmup(self.optimizer, total // 10, total)
    def training_step(self, batch):
        self.optimizer.step()
    def train(self):
        for epoch in range(self.epochs):
            for batch in self.loader:
                self.training_step(batch)
                {often}
            {seldom}
"""
MASKS = """
class Layer(nn.Module):
    def forward(self, x, m, tgt_padding_mask, memory_padding_mask):
        x = F.scaled_dot_product_attention(x, x, x, attn_mask=~tgt_padding_mask[:, None])
        return F.scaled_dot_product_attention(x, m, m, attn_mask={mask}[:, None])
"""
PATHS = """
class Layer(nn.Module):
    def forward(self, q, k, v, mask):
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return (q @ k.mT).masked_fill({mask}, -torch.inf).softmax(-1) @ v
"""
MEMORY = """
self.tf = nn.Transformer(32, 4)
h = self.tf(src, tgt, src_key_padding_mask=pad{more})
"""
STEP = "schedule.step()"

FRAMES = """
    class Conv(nn.Module):
        def forward(self, x, keep):
            return self.conv(x * keep.unsqueeze(1))

    class Block(nn.Module):
        def __init__(self):
            self.conv = Conv()

        def forward(self, x, frames):
            y = self.att(x, x, x, key_padding_mask={mask})[0]
            return x + self.conv(y, frames)
"""


@pytest.mark.parametrize(
    ("rule", "text", "wrong", "right"),
    [
        ("layer-shared", CLONES, {"layer": "layer"}, {"layer": "copy.deepcopy(layer)"}),
        ("layer-shared", CLONES, {"layer": "copy.copy(layer)"}, {"layer": "Layer()"}),
        ("experts-overwritten", EXPERTS, {"k": 2, "sets": "="}, {"k": 2, "sets": "+="}),
        ("experts-overwritten", NAMED_FIRST, {"sets": "="}, {"sets": "+="}),
        ("schedule-slow", TRAINER, {"often": "", "seldom": "self.scheduler.step()"},
         {"often": "self.scheduler.step()", "seldom": ""}),
        ("experts-overwritten", EXPERTS, {"k": "self.k", "sets": "="}, {"k": 1, "sets": "="}),
        ("head-order", HEADS, {"repeat": "repeat(1, n_rep, 1, 1)"},
         {"repeat": "repeat_interleave(n_rep, 1)"}),
        ("head-order", HEADS, {"repeat": "repeat(1, groups, 1, 1)"},
         {"repeat": "repeat(1, top_k, 1, 1)"}),
        ("window-size", WINDOW, {"compare": "<="}, {"compare": "<"}),
        ("sampling", SAMPLE, {"steps": "range(T)"}, {"steps": "reversed(range(T))"}),
        ("schedule-slow", SCHEDULE, {"plan": "epochs * len(loader)", "often": "", "seldom": STEP},
         {"plan": "epochs * len(loader)", "often": STEP, "seldom": ""}),
        ("schedule-short", SCHEDULE, {"plan": "epochs", "often": STEP, "seldom": ""},
         {"plan": "epochs", "often": "", "seldom": STEP}),
        ("mask-turned", MASKS, {"mask": "memory_padding_mask"}, {"mask": "~memory_padding_mask"}),
        ("mask-turned", FRAMES, {"mask": "frames"}, {"mask": "~frames"}),
        ("memory-open", MEMORY, {"more": ""}, {"more": ", memory_key_padding_mask=pad"}),
        ("mask-turned", PATHS, {"mask": "mask"}, {"mask": "mask == 0"}),
    ],
)  # fmt: skip
def test_a_repeated_pattern_is_found_and_its_right_twin_is_not(rule, text, wrong, right):
    """By its rule, and by no other."""
    assert [f.rule for f in source_findings(dedent(text.format(**wrong)), "a.py")] == [rule]
    assert list(source_findings(dedent(text.format(**right)), "a.py")) == []


@pytest.mark.parametrize(
    ("layer", "expected"),
    [("nn.Linear(n, n)", ["layer-shared"]), ("nn.ReLU()", []), ("make(n)", [])],
)
def test_only_layers_with_weights_are_shared(layer, expected):
    """One ReLU in many places is many, and a factory may return anything."""
    text = f"def net(n):\n    return nn.Sequential(*[{layer}] * 3)\n"
    assert [f.rule for f in source_findings(text, "net.py")] == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("[{}] * len(self.layers)", ["container-shared"]),
        ("[{} for _ in self.layers]", []),
        ("[[]] * n; kept[0].append(1)", ["container-shared"]),
        ("[[end]] * n", []),
        ("[None] * n", []),
    ],
)
def test_each_layer_has_a_container_of_its_own(made, expected):
    """Ids that become a tensor may stand in one list many times."""
    assert [f.rule for f in source_findings(f"kept = {made}\n", "net.py")] == expected
