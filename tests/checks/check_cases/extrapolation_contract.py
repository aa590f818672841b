"""What happens beyond the longest sequence."""

from dataclasses import replace

from scenes import ADDED, LEARNED, ROWS, SUM, case

GROWS = replace(ADDED, position=replace(ADDED.position, beyond="extend"))
ENDS = replace(ROWS, position=replace(ROWS.position, beyond="error"))
GROWING = replace(ROWS, position=replace(ROWS.position, beyond="extend"))
WRONG = {
    "the last row again": case(
        LEARNED,
        GROWING,
        ('if x.shape[1] > len(self.weight):\n            raise ValueError("too long")', "pass"),
        (
            "self.weight[: x.shape[1]]",
            "self.weight[torch.arange(x.shape[1]).clamp(max=len(self.weight) - 1)]",
        ),
    ),
    "from the start again": case(
        LEARNED,
        GROWING,
        ('if x.shape[1] > len(self.weight):\n            raise ValueError("too long")', "pass"),
        ("self.weight[: x.shape[1]]", "self.weight[torch.arange(x.shape[1]) % len(self.weight)]"),
    ),
    "stretched": case(
        LEARNED,
        GROWING,
        (
            'if x.shape[1] > len(self.weight):\n            raise ValueError("too long")',
            "i = (torch.arange(x.shape[1]) * min(1, len(self.weight) / x.shape[1])).long()",
        ),
        ("self.weight[: x.shape[1]]", "self.weight[i]"),
    ),
    "cut without a word": case(
        LEARNED,
        ENDS,
        (
            'raise ValueError("too long")',
            "return torch.cat((x[:, :len(self.weight)] + self.weight, x[:, len(self.weight):]), 1)",
        ),
    ),
}
RIGHT = {
    "a refusal": case(LEARNED, ENDS),
    "more of the same": case(
        SUM,
        GROWS,
        (
            'if S > len(self.pe):\n            raise ValueError(f"{S} is too long")',
            "if S > len(self.pe):\n            self.pe = M(2 * S, self.pe.shape[1]).pe",
        ),
    ),
}
