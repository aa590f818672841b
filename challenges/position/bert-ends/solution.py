"""Both ends of a BERT: what its first layer is given, and the words that are read off its last."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD = 0


class BertEnds(nn.Module):
    """The model without the layers between its ends, as the tests of both build it."""

    def __init__(self, vocab_size: int, hidden: int, max_len: int, dropout: float) -> None:
        super().__init__()
        self.max_len = max_len
        self.words = nn.Embedding(vocab_size, hidden, padding_idx=PAD)
        self.places = nn.Embedding(max_len, hidden)
        self.kinds = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(dropout)

        self.transform = nn.Linear(hidden, hidden)
        self.head_norm = nn.LayerNorm(hidden)
        self.decoder = nn.Linear(hidden, vocab_size, bias=False)
        self.decoder_bias = nn.Parameter(torch.zeros(vocab_size))
        self.apply(self._init_weights)
        self.decoder.weight = self.words.weight

    @staticmethod
    def _init_weights(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def embed(self, tokens: Tensor, second: Tensor) -> Tensor:
        """(B, S) -> (B, S, D); `second` is True for the tokens of the second sentence."""
        if tokens.shape[1] > self.max_len:
            raise ValueError(f"{tokens.shape[1]} tokens, but there are {self.max_len} positions")
        is_real = tokens != PAD
        position_ids = (is_real.cumsum(dim=1) - 1).clamp(min=0)
        summed = self.words(tokens) + self.places(position_ids) + self.kinds(second.long())
        return self.dropout(self.norm(summed))

    def forward(self, tokens: Tensor, second: Tensor) -> Tensor:
        hidden = self.embed(tokens, second)
        hidden = self.head_norm(F.gelu(self.transform(hidden)))
        return self.decoder(hidden) + self.decoder_bias
