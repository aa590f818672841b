"""torch.export takes every attention module, with batch and sequence left open (A1, A5, A6)."""

from dataclasses import replace

import pytest
import torch
from attention_scenes import CACHED, normal, random_mask, spin
from torch import nn
from torch.export import Dim

from attnlab.references import masks
from attnlab.references.attention import MultiHeadSelfAttention
from attnlab.references.block import BERT, LLAMA, CrossBlock, TransformerBlock
from attnlab.references.cross import CrossAttention
from attnlab.references.decoder import DecoderLM
from attnlab.references.feed_forward import FeedForward, SwiGLU
from attnlab.references.norms import LayerNorm, RMSNorm

B, S, SK = Dim.DYNAMIC, Dim.DYNAMIC, Dim.DYNAMIC


def check(module: nn.Module, make, shapes: tuple) -> None:
    """Exported at one size, it gives the module's answers at two others."""
    module = module.eval()
    program = torch.export.export(module, make(2, 5, 4), dynamic_shapes=shapes).module()
    for sizes in [(3, 7, 6), (4, 3, 9)]:
        arguments = make(*sizes)
        torch.testing.assert_close(program(*arguments), module(*arguments))


def self_attention(mask_axes: int):
    def make(b: int, s: int, _: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = normal(b, s, 24).float()
        return x, random_mask(b, s, s) if mask_axes == 3 else random_mask(b, 1, s, s)

    return make


def crossed(b: int, s: int, sk: int) -> tuple[torch.Tensor, ...]:
    return normal(b, s, 24).float(), normal(b, sk, 24).float(), random_mask(b, 1, 1, sk)


def crossed_block(b: int, s: int, sk: int) -> tuple[torch.Tensor, ...]:
    x, context, padding = crossed(b, s, sk)
    return x, context, random_mask(b, 1, s, s), padding


def tokens(b: int, s: int, _: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(9, (b, s)), random_mask(b, 1, 1, s)


class Packed(nn.Module):
    """Masks built inside a module, from values that are only known when it runs."""

    def forward(self, scores: torch.Tensor, segments: torch.Tensor, lengths: torch.Tensor):
        keys = scores.shape[-1]
        mask = masks.combine(
            masks.packed_mask(segments),
            masks.sliding_window_mask(keys, window=3),
            masks.padding_mask(lengths, keys),
            masks.prefix_mask(lengths, keys),
        )
        return scores.masked_fill(mask, 0.0), masks.segment_positions(segments)


def scored(b: int, s: int, _: int) -> tuple[torch.Tensor, ...]:
    return normal(b, 2, s, s), torch.arange(s).expand(b, s) // 2, torch.arange(b) % (s + 1)


X, MASK, PADDING = {0: B, 1: S}, {0: B, 2: S, 3: S}, {0: B, 3: SK}
MODULES = {
    "fused": (lambda: MultiHeadSelfAttention(24, 6), self_attention(3), (X, {0: B, 1: S, 2: S})),
    **{name: (build, self_attention(4), (X, MASK)) for name, build in CACHED.items()},
    "cross": (lambda: CrossAttention(24, 6), crossed, (X, {0: B, 1: SK}, PADDING)),
    "block": (lambda: TransformerBlock(24, 6, BERT), self_attention(4), (X, MASK)),
    "cross-block": (
        lambda: CrossBlock(24, 6, replace(LLAMA, num_kv_heads=2)),
        crossed_block,
        (X, {0: B, 1: SK}, MASK, PADDING),
    ),
    "decoder": (lambda: DecoderLM(9, 24, 6, 1, 16), tokens, (X, PADDING)),
    "decoder-llama": (
        lambda: DecoderLM(9, 24, 6, 1, 16, replace(LLAMA, rotate=spin)),
        tokens,
        (X, PADDING),
    ),
    "masks": (Packed, scored, ({0: B, 2: S, 3: S}, X, {0: B})),
    **{
        layer.__name__: (build, lambda b, s, _: (normal(b, s, 24).float(),), (X,))
        for layer, build in {
            LayerNorm: lambda: LayerNorm(24),
            RMSNorm: lambda: RMSNorm(24),
            FeedForward: lambda: FeedForward(24, 32),
            SwiGLU: lambda: SwiGLU(24, 32),
        }.items()
    },
}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_batch_and_sequence_stay_open(name: str) -> None:
    """A1, A4, A5, A6: no size is frozen in, and no mask shape is taken for another."""
    build, make, shapes = MODULES[name]
    torch.manual_seed(0)
    check(build(), make, shapes)
