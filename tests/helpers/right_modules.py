"""Correct modules in many styles. A trace of them must raise no finding, at any size."""

from modules import MASK, SIZES, X, module

from attnlab.records import Contract, Input

HEADS = "self.h = 2\nself.qkv = nn.Linear(width, 3 * width)\nself.out = nn.Linear(width, width)"
SPLIT = "q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)\n"
JOIN = "\nreturn self.out(y.transpose(1, 2).flatten(2))"
PADDING = Input(name="padding", axes=("B", "1", "1", "S"))
KEYS = Input(name="keys", axes=("B", "S"), dtype="bool", role="mask")
TIMES = Input(name="times", axes=("B", "S"))
IDS = Input(name="ids", axes=("B", "S"), dtype="int")
PAST = Input(name="past", axes=("B", "H", "T", "hd"))
IMAGE = Input(name="image", axes=("B", "3", "8", "8"))

RIGHT: dict[str, tuple[str, tuple[Input, ...]]] = {
    "rope, half-split": (
        module(
            SPLIT
            + """\
S, hd = q.shape[-2:]
w = 10000.0 ** (-torch.arange(0, hd, 2) / hd)
angle = torch.arange(S)[:, None] * w
cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
def turn(t):
    a, b = t.chunk(2, -1)
    return t * cos + torch.cat([-b, a], -1) * sin
y = (turn(q) @ turn(k).mT / hd**0.5).softmax(-1) @ v"""
            + JOIN,
            HEADS,
        ),
        (X,),
    ),
    "rope, complex": (
        module(
            SPLIT
            + """\
S, hd = q.shape[-2:]
angle = torch.outer(torch.arange(S), 10000.0 ** (-torch.arange(0, hd, 2) / hd))
turn = torch.polar(torch.ones_like(angle), angle)
def rope(t):
    pairs = torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2)
y = F.scaled_dot_product_attention(rope(q), rope(k), v, is_causal=True)"""
            + JOIN,
            HEADS,
        ),
        (X,),
    ),
    "alibi": (
        module(
            SPLIT
            + """\
S = x.shape[1]
slope = 2.0 ** (-8 * torch.arange(1, self.h + 1) / self.h)
distance = torch.arange(S)[None, :] - torch.arange(S)[:, None]
bias = slope[:, None, None] * distance
scores = q @ k.mT / q.shape[-1] ** 0.5 + bias
scores = scores.masked_fill(distance > 0, float("-inf"))
y = scores.softmax(-1) @ v"""
            + JOIN,
            HEADS,
        ),
        (X,),
    ),
    "additive padding and causal masks": (
        module(
            SPLIT
            + """\
S = x.shape[1]
causal = torch.full((S, S), float("-inf")).triu(1)
bias = padding + causal
y = (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v"""
            + JOIN,
            HEADS,
            head="self, x, padding",
        ),
        (X, PADDING),
    ),
    "boolean key mask": (
        module(
            SPLIT
            + """\
scores = q @ k.mT / q.shape[-1] ** 0.5
scores = scores.masked_fill(keys[:, None, None], float("-inf"))
y = scores.softmax(-1).masked_fill(keys[:, None, None], 0.0) @ v"""
            + JOIN,
            HEADS,
            head="self, x, keys",
        ),
        (X, KEYS),
    ),
    "mask by where, lowest number": (
        module(
            SPLIT
            + """\
scores = q @ k.mT / q.shape[-1] ** 0.5
if mask is not None:
    scores = torch.where(mask[:, None], torch.finfo(scores.dtype).min, scores)
y = scores.softmax(-1) @ v"""
            + JOIN,
            HEADS,
            head="self, x, mask=None",
        ),
        (X, MASK),
    ),
    "softmax by hand with empty rows": (
        module(
            SPLIT
            + """\
scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask[:, None], float("-inf"))
top = scores.amax(-1, keepdim=True)
top = torch.where(top == float("-inf"), 0.0, top)
e = (scores - top).exp()
y = (e / e.sum(-1, keepdim=True).clamp(min=1e-9)) @ v"""
            + JOIN,
            HEADS,
            head="self, x, mask",
        ),
        (X, MASK),
    ),
    "relative bias table": (
        module(
            SPLIT
            + """\
S = x.shape[1]
distance = torch.arange(S)[None] - torch.arange(S)[:, None] + 63
bias = self.table(distance).permute(2, 0, 1)
y = (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v"""
            + JOIN,
            HEADS + "\nself.table = nn.Embedding(127, 2)",
        ),
        (X,),
    ),
    "relative keys, pair by pair": (
        module(
            """\
S = x.shape[1]
q, k = self.q(x), self.k(x)
r = self.r(torch.arange(S))
pairs = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) + torch.tanh(q[:, :, None] + r)
return self.v(pairs).squeeze(-1).softmax(-1) @ x""",
            "self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)\n"
            "self.r, self.v = nn.Embedding(64, width), nn.Linear(width, 1)",
        ),
        (X,),
    ),
    "gaussian window": (
        module(
            """\
S = x.shape[1]
centre = self.p(x).sigmoid() * S
distance = torch.arange(S) - centre
return (-(distance**2)).softmax(-1) @ x""",
            "self.p = nn.Linear(width, 1)",
        ),
        (X,),
    ),
    "layer norm and rms norm by hand": (
        module(
            """\
mean = x.mean(-1, keepdim=True)
var = ((x - mean) ** 2).mean(-1, keepdim=True)
y = (x - mean) / (var + 1e-5).sqrt() * self.g + self.b
return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)""",
            "self.g = nn.Parameter(torch.ones(width))\nself.b = nn.Parameter(torch.zeros(width))",
        ),
        (X,),
    ),
    "grouped heads by repeat_interleave": (
        module(
            """\
B, S, D = x.shape
hd = D // self.h
q = self.q(x).view(B, S, self.h, hd).transpose(1, 2)
k, v = (p(x).view(B, S, 1, hd).transpose(1, 2).repeat_interleave(self.h, 1) for p in self.kv)
y = (q @ k.mT / hd**0.5).softmax(-1) @ v
return y.transpose(1, 2).reshape(B, S, D)""",
            "self.h = 2\nself.q = nn.Linear(width, width)\n"
            "self.kv = nn.ModuleList([nn.Linear(width, width // 2) for _ in range(2)])",
        ),
        (X,),
    ),
    "one key head for all": (
        module(
            """\
q = self.q(x).unflatten(-1, (2, -1)).transpose(1, 2)
k, v = self.kv(x).unsqueeze(1).chunk(2, -1)
y = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
return y.transpose(1, 2).flatten(2)""",
            "self.q, self.kv = nn.Linear(width, width), nn.Linear(width, width)",
        ),
        (X,),
    ),
    "key-value cache": (
        module(
            SPLIT
            + """\
k, v = torch.cat([past, k], 2), torch.cat([past, v], 2)
S, T = q.shape[2], k.shape[2]
later = torch.ones(S, T, dtype=torch.bool).triu(T - S + 1)
scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, float("-inf"))
y = scores.softmax(-1) @ v"""
            + JOIN,
            HEADS.replace("2\n", "heads\n", 1),
            head="self, x, past",
            takes="width, heads",
        ),
        (X, PAST),
    ),
    "one step of decoding": (
        module(
            SPLIT
            + """\
q, until = q[:, :, -1:], torch.arange(x.shape[1]) < x.shape[1] - 1
scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~until[None, None, None], float("-inf"))
y = scores.softmax(-1) @ v"""
            + JOIN,
            HEADS,
        ),
        (X,),
    ),
    "sequence first": (
        module(
            """\
q = self.q(x.transpose(0, 1)).contiguous()
S, B, D = q.shape
q = q.view(S, B * 2, D // 2).transpose(0, 1)
y = torch.bmm((torch.bmm(q, q.mT) / (D // 2) ** 0.5).softmax(-1), q)
return y.transpose(0, 1).reshape(S, B, D).transpose(0, 1)""",
            "self.q = nn.Linear(width, width)",
        ),
        (X,),
    ),
    "linear attention with cumulative sums": (
        module(
            SPLIT
            + """\
q, k = F.elu(q) + 1, F.elu(k) + 1
kv = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(2)
z = 1 / (torch.einsum("bhsd,bhsd->bhs", q, k.cumsum(2)) + 1e-6)
y = torch.einsum("bhsd,bhsde,bhs->bhse", q, kv, z)"""
            + JOIN,
            HEADS,
        ),
        (X,),
    ),
    "times and outer products": (
        module(
            """\
w = 1.0 / 100 ** (torch.arange(x.shape[-1] // 2) / x.shape[-1])
angle = times.unsqueeze(-1) * w
return self.p(x) + torch.cat([angle.sin(), angle.cos()], -1)""",
            "self.p = nn.Linear(width, width)",
            head="self, x, times",
        ),
        (X, TIMES),
    ),
    "table filled in forward": (
        module(
            """\
S, D = x.shape[1:]
pe = torch.empty(S, D)
angle = torch.arange(S)[:, None] * 10000.0 ** (-torch.arange(0, D, 2) / D)
pe[:, 0::2] = angle.sin()
pe[:, 1::2] = angle.cos()
return x + pe.unsqueeze(0)"""
        ),
        (X,),
    ),
    "learned positions of a limited length": (
        module(
            "return self.drop(self.e(ids) + self.p(torch.arange(ids.shape[1]))) * 2",
            "self.e, self.p = nn.Embedding(64, width), nn.Embedding(9, width)\n"
            "self.drop = nn.Dropout(0.1)",
            head="self, ids",
        ),
        (IDS,),
    ),
    "table of a limited length": (
        module(
            "return self.p(x) + self.pe[:, : x.shape[1]]",
            "self.p = nn.Linear(width, width)\nself.register_buffer('pe', torch.ones(1, 9, width))",
        ),
        (X,),
    ),
    "pooling by a query": (
        module(
            """\
weights = self.score(x).softmax(1)
pooled = (weights * x).sum(1, keepdim=True)
return pooled + self.e(torch.arange(x.shape[1]))""",
            "self.score, self.e = nn.Linear(width, 1), nn.Embedding(64, width)",
        ),
        (X,),
    ),
    "patches by a convolution": (
        module(
            """\
y = self.conv(image).flatten(2).transpose(1, 2)
cls = self.cls.expand(y.shape[0], -1, -1)
return torch.cat([cls, y], 1) + self.pos""",
            "self.conv = nn.Conv2d(3, width, 4, 4)\n"
            "self.cls = nn.Parameter(torch.zeros(1, 1, width))\n"
            "self.pos = nn.Parameter(torch.ones(1, 5, width))",
            head="self, image",
        ),
        (IMAGE,),
    ),
    "pieces of size 1, taken apart": (
        module(
            """\
a, b = self.p(x).unflatten(-1, (2, -1)).split(1, 2)
return torch.cat([a.squeeze(2), b.squeeze(2)], -1)""",
            "self.p = nn.Linear(width, width)",
        ),
        (X,),
    ),
}


def contract(inputs: tuple[Input, ...], sizes: dict[str, int] | None = None) -> Contract:
    cached = PAST in inputs
    return Contract(
        sizes={**(sizes or SIZES), **({"T": 3} if cached else {})},
        init={"width": "D", **({"heads": "H"} if cached else {})},
        inputs=inputs,
        vary=("B", "S", "D", "H", "T"),
    )
