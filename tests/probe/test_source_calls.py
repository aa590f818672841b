"""Where a text calls something, read and not run."""

import pytest

from attnlab.probe.source_calls import lines_calling

TEXT = """import torch
from torch import Tensor, empty

def made(x: Tensor) -> Tensor:
    a = torch.empty(3)
    b = empty(
        4)
    return x.new_empty(2).copy_(a), b, torch.empty
"""


def test_calls_are_found_by_their_last_name():
    """However they are reached; a type that is named is none."""
    assert lines_calling(TEXT, frozenset({"empty", "Tensor"})) == (5, 6)
    assert lines_calling(TEXT, frozenset({"new_empty"})) == (8,)


@pytest.mark.parametrize("text", ["def (", "\x00", "(" * 5000])
def test_a_text_that_is_no_python_has_none(text):
    """The candidate wrote it."""
    assert lines_calling(text, frozenset({"empty"})) == ()
