"""Checks of the position modules' arguments; every message names argument and value."""

import math
from collections.abc import Collection

import torch
from torch import Tensor


class WrongDtype(TypeError, ValueError):
    """A tensor has an unexpected dtype: both a `TypeError` and a `ValueError`.

    Every bad argument of this library is a `ValueError`; for a dtype many expect a
    `TypeError`, as PyTorch raises."""


def check_features(name: str, x: Tensor, axes: str, **known: int) -> None:
    """`x` is floating-point, an axis per letter of `axes` ("B S D"), sized as `known` says."""
    letters = axes.split()
    fits = x.dim() == len(letters)
    if not fits or any(x.shape[letters.index(axis)] != size for axis, size in known.items()):
        sizes = ", ".join(f"{axis} = {size}" for axis, size in known.items())
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}: expected ({', '.join(letters)})"
            + (f" with {sizes}" if sizes else "")
        )
    if not x.is_floating_point():
        raise WrongDtype(f"{name} has dtype {x.dtype}: expected a floating-point type")


def check_positions(
    name: str, ids: Tensor, shape: tuple[int, ...], axes: str, *, below: int | None = None
) -> None:
    """`ids` holds whole numbers from 0, all under `below`, and has exactly that shape."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise WrongDtype(f"{name} has dtype {ids.dtype}: expected torch.int64 or torch.int32")
    if tuple(ids.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(ids.shape)}: expected ({axes}) = {shape}")
    if not has_values(ids):
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or (below is not None and high >= below):
        upper = "up" if below is None else f"to {below - 1}"
        raise ValueError(f"{name} holds {low} ... {high}: expected positions from 0 {upper}")


def has_values(ids: Tensor) -> bool:
    """Whether values can be read: not on the meta device, not under export or compile."""
    return ids.numel() > 0 and not ids.is_meta and not torch.compiler.is_compiling()


def resolve_positions(
    B: int, S: int, position_ids: Tensor | None, offset: int, *, device: torch.device
) -> Tensor:
    """The S positions, (B, S), or (1, S) if they are the same for all sequences."""
    check_offset(offset)
    if position_ids is None:
        return torch.arange(offset, offset + S, device=device).unsqueeze(0)
    if offset:
        raise ValueError(f"offset={offset} with position_ids: expected one of them, not both")
    if position_ids.dim() == 1:
        check_positions("position_ids", position_ids, (S,), "S,")
        return position_ids.unsqueeze(0)
    check_positions("position_ids", position_ids, (B, S), "B, S")
    return position_ids


def check_offset(offset: int) -> None:
    if offset < 0:
        raise ValueError(
            f"offset={offset}: expected how many positions stand before the first, 0 or more"
        )


def check_count(name: str, value: int, least: int = 1) -> None:
    if value < least:
        raise ValueError(f"{name}={value}: expected {least} or more")


def check_width(name: str, width: int, parts: int = 2) -> None:
    """A width of whole pairs; `parts` = 4 for one half of pairs per axis of a grid."""
    if width >= parts and width % parts == 0:
        return
    what = "even number" if parts == 2 else f"multiple of {parts}"
    raise ValueError(f"{name}={width}: expected a positive {what} of columns")


def check_base(base: float) -> None:
    if not 1 < base < math.inf:
        raise ValueError(f"base={base}: expected a finite number above 1 (the paper's is 10000)")


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}")
