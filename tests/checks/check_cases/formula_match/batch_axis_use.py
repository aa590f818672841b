"""Positions that are counted along the batch."""

from scenes import ADDED, LEARNED, ROPE, ROWS, SUM, TURNED, TURNED_ANY, case

WRONG = {
    "a row for each sample": case(
        LEARNED, ROWS, ("self.weight[: x.shape[1]]", "self.weight[: x.shape[0], None]")
    ),
    "sinusoids for each sample": case(SUM, ADDED, ("self.pe[:S]", "self.pe[: len(x), None]")),
    "more for later samples": case(
        SUM, ADDED, ("self.pe[:S]", "self.pe[:S] * torch.arange(1, len(x) + 1)[:, None, None]")
    ),
    "the batch turns": case(
        ROPE,
        TURNED_ANY,
        ("angles.cos()", "(angles + torch.arange(len(q))[:, None, None, None]).cos()"),
    ),
}
RIGHT = {
    "learned rows": case(LEARNED, ROWS),
    "sinusoids": case(SUM, ADDED),
    "turned": case(ROPE, TURNED),
}
