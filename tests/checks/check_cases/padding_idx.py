"""Padding that is not zeros, or learns."""

from scenes import LOOKUP, TOKENS, case

ZERO = "self.embedding.weight.data[3] = 0"
DRAW = "nn.init.normal_(self.embedding.weight)"
PAD = "nn.Embedding(vocab, d_model, padding_idx=3)"
WRONG = {
    "no padding at all": case(TOKENS, LOOKUP, (PAD, "nn.Embedding(vocab, d_model)")),
    "another token": case(TOKENS, LOOKUP, ("padding_idx=3", "padding_idx=2")),
    "drawn over": case(
        TOKENS, LOOKUP, (PAD, f"{PAD}\n        nn.init.normal_(self.embedding.weight)")
    ),
    "zeros that learn": case(
        TOKENS,
        LOOKUP,
        (PAD, "nn.Embedding(vocab, d_model)\n        self.embedding.weight.data[3] = 0"),
    ),
}
RIGHT = {
    "the module's own": case(TOKENS, LOOKUP),
    "drawn, then zeros": case(
        TOKENS,
        LOOKUP,
        (
            PAD,
            f"{PAD}\n        {DRAW}\n        {ZERO}",
        ),
    ),
}
