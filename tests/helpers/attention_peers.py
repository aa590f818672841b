"""What the comparisons with other libraries share: weights from theirs into ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

close = {"rtol": 2e-5, "atol": 2e-5}  # float32 on both sides: theirs compute norms in it


def randomised(module: nn.Module, std: float = 0.3) -> nn.Module:
    """In evaluation, with no weight that a fresh module leaves at 0 or 1."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=std)
    return module.eval()


def copy(theirs: nn.Module, ours: nn.Module, names: dict[str, str]) -> nn.Module:
    """`names` maps the start of their parameter names to ours; every weight finds its place."""
    weights = {}
    for name, weight in theirs.state_dict().items():
        start = max((key for key in names if name.startswith(key)), key=len)
        weights[names[start] + name[len(start) :]] = weight
    ours.load_state_dict(weights)
    return ours.eval()


def additive(mask: Tensor) -> Tensor:
    """The mask as transformers takes it in eager mode: the lowest float where it forbids."""
    return torch.zeros(mask.shape).masked_fill(mask, torch.finfo(torch.float32).min)


def angles(B: int, S: int, hd: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines (B, S, hd), half-split, of arbitrary angles per position."""
    turn = torch.rand(B, S, hd // 2) * 6
    turn = torch.cat((turn, turn), dim=-1)
    return turn.cos(), turn.sin()


def rotation(apply: Callable[..., Any], cos: Tensor, sin: Tensor) -> Callable[..., Tensor]:
    """Their own rotation as our hook."""
    return lambda t, positions: apply(t, t, cos, sin)[0]
