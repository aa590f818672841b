"""Patterns in the text of a file: each wrong line and its right twin."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

GENERATE = """
def generate(model, idx):
    for _ in range(9):
        logits = model(idx)[:, -1]
        {line}
        idx = torch.cat([idx, new], 1)
    return idx
"""
ORDER = """
def generate(model, idx):
    for _ in range(9):
        new = model(idx)[:, -1].argmax(-1)
        idx = torch.cat([{parts}], 1)
    return idx
"""
DRAW = "new = torch.multinomial(logits.softmax(-1), 1)"
MASK = """
def mask(ids):
    masked = ids.clone()
    labels = {labels}
    masked[ids > 3] = 0
    return masked, labels
"""
PAIR = """
def batch(x, labels):
    order = torch.randperm(len(x))
    return x[order], labels[{order}]
"""
FORWARD = """
class Net(nn.Module):
    def forward(self, ids, cache=None):
        B, T = ids.shape
        positions = {positions}
        return self.wpe(positions)
"""
CAUSAL = """
def forward(self, q, k, v, cache=None):
    if {test}:
        k, v = cache.append(k, v)
        return F.scaled_dot_product_attention(q, k, v, is_causal={causal})
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
"""
EVALUATE = """
drop = nn.Dropout(0.1)
@torch.no_grad()
def evaluate(model, x):
    {mode}
    return model(x)
"""
SPLIT = """
train_data = {train}
val_data = data[int(0.9 * len(data)):]
"""
SCALED = """
def train():
    scaler.scale(loss).backward()
    {unscale}
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
TURNED = "logits = logits.masked_fill(logits {sign} kth, -1e9); " + DRAW
TEMPERATURE = "new = torch.multinomial((logits {sign} temperature).softmax(-1), 1)"


@pytest.mark.parametrize(
    ("rule", "text", "wrong", "right"),
    [
        ("labels-overwritten", MASK, {"labels": "masked"}, {"labels": "masked.clone()"}),
        ("orders-differ", PAIR, {"order": "torch.randperm(len(x))"}, {"order": "order"}),
        ("positions-ignore-cache", FORWARD, {"positions": "torch.arange(T)"},
         {"positions": "torch.arange(T) + (len(cache) if cache is not None else 0)"}),
        ("causal-ignores-cache", CAUSAL, {"test": "cache is not None", "causal": "True"},
         {"test": "cache is not None", "causal": "False"}),
        ("tying-lost", "{line}", {"line": "self.head.weight = nn.Parameter(emb.weight.clone())"},
         {"line": "self.head.weight = emb.weight"}),
        ("train-while-evaluating", EVALUATE, {"mode": "pass"}, {"mode": "model.eval()"}),
        ("train-while-evaluating", EVALUATE, {"mode": "pass"}, {"mode": "model.train()"}),
        ("rows-shared", SPLIT, {"train": "data"}, {"train": "data[:int(0.9 * len(data))]"}),
        ("clip-scaled", SCALED, {"unscale": "pass"}, {"unscale": "scaler.unscale_(optimizer)"}),
        ("sampling", GENERATE, {"line": DRAW.replace(".softmax(-1)", "")}, {"line": DRAW}),
        ("sampling", GENERATE, {"line": TURNED.format(sign=">")},
         {"line": TURNED.format(sign="<")}),
        ("sampling", GENERATE, {"line": TEMPERATURE.format(sign="*")},
         {"line": TEMPERATURE.format(sign="/")}),
        ("sampling", GENERATE, {"line": TURNED.format(sign=">=")},
         {"line": TURNED.format(sign="<")}),
        ("initialization", "nn.init.normal_(self.weight, {std})", {"std": "0.02"},
         {"std": "std=0.02"}),
        ("initialization", "{line}", {"line": "nn.init.normal_(w, 0.02)"},
         {"line": "w.normal_(0, 0.02)"}),
        ("sampling", ORDER, {"parts": "new, idx"}, {"parts": "idx, new"}),
        ("sampling", GENERATE, {"line": "logits = logits[:, 0]; " + DRAW},
         {"line": "logits = logits[:, -1]; " + DRAW}),
    ],
)  # fmt: skip
def test_a_pattern_is_found_and_its_right_twin_is_not(rule, text, wrong, right):
    """By its rule, and by no other."""
    bad = [f.rule for f in source_findings(dedent(text.format(**wrong)), "a.py")]
    assert bad == [rule]
    assert list(source_findings(dedent(text.format(**right)), "a.py")) == []


def test_lists_that_belong_together_are_shuffled_as_pairs():
    """One shuffle of pairs says nothing; two of lists do."""
    two = "random.shuffle(texts)\nrandom.shuffle(labels)\n"
    assert [f.line for f in source_findings(two, "a.py")] == [2]
    assert not list(source_findings("random.shuffle(pairs)\n", "a.py"))


def test_what_cannot_be_parsed_says_nothing():
    """No rule, no error."""
    assert not list(source_findings("def (", "a.py"))


def test_a_length_that_counts_the_cache_is_none_of_an_input():
    """Keys joined with the cache, or an object made of both, know the positions before."""
    text = """
    class Net(nn.Module):
        def forward(self, x, cache=None):
            seen = self.remember(x, cache)
            k = torch.cat([cache[0], self.k(x)], 1)
            n, m = seen.keys.shape[1], k.shape[1]
            return torch.arange(n) + torch.arange(m)
    """
    assert not list(source_findings(dedent(text), "a.py"))


def test_the_mode_of_a_model_is_up_to_who_calls_it():
    """A method `generate` in a file without training runs in whatever mode its caller set."""
    text = """
    class Net(nn.Module):
        def __init__(self):
            self.drop = nn.Dropout(0.1)

        @torch.no_grad()
        def generate(self, ids):
            return self(ids).argmax(-1)
    """
    assert [*source_findings(dedent(text), "net.py")] == []
    trained = dedent(text) + "loss.backward()\n"
    assert [f.rule for f in source_findings(trained, "net.py")] == ["train-while-evaluating"]
