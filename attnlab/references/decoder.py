"""A small decoder language model: what GPT-2 and Llama are, without what makes them large."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references import _expect
from attnlab.references.block import GPT2, BlockStyle, TransformerBlock
from attnlab.references.cache import KVCache
from attnlab.references.masks import causal_mask, combine


class DecoderLM(nn.Module):
    """A decoder-only language model: token ids in, logits of the next token out, with a tied head.

        h = embedding(ids) + position      h = block(h) for each      logits = norm(h) embedding^T

    Positions are a learned table, or the style's `rotate` in every block and no table. The head is
    the embedding itself (weight tying), so a token's row gets gradients from both ends. Attention
    is always causal. With post-norm blocks there is no norm before the head: they end with one.

    Shapes
        ids        (B, S)          token ids, whole numbers below `vocab_size`
        mask       (B, H, S, Sk)   what is masked besides the future, such as padding or
                                   packing; boolean, with 1 for B, H or S where shared; or None
        positions  (S,) or (B, S)  None continues from the caches; needed for padding on the left
                                   and for packed rows
        output     (B, S, V)       logits: not normalised

    Mask: True means **may not be attended**.

    To generate, give the list of caches of `new_caches` with every call: first with the prompt,
    then with one token or several at a time; `generate` does so, and takes the most likely token.

    Source: "Language Models are Unsupervised Multitask Learners" (GPT-2; Radford et al., 2019)
    Rows: A6"""

    def __init__(
        self,
        vocab_size: int,
        embed_dim: int,
        num_heads: int,
        num_layers: int,
        max_len: int,
        style: BlockStyle = GPT2,
    ) -> None:
        super().__init__()
        _expect.positive(vocab_size=vocab_size, num_layers=num_layers, max_len=max_len)
        self.max_len = max_len
        self.tokens = nn.Embedding(vocab_size, embed_dim)
        self.positions = None if style.rotate else nn.Embedding(max_len, embed_dim)
        blocks = (TransformerBlock(embed_dim, num_heads, style) for _ in range(num_layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = style.norm(embed_dim) if style.norm_first else nn.Identity()
        self.dropout = nn.Dropout(style.dropout)
        self.apply(_initialise)

    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        *,
        positions: Tensor | None = None,
        caches: list[KVCache] | None = None,
    ) -> Tensor:
        past = self._check(ids, caches)
        B, S = ids.shape
        if positions is None:
            positions = torch.arange(past, past + S, device=ids.device)  #    (S,)
        _expect.positions(positions, B, S)
        _expect.within("positions", positions, 0, self.max_len - 1)
        forbidden = combine(causal_mask(S, past + S, device=ids.device), mask)
        h = self.tokens(ids)  #                                               (B, S, D)
        if self.positions is not None:
            h = h + self.positions(positions)
        h = self.dropout(h)
        for n, block in enumerate(self.blocks):
            cache = None if caches is None else caches[n]
            h = block(h, forbidden, positions=positions, cache=cache)  #      (B, S, D)
        return F.linear(self.norm(h), self.tokens.weight)  #                  (B, S, V)

    def new_caches(self, batch: int) -> list[KVCache]:
        """One empty cache per block, with room for `max_len` positions."""
        return [block.attention.new_cache(batch, self.max_len) for block in self.blocks]  # type: ignore[union-attr, operator]

    @torch.no_grad()
    def generate(self, ids: Tensor, steps: int) -> Tensor:
        """The prompt (B, S) and `steps` likeliest tokens behind it, (B, S + steps)."""
        if steps < 0 or ids.shape[1] + steps > self.max_len:
            raise ValueError(
                f"steps={steps} after {ids.shape[1]} positions: expected 0 or more, "
                f"and at most max_len = {self.max_len} in all"
            )
        caches = self.new_caches(len(ids))
        new = ids
        for _ in range(steps):
            new = self(new, caches=caches)[:, -1:].argmax(dim=-1)  #          (B, 1)
            ids = torch.cat((ids, new), dim=1)
        return ids

    def _check(self, ids: Tensor, caches: list[KVCache] | None) -> int:
        """How many positions stand before these."""
        _expect.integers("ids", ids, "(B, S)")
        _expect.within("ids", ids, 0, self.tokens.num_embeddings - 1)
        if caches is not None and len(caches) != len(self.blocks):
            raise ValueError(
                f"there are {len(caches)} caches: expected {len(self.blocks)}, one per block"
            )
        past = caches[0].length if caches else 0
        if past + ids.shape[1] > self.max_len:
            raise ValueError(
                f"the sequence length is {past + ids.shape[1]}: "
                f"expected at most max_len = {self.max_len}"
            )
        return past


def _initialise(module: nn.Module) -> None:
    """Initialise as GPT-2 does: N(0, 0.02) for matrices and tables.

    A tied head needs it: with N(0, 1) rows the first logits would be about sqrt(D) wide, and the
    loss far above chance."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
