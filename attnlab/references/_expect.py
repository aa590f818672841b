"""Checks of the attention modules' arguments; every error names argument and value."""

import torch
from torch import Tensor, nn

from attnlab.references._arguments import WrongDtype, has_values


def head_width(embed_dim: int, num_heads: int, num_kv_heads: int | None = None) -> int:
    """The head width hd = D / H; raises unless D is a multiple of H, and H of Hkv."""
    if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
        raise ValueError(
            f"embed_dim={embed_dim}, num_heads={num_heads}: "
            "expected positive numbers, embed_dim a multiple of num_heads"
        )
    if num_kv_heads is not None and (num_kv_heads < 1 or num_heads % num_kv_heads):
        raise ValueError(
            f"num_heads={num_heads}, num_kv_heads={num_kv_heads}: "
            "expected positive numbers, num_heads a multiple of num_kv_heads"
        )
    return embed_dim // num_heads


def positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise ValueError(f"{name}={value}: expected a positive number")


def probability(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}={value}: expected a probability, 0 to 1")


def sequence(name: str, x: Tensor, layer: nn.Linear) -> None:
    """Check that x fits a layer of D features: (B, S, D), of its dtype and on its device."""
    D, weight = layer.in_features, layer.weight
    if x.dim() != 3 or x.shape[-1] != D:
        raise ValueError(f"{name} has shape {tuple(x.shape)}: expected (B, S, D) with D = {D}")
    if x.device != weight.device:
        raise ValueError(f"{name} is on {x.device}: expected {weight.device}, as the weights")
    # Under autocast the types of activations and weights differ on purpose.
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise WrongDtype(f"{name} has dtype {x.dtype}: expected {weight.dtype}, as the weights")


def mask(mask: Tensor | None, scores: tuple[int, int, int, int], device: torch.device) -> None:
    """Check that the mask is boolean, (B, H, Sq, Sk) with 1 where shared, and on the device."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise WrongDtype(
            f"mask has dtype {mask.dtype}: expected torch.bool, True where a query may not attend "
            "(`masks.to_boolean` makes one of an additive mask)"
        )
    fits("mask", mask, scores)
    if mask.device != device:
        raise ValueError(f"mask is on {mask.device}: expected {device}, as the input")


def bias(bias: Tensor | None, scores: tuple[int, int, int, int]) -> None:
    if bias is None:
        return
    if not bias.is_floating_point():
        raise WrongDtype(
            f"bias has dtype {bias.dtype}: expected floating-point numbers that are added to the "
            "scores (a boolean tensor is a mask)"
        )
    fits("bias", bias, scores)


def fits(name: str, t: Tensor, scores: tuple[int, int, int, int]) -> None:
    """Check for four axes (B, H, Sq, Sk), of which the first three may be 1.

    With fewer axes, a (B, Sk) padding mask would broadcast as (Sq, Sk) whenever B = Sq."""
    B, H, Sq, Sk = scores
    if (
        t.dim() == 4
        and t.shape[0] in (1, B)
        and t.shape[1] in (1, H)
        and t.shape[2] in (1, Sq)
        and t.shape[3] == Sk
    ):
        return
    hint = {
        2: f"; (Sq, Sk) becomes so by `{name}[None, None]`, (B, Sk) by `{name}[:, None, None]`",
        3: f"; (B, Sq, Sk) becomes so by `{name}[:, None]`, (H, Sq, Sk) by `{name}[None]`",
    }.get(t.dim(), "")
    raise ValueError(
        f"{name} has shape {tuple(t.shape)}: expected (B, H, Sq, Sk) = {(B, H, Sq, Sk)}, "
        f"with 1 for B, H or Sq where it is shared{hint}"
    )


def integers(name: str, t: Tensor, shape: str) -> None:
    """Check for whole numbers with as many axes as the shape has letters: "(B, S)"."""
    axes = shape.count(",") + (not shape.endswith(",)"))
    if t.dim() != axes:
        raise ValueError(f"{name} has shape {tuple(t.shape)}: expected {shape}")
    if t.is_floating_point() or t.is_complex() or t.dtype == torch.bool:
        raise WrongDtype(f"{name} has dtype {t.dtype}: expected whole numbers, as torch.int64")


def within(name: str, t: Tensor, low: int, high: int) -> None:
    """Check that all of t lie in low ... high; an exported graph has no values to check."""
    if not has_values(t):
        return
    least, most = int(t.min()), int(t.max())
    if least < low or most > high:
        raise ValueError(f"{name} holds {least} ... {most}: expected numbers from {low} to {high}")


def positions(t: Tensor, B: int, S: int) -> None:
    """Check for one row for all sequences, or one for each."""
    if tuple(t.shape) not in ((S,), (B, S)):
        raise ValueError(f"positions has shape {tuple(t.shape)}: expected {(S,)} or {(B, S)}")
    integers("positions", t, "(S,)" if t.dim() == 1 else "(B, S)")
