"""Several calls in one trace: caches are fed on, and steps stand beside a full pass."""

import types

import pytest
import torch

from attnlab.tracer.decoding import (
    LineValue,
    cache_argument,
    cache_in,
    cache_length,
    cut_inputs,
    first_difference,
    output_of,
)

CACHED = """
import math
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim: int, num_heads: int):
        super().__init__()
        self.h = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.pos = nn.Embedding(64, dim)

    def forward(self, x, cache=None):
        B, S, D = x.shape
        past = 0 if cache is None else cache[0].shape[2]
        x = x + self.pos(torch.arange(past, past + S))
        q, k, v = self.qkv(x).view(B, S, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        T = k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(D // self.h)
        scores = scores.masked_fill(torch.ones(S, T).bool().triu(T - S + 1), float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, S, D), (k, v)
"""
FLAGS = ("--init", "dim=D, num_heads=H", "--input", "x: B S D")


@pytest.fixture
def trace(shell, tmp_path):
    def run(text, *flags):
        file = tmp_path / "here" / "net.py"
        file.write_text(text)
        return shell("trace", "net.py:CachedAttention", *FLAGS, *flags)

    return run


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_a_cache_that_is_joined_on_another_axis(axis, trace):
    """Batch, heads or features: the join is told, with the axis on which it would fit, and no
    change that only makes it run."""
    said = trace(CACHED.replace("dim=2)", f"dim={axis})"), "--decode")
    told = " ".join(said.out.replace("│", " ").split())
    assert said.code == 1
    assert "in call 2" in told
    assert "It runs with dim=" in told
    assert ".transpose(" not in told.partition("It runs with")[2].partition("next:")[0]


def test_right_steps_equal_a_full_pass(trace):
    """A right cache raises nothing, and that it was looked at is said."""
    said = trace(CACHED, "--decode")
    assert said.code == 0, said.out
    assert "every step equals one pass over all positions" in said.out
    assert "call 2 of 3: 1 token, cache 5 -> 6" in said.out
    assert "call 3 of 3: 1 token, cache 6 -> 7" in said.out
    assert "not looked at: what forward does" not in said.out


def test_a_cache_is_given_as_a_tuple(trace):
    """Axes of its parts have names, and the head says what it holds."""
    said = trace(CACHED, "--input", "cache: tuple(B H T hd, B H T hd)", "--sizes", "T=4")
    assert said.code == 0, said.out
    assert "cache: (B H T hd, B H T hd)" in said.out
    assert said.out.count("B H T+S hd") == 2


def test_a_step_that_crashes_is_told(trace):
    """The call is named, on the page and in JSON, and the outcome is that of a crash."""
    text = CACHED.replace("[cache[0], k], dim=2", "[cache[0], k], dim=1")
    said = trace(text, "--decode")
    assert said.code == 1
    assert "in call 2 " in said.out
    assert "call 2 of 3: 1 token\n" in said.out
    assert "It runs with dim=2" in said.out
    said = trace(text, "--decode", "--json")
    assert (said.json["outcome"], said.json["crash"]["call"]) == ("crashed", 2)
    assert said.json["calls"] == [{"number": 2, "total": 3, "inputs": "1 token"}]
    assert {op["call"] for op in said.json["ops"]} == {1, 2}


def test_a_fault_of_a_later_call_is_found(trace):
    """It names its call; every call has it from then on, and it is told once."""
    said = trace(CACHED.replace("[cache[1], v]", "[cache[1] / 0, v]"), "--calls", "3", "--json")
    found = said.json["findings"]
    assert (said.code, said.json["outcome"]) == (1, "found")
    assert sorted(f["rule"] for f in found) == ["infinity-origin", "nan-origin"]
    assert all(f["index"] is None and f["message"].startswith("in call 2: ") for f in found)


MASKED = (
    CACHED.replace("x, cache=None", "x, mask, store")
    .replace("cache", "store")
    .replace("torch.ones(S, T).bool().triu(T - S + 1)", "mask")
)


def test_a_mask_that_is_needed_is_causal(trace):
    """Else the pass over all positions would see what steps cannot; `--feed` names the argument."""
    flags = ("--input", "mask: S S bool forbids", "--input", "store = None", "--decode")
    said = trace(MASKED, *flags, "--feed", "store")
    assert (said.code, "every step equals one pass" in said.out) == (0, True), said.out
    said = trace(MASKED, *flags)
    assert "· call 1 returned more than its output; --feed NAME says which argument" in said.out


def test_a_wrong_feed_is_refused(trace):
    """An argument that forward does not take, and one call that nothing comes before."""
    said = trace(CACHED, "--calls", "2", "--feed", "cash")
    assert (said.code, "--feed: forward takes no cash\nhint: Did you mean cache?" in said.err) == (
        2,
        True,
    )
    said = trace(CACHED, "--feed", "cache")
    assert (said.code, "--feed needs --calls or --decode" in said.err) == (2, True)


def test_nothing_to_feed_is_told(trace):
    """A cache that is taken and never returned is forgotten."""
    said = trace(CACHED.replace(", (k, v)\n", "\n"), "--calls", "2")
    assert "· call 1 returned nothing that could be fed to cache" in said.out


BUGS = {  # and a text on the line that is named: one without a row in the full pass is passed over
    "torch.arange(past, past + S)": ("torch.arange(S)", "torch.arange(S)"),
    "triu(T - S + 1)": ("triu(1)", "triu(1)"),
    "v = torch.cat([cache[1], v], dim=2)": ("v = torch.cat([v, cache[1]], dim=2)", "return ("),
}


@pytest.mark.parametrize("right", BUGS)
def test_a_wrong_step_is_found_at_its_line(right, trace):
    """The first row that differs is named, with both values, and JSON tells the call of a row."""
    wrong, where = BUGS[right]
    text = CACHED.replace(right, wrong)
    said = trace(text, "--decode", "--json", "--calls", "2")
    assert said.code == 1
    (finding,) = [f for f in said.json["findings"] if f["rule"] == "decode-differs"]
    assert where in text.splitlines()[finding["line"] - 1]
    assert "the full pass" in finding["message"]
    assert {op["call"] for op in said.json["ops"]} == {1, 2}


def test_equal_calls_are_told_in_a_line(shell, tmp_path):
    """A module without state does the same in every call."""
    file = tmp_path / "here" / "net.py"
    file.write_text("from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n")
    said = shell("trace", "net.py:Net", "--init", "in_features=8, out_features=4",
                 "--input", "x: B 8", "--calls", "2")  # fmt: skip
    assert said.code == 0, said.err
    assert "call 2 of 2  the same rows as the call before" in said.out


def test_a_wrong_number_of_calls_is_refused(shell):
    """One line says what the flag takes."""
    said = shell("trace", "nowhere.py", "--calls", "many")
    assert (said.code, "--calls many: a whole number is needed" in said.err) == (2, True)


def test_a_wrong_step_is_refused(shell):
    """Steps are counted from 1."""
    said = shell("trace", "train.py", "--step", "0")
    assert (said.code, "--step 0: a whole number is needed" in said.err) == (2, True)


def test_training_that_is_too_short_is_said(shell, tmp_path):
    """The page of one step, and the line where the file took fewer."""
    file = tmp_path / "here" / "train.py"
    file.write_text(
        "import torch\nnet = torch.nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters())\n"
        "net(torch.ones(2, 3)).sum().backward()\nopt.step()\n"
    )
    said = shell("trace", "train.py", "--step", "1")
    assert (said.code, "optimizer step 1; what comes after" in said.out) == (0, True), said.err
    said = shell("trace", "train.py", "--step", "2")
    assert (said.code, "train.py took only 1 optimizer step\n" in said.err) == (2, True)
    assert "attnlab trace train.py --step 1" in said.err


def test_masks_are_cut_to_new_queries_and_old_keys():
    """A step sees the rows of its positions and every key up to its last one."""
    given = [("x", torch.arange(10).view(1, 5, 2)), ("mask", torch.ones(5, 5)), ("none", None)]
    axes = {"x": ["B", "S", "D"], "mask": ["S", "S"]}
    cut = dict(cut_inputs(given, axes, "S", 3, 4))
    assert cut["x"].tolist() == [[[6, 7]]]
    assert cut["mask"].shape == (1, 4)
    assert cut["none"] is None


def test_what_is_fed_on():
    """A cache is what is returned beside the output, by an argument of a known name."""
    assert cache_in(torch.ones(1)) is None
    assert cache_in((1, "cache")) == "cache"
    layers = [(1, 2), (3, 4)]
    assert cache_in(layers) is layers
    assert cache_in({"out": 1, "store": 2, "cache": 3}, "store") == 2
    assert cache_in({"out": 1, "cache": 3}) == 3
    assert cache_in({"logits": 1}) is None
    pair = {"k": 1, "v": 2}
    assert cache_in(pair) is pair
    held = types.SimpleNamespace(**pair)
    assert cache_in(held) is held
    assert cache_argument(lambda x, past_key_values=None: x) == "past_key_values"
    assert cache_argument(lambda x: x) is None


def test_rows_that_cannot_be_paired_blame_nothing():
    """Another rank, or sizes that fit neither the step nor what is cached, say nothing."""
    full = [LineValue("f", 1, "add", torch.zeros(2, 7, 3))]
    for odd in (torch.ones(7, 3), torch.ones(2, 4, 3)):
        assert first_difference(full, [LineValue("f", 1, "add", odd)], 5, 6) is None
    same = [LineValue("f", 1, "add", torch.zeros(2, 1, 3))]
    assert first_difference(full, same, 5, 6) is None
    found = first_difference(full, [LineValue("f", 1, "add", torch.ones(2, 1, 3))], 5, 6)
    assert (found.line, found.rule) == (1, "decode-differs")


def test_outputs_are_found_by_their_names():
    """What a step returns is compared, also where it stands in a dict or an object."""
    y = torch.ones(2)
    for out in (y, (y, 1), {"cache": 1, "logits": y}, types.SimpleNamespace(out=y)):
        assert output_of(out) is y
    assert output_of({"k": y, "v": y}) is None


def test_lengths_of_a_cache():
    """Along the axis that is known, else along the only one that changed; else nothing is said."""
    assert cache_length([[2, 5, 4]], [[2, 6, 4]], None) == [5, 6]
    assert cache_length([[], [2, 5]], [[], [2, 6]], None) == [5, 6]
    assert cache_length([[2, 8, 4]], [[2, 8, 4]], 1) == [8, 8]
    assert cache_length([[2, 5, 4]], [[3, 6, 4]], None) is None
    assert cache_length([[2, 8, 4]], [[2, 8, 4]], None) is None
    assert cache_length([], [[2, 6, 4]], 1) is None


def test_a_demo_is_no_place_for_several_calls(shell, tmp_path):
    """Nothing that was asked for is left out in silence."""
    demo = "from torch import nn, ones\nif __name__ == '__main__':\n    nn.Linear(3, 2)(ones(3))\n"
    (tmp_path / "here" / "demo.py").write_text(demo)
    said = shell("trace", "demo.py", "--calls", "2")
    assert (said.code, "a demo runs once: name its class" in said.out) == (0, True), said.err
