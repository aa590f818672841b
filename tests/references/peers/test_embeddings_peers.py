"""Embeddings against the models of transformers, built from small configurations (B1, B2, B6)."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
import torch.nn.functional as F

from attnlab.references.embeddings import CombinedEmbedding, TiedHead

transformers = pytest.importorskip("transformers")
SIZES = [(3, 7), (1, 1), (2, 20)]  # (B, S), at most 20 positions
V, D = 11, 8


def ours(tokens: torch.Tensor, positions: torch.Tensor, **more: object) -> CombinedEmbedding:
    """A layer with these two tables, in eval mode and without the scale, as GPT-2 and BERT do."""
    module = CombinedEmbedding(V, D, 20, position="learned", scale=False, **more).eval()
    module.token.weight.data.copy_(tokens)
    module.position.weight.data.copy_(positions)
    return module


@pytest.mark.parametrize(("B", "S"), SIZES)
def test_gpt2(B: int, S: int) -> None:
    """B6, B2: without blocks GPT-2 is the sum, a norm, and the tied head."""
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=20, n_embd=D, n_head=2, n_layer=0, bos_token_id=0, eos_token_id=0
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    body = theirs.transformer
    module = ours(body.wte.weight, body.wpe.weight)
    ids = torch.randint(V, (B, S))
    hidden = F.layer_norm(module(ids), (D,))
    torch.testing.assert_close(body(ids).last_hidden_state, hidden, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        theirs(ids).logits, TiedHead(module.token)(hidden), atol=1e-6, rtol=1e-5
    )


@pytest.mark.parametrize(("B", "S"), SIZES)
def test_bert(B: int, S: int) -> None:
    """B6, B1: BERT's embeddings are the sum, a segment row and a norm; padding row included."""
    from transformers.models.bert.modeling_bert import BertEmbeddings

    config = transformers.BertConfig(
        vocab_size=V, hidden_size=D, max_position_embeddings=20, num_attention_heads=2
    )
    theirs = BertEmbeddings(config).eval()
    module = ours(theirs.word_embeddings.weight, theirs.position_embeddings.weight, padding_idx=0)
    ids = torch.randint(V, (B, S))
    ids[:, -1] = 0
    segment = theirs.token_type_embeddings.weight[0]
    expected = F.layer_norm(module(ids) + segment, (D,), eps=config.layer_norm_eps)
    torch.testing.assert_close(theirs(ids), expected, atol=1e-5, rtol=1e-5)
    assert theirs.word_embeddings.padding_idx == module.token.padding_idx


def test_given_positions() -> None:
    """B6: left padding, as GPT-2 is given it."""
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=20, n_embd=D, n_head=2, n_layer=0, bos_token_id=0, eos_token_id=0
    )
    body = transformers.GPT2Model(config).eval()
    module = ours(body.wte.weight, body.wpe.weight)
    ids, positions = torch.randint(V, (2, 4)), torch.tensor([[0, 0, 0, 1], [0, 1, 2, 3]])
    expected = body(ids, position_ids=positions).last_hidden_state
    found = F.layer_norm(module(ids, positions), (D,))
    torch.testing.assert_close(expected, found, atol=1e-6, rtol=1e-5)
