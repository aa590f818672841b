"""Right modules that know positions, to break: tables, turned vectors, biases, grids, tokens."""

from __future__ import annotations

from dataclasses import replace

from trial import ENCODING, TABLE, Case, changed

from attnlab.records import Contract, Input, Position

HEAD = "import math\nimport torch\nfrom torch import nn\n"
ADDED = replace(
    ENCODING, output=("B", "S", "D"), position=Position(form="added"), vary=("B", "S", "D")
)
SUM = changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x + self.pe[:S]"))
LEARNED = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_len, d_model))

    def forward(self, x):
        if x.shape[1] > len(self.weight):
            raise ValueError("too long")
        return x + self.weight[: x.shape[1]]
"""
)
ROWS = replace(ADDED, buffers=(), position=Position(kind="learned", form="added"))

ROPE = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, head_dim):
        super().__init__()
        self.D = head_dim

    def forward(self, q):
        S = q.shape[-2]
        frequency = 10000.0 ** (-torch.arange(0, self.D, 2, dtype=torch.float64) / self.D)
        angles = torch.outer(torch.arange(S, dtype=torch.float64), frequency)
        cos, sin = angles.cos().to(q.dtype), angles.sin().to(q.dtype)
        a, b = q[..., 0::2], q[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
"""
)
HALVES = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, head_dim):
        super().__init__()
        self.D = head_dim

    def rotate_half(self, q):
        a, b = q.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    def forward(self, q):
        S = q.shape[-2]
        frequency = 10000.0 ** (-torch.arange(0, self.D, 2).float() / self.D)
        angles = torch.outer(torch.arange(S).float(), frequency)
        angles = torch.cat((angles, angles), dim=-1)
        return q * angles.cos().to(q.dtype) + self.rotate_half(q) * angles.sin().to(q.dtype)
"""
)
TURNED = Contract(
    sizes={"B": 2, "H": 2, "S": 5, "hd": 8},
    init={"head_dim": "hd"},
    inputs=(Input(name="q", axes=("B", "H", "S", "hd")),),
    output=("B", "H", "S", "hd"),
    vary=("B", "H", "S", "hd"),
    position=Position(kind="rotary", form="rotated"),
)
TURNED_HALVES = replace(TURNED, position=Position(kind="rotary", form="rotated", layout="half"))
TURNED_ANY = replace(TURNED, position=Position(kind="rotary", form="rotated", layout="any"))

ALIBI = (
    HEAD
    + """
def slopes(n):
    if n & (n - 1) == 0:
        return [2 ** (-8 * (h + 1) / n) for h in range(n)]
    below = 2 ** (n.bit_length() - 1)
    return slopes(below) + slopes(2 * below)[0::2][: n - below]

class M(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.register_buffer("slopes", torch.tensor(slopes(num_heads)), persistent=False)

    def forward(self, scores):
        Q, K = scores.shape[-2:]
        i, j = torch.arange(Q)[:, None] + K - Q, torch.arange(K)
        distance = (i - j).abs()
        return scores - self.slopes[:, None, None] * distance
"""
)
KEY_ROW = changed(
    ALIBI, ("distance = (i - j).abs()", "distance = -j"), ("scores - self", "scores - self")
)
SLOPED = Contract(
    sizes={"B": 2, "H": 4, "Sq": 3, "Sk": 5},
    init={"num_heads": "H"},
    inputs=(Input(name="scores", axes=("B", "H", "Sq", "Sk")),),
    output=("B", "H", "Sq", "Sk"),
    vary=("B", "H", "Sq", "Sk"),
    position=Position(kind="alibi", form="bias"),
)
SLOPED_CAUSAL = replace(SLOPED, position=Position(kind="alibi", form="bias", causal=True))

T5 = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.table = nn.Embedding(16, num_heads)

    def bucket(self, distance):
        n, after = distance.abs(), (distance > 0).long() * 8
        octaves = torch.log(n.clamp(min=4).double() / 4) / math.log(40 / 4)
        far = (4 + (octaves * 4).long()).clamp(max=7)
        return after + torch.where(n < 4, n, far)

    def forward(self, scores):
        Q, K = scores.shape[-2:]
        distance = torch.arange(K) - (torch.arange(Q)[:, None] + K - Q)
        return scores + self.table(self.bucket(distance)).permute(2, 0, 1)
"""
)
BUCKETS = replace(SLOPED, position=Position(kind="t5", form="bias", buckets=16, distance=40))

GRID = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.D = d_model

    def table(self, n):
        w = 10000.0 ** (-torch.arange(0, self.D // 2, 2) / (self.D // 2))
        angles = torch.arange(n)[:, None] * w
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)

    def forward(self, x):
        B, R, C, D = x.shape
        rows = self.table(R)[:, None].expand(R, C, D // 2)
        columns = self.table(C)[None].expand(R, C, D // 2)
        return x + torch.cat((rows, columns), -1)
"""
)
CELLS = Contract(
    sizes={"B": 2, "R": 3, "C": 5, "D": 8},
    init={"d_model": "D"},
    inputs=(Input(name="x", axes=("B", "R", "C", "D")),),
    output=("B", "R", "C", "D"),
    vary=("B",),
    position=Position(kind="other", form="added", grid=("R", "C")),
)
FLAT = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, rows, columns, d_model):
        super().__init__()
        self.C = columns
        self.rows = nn.Parameter(torch.randn(rows, d_model))
        self.columns = nn.Parameter(torch.randn(columns, d_model))

    def forward(self, x):
        index = torch.arange(x.shape[1])
        return x + self.rows[index // self.C] + self.columns[index % self.C]
"""
)
FLAT_CELLS = replace(
    CELLS,
    init={"rows": "R", "columns": "C", "d_model": "D"},
    inputs=(Input(name="x", axes=("B", "R*C", "D")),),
    output=("B", "R*C", "D"),
)

TOKENS = (
    HEAD
    + """
class M(nn.Module):
    def __init__(self, vocab, d_model):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model, padding_idx=3)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.embedding(ids) * self.embedding.embedding_dim ** 0.5
"""
)
LOOKUP = Contract(
    sizes={"B": 2, "S": 5, "D": 8, "V": 11},
    init={"vocab": "V", "d_model": "D"},
    inputs=(Input(name="ids", axes=("B", "S"), dtype="int"),),
    output=("B", "S", "D"),
    vary=("B", "S", "D"),
    padding_idx=3,
    tied=(("embedding.weight", "head.weight"),),
    state_dict=("embedding.weight", "head.weight"),
)


def case(source: str, contract: Contract, *pairs: tuple[str, str]) -> Case:
    """The source with changes, and what it has promised; no reference."""
    return Case(changed(source, *pairs), contract, None)
