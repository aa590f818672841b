"""Tokens plus positions: the layer that a model begins with (B6, with what B1 and B2 say of it)."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from attnlab.references.embeddings import POSITIONS, CombinedEmbedding, TiedHead
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.positional import sinusoidal_positional_encoding

TYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def tokens(V: int, B: int, S: int) -> Tensor:
    return torch.randint(V, (B, S))


def combined(position: str = "sinusoidal", **more: object) -> CombinedEmbedding:
    return CombinedEmbedding(11, 8, 20, position=position, **{"dropout": 0.0, **more})


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("scale", [False, True])
def test_tokens_times_scale_plus_positions(position: str, scale: bool) -> None:
    """B6: added once, not concatenated, for every kind of position."""
    module = combined(position, scale=scale)
    ids = tokens(11, 2, 5)
    table = {
        "sinusoidal": lambda: sinusoidal_positional_encoding(5, 8),
        "learned": lambda: module.position.weight[:5],
        "hybrid": lambda: module.position.learned.weight[:5],
        "none": lambda: torch.zeros(5, 8),
    }[position]()
    expected = module.token.weight[ids] * (math.sqrt(8) if scale else 1) + table
    torch.testing.assert_close(module(ids), expected)


@pytest.mark.parametrize("position", POSITIONS)
def test_positions_may_be_given(position: str) -> None:
    """B6: with padding on the left, the first real token is at position 0."""
    module = combined(position, padding_idx=0)
    left = module(torch.tensor([[0, 0, 3, 4]]), torch.tensor([[0, 0, 0, 1]]))
    torch.testing.assert_close(left[:, 2:], module(torch.tensor([[3, 4]])))


def test_there_is_one_dropout_after_the_sum() -> None:
    """B6: each number is 0 or the sum over 1 - p, with share p of zeros; none in eval mode."""
    torch.manual_seed(0)
    module = CombinedEmbedding(11, 64, 300, dropout=0.25)
    ids = tokens(11, 3, 300)
    out, kept = module(ids), module.eval()(ids)
    dropped = out == 0
    assert dropped.double().mean().item() == pytest.approx(0.25, abs=0.01)
    torch.testing.assert_close(out[~dropped], (kept / 0.75)[~dropped])
    assert sum(isinstance(m, nn.Dropout) for m in module.modules()) == 1


def test_a_learned_position_is_trained() -> None:
    """B6: the learned table is a parameter of the layer, a sinusoidal one is not."""
    assert isinstance(combined("learned").position, LearnedPositionalEncoding)
    assert dict(combined("learned").named_parameters()).keys() == {
        "token.weight",
        "position.weight",
    }
    assert dict(combined().named_parameters()).keys() == {"token.weight"}


def test_padding_is_zeros_no_longer_once_positions_are_added() -> None:
    """B1: what comes out at a padding token is the position."""
    out = combined(padding_idx=2)(torch.tensor([[1, 2, 5]]))
    torch.testing.assert_close(out[0, 1], sinusoidal_positional_encoding(3, 8)[1])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("position", POSITIONS)
def test_keeps_the_type_of_its_weights(position: str, dtype: torch.dtype) -> None:
    """B1, B6: in every floating-point type, under no_grad, and the ids stay as they were."""
    module, ids = combined(position).to(dtype), tokens(11, 2, 5)
    before = ids.clone()
    with torch.no_grad():
        out = module(ids)
    assert out.dtype == dtype
    assert TiedHead(module.token)(out).dtype == dtype
    assert torch.equal(ids, before)
    torch.testing.assert_close(out.double(), module.double()(ids), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("position", POSITIONS)
def test_export_keeps_batch_and_length_open(position: str) -> None:
    """B1, B2, B6: `torch.export` takes layer and head with dynamic B and S."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = combined(position)
            self.head = TiedHead(self.embedding.token)

        def forward(self, ids: Tensor) -> Tensor:
            return self.head(self.embedding(ids))

    module = Both().eval()
    exported = export(module, (tokens(11, 3, 7),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    ids = tokens(11, 2, 12)
    torch.testing.assert_close(exported.module()(ids), module(ids))


@pytest.mark.parametrize("dropout", [-0.1, 1.5])
def test_a_dropout_that_is_no_probability_is_refused(dropout: float) -> None:
    """B6: with its value."""
    with pytest.raises(ValueError, match=f"dropout={dropout}: expected a probability"):
        combined(dropout=dropout)


def test_the_kind_of_position_must_be_known() -> None:
    """B6: the message lists the kinds; one that acts inside attention is told where it belongs."""
    with pytest.raises(ValueError, match="position='sine': expected one of 'sinusoidal', 'learned"):
        combined("sine")
    with pytest.raises(ValueError, match=r"position='rope': it acts inside attention.*'none' here"):
        combined("rope")


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_sequences_beyond_the_table_are_refused(position: str) -> None:
    """B6: by the position module, with both numbers."""
    with pytest.raises(ValueError, match="length is 21: expected at most max_seq_len = 20"):
        combined(position)(tokens(11, 2, 21))
