"""Tables of sines and cosines that a module holds: each pair of them is of one angle."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from attnlab.records.trace import Finding
from attnlab.tracer.class_source import class_source_of

SHORTEST = 4  # positions, and features
LARGEST = 1 << 22  # elements of a table that is looked at
CLOSE = 1e-3


def odd_tables(path: str, module: nn.Module) -> Iterator[Finding]:
    """Tables that begin as sin(0), cos(0), ... and whose pairs are not of one angle."""
    source = class_source_of(module)
    held = {n: t for n, t in vars(module).items() if isinstance(t, Tensor)}
    held |= {n: t for n, t in module._buffers.items() if t is not None}
    for name, tensor in held.items():
        pairs = _pairs(tensor.detach()) if source.tree is not None else None
        if pairs is None:
            continue
        full = f"{path}.{name}".lstrip(".")
        angles = torch.atan2(pairs[0][1], pairs[1][1])
        gap = (pairs[0] ** 2 + pairs[1] ** 2 - 1).abs().amax(0)
        if gap.max().item() > CLOSE:
            odd = int((gap > CLOSE).sum())
            yield source.finding(
                "sinusoid-pairs",
                "warning",
                source.formula(name),
                f"{full} is a table of sines and cosines, and in {odd} of its {len(gap)} pairs the "
                "two are not of one angle (sin^2 + cos^2 is not 1): both columns of a pair have "
                "the frequency base**(-2i/d), with i the number of the pair",
            )

        elif (angles[0] - 1).abs() < CLOSE and angles.max() > 1 + CLOSE:
            yield source.finding(
                "sinusoid-pairs",
                "warning",
                source.formula(name),
                f"{full} is a table of sines and cosines whose frequencies rise from pair to pair: "
                "neighbours look as if drawn at random. They fall from 1 as base**(-2i/d), which "
                "positions are multiplied by, not divided",
            )


def _pairs(tensor: Tensor) -> tuple[Tensor, Tensor] | None:
    """The columns of sines and those of cosines, by what stands at position 0; None for no such
    table."""
    table = tensor.squeeze()
    if table.dim() != 2 or table.numel() > LARGEST or not table.is_floating_point():
        return None
    table = table.double().cpu()
    if min(table.shape) < SHORTEST or table.shape[1] % 2 or not table.abs().max() <= 1 + CLOSE:
        return None
    half, first = table.shape[1] // 2, table[0]
    zero, one = torch.zeros(half).double(), torch.ones(half).double()
    for sines, cosines in (
        (slice(0, None, 2), slice(1, None, 2)),
        (slice(half), slice(half, None)),
    ):
        if torch.equal(first[sines], zero) and torch.equal(first[cosines], one):
            angles = table[:, sines], table[:, cosines]
            turning = bool((angles[0][1:].abs() > CLOSE).any() and (angles[1] < 1 - CLOSE).any())
            return angles if turning else None
    return None
