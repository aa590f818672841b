"""Sorts once, cuts both ways in the order of ranks, and puts everything back by gather."""

import torch
from torch import nn


class NextToken(nn.Module):
    def __init__(self, top_k, top_p, temperature):
        super().__init__()
        self.top_k, self.top_p, self.temperature = top_k, top_p, temperature

    def forward(self, logits):
        order = torch.argsort(logits, dim=-1, descending=True, stable=True)
        kept = logits.gather(-1, order)[:, : self.top_k].div(self.temperature).softmax(-1)
        mass = torch.nn.functional.pad(kept.cumsum(-1), (1, -1))
        kept = kept * (mass < self.top_p)
        kept = kept / kept.sum(-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, order[:, : self.top_k], kept)
