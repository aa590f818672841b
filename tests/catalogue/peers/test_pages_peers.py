"""What the pages of attnlab explain say of released models is what transformers computes."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch import nn

from attnlab.catalogue.load import page_text
from benchmarks.accuracy.right import models

pytest.importorskip("transformers", minversion="5.0")
BUILD = {m.name: m.build for m in models() if m.library == "transformers"}
LENGTH, D, H = 64, 84, 6  # the most positions, width and heads of these models
# Of each scheme: the names of its tensors, and the models that the page says use it.
SCHEMES = {
    "learned": (("position_embeddings", "wpe", "embed_positions"), ["BERT", "GPT-2", "OPT", "ViT"]),
    "RoPE": (("rotary_emb.inv_freq",), ["Llama", "Mistral", "Qwen", "GPT-NeoX"]),
    "ALiBi": ((), ["BLOOM", "MPT"]),
    "T5 bias": (("relative_attention_bias",), ["T5"]),
    "Transformer-XL": (("rel_attn.r", "r_w_bias", "r_r_bias"), ["XLNet"]),
}
CALLED = {"Mistral": "Mistral, sliding window", "Qwen": "Qwen 3"}  # in benchmarks/accuracy
POSITIONAL = tuple(name for names, _ in SCHEMES.values() for name in names)
MODELS = [(scheme, name) for scheme, (_, users) in SCHEMES.items() for name in users]


def build(name: str) -> nn.Module:
    return BUILD[CALLED.get(name, name)]().module.eval()


def positional(module: nn.Module) -> dict[str, torch.Size]:
    """The tensors of a module that its positions are made from, by name; ViT's are no weight of a
    table."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    known = {n.removesuffix(".weight"): t.shape for n, t in tensors if "original" not in n}
    return {n: shape for n, shape in known.items() if n.endswith(POSITIONAL)}


@pytest.mark.parametrize(("scheme", "name"), MODELS)
def test_who_uses_which_scheme(scheme: str, name: str) -> None:
    """A model has the tensors of its scheme and of no other, and as many numbers as the page
    says: M * D, buckets * H once in each stack, a projection and two vectors a head."""
    rows = [r for r in page_text("positions").splitlines() if r.startswith(f"| {scheme} |")]
    assert name in rows[1].split("|")[3]
    shapes = positional(build(name))
    endings = SCHEMES[scheme][0]
    assert all(key.endswith(endings) for key in shapes)
    assert bool(shapes) is bool(endings)
    sizes = {tuple(shape) for shape in shapes.values()}
    if scheme == "learned":
        assert len(shapes) == 1
        assert all(size[-1] == D and len(size) - size.count(1) == 2 for size in sizes)
    elif scheme == "T5 bias":
        assert (len(shapes), sizes) == (2, {(32, H)})  # of the encoder and of the decoder
    elif scheme == "Transformer-XL":
        assert sizes == {(D, H, D // H), (H, D // H)}


@pytest.mark.parametrize("name", [n for s, n in MODELS if n not in ("ViT", "T5", "MPT")])
def test_what_lies_beyond_the_trained_length(name: str) -> None:
    """A learned table ends there; the others go on, whatever their outputs are worth. (The MPT of
    transformers computes its bias for the trained length alone.)"""
    ids = torch.zeros(1, LENGTH + 1, dtype=torch.long)
    with torch.no_grad():
        if name in SCHEMES["learned"][1]:
            with pytest.raises((IndexError, RuntimeError, ValueError)):
                build(name)(input_ids=ids)
        else:
            build(name)(input_ids=ids)


def test_a_padding_mask_of_transformers_is_0_at_padding() -> None:
    """As the page on masks says: a token under 0 is not seen by the others, one under 1 is."""
    assert "| transformers | `attention_mask` (B, S) | a token, 0 padding |" in page_text("masks")
    model, keep = build("BERT"), torch.tensor([[1, 1, 1, 0]])
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 9], [5, 6, 4, 8]])
    with torch.no_grad():
        first, padding, token = model(ids, keep.expand(3, 4)).last_hidden_state[:, 0]
    assert torch.allclose(first, padding, atol=1e-6)
    assert not torch.allclose(first, token, atol=1e-3)
