"""A hand-written lookup alone, its gradient as a product with a one-hot matrix."""

import torch
from torch import nn


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = len(table)
        return table.index_select(0, ids.reshape(-1)).view(*ids.shape, -1)

    @staticmethod
    def backward(ctx, grad_output):
        (ids,) = ctx.saved_tensors
        which = nn.functional.one_hot(ids, ctx.rows).to(grad_output.dtype)
        return torch.einsum("bsm,bsd->md", which, grad_output), None


class GatedPositions(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, d_model))
        self.gate = nn.Parameter(torch.ones([]))
        self.reset()

    def reset(self):
        self.table.data.normal_(0, 0.02)

    def forward(self, x, positions=None):
        if positions is None:
            positions = torch.ones_like(x[..., 0], dtype=torch.long).cumsum(1) - 1
        return Lookup.apply(self.table, positions).mul(self.gate).add(x, alpha=x.size(-1) ** 0.5)
