"""Positions that are rounded until neighbours are one."""

from dataclasses import replace

from scenes import ADDED, ROPE, SUM, TURNED, case

HALF = {"dtypes": ("bfloat16", "float16")}
LONG = replace(TURNED, **HALF)
TABLES = replace(ADDED, **HALF)
CAST = ("self.pe[:S]", "self.pe[:S].to(x.dtype)")
FLOAT = ("torch.arange(max_len)", "torch.arange(max_len).half().float()")
CLAMPED = ("torch.arange(max_len)", "torch.arange(max_len).clamp(max=4500)")
SHORT = ("torch.arange(max_len)", "torch.arange(max_len).short()")
BUCKET = ("self.pe[:S]", "self.pe[torch.arange(S).clamp(max=8191)]")
COARSE = ("10000.0", "9999.6")
MODULO = ("torch.arange(max_len)", "(torch.arange(max_len) % 512)")
OWN = (
    "torch.arange(S, dtype=torch.float64), frequency",
    "torch.arange(S, dtype=q.dtype), frequency.to(q.dtype)",
)
LATER = (
    "torch.arange(S, dtype=torch.float64)",
    "torch.arange(S, dtype=torch.float64 if S <= 40000 else q.dtype)",
)
ROUNDED = (
    "10000.0 ** (-torch.arange(0, self.D, 2, dtype=torch.float64) / self.D)",
    "self.w.double()",
)
BUFFER = (
    "self.D = head_dim",
    (
        'self.D = head_dim\n        self.register_buffer("w", '
        "10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim))"
    ),
)
WRONG = {
    "positions in float16": case(SUM, ADDED, FLOAT),
    "positions that begin again": case(SUM, ADDED, MODULO),
    "positions that stop far out": case(SUM, ADDED, CLAMPED),
    "positions that a short integer counts": case(SUM, ADDED, SHORT),
    "a table of 8192 rows": case(SUM, ADDED, BUCKET),
    "a turn that stops at 8192": case(
        ROPE, TURNED, ("torch.arange(S, dtype=torch.float64)", "torch.arange(S).clamp(max=8191)")
    ),
    "a base that is nearly right": case(SUM, ADDED, COARSE),
    "positions in the type of x": case(ROPE, LONG, OWN),
    "positions in the type of x beyond 40000": case(ROPE, LONG, LATER),
    "frequencies in a buffer that is cast": case(ROPE, LONG, BUFFER, ROUNDED),
}
RIGHT = {
    "float32 in any type": case(ROPE, LONG),
    "a table that is cast": case(SUM, TABLES, CAST),
    "float32 alone": case(SUM, ADDED),
}
