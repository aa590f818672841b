"""attnlab cost: sizes that are asked for, what cannot be counted, and bad input."""

from pathlib import Path

import pytest

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, embed_dim, num_heads, device=None):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, device=device)
    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        return ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2)

class Causal(Net):
    def forward(self, x):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return super().forward(x.masked_fill(later[:, :1], 0.0))

class ByValue(Net):
    def forward(self, x):
        return super().forward(x) if x.sum().item() < 1e9 else x

class OnMeta(Net):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads, device="meta")

class Grouped(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads=1):
        super().__init__()
        self.h, self.kv, self.hd = num_heads, num_kv_heads, embed_dim // num_heads
        self.q, self.k = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, self.kv * self.hd)
    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, self.h, self.hd).transpose(1, 2)
        k = self.k(x).view(B, S, self.kv, self.hd).transpose(1, 2)
        k = k.repeat_interleave(self.h // self.kv, 1)
        return ((q @ k.mT).softmax(-1) @ k).transpose(1, 2).flatten(2)

class Patches(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 2, 2)
    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2).unsqueeze(1)
        return nn.functional.scaled_dot_product_attention(x, x, x)

class Recurrent(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.r = nn.LSTM(embed_dim, embed_dim, 2, batch_first=True, bidirectional=True)
    def forward(self, x):
        return self.r(x)[0]

class Wrong(Net):
    def forward(self, x):
        return self.qkv(self.qkv(x))
"""


@pytest.fixture
def cost(shell):
    Path("net.py").write_text(NET)
    return lambda name, *flags: shell("cost", f"net.py:{name}", *flags, "--json")


def value(said, id_="flops"):
    return next(c["value"] for c in said.json["cost"]["costs"] if c["id"] == id_)


def expected(B, S, D):
    return 2 * B * S * D * 3 * D + 4 * B * S * S * D


@pytest.mark.parametrize("name", ["Net", "Causal"])
def test_sizes_far_beyond_memory_are_counted_without_data(cost, name):
    """Also a width, for which the module is built anew; and where a factory names no device, as
    `torch.ones(S, S)`, which would make a matrix with data (spec row C13)."""
    said = cost(name, "--at", "B=8, S=100000, D=1536, H=12")
    assert said.code == 0
    assert value(said) == expected(8, 100000, 1536)
    assert value(said, "parameters") == 1536 * 3 * 1536 + 3 * 1536
    assert "without data" in said.json["cost"]["how"]


@pytest.mark.parametrize(("name", "size"), [("ByValue", 4096), ("Net", 10**15)])
def test_what_cannot_be_counted_is_extrapolated_and_says_so(cost, name, size):
    """A course that depends on values has none without data; the largest storage has an end."""
    said = cost(name, "--at", f"S={size}")
    assert said.code == 0
    assert value(said) == expected(2, size, 12)
    assert said.json["cost"]["how"].startswith("extrapolated")
    assert "could be counted" in said.json["cost"]["checks"][0]


def test_a_module_on_meta_alone_is_counted(cost):
    """Its weights have no data, so the inputs have none either."""
    said = cost("OnMeta")
    assert said.code == 0
    assert value(said) == expected(2, 5, 12)


def test_a_module_that_crashes_has_no_cost(cost):
    """The line and the message are there, and what explains them."""
    said = cost("Wrong")
    assert said.code == 1
    assert said.json["outcome"] == "crashed"
    assert "net.py:" in said.json["message"]
    assert said.json["next"].startswith("attnlab trace net.py:Wrong explains it; inputs guessed:")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("Q=3", "nothing has the size Q"),
        ("S=0", "S=0 is not a size"),
        ("S", "cannot read"),
        (f"S={'9' * 20}", "is too large for a size"),
        ("", "--at names no size"),
        ("hd=128", "hd is no size of its own: it is D / H"),
    ],
)
def test_bad_sizes_are_refused(cost, at, told):
    """Before anything runs, in one line."""
    said = cost("Net", "--at", at)
    assert said.code == 2
    assert told in said.json["error"]["message"]


def test_the_page_has_formulas_beside_numbers(shell):
    """At 80 cells, the formula is not cut for a module of few axes."""
    Path("net.py").write_text(NET)
    said = shell("cost", "net.py:Net")
    assert "6*B*S*D**2 + 4*B*S**2*D" in said.out
    assert "each formula gives exactly what was counted at B=5 S=12 D=70" in " ".join(
        said.out.split()
    )
    assert all(len(line.rstrip()) <= 80 for line in said.out.splitlines())


def test_sizes_that_the_module_refuses_are_an_error(cost):
    """Nothing is extrapolated to where it crashes; what fits is said."""
    for name, sizes in (("Net", "D=13"), ("ByValue", "D=13, S=4096"), ("Grouped", "D=13")):
        said = cost(name, "--at", sizes)
        assert said.code == 2
        assert "D=13 is no multiple of H=3" in said.json["error"]["message"]
        assert "D=15" in said.json["error"]["hint"]


def test_a_fused_attention_keeps_no_matrix(cost):
    """Also where its positions have no name, as those of patches."""
    said = cost("Patches", "--input", "images: B 3 8 8")
    assert value(said, "pairs") == 0


def test_an_lstm_has_its_products(cost):
    """Both directions of both layers: four gates, of inputs and of states."""
    said = cost("Recurrent", "--init", "embed_dim=12", "--input", "x: B S D", "--sizes", "B=2, S=5")
    first, second = 2 * 4 * 12 * (12 + 12), 2 * 4 * 12 * (24 + 12)
    assert value(said) == 2 * 2 * 5 * (first + second)


def test_each_flag_of_several_counts(cost):
    """One does not take the place of the other."""
    said = cost("Net", "--at", "S=64", "--at", "B=3")
    assert value(said) == expected(3, 64, 12)


def test_an_encoder_keeps_no_keys(cost):
    """Of tokens whose positions all see each other nothing is cached; of a layer it may be."""
    Path("net.py").write_text(
        NET
        + """
class Encoder(Net):
    def __init__(self, embed_dim, num_heads, vocab_size):
        super().__init__(embed_dim, num_heads)
        self.tokens = nn.Embedding(vocab_size, embed_dim)
    def forward(self, input_ids):
        return super().forward(self.tokens(input_ids))
class Fused(Encoder):
    def forward(self, input_ids):
        x = self.tokens(input_ids)
        return nn.functional.scaled_dot_product_attention(x, x, x)
"""
    )
    assert value(cost("Encoder"), "cache") == value(cost("Fused"), "cache") == 0
    assert value(cost("Net"), "cache") == 8 * 2 * 5 * 12


def test_a_width_that_is_rounded_has_no_formula(cost):
    """8 D / 3 cut off is on a line for a few widths, and no formula of D."""
    Path("net.py").write_text(
        NET
        + """
class Gated(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = nn.Linear(dim, int(8 * dim / 3), bias=False)
    def forward(self, x):
        return self.up(x)
"""
    )
    said = cost("Gated")
    assert value(said, "parameters") == 12 * 32
    assert {c["formula"] for c in said.json["cost"]["costs"]} == {""}
    assert "no formula fits parameters, weights, FLOPs" in said.json["cost"]["checks"][1]
