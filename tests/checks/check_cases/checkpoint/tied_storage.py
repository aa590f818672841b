"""Weights that are said to be one and are two."""

from scenes import LOOKUP, TOKENS, case

ZERO = "nn.init.zeros_(self.head.weight[3].data)"
TIE = "self.head.weight = self.embedding.weight"
WRONG = {
    "not tied": case(TOKENS, LOOKUP, (TIE, "pass")),
    "shared memory": case(
        TOKENS, LOOKUP, (TIE, "self.head.weight.data = self.embedding.weight.data")
    ),
    "a copy": case(TOKENS, LOOKUP, (TIE, "self.head.weight.data.copy_(self.embedding.weight)")),
    "no such name": case(
        TOKENS,
        LOOKUP,
        ("self.head = ", "self.out = "),
        (TIE, "self.out.weight = self.embedding.weight"),
    ),
}
RIGHT = {
    "one parameter": case(TOKENS, LOOKUP),
    "the other way round": case(
        TOKENS,
        LOOKUP,
        (
            TIE,
            f"self.embedding.weight = self.head.weight\n        {ZERO}",
        ),
    ),
}
