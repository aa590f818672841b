"""Arguments of the wrong dtype."""

import pytest
import torch

from attnlab.references.attention import MultiHeadSelfAttention
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.masks import to_additive


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_wrong_dtype_is_a_value_error_and_a_type_error(kind: type[Exception]) -> None:
    """A1, A4, B4: callers who catch either are served, and the message names the argument."""
    x = torch.zeros(2, 3, 4)
    with pytest.raises(kind, match=r"mask has dtype torch\.float32"):
        MultiHeadSelfAttention(4, 2)(x, torch.zeros(2, 3, 3))
    with pytest.raises(kind, match=r"mask has dtype torch\.float32"):
        to_additive(torch.zeros(1, 1, 3, 3), torch.float32)
    with pytest.raises(kind, match=r"position_ids has dtype torch\.float32"):
        LearnedPositionalEncoding(4, 8)(x, torch.zeros(2, 3))
