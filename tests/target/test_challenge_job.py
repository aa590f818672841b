"""What a file must define, and must leave alone, to be graded."""

import pytest

from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text, solution_text
from attnlab.errors import Refused
from attnlab.records import Code
from attnlab.target.challenge_job import challenge_job

PORT = load().find("port-gpt2-attention")


def _code(*edits: tuple[str, str]) -> Code:
    text = solution_text(PORT)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return Code(file="mine.py", text=text)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("return layer(x)", "return layer(x) * 1.0", "PortedAttention"),
        ("is_causal=True", "is_causal=False", "SelfAttention"),
        ("        self.heads = heads\n        self.q", "        self.q", "SelfAttention"),
        ("class SelfAttention(nn.Module)", "class SelfAttention(Base)", "SelfAttention"),
    ],
)
def test_a_port_that_changes_what_is_given_is_refused_at_its_line(old, new, name):
    """A `convert` that is wrong must not pass because the model around it was bent to it."""
    code = _code((old, new))
    with pytest.raises(Refused, match=rf"mine.py:\d+: {name} is not as it was given") as told:
        challenge_job(PORT, code)
    line = int(str(told.value).split(":")[1])
    assert abs(line - 1 - solution_text(PORT)[: solution_text(PORT).index(old)].count("\n")) <= 2


def test_comments_docstrings_and_layout_of_given_parts_are_free():
    """A formatter or a note of the reader is no change."""
    spaced = _code(
        (
            "        return layer(x)",
            "        # mine\n        return layer(\n            x\n        )",
        )
    )
    documented = _code(('"""Feeds the new layer', '"""It feeds the new layer'))
    assert challenge_job(PORT, spaced).contract
    assert challenge_job(PORT, documented).contract


def test_a_changed_part_is_traced():
    """Who looks for the fault may print there; only a grade asks for what was given."""
    code = _code(("return layer(x)", "print(x.shape)\n        return layer(x)"))
    assert challenge_job(PORT, code, stages=("trace",)).stages == ("trace",)


def test_every_given_part_is_in_what_each_challenge_ships():
    """A name that is spelled wrong in base.toml would guard nothing."""
    guarded = [c for c in load().challenges if c.given]
    assert len(guarded) > 20
    for challenge in guarded:
        assert all(f" {name}" in shipped_text(challenge) for name in challenge.given)
