"""Sinusoidal positions, for you to write."""

import torch
from torch import Tensor, nn


class SinusoidalPositionalEmbedding(nn.Module):
    """The fixed table of "Attention Is All You Need": one row a position, sin and cos in turn.

    max_seq_len  M, the number of rows: positions 0 ... M - 1
    d_model      D, the number of columns; even
    """

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        """Refuse an odd `d_model`, compute the table once, keep it as the buffer `pe`.

        Pair i (columns 2i and 2i + 1) has the frequency 10000^(-2i/D), i = 0 ... D/2 - 1.
        A way to get there: positions (M,) and frequencies (D/2,) -> angles (M, D/2)
        -> sines and cosines -> table (M, D). `register_buffer` makes a buffer of a tensor.
        """
        super().__init__()
        raise NotImplementedError("build the table and register it as the buffer `pe`")

    def forward(self, x: Tensor) -> Tensor:
        """x (B, S, D) -> (1, S, D): the rows of the first S positions, not added to x.

        Raise `ValueError` when S is larger than `max_seq_len`.
        """
        raise NotImplementedError("return the first S rows of the table, in shape (1, S, D)")
