"""Caches from which keys or values are computed again in each step."""

from sources import CACHED, DECODER
from trial import Case, changed

from attnlab.records import Code

RIGHT_CODE = Code(file="solution.py", text=CACHED, name="M")
KEYS = "k = self.k_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)"
VALUES = "v = self.v_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)"
JOIN_KEYS = "k = torch.cat((cache[0], k), dim=2)"
JOIN_VALUES = "v = torch.cat((cache[1], v), dim=2)"
AGAIN = "x_all = x if cache is None else torch.cat((cache[2], x), dim=1)\n        "


def cached(*pairs):
    return Case(changed(CACHED, *pairs), DECODER, RIGHT_CODE)


ALL_KEYS = (
    (KEYS, AGAIN + KEYS.replace("(x)", "(x_all)")),
    (JOIN_KEYS, "pass"),
    ("return out, (k, v)", "return out, (k, v, x_all)"),
)
WRONG = {
    "inputs are kept in place of keys and values": cached(
        *ALL_KEYS, (VALUES, VALUES.replace("(x)", "(x_all)")), (JOIN_VALUES, "pass")
    ),
    "keys are computed again, and values kept": cached(*ALL_KEYS),
    "values are computed again, and keys kept": cached(
        (VALUES, AGAIN + VALUES.replace("(x)", "(x_all)")),
        (JOIN_VALUES, "pass"),
        ("return out, (k, v)", "return out, (k, v, x_all)"),
    ),
}
RIGHT = {
    "joined": cached(),
    "kept before heads are split": cached(
        (KEYS, "k = self.k_proj(x)"),
        (JOIN_KEYS, "k = torch.cat((cache[0], k), dim=1)"),
        (
            "S, K = q.shape[2], k.shape[2]",
            "c, S, K = k, q.shape[2], k.shape[1]; k = k.unflatten(2, (self.H, -1)).movedim(1, 2)",
        ),
        ("return out, (k, v)", "return out, (c, v)"),
    ),
}
