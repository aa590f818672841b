"""What the text of a file says of a softmax that walks over its keys in chunks."""

import pytest

from attnlab.target.source_findings import source_findings

LOOP = """
def attend(q, k, v, size):
    m, l, o = start(q, v)
    for i in range(0, k.shape[-2], size):
        s = q @ k[..., i : i + size, :].mT
{body}
    return o / l
"""
RIGHT = """
m_new = torch.maximum(m, s.amax(-1, keepdim=True))
p = torch.exp(s - m_new)
c = torch.exp(m - m_new)
l = l * c + p.sum(-1, keepdim=True)
o = o * c + p @ v[..., i : i + size, :]
m = m_new
"""


def lines_of(body):
    text = LOOP.format(body="\n".join(f"        {line}" for line in body.strip().splitlines()))
    found = source_findings(text, "net.py")
    return [f.line - 5 for f in found if f.rule == "sum-not-rescaled"]


@pytest.mark.parametrize(
    ("right", "wrong", "lines"),
    [
        ("o = o * c + p", "o = o + p", [5]),
        ("o = o * c + p", "o += p", [5]),
        ("l = l * c + p", "l = p.sum(-1, keepdim=True) + l if last else l + p", []),
        ("l = l * c + p", "l = l + p", [4]),
        ("torch.exp(m - m_new)", "torch.exp(m_new - m)", [4, 5]),
        ("o = o * c + p", "o = o / c + p", [5]),
        ("o = o * c + p", "o = o * torch.exp(m - m_new) + p", []),
        ("o = o * c + p", "o *= c\\no += p", []),
        ("o = o * c + p", "o.mul_(c)\\no = o + p", []),
        ("o = o * c + p", "if (m_new > m).any():\\n    o = o * c\\no += p", []),
        ("c = torch.exp(m - m_new)", "c = (m - m_new).exp()", []),
        ("p = torch", "n = n + (s - m_new > -9).sum()\\np = torch", []),
        ("o = o * c + p @", "parts.append(c)\\no = p @", []),
    ],
)
def test_sums_follow_the_maximum(right, wrong, lines):
    """What was summed under a smaller maximum shrinks where the maximum grows, in any form."""
    assert right in RIGHT
    assert lines_of(RIGHT) == []
    assert lines_of(RIGHT.replace(right, wrong.replace("\\n", "\n"))) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (
            "old = m\nm = torch.maximum(m, s.amax(-1))\np = torch.exp(s - m)\nl += p.sum(-1)",
            [4],
        ),
        ("m = torch.maximum(m, s.amax(-1))\np = (s - m[..., None]).exp()\nl = l + p.sum(-1)", [3]),
        ("old = m\nm = torch.maximum(m, s.amax(-1))\nl = l * (old - m).exp() + (s - m).exp()", []),
        ("p = torch.exp(s - m)\nl = l + p.sum(-1)\no = o + p @ v", []),
        ("m = torch.maximum(m, s.amax(-1))", []),
        ("top = s.amax(-1)\np = (s - top).exp()\nl = l + p.sum(-1)", []),
        ("m = torch.maximum(m, s.amax(-1))\nl = l + (s - m).exp() * (m - ref).exp()", []),
    ],
)
def test_a_maximum_that_is_known_before_needs_no_rescaling(body, lines):
    """Two passes, and chunks under a maximum of their own, add up as they are."""
    assert lines_of(body) == lines


def test_sums_that_are_kept_on_an_object_follow_too():
    """A class that is given one chunk after the other has no loop of its own."""
    text = """
class Stream:
    def update(self, s, v):
        new = torch.maximum(self.m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        self.o = self.o {scale}+ p @ v
        self.m = new
"""
    for scale, lines in (("", [6]), ("* torch.exp(self.m - new) ", [])):
        found = source_findings(text.format(scale=scale), "net.py")
        assert [f.line for f in found if f.rule == "sum-not-rescaled"] == lines
