"""Sinusoids, grids and resampling against transformers and positional-encodings (B3, B5, B6)."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch import Tensor, nn

from attnlab.references.grid import (
    SinusoidalGridEncoding,
    resample_grid_positions,
    sinusoidal_grid_encoding,
)
from attnlab.references.positional import sinusoidal_positional_encoding

transformers = pytest.importorskip("transformers", minversion="5.0")
positional_encodings = pytest.importorskip("positional_encodings.torch_encodings")


@pytest.mark.parametrize(("H", "W", "D"), [(3, 5, 8), (7, 2, 24), (1, 1, 4)])
def test_the_grid_of_vit_mae(H: int, W: int, D: int) -> None:
    """B6: sines first within each half, the row's half first, raster order."""
    from transformers.models.vit_mae import modeling_vit_mae as mae

    theirs = mae.build_2d_sinusoidal_position_embedding(H, W, D)
    ours = sinusoidal_grid_encoding(H, W, D, layout="concatenated")
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    with_class = mae.build_2d_sinusoidal_position_embedding(H, W, D, cls_token=True)
    torch.testing.assert_close(torch.cat((torch.zeros(1, D), ours)), with_class, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("H", "W", "D"), [(3, 5, 8), (7, 2, 24)])
def test_the_grid_of_positional_encodings(H: int, W: int, D: int) -> None:
    """B6: sine and cosine in turn within each half."""
    x = torch.randn(2, H, W, D)
    theirs = positional_encodings.PositionalEncoding2D(D)(x)
    torch.testing.assert_close(SinusoidalGridEncoding(9, 9, D)(x), x + theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("D", [8, 7, 1])
def test_the_sequence_of_positional_encodings(D: int) -> None:
    """B3: an odd width is cut there from the next even one; here that is a slice."""
    theirs = positional_encodings.PositionalEncoding1D(D)(torch.zeros(2, 30, D))
    ours = sinusoidal_positional_encoding(30, D + D % 2)[:, :D]
    torch.testing.assert_close(ours.expand(2, 30, D), theirs, rtol=0, atol=1e-5)


def embeddings(kind: str) -> nn.Module:
    """The embeddings of a model of 4 x 4 patches of 2 x 2 pixels."""
    from transformers.models.dinov2.modeling_dinov2 import Dinov2Embeddings
    from transformers.models.vit.modeling_vit import ViTEmbeddings

    sizes = {"hidden_size": 8, "num_attention_heads": 2, "image_size": 8, "patch_size": 2}
    if kind == "vit":
        return ViTEmbeddings(transformers.ViTConfig(**sizes)).eval()
    return Dinov2Embeddings(transformers.Dinov2Config(**sizes)).eval()


def resampled(theirs: nn.Module, height: int, width: int) -> Tensor:
    new = (height // 2, width // 2)
    return resample_grid_positions(theirs.position_embeddings[0], (4, 4), new, prefix=1)


@pytest.mark.parametrize("kind", ["vit", "dinov2"])
@pytest.mark.parametrize(("height", "width"), [(12, 18), (6, 4), (2, 20), (8, 10)])
def test_positions_resampled_for_other_images(kind: str, height: int, width: int) -> None:
    """B5: bicubic, corners not aligned, the class token's row kept; images that are not square."""
    theirs = embeddings(kind)
    patches = torch.zeros(1, 1 + height * width // 4, 8)
    expected = theirs.interpolate_pos_encoding(patches, height, width)[0]
    torch.testing.assert_close(resampled(theirs, height, width), expected, rtol=0, atol=1e-5)


def test_half_tables_are_resampled_as_in_dinov2() -> None:
    """B5: in float32, rounded once."""
    theirs = embeddings("dinov2").to(torch.bfloat16)
    patches = torch.zeros(1, 1 + 6 * 9, 8, dtype=torch.bfloat16)
    expected = theirs.interpolate_pos_encoding(patches, 12, 18)[0]
    assert torch.equal(resampled(theirs, 12, 18), expected)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (12, 6)])
def test_the_embeddings_of_a_whole_image(height: int, width: int) -> None:
    """B5, B6: patches plus positions, as ViT itself adds them."""
    theirs = embeddings("vit")
    pixels = torch.randn(2, 3, height, width)
    patches = theirs.patch_embeddings(pixels)
    tokens = torch.cat((theirs.cls_token.expand(2, 1, 8), patches), dim=1)
    ours = tokens + resampled(theirs, height, width)
    expected = theirs(pixels, interpolate_pos_encoding=True)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)
