"""Tables that look like sines and cosines, and are not these."""

from dataclasses import replace

from trial import ENCODING, TABLE, Case, changed

ADDED = replace(ENCODING, output=("B", "S", "D"), position=replace(ENCODING.position, form="added"))
LINES = """frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))"""
LOOP = """frequency = torch.tensor([10000 ** (-2 * i / d_model) for i in range(d_model // 2)])"""
LOUDER = "torch.arange(1, len(x) + 1)[:, None, None]"


def table(*pairs):
    return Case(changed(TABLE, *pairs), ENCODING, None)


WRONG = {
    "one frequency per column": table(
        (LINES, "frequency = 10000 ** (-torch.arange(d_model) / d_model)"),
        ("torch.sin(position * frequency)", "torch.sin(position * frequency[0::2])"),
        ("torch.cos(position * frequency)", "torch.cos(position * frequency[1::2])"),
    ),
    "another base": table(("10000.0", "1000.0")),
    "sine and cosine swapped": table(("torch.sin", "torch.tan"), ("torch.cos", "torch.sin"),
                                     ("torch.tan", "torch.cos")),
    "positions from 1": table(("torch.arange(max_len)", "(torch.arange(max_len) + 1)")),
    "halves side by side": table(("[:, 0::2]", "[:, : d_model // 2]"),
                                 ("[:, 1::2]", "[:, d_model // 2 :]")),
    "the exponent not doubled": table(("(-math.log(10000.0)", "0.5 * (-math.log(10000.0)")),
    "nothing at position 0": table(("[:S]", "[:S].index_fill(0, torch.tensor(0), 0.0)")),
    "more for later samples": Case(
        changed(
            TABLE,
            ("self.pe[:S].unsqueeze(0)", f"x + self.pe[:S] * {LOUDER}"),
        ),
        ADDED,
        None,
    ),
    "added twice": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x + 2 * self.pe[:S]")), ADDED, None
    ),
}  # fmt: skip
RIGHT = {
    "in log space": table(),
    "by a power": table((LINES, LOOP)),
    "in float64": table(("torch.arange(max_len)", "torch.arange(max_len, dtype=torch.float64)")),
    "added": Case(changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x + self.pe[:S]")), ADDED, None),
}
