"""Every attention of a run by its roles: scores, mask, weights, context, and a map per head.

The roles are found in the rows. The weights are read in a further run; those inside a fused
kernel are recomputed from the same arguments.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.records.trace import Attention, Op
from attnlab.tracer.barred_rows import BARRED
from attnlab.tracer.call_setup import TracedCall, repeat_call
from attnlab.tracer.raw_trace import RawTrace
from attnlab.tracer.rerun import Call, RerunMode, matching_rows
from attnlab.tracer.views.attention_heads import HeadSummary, describe_heads
from attnlab.tracer.views.attention_sites import MASKING, Site, find_sites
from attnlab.tracer.views.heatmap import unwrap

NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
MOST = 48  # attentions that are described
NONE_FOUND = (
    "no attention was found: no softmax (nor an exponential over its own sum) whose result is "
    "multiplied with values"
)


def add_attention(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with each attention described."""
    places = list(find_sites(raw.ops))
    if not places:
        return replace(raw, notes=(*raw.notes, NONE_FOUND))
    mode = WeightMode(raw, places[:MOST], _batch(traced, raw))
    repeat_call(traced, mode)
    same = matching_rows(raw, mode)
    found = tuple(_attention(raw.ops, mode, site) for site in places[:MOST] if site.context < same)
    if len(places) > MOST:
        note = f"there are {len(places)} attentions; the first {MOST} are described"
        raw = replace(raw, notes=(*raw.notes, note))
    return replace(raw, attention=found)


def _attention(ops: tuple[Op, ...], mode: WeightMode, site: Site) -> Attention:
    masks = [i for i in site.chain if i in mode.masks]
    scores = _before(ops, site.chain, masks[-1]) if masks else site.entry
    row, saw = ops[site.soft], mode.seen.get(site.soft)
    return Attention(
        line=row.line,
        file=row.file,
        scores=scores,
        mask=masks[0] if masks else None,
        weights=None if site.fused else site.weights,
        context=site.context,
        heads=saw.heads if saw else (),
        coverage=saw.coverage if saw else None,
        causal=saw.causal if saw and not _crosses(ops[site.weights]) else None,
        sums=saw.sums if saw else None,
        fused=site.fused,
        module=row.module,
        message=saw.message if saw else mode.unseen.get(site.soft, ""),
    )


def _crosses(weights: Op) -> bool:
    """Whether queries and keys are positions of different inputs, by the names of their axes."""
    names = [set(re.findall(r"[A-Za-z_]+", axis)) for axis in weights.axes[-2:]]
    return len(names) == 2 and all(names) and not names[0] & names[1]


def _before(ops: tuple[Op, ...], chain: tuple[int, ...], mask: int) -> int | None:
    """The row that the mask is applied to."""
    at = chain.index(mask)
    if at + 1 < len(chain):
        return chain[at + 1]
    return next((p for p in ops[mask].parents if p >= 0), None)


def _batch(traced: TracedCall, raw: RawTrace) -> int:
    """How many sequences the inputs hold; 0 where that is not known."""
    if "B" in traced.sizes:
        return traced.sizes["B"]
    return next((shape[0] for shape in raw.inputs if len(shape) > 1), 0)


class WeightMode(RerunMode):
    """Reads masks, weights and fused attentions as they are computed."""

    def __init__(self, raw: RawTrace, places: list[Site], batch: int) -> None:
        super().__init__()
        self.masks: set[int] = set()  # rows that really bar something
        self.seen: dict[int, HeadSummary] = {}  # by the row of the softmax
        self.unseen: dict[int, str] = {}
        self._ops, self._batch = raw.ops, batch
        self._maybe = {i for site in places for i in site.chain if raw.ops[i].op in MASKING}
        self._soft = {site.soft: site for site in places}
        self._weights = {site.weights: site for site in places}
        self._barred: dict[int, tuple[Tensor | None, int]] = {}
        self._entries = {site.entry: site for site in places if site.entry is not None}

    def on_outputs(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:
        try:
            self._measure(row, call, unwrap(outs[0]))
        except Exception as error:  # inside a vmap values cannot be read
            self.unseen[row] = f"its values could not be read: {type(error).__name__}: {error}"

    def _measure(self, row: int, call: Call, out: Tensor) -> None:
        if row in self._maybe and bars(call):
            self.masks.add(row)
        if row in self._entries:
            self._barred[self._entries[row].soft] = (out > BARRED, -1)
        site = self._soft.get(row)
        if site is not None and site.fused:
            self.seen[row] = self._fused(row, attention_steps(call.args, call.kwargs), out)
            return
        if site is not None:
            allowed, _ = self._barred.get(row, (None, -1))
            self._barred[row] = (allowed, _axis(call, out))
        site = self._weights.get(row)
        if site is not None and not site.fused:
            self.seen[site.soft] = self._plain(site, out)

    def _fused(self, row: int, twin: AttentionSteps, out: Tensor) -> HeadSummary:
        weights, allowed = _first(twin.weights), _first(twin.allowed.expand_as(twin.weights))
        saw = describe_heads(weights, allowed, "the weights inside the fused attention", row)
        if torch.allclose(twin.context.to(out.dtype), out, rtol=2e-2, atol=2e-2, equal_nan=True):
            return saw
        return saw._replace(message=f"{saw.message} (recomputed, and not what the kernel made)")

    def _plain(self, site: Site, weights: Tensor) -> HeadSummary:
        allowed, axis = self._barred.pop(site.soft, (None, -1))
        heads = self._heads(site, weights.shape[0]) if weights.dim() == 3 else 0
        matrix = oriented(weights, axis)
        if allowed is not None:
            allowed = oriented(allowed.expand(weights.shape), axis)
            allowed = allowed[:heads] if heads else _first(allowed)
        matrix = matrix[:heads] if heads else _first(matrix)
        return describe_heads(matrix, allowed, f"{self._ops[site.weights].op}", site.weights)

    def _heads(self, site: Site, merged: int) -> int:
        """How many of the first maps of (B*H, Sq, Sk) belong to the first sequence."""
        near = {*site.chain, site.weights}
        for op in self._ops:
            of_it = op.index in near or near.intersection(op.parents)
            if of_it and len(op.shape) == 4 and op.shape[0] * op.shape[1] == merged:
                return op.shape[1]
        whole = self._batch > 0 and merged % self._batch == 0
        return merged // self._batch if whole else merged


def bars(call: Call) -> bool:
    """True for an operation with a value among its arguments that is as low as a mask's."""
    values = [*call.args[1:], *call.kwargs.values()]
    if call.kind.name in ("where", "add", "add_", "__iadd__"):
        values += call.args[:1]
    for value in values:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= BARRED:
            return True
        numbers = isinstance(value, Tensor) and value.is_floating_point()
        if numbers and bool((unwrap(value) <= BARRED).any()):
            return True
    return False


def _axis(call: Call, out: Tensor) -> int:
    """The axis of a softmax, counted from the end."""
    dim: Any = call.kwargs.get("dim", next((a for a in call.args[1:] if type(a) is int), -1))
    return dim - out.dim() if type(dim) is int and dim >= 0 else -1 if dim is None else int(dim)


def oriented(weights: Tensor, axis: int) -> Tensor:
    """(..., Sq, Sk) of weights whose keys stand on `axis`, such as (B, Sq, Sk, H).

    Where the last axis is as long as this one, the softmax may have run over the queries: then the
    layout stays, and what is wrong is to be seen.
    """
    if axis == -1 or weights.dim() < 3 or weights.shape[-1] == weights.shape[axis]:
        return weights
    return weights.movedim(-1, 1)


def _first(weights: Tensor) -> Tensor:
    """(H, Sq, Sk) of the first sequence; several axes of heads become one."""
    while weights.dim() < 3:
        weights = weights.unsqueeze(0)
    if weights.dim() == 3:
        return weights
    first = weights[0]
    return first.reshape(math.prod(first.shape[:-2]), *first.shape[-2:])


# ---------------------------------------------------------------- inside a fused kernel


class AttentionSteps(NamedTuple):
    """`F.scaled_dot_product_attention` step by step."""

    scores: Tensor  # (..., H, Sq, Sk), before the mask
    allowed: Tensor  # bool, which broadcasts to the scores
    weights: Tensor
    context: Tensor


def attention_steps(args: tuple[Any, ...], kwargs: dict[str, Any]) -> AttentionSteps:
    """The same attention from the same arguments, without dropout."""
    given = {**dict(zip(NAMES, args, strict=False)), **kwargs}
    given = {n: unwrap(v) if isinstance(v, Tensor) else v for n, v in given.items()}
    q, k, v = (given[n].detach() for n in NAMES[:3])
    if q.dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    if given.get("enable_gqa"):
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
    scale = given.get("scale")
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
    mask = given.get("attn_mask")
    if given.get("is_causal"):  # counted from the first key, whatever the lengths are
        allowed = allowed.tril()
    elif mask is not None and mask.dtype is torch.bool:
        allowed = mask  # True may be attended
    masked = scores.masked_fill(~allowed, -torch.inf)
    if mask is not None and mask.dtype is not torch.bool:
        masked = scores + mask.to(scores.dtype)
        allowed = masked > BARRED
    weights = masked.softmax(-1)
    empty = ~allowed.any(-1, keepdim=True)
    weights = weights.masked_fill(empty & weights.isnan(), 0.0)  # as the kernel does it
    return AttentionSteps(scores, allowed, weights, weights @ v)
