"""Tables that look like sines and cosines, and are not these."""

from dataclasses import replace

from scenes import (
    ALIBI,
    HALVES,
    KEY_ROW,
    ROPE,
    SLOPED,
    SLOPED_CAUSAL,
    TURNED,
    TURNED_ANY,
    TURNED_HALVES,
    case,
)
from trial import ENCODING, TABLE, Case, changed

ADDED = replace(ENCODING, output=("B", "S", "D"), position=replace(ENCODING.position, form="added"))
LINES = """frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))"""
LOOP = """frequency = torch.tensor([10000 ** (-2 * i / d_model) for i in range(d_model // 2)])"""


def table(*pairs):
    return Case(changed(TABLE, *pairs), ENCODING, None)


WRONG = {
    "one frequency per column": table(
        (LINES, "frequency = 10000 ** (-torch.arange(d_model) / d_model)"),
        ("torch.sin(position * frequency)", "torch.sin(position * frequency[0::2])"),
        ("torch.cos(position * frequency)", "torch.cos(position * frequency[1::2])"),
    ),
    "another base": table(("10000.0", "1000.0")),
    "sine and cosine swapped": table(
        ("torch.sin", "torch.tan"), ("torch.cos", "torch.sin"), ("torch.tan", "torch.cos")
    ),
    "positions from 1": table(("torch.arange(max_len)", "(torch.arange(max_len) + 1)")),
    "halves side by side": table(
        ("[:, 0::2]", "[:, : d_model // 2]"), ("[:, 1::2]", "[:, d_model // 2 :]")
    ),
    "the exponent not doubled": table(("(-math.log(10000.0)", "0.5 * (-math.log(10000.0)")),
    "nothing at position 0": table(("[:S]", "[:S].index_fill(0, torch.tensor(0), 0.0)")),
    "x times nothing": table(("self.pe[:S].unsqueeze(0)", "(self.pe[:S] + 0 * x)[:1]")),
    "angles that are too small": case(ROPE, TURNED_ANY, ("10000.0 **", "20000.0 **")),
    "the other layout": case(HALVES, TURNED),
    "slopes of another number of heads": case(
        ALIBI,
        SLOPED,
        ("torch.tensor(slopes(num_heads))", "torch.tensor(slopes(2 * num_heads)[:num_heads])"),
    ),
    "huge values cut off": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x.clamp(-100, 100) + self.pe[:S]")),
        ADDED,
        None,
    ),
    "what is missing taken for nothing": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x.nan_to_num() + self.pe[:S]")), ADDED, None
    ),
    "added twice": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x + 2 * self.pe[:S]")), ADDED, None
    ),
}
RIGHT = {
    "in log space": table(),
    "by a power": table((LINES, LOOP)),
    "in float64": table(("torch.arange(max_len)", "torch.arange(max_len, dtype=torch.float64)")),
    "sines and cosines side by side, where the layout is free": Case(
        changed(TABLE, ("[:, 0::2]", "[:, : d_model // 2]"), ("[:, 1::2]", "[:, d_model // 2 :]")),
        replace(ENCODING, position=replace(ENCODING.position, layout="any")),
        None,
    ),
    "turned": case(ROPE, TURNED),
    "turned in halves": case(HALVES, TURNED_HALVES),
    "slopes of the paper": case(ALIBI, SLOPED),
    "a row that depends on the key alone": case(KEY_ROW, SLOPED_CAUSAL),
    "added": Case(changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x + self.pe[:S]")), ADDED, None),
}
