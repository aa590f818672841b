"""The key-value cache: keys and values that decoding need not compute again."""

import torch
from torch import Tensor

from attnlab.references._arguments import WrongDtype


class KVCache:
    """The keys and values of one attention layer so far, with room for `max_len` positions.

    A decoder generates left to right, and under a causal mask the keys and values of earlier
    positions never change. So each step projects the new positions alone, appends theirs, and
    attends to all:

        prefill    append (B, Hkv, S, hd)    S = the whole prompt, at once
        decode     append (B, Hkv, 1, hd)    one token, or several at a time
        beams      reorder(parents)          beam b continues from beam parents[b]

    The result is that of one pass over the whole sequence. With rotary positions keys are cached
    after rotation: each at its own place, which does not depend on later ones.

    Shapes
        k, v in     (B, Hkv, S, hd)           the new positions
        k, v out    (B, Hkv, length, hd)      all so far: a view into the cache, new ones last
        parents     (B',)                     rows of the batch; B' may differ from B

    For inference only: keys that require gradients raise, since later steps write in place.

    Source: "Fast Transformer Decoding" (Shazeer, 2019), section 2.4
    Rows: A5"""

    def __init__(
        self,
        batch: int,
        num_kv_heads: int,
        max_len: int,
        head_dim: int,
        *,
        like: Tensor | None = None,
    ) -> None:
        """Memory for 2 * B * Hkv * max_len * hd numbers, of the type and device of `like`."""
        if min(batch, num_kv_heads, max_len, head_dim) < 1:
            raise ValueError(
                f"batch={batch}, num_kv_heads={num_kv_heads}, max_len={max_len}, "
                f"head_dim={head_dim}: expected positive numbers"
            )
        like = torch.empty(0) if like is None else like
        shape = (batch, num_kv_heads, max_len, head_dim)
        self.keys = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self.values = torch.zeros(shape, dtype=like.dtype, device=like.device)
        self.length = 0

    @property
    def max_len(self) -> int:
        return self.keys.shape[2]

    @property
    def nbytes(self) -> int:
        """2 * B * Hkv * max_len * hd * bytes per number: what it takes, however full it is."""
        return self.keys.nbytes + self.values.nbytes

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the new positions behind the others; all keys and values so far."""
        self._check("k", k)
        self._check("v", v)
        if k.shape[2] != v.shape[2]:
            raise ValueError(f"k has {k.shape[2]} positions, v {v.shape[2]}: expected the same")
        start, end = self.length, self.length + k.shape[2]
        self.expect_room(k.shape[2])
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def reorder(self, parents: Tensor) -> None:
        """Row b becomes what row parents[b] was."""
        if parents.dim() != 1 or parents.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"parents has shape {tuple(parents.shape)} and dtype {parents.dtype}: "
                "expected (B,) whole numbers, torch.int64 or torch.int32"
            )
        B = self.keys.shape[0]
        if parents.numel() == 0 or not 0 <= int(parents.min()) <= int(parents.max()) < B:
            raise ValueError(
                f"parents={parents.tolist()}: expected one or more of the rows 0 to {B - 1}"
            )
        self.keys = self.keys.index_select(0, parents)
        self.values = self.values.index_select(0, parents)

    def reset(self) -> None:
        """Empty again, for the next sequence; the memory is kept."""
        self.length = 0

    def expect_room(self, more: int) -> None:
        if self.length + more > self.max_len:
            raise ValueError(
                f"the cache holds {self.length} of max_len={self.max_len} positions: "
                f"no room for {more} more"
            )

    def _check(self, name: str, t: Tensor) -> None:
        B, Hkv, _, hd = self.keys.shape
        if t.dim() != 4 or (t.shape[0], t.shape[1], t.shape[3]) != (B, Hkv, hd):
            raise ValueError(
                f"{name} has shape {tuple(t.shape)}: expected (B, Hkv, S, hd) "
                f"with B = {B}, Hkv = {Hkv}, hd = {hd}"
            )
        if t.dtype != self.keys.dtype:
            raise WrongDtype(
                f"{name} has dtype {t.dtype}: expected {self.keys.dtype}, as the cache"
            )
        if t.device != self.keys.device:
            raise ValueError(f"{name} is on {t.device}: expected {self.keys.device}, as the cache")
        if t.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} needs gradients: expected none, a cache is for inference "
                "(call the module under `torch.no_grad()`)"
            )
