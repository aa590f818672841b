"""A cache is the same as no cache: positions, masks and slots of steps, wrong and right."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.candidate.live_properties import live_properties

D, V = 12, 20


class Stepwise(nn.Module):
    """Returns its keys and values; `bug` begins positions anew, or hides the wrong keys."""

    def __init__(self, bug: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bug = bug
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(16, D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, V)

    def forward(self, ids: Tensor, pair_cache: tuple[Tensor, Tensor] | None = None):
        past = pair_cache
        seen = past[0].shape[1] if past is not None else 0
        first = 0 if self.bug == "positions" else seen
        x = self.tok(ids) + self.pos(torch.arange(first, first + ids.shape[1]))
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        shift = 0 if self.bug == "mask" and ids.shape[1] > 1 else k.shape[1] - q.shape[1]
        keep = torch.ones(q.shape[1], k.shape[1]).tril(shift).bool()
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=keep)), (k, v)


class Slots(nn.Module):
    """Writes into slots of a buffer; a wrong one sees those that are still empty."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.masked = masked
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, V)
        self.register_buffer("kv", torch.zeros(2, 4, 16, D))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        self.kv[0, : len(x), at], self.kv[1, : len(x), at] = k.detach(), v.detach()
        keep = torch.arange(16) <= at[:, None]
        if not self.masked and len(at) == 1:
            keep = torch.ones_like(keep)
        kv = self.kv[:, : len(x)]
        return self.out(F.scaled_dot_product_attention(q, kv[0], kv[1], attn_mask=keep))


def decoding(model: nn.Module, *args: Tensor):
    found = {check.id: check for check in live_properties(model, args).checks}
    return found["prefill-equals-decode"]


def outcome(model: nn.Module, *args: Tensor) -> str:
    return decoding(model, *args).outcome


@pytest.mark.parametrize(
    ("bug", "line"), [("", ""), ("positions", "self.pos("), ("mask", "scaled_dot")]
)
def test_steps_and_pieces_equal_one_pass(bug: str, line: str) -> None:
    """Positions that begin anew, and a mask of a piece that hides its newest keys: each is told at
    the first line at which the step leaves the whole pass."""
    check = decoding(Stepwise(bug), torch.randint(0, V, (2, 9)))
    assert check.outcome == ("failed" if bug else "passed")
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert line in (source[check.line - 1] if check.line else "")
    assert bool(check.line) == bool(bug)


@pytest.mark.parametrize(("masked", "expected"), [(True, "passed"), (False, "failed")])
def test_empty_slots_are_not_seen(masked: bool, expected: str) -> None:
    """A cache of fixed size, fed by the positions that are given beside the input."""
    assert outcome(Slots(masked), torch.randn(2, 7, D), torch.arange(7)) == expected


def test_positions_without_a_cache_are_no_cache() -> None:
    """A model that is told its positions and keeps nothing cannot be fed in pieces."""
    model = Slots(True)
    model.forward = lambda x, at: model.out(x + at[:, None])
    assert outcome(model, torch.randn(2, 7, D), torch.arange(7)) == "skipped"
