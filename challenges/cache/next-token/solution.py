"""The distribution that the next token is drawn from."""

from dataclasses import dataclass

import torch
from torch import Tensor


def top_k_logits(logits: Tensor, k: int) -> Tensor:
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, order[:, k:], -torch.inf)


def top_p_logits(logits: Tensor, p: float) -> Tensor:
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probs = (ordered - ordered.logsumexp(dim=-1, keepdim=True)).exp()
    before = probs.cumsum(dim=-1) - probs
    before[:, 0] = 0.0  # exactly
    ordered = ordered.masked_fill(before >= p, -torch.inf)
    return torch.empty_like(ordered).scatter(-1, order, ordered)


@dataclass
class NextToken:
    top_k: int
    top_p: float
    temperature: float

    def __call__(self, logits: Tensor) -> Tensor:
        logits = logits / self.temperature
        logits = top_k_logits(logits, self.top_k)
        logits = top_p_logits(logits, self.top_p)
        return logits.softmax(dim=-1)
