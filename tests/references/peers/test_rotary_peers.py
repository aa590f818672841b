"""RoPE and xPos against transformers, rotary-embedding-torch and x-transformers (B7)."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.references.rotary import (
    RotaryEmbedding,
    rotary_frequencies,
    to_half_layout,
    to_interleaved_layout,
)
from attnlab.references.rotary_scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    LongRoPEScaling,
    NTKScaling,
    ProportionalScaling,
    RotaryScaling,
    YaRNScaling,
)
from attnlab.references.xpos import XPos

transformers = pytest.importorskip("transformers", minversion="5.0")
rotary_embedding_torch = pytest.importorskip("rotary_embedding_torch")
x_transformers = pytest.importorskip("x_transformers")

HD = 16
SHORT, LONG = [1.0 + i / 8 for i in range(HD // 2)], [1.0 + i for i in range(HD // 2)]
# How transformers is told, and the recipe here that should come out.
SCALINGS: dict[str, tuple[dict[str, Any], RotaryScaling | None]] = {
    "default": ({"rope_type": "default"}, None),
    "linear": ({"rope_type": "linear", "factor": 4.0}, LinearScaling(4.0)),
    "dynamic": ({"rope_type": "dynamic", "factor": 4.0}, DynamicNTKScaling(4.0, 64)),
    "yarn": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
        YaRNScaling(4.0, 64),
    ),
    "yarn, other numbers": (
        {
            "rope_type": "yarn",
            "factor": 8.0,
            "original_max_position_embeddings": 64,
            "beta_fast": 8.0,
            "beta_slow": 2.0,
            "truncate": False,
            "mscale": 0.7,
            "mscale_all_dim": 0.5,
        },
        YaRNScaling(8.0, 64, 8.0, 2.0, truncate=False, mscale=0.7, mscale_all_dim=0.5),
    ),
    "llama3": (
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
        Llama3Scaling(8.0, 64),
    ),
    "longrope": (
        {
            "rope_type": "longrope",
            "factor": 4.0,
            "short_factor": SHORT,
            "long_factor": LONG,
            "original_max_position_embeddings": 64,
        },
        LongRoPEScaling(SHORT, LONG, 4.0, 64),
    ),
    "proportional": (
        {"rope_type": "proportional", "partial_rotary_factor": 0.5},
        ProportionalScaling(0.5),
    ),
}


def normal(*shape: int) -> Tensor:
    torch.manual_seed(sum(shape))
    return torch.randn(shape)


def llama(told: dict[str, Any]) -> torch.nn.Module:
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = transformers.LlamaConfig(
        hidden_size=2 * HD,
        num_attention_heads=2,
        max_position_embeddings=64,
        rope_parameters={"rope_theta": 10000.0, **told},
    )
    return LlamaRotaryEmbedding(config)


@pytest.mark.parametrize(("told", "scaling"), SCALINGS.values(), ids=SCALINGS.keys())
def test_llama_with_every_scaling(told: dict[str, Any], scaling: RotaryScaling | None) -> None:
    """B7: queries and keys within and beyond the training length, as transformers turns them."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    ours = RotaryEmbedding(HD, layout="half", scaling=scaling)
    q, k = normal(2, 4, 7, HD), normal(2, 2, 7, HD)
    for start in (0, 50, 100, 4090):
        ids = torch.arange(start, start + 7).expand(2, 7)
        expected = apply_rotary_pos_emb(q, k, *llama(told)(q, ids))
        # float32 angles of p radians are off by about p * 1e-7 there
        tolerance = 1e-5 + 1e-6 * start
        for got, theirs in zip(ours(q, k, ids), expected, strict=True):
            torch.testing.assert_close(got, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", sorted(set(SCALINGS) - {"default"}))
@pytest.mark.parametrize("length", [1, 64, 65, 1000])
def test_frequencies_are_those_of_the_init_functions(kind: str, length: int) -> None:
    """B7: and so are the attention factors."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    told, scaling = SCALINGS[kind]
    make = ROPE_INIT_FUNCTIONS[told["rope_type"]]
    theirs, factor = make(llama(told).config, torch.device("cpu"), seq_len=length)
    ours = rotary_frequencies(HD, scaling=scaling, length=length)
    torch.testing.assert_close(ours.float(), theirs, rtol=1e-5, atol=0)
    assert scaling is not None
    assert scaling.attention_factor == pytest.approx(factor)


def test_every_scaling_of_transformers_has_a_recipe() -> None:
    """B7: a new one there shows here."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    assert set(ROPE_INIT_FUNCTIONS) == {told["rope_type"] for told, _ in SCALINGS.values()} - {
        "default"
    }


def test_gpt_neox_turns_a_part_of_each_head() -> None:
    """B7: the first quarter, in halves."""
    from transformers.models.gpt_neox import modeling_gpt_neox as neox

    config = transformers.GPTNeoXConfig(
        hidden_size=2 * HD,
        num_attention_heads=2,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.25,
        },
    )
    q, k = normal(2, 2, 7, HD), normal(2, 2, 7, HD)
    ids = torch.arange(3, 10).expand(2, 7)
    theirs = neox.apply_rotary_pos_emb(q, k, *neox.GPTNeoXRotaryEmbedding(config)(q, ids))
    ours = RotaryEmbedding(HD, rotary_dim=HD // 4, layout="half")(q, k, offset=3)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_converted_weights_work_in_the_llama_of_transformers() -> None:
    """B7: projections for neighbours, carried to halves, score there as they did here."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    x, H, S = normal(2, 7, 24), 2, 7
    weights = [normal(H * HD, 24), normal(H * HD, 24).flip(0)]

    def heads(weight: Tensor) -> Tensor:
        return (x @ weight.T).view(2, S, H, HD).transpose(1, 2)

    q, k = RotaryEmbedding(HD)(*(heads(w) for w in weights))
    cos, sin = llama({"rope_type": "default"})(x, torch.arange(S).expand(2, S))
    moved = (heads(to_half_layout(w, H)) for w in weights)
    their_q, their_k = apply_rotary_pos_emb(*moved, cos, sin)
    torch.testing.assert_close(their_q @ their_k.mT, q @ k.mT, rtol=1e-4, atol=1e-4)
    for w in weights:
        assert torch.equal(to_interleaved_layout(to_half_layout(w, H), H), w)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_rotary_embedding_torch_pairs_neighbours(factor: float) -> None:
    """B7: plain, with its interpolation (linear scaling), and with its rescaled base (NTK)."""
    q, k = normal(2, 4, 7, HD), normal(2, 4, 7, HD)
    make = rotary_embedding_torch.RotaryEmbedding
    pairs = [
        (make(HD, interpolate_factor=factor), LinearScaling(factor)),
        (make(HD, theta_rescale_factor=factor), NTKScaling(factor)),
    ]
    for theirs, scaling in pairs:
        ours = RotaryEmbedding(HD, scaling=scaling)(q, k, offset=9)
        for got, x in zip(ours, (q, k), strict=True):
            expected = theirs.rotate_queries_or_keys(x, offset=9)
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_x_transformers_pairs_neighbours(factor: float) -> None:
    """B7: with its rescaled base too."""
    from x_transformers.x_transformers import RotaryEmbedding as Theirs
    from x_transformers.x_transformers import apply_rotary_pos_emb

    theirs = Theirs(HD, base_rescale_factor=factor)
    q, k = normal(2, 4, 7, HD), normal(2, 4, 7, HD)
    angles, _ = theirs(torch.arange(9, 16))
    ours = RotaryEmbedding(HD, scaling=NTKScaling(factor))(q, k, offset=9)
    for got, x in zip(ours, (q, k), strict=True):
        expected = apply_rotary_pos_emb(x, angles)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


def test_xpos_of_both_libraries() -> None:
    """B7: centred on half of the length, as they do; the scores are the same without that."""
    from x_transformers.x_transformers import RotaryEmbedding as Theirs
    from x_transformers.x_transformers import apply_rotary_pos_emb

    S = 40
    q, k = normal(2, 4, S, HD), normal(2, 4, S, HD)
    ours = XPos(HD, centre=S // 2)(q, k)
    lucid = rotary_embedding_torch.RotaryEmbedding(HD, use_xpos=True).rotate_queries_and_keys(q, k)
    angles, scale = Theirs(HD, use_xpos=True)(torch.arange(S))
    x_q = apply_rotary_pos_emb(q, angles, scale)
    x_k = apply_rotary_pos_emb(k, angles, scale**-1)
    for theirs in (lucid, (x_q, x_k)):
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=2e-5)
    plain_q, plain_k = XPos(HD)(q, k)
    torch.testing.assert_close(plain_q @ plain_k.mT, x_q @ x_k.mT, rtol=1e-4, atol=1e-4)
