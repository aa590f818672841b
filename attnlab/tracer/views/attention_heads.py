"""Attention weights per head: the map, the entropy, and one sentence on all of them."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.records.trace import Head
from attnlab.tracer.views.heatmap import to_heat

MOST = 16  # heads that are drawn
ONE = 0.9  # a share of the weight that counts as all of it
EVEN = 0.99  # of the largest entropy that there can be


class HeadSummary(NamedTuple):
    """The weights of one attention in numbers; fields of an `Attention`."""

    heads: tuple[Head, ...]
    coverage: float | None
    causal: bool | None
    sums: tuple[float, float] | None
    message: str


def describe_heads(
    weights: Tensor, allowed: Tensor | None, title: str, index: int | None
) -> HeadSummary:
    """Summarise weights (H, Sq, Sk) of one sequence; `allowed` marks permitted pairs, if known."""
    weights = weights.detach().to("cpu", torch.float64)
    if allowed is None:
        allowed = torch.ones_like(weights, dtype=torch.bool)
    allowed = allowed.to("cpu").expand_as(weights)
    heads = tuple(
        _head(i, weights[i], allowed[i], title, index) for i in range(min(len(weights), MOST))
    )
    return HeadSummary(
        heads=heads,
        coverage=allowed.double().mean().item() if allowed.numel() else None,
        causal=_causal(weights),
        sums=_least_and_greatest(weights.sum(-1)[_alive(weights, allowed)]),
        message=_message(weights, allowed, heads),
    )


def _head(number: int, w: Tensor, allowed: Tensor, title: str, index: int | None) -> Head:
    rows = w[_alive(w, allowed)]
    return Head(
        number=number,
        weights=to_heat(w, f"head {number} of {title}", ("query", "key"), index),
        entropy=torch.special.entr(rows).sum(-1).mean().item() if len(rows) else 0.0,
        largest=rows.amax(-1).mean().item() if len(rows) else 0.0,
    )


def _alive(w: Tensor, allowed: Tensor) -> Tensor:
    """Queries that may see a key and have weights."""
    return allowed.any(-1) & w.isfinite().all(-1) & (w.sum(-1) > 0)


def _least_and_greatest(sums: Tensor) -> tuple[float, float] | None:
    return (sums.min().item(), sums.max().item()) if len(sums) else None


def _causal(weights: Tensor) -> bool | None:
    _, queries, keys = weights.shape
    if queries < 2 or keys < queries:
        return None
    later = torch.ones(queries, keys, dtype=torch.bool).triu(1 + keys - queries)
    return bool((weights.nan_to_num()[:, later] == 0).all())


# ---------------------------------------------------------------- one sentence


def _message(w: Tensor, allowed: Tensor, heads: tuple[Head, ...]) -> str:
    """What is most striking."""
    return (
        _empty(w, allowed)
        or _broken(w)
        or _sums(w, allowed)
        or _single(w, allowed)
        or _even(w, allowed, heads)
        or _alike(w)
        or _spread(heads, w.shape[-1])
    )


def _broken(w: Tensor) -> str:
    bad = ~w.isfinite().all(-1)
    if not bad.any():
        return ""
    head, query = bad.nonzero()[0].tolist()
    count = int(bad.sum())
    more = f", and those of {count - 1} more" if count > 1 else ""
    return f"the weights of query {query} in head {head} are not finite{more}"


def _empty(w: Tensor, allowed: Tensor) -> str:
    rows = (~allowed.any(-1)).all(0).nonzero().flatten().tolist()
    if not rows:
        return ""
    nan = not w[:, rows].isfinite().all()
    barred = (
        f"{number_ranges(rows, 'query', 'queries')} may attend to nothing: the mask bars every key"
    )
    return f"{barred}, which makes NaN of the weights" if nan else barred


def _sums(w: Tensor, allowed: Tensor) -> str:
    sums = w.sum(-1)
    off = ((sums - 1).abs() > 0.02) & allowed.any(-1)
    if not off.any():
        return ""
    head, query = off.nonzero()[0].tolist()
    across = ((w.sum(-2) - 1).abs() < 0.02).all()
    why = ", but those of each key over the queries do" if across else ""
    return (
        f"the weights of query {query} in head {head} add up to {sums[head, query]:.3g}, not 1{why}"
    )


def _single(w: Tensor, allowed: Tensor) -> str:
    """Heads in which every query that may see several keys looks at the same one."""
    free = allowed.sum(-1) > 1
    found = []
    for head in range(len(w)):
        rows = w[head][free[head]]
        keys = rows.argmax(-1) if len(rows) > 1 else rows.new_empty(0)
        if len(keys) and bool((keys == keys[0]).all()) and bool((rows.amax(-1) > ONE).all()):
            found.append((head, int(keys[0])))
    if not found:
        return ""
    head, key = found[0]
    more = f" (and {len(found) - 1} more heads at one each)" if len(found) > 1 else ""
    return f"head {head} looks at one key only, key {key}{more}"


def _alike(w: Tensor) -> str:
    alike = len(w) > 1 and bool(((w - w[0]).abs() < 1e-6).all())
    return f"all {len(w)} heads have the same weights" if alike else ""


def _even(w: Tensor, allowed: Tensor, heads: tuple[Head, ...]) -> str:
    found = []
    for head in heads:
        seats = allowed[head.number].sum(-1)[_alive(w[head.number], allowed[head.number])]
        most = seats.double().log().mean().item() if len(seats) else 0.0
        if most > 0 and head.entropy > EVEN * most:
            found.append(head.number)
    if not found:
        return ""
    who = (
        "every head is" if len(found) == len(heads) else f"{number_ranges(found, 'head', 'heads')} "
    )
    verb = "" if who.endswith("is") else ("is" if len(found) == 1 else "are")
    return f"{who}{verb} uniform: each query weighs the keys that it may see about alike"


def _spread(heads: tuple[Head, ...], keys: int) -> str:
    reach = [math.exp(head.entropy) for head in heads]
    if not reach:
        return ""
    low, high = min(reach), max(reach)
    span = f"{low:.2g}" if high - low < 0.1 else f"{low:.2g} to {high:.2g}"
    return f"a query spreads over about {span} of {keys} keys"


def number_ranges(numbers: list[int], one: str, many: str) -> str:
    """`query 3`, `queries 0-2`, `queries 0, 2 and 5`."""
    if len(numbers) == 1:
        return f"{one} {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{many} {numbers[0]}-{numbers[-1]}"
    shown = ", ".join(map(str, numbers[:-1][:6])) + (", ..." if len(numbers) > 7 else "")
    return f"{many} {shown} and {numbers[-1]}"
