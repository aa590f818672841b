"""Sums, for each token, the probabilities of all that are more likely."""

import torch
from torch import nn


class NextToken(nn.Module):
    def __init__(self, top_k, top_p, temperature):
        super().__init__()
        self.k, self.p, self.t = top_k, top_p, temperature

    def forward(self, logits):
        probs = (logits / self.t).softmax(-1)
        mine, other = logits[:, :, None], logits[:, None, :]
        n = torch.arange(logits.shape[1], device=logits.device)
        larger = (other > mine) | ((other == mine) & (n < n[:, None]))
        probs = probs * (larger.sum(-1) < self.k)
        probs = probs / probs.sum(-1, keepdim=True)
        before = (larger * probs[:, None, :]).sum(-1)
        probs = torch.where(before < self.p, probs, torch.zeros_like(probs))
        return probs / probs.sum(-1, keepdim=True)
