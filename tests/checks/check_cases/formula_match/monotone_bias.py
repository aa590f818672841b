"""Biases that favour what is far away."""

from scenes import ALIBI, KEY_ROW, SLOPED, SLOPED_CAUSAL, case

WRONG = {
    "the sign": case(ALIBI, SLOPED, ("scores - self", "scores + self")),
    "one slope": case(
        ALIBI, SLOPED, ("torch.tensor(slopes(num_heads))", "torch.full((num_heads,), 0.5)")
    ),
    "only the past": case(ALIBI, SLOPED, ("(i - j).abs()", "(i - j).clamp(min=0)")),
    "it ends at a distance": case(ALIBI, SLOPED, ("(i - j).abs()", "(i - j).abs().clamp(max=2)")),
}
RIGHT = {
    "symmetric": case(ALIBI, SLOPED),
    "one row that depends on the key alone": case(KEY_ROW, SLOPED_CAUSAL),
    "the past, under a causal mask": case(
        ALIBI, SLOPED_CAUSAL, ("(i - j).abs()", "(i - j).clamp(min=0)")
    ),
}
