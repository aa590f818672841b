"""The tests that a person writes are judged by the bugs that they see."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from attnlab.catalogue.load import load
from attnlab.errors import AttnlabError
from attnlab.questions.base import Runner
from attnlab.questions.kinds import tests as kind
from attnlab.questions.material import Material

TESTS = """
import torch
from layer import GroupedQueryAttention


def test_causal():
    torch.manual_seed(0)
    layer, x = GroupedQueryAttention(12, 6, 2), torch.randn(3, 5, 12)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    out = layer(x, mask)
    x[:, 3:] += 1
    torch.testing.assert_close(layer(x, mask)[:, :3], out[:, :3])
"""


@pytest.fixture
def bugs():
    """A base and its bugs."""
    material = Material(load())
    folder = next(f for f in material.folders if f.name == "two-kinds-of-mask")
    return {one.id: one for one in material.of(folder, "patched")}


def test_tests_are_scored_by_the_bugs_that_they_see(bugs, monkeypatch, tmp_path):
    """A survivor is shown; what does the same as the right file does not count."""
    one = bugs["masks-of-one-library-only"]
    same = kind.Wrong(one.right + "\n# the same\n", ("+ # the same",))
    seen, unseen = bugs["the-mask-is-a-whisper"], bugs["flatter-with-more-keys"]
    wrong = [kind.Wrong(each.text, (f"+ {each.id}",)) for each in (seen, unseen)]
    monkeypatch.setattr(kind, "other_right_files", lambda challenge: ())
    path = tmp_path / "test_layer.py"
    path.write_text(TESTS)
    found = kind.judge_tests(str(path), one.challenge, [*wrong, same])
    assert (found.mark, found.message[:19]) == ("partly", "1 of 2 bugs are see")
    assert unseen.id in found.message


def test_what_is_asked_names_what_the_class_promises(bugs):
    refuse = lambda job: pytest.fail("nothing is run to ask")  # noqa: E731
    one = bugs["masks-of-one-library-only"]
    (part,) = kind.draw(one, random.Random(0), Runner(refuse, refuse))
    assert one.name in part.question.prompt
    assert any("mask" in line for line in part.question.log)
    assert "Fix" not in part.question.log[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def test_x(:", "test_own.py:1: syntax error"),
        ("def test_x(): pass", "no test in test_own.py imports layer.py"),
        ("import layer\n\ndef test_x(): assert 0", "test_own.py fails on layer.py as it is"),
        ("import layer\n\ndef test_x():\n    while True: pass", "do not end within 2 s"),
    ],
)
def test_what_right_code_does_not_pass_is_no_answer(bugs, text, says, monkeypatch, tmp_path):
    """Nor is what is no file: a line says why, and nothing is recorded."""
    monkeypatch.chdir(tmp_path)
    if "while" in text:
        monkeypatch.setattr(kind, "SECONDS", 2.0)
    Path("test_own.py").write_text(text)
    one = bugs["masks-of-one-library-only"]
    with pytest.raises(AttnlabError) as error:
        kind.judge_tests("test_own.py", one.challenge, [])
    assert says in error.value.message
    with pytest.raises(AttnlabError):
        kind.judge_tests("no.py", one.challenge, [])
