"""Queries that see no key: of a softmax over scores, and of the mask of a fused attention."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from attnlab.records.base import record

BARRED = -9900.0  # scores below are a mask's: the usual -1e4 in bfloat16 is -9984
FUSED = "scaled_dot_product_attention"
LOOKED_AT = {"softmax", "_softmax", FUSED}


@record
class Barred:
    """The queries of one attention for which the mask leaves no key."""

    row: int
    count: int
    first: tuple[int, ...]  # the index of the first one
    everywhere: bool  # the same queries in each entry of the batch and each head


class BarredRows:
    """Kept while a model runs: of each query the largest score, or whether it sees a key."""

    def __init__(self) -> None:
        self._best: dict[int, Tensor] = {}  # by row

    def note(self, row: int, name: str, args: Any, kwargs: Any) -> None:
        with suppress(Exception), torch._C.DisableTorchFunction():  # a vmap hides its values
            if name == FUSED:
                scores = args[3] if len(args) > 3 else (kwargs or {}).get("attn_mask")
                axis: Any = -1
            else:
                scores = args[0]
                axis = args[1] if len(args) > 1 else (kwargs or {}).get("dim", -1)
            if isinstance(scores, Tensor) and type(axis) is int and scores.dim() > 1:
                scores = scores.detach()
                kept = scores.any(axis) if scores.dtype is torch.bool else scores.amax(axis)
                self._best[row] = kept

    def found(self) -> Iterator[Barred]:
        for row, best in self._best.items():
            with suppress(Exception), torch._C.DisableTorchFunction():
                barred = ~best if best.dtype is torch.bool else best <= BARRED
                places = barred.nonzero()
                if len(places):
                    yield Barred(
                        row=row,
                        count=len(places),
                        first=tuple(places[0].tolist()),
                        everywhere=bool(barred.reshape(-1, barred.shape[-1]).all(0).any()),
                    )
