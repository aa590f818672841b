"""Arguments that one path forgets."""

import pytest

from attnlab.target.source_findings import source_findings

FAST = """
def attend(q, k, v, window=None):
    q = q * 2
    if {test}:
        return kernel(q, k, v, window)
    {first}
    return (q @ k.mT).softmax(-1) @ v
"""


@pytest.mark.parametrize(
    ("first", "test", "lines"),
    [
        ("k = k.clone()", "kernel is not None", [6]),
        ("k = cut(k, window)", "kernel is not None", []),
        ("k = k.clone()", "window is not None", []),
    ],
)
def test_a_fallback_that_forgets_an_argument_is_told(first, test, lines):
    """Where the fast path uses it and does not ask whether it was given."""
    found = list(source_findings(FAST.format(first=first, test=test), "a.py"))
    assert [(f.rule, f.line) for f in found] == [("unused-argument", n) for n in lines]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("keep[:, None]", ["mask-turned"]),
        ("~keep[:, None]", []),
        ("keep == 0", []),
        ("pad[:, None]", []),
        ("expand(keep)", []),
    ],
)
def test_what_is_to_be_kept_is_not_filled(mask, expected):
    """masked_fill hides where its mask is True."""
    text = f"scores = scores.masked_fill({mask}, float('-inf'))"
    assert [f.rule for f in source_findings(text, "a.py")] == expected


@pytest.mark.parametrize(
    ("read", "expected"), [("best * 1", ["unused-argument"]), ("best * p_mask", [])]
)
def test_a_mask_that_must_be_given_is_read(read, expected):
    """A maximum over tokens takes padding in where the mask of a helper is forgotten."""
    text = f"def maxsim(sim, p_mask):\n    best = sim.amax(-1)\n    return {read}\n"
    assert [f.rule for f in source_findings(text, "a.py")] == expected


READER = """
class {name}(nn.Module):
    def forward(self, x, memory, mask=None):
        {made}
        return self.out(attend(q, k, v, mask))
"""


@pytest.mark.parametrize(
    ("name", "made", "line"),
    [
        ("CrossAttention", "q = self.to_q(x)\n        k, v = self.to_k(x), self.to_v(x)", 5),
        (
            "Read",
            (
                "memory = self.norm(memory)\n"
                "        q = self.wq(x)\n"
                "        k, v = self.kv(x).chunk(2)"
            ),
            6,
        ),
        ("Layer", "q = k = v = self.cross_attn(x, x, x, need_weights=False)[0]", 4),
        (
            "CrossAttention",
            (
                "b, s = memory.shape[:2]\n"
                "        q = f(self.query(x))\n"
                "        k = f(self.key(x).view(b, s, -1))\n"
                "        v = f(self.value(x))"
            ),
            6,
        ),
        (
            "CrossAttention",
            "q = self.to_q(x)\n        k, v = self.to_k(memory), self.to_v(memory)",
            0,
        ),
        (
            "CrossAttention",
            (
                "memory = x if memory is None else memory\n"
                "        q = self.to_q(x)\n"
                "        k, v = self.to_k(memory), self.to_v(memory)"
            ),
            0,
        ),
        ("SelfAttention", "q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)", 0),
        (
            "Layer",
            (
                "x = self.self_attn(x, x, x)[0]\n"
                "        q = k = v = self.cross_attn(x, memory, memory)[0]"
            ),
            0,
        ),
        (
            "CrossAttention",
            "x = x + memory\n        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)",
            0,
        ),
    ],
)
def test_cross_attention_reads_its_memory(name, made, line):
    """Keys of the queries' own input are meant where the other is read, or its use is another's."""
    text = READER.format(name=name, made=made)
    found = [f.line for f in source_findings(text, "net.py") if f.rule == "keys-of-queries"]
    assert found == [line] * bool(line)
