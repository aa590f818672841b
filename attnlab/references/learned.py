"""Learned absolute positions: one trained row per position, as in BERT and GPT-2."""

import torch
from torch import Tensor, nn

from attnlab.references._arguments import check_count, check_features, check_positions


class LearnedPositionalEncoding(nn.Module):
    """Adds a trained row per position to embeddings: y[b, s] = x[b, s] + W[position of (b, s)].

    W is `weight`, (`max_seq_len`, `d_model`), drawn from N(0, `std`^2). A position that training
    never shows keeps its initial row, so the table is of use only up to the longest training
    sequence.

    Shapes
        x             (B, S, D)  batch, sequence, `d_model`
        position_ids  (B, S)     whole numbers below `max_seq_len`; None for 0 ... S - 1 in every
                                 sequence. With padding on the left, those of the first real
                                 token are 0: `(real.cumsum(1) - 1).clamp(min=0)`
        output        (B, S, D)

    `backward(grad_output)` computes autograd's gradient by hand.

    Source: "Convolutional Sequence to Sequence Learning" (Gehring et al., 2017), section 3.1
    Rows: B4"""

    grad_embedding: Tensor | None

    def __init__(self, d_model: int, max_seq_len: int, *, std: float = 0.02) -> None:
        super().__init__()
        check_count("d_model", d_model)
        check_count("max_seq_len", max_seq_len)
        self.max_seq_len = max_seq_len
        self.d_model = d_model
        self.std = std
        self.weight = nn.Parameter(torch.empty(max_seq_len, d_model))  # (max, D)
        self.grad_embedding = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        self._check(x, position_ids)
        if position_ids is None:
            return x + self.weight[: x.shape[1]]  #  (B, S, D) + (S, D): every sequence alike
        return x + self.weight[position_ids]  #      (B, S, D) + (B, S, D)

    @torch.no_grad()
    def backward(self, grad_output: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """The gradient of a loss with respect to x, given its gradient with respect to the output.

            dL/dx[b, s] = dL/dy[b, s]                    a sum passes its gradient on
            dL/dW[p]    = sum of dL/dy[b, s] over every (b, s) at position p

        Returns the first, (B, S, D), a copy. The second goes to `grad_embedding`, (max, D), with
        rows of zeros for positions that did not occur: each call **overwrites** it (autograd's
        `weight.grad`, which this leaves alone, accumulates)."""
        self._check(grad_output, position_ids, name="grad_output")
        grad = torch.zeros_like(self.weight)  #                                  (max, D)
        if position_ids is None:
            grad[: grad_output.shape[1]] = grad_output.sum(dim=0)  #             (S, D)
        else:
            rows = grad_output.flatten(0, 1).to(grad.dtype)  #                   (B*S, D)
            grad.index_add_(0, position_ids.flatten(), rows)
        self.grad_embedding = grad
        return grad_output.clone()

    def get_encoding(self, seq_len: int) -> Tensor:
        """The first `seq_len` rows, (S, D): a detached copy."""
        self._check_length(seq_len)
        return self.weight[:seq_len].detach().clone()

    def _check(self, x: Tensor, position_ids: Tensor | None, name: str = "x") -> None:
        check_features(name, x, "B S D", D=self.d_model)
        B, S, _ = x.shape
        if position_ids is None:
            self._check_length(S)
        else:
            check_positions("position_ids", position_ids, (B, S), "B, S", below=self.max_seq_len)

    def _check_length(self, seq_len: int) -> None:
        if not 0 <= seq_len <= self.max_seq_len:
            raise ValueError(
                f"the sequence length is {seq_len}: "
                f"expected at most max_seq_len = {self.max_seq_len}"
            )
