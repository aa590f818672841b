"""Caches that lose, mix up or misplace keys and values."""

from dataclasses import replace

from sources import CACHED, DECODER, INNER
from trial import Case, changed

JOIN = "k = torch.cat((cache[0], k), dim=2)"
VALUES = "v = torch.cat((cache[1], v), dim=2)"
PLACES = "(1 + 0.1 * torch.arange(x.shape[1])[:, None])"
SPLIT = "k = self.k_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)"


def cached(*pairs, contract=DECODER):
    return Case(changed(CACHED, *pairs), contract, None)


KEPT = (
    ("self.H = num_heads", "self.H, self.cache = num_heads, None"),
    ("def forward(self, x, cache=None):", """def reset(self):
        self.cache = None

    def reorder(self, parents):
        self.cache = tuple(t[parents] for t in self.cache)

    def forward(self, x):
        cache = self.cache"""),
    ("return out, (k, v)", "self.cache = k, v\n        return out"),
)  # fmt: skip
WRONG = {
    "the newest first": cached((VALUES, "v = torch.cat((v, cache[1]), dim=2)")),
    "only the last step is kept": cached(("return out, (k, v)",
                                          "return out, (k[:, :, -1:], v[:, :, -1:])")),
    "the newest keys left out": cached(("return out, (k, v)",
                                        "return out, ((k, v) if cache is None else cache)")),
    "positions that begin anew": cached((SPLIT, f"{SPLIT}\n        k = k * {PLACES}"),
                                        contract=replace(DECODER, promises=("causal",))),
    "kept in eval mode alone": cached(("return out, (k, v)",
                                       "return out, (None if self.training else (k, v))")),
    "kept in float32": cached(("return out, (k, v)", "return out, (k.float(), v.float())"),
                              contract=replace(DECODER, dtypes=("bfloat16",))),
}  # fmt: skip
RIGHT = {
    "joined": cached(),
    "kept by the module": cached(*KEPT, contract=INNER),
    "in every type": cached(contract=replace(DECODER, dtypes=("float64", "bfloat16", "float16"))),
    "values stored by position": cached((VALUES, "v = torch.cat((cache[1], v), dim=-2)")),
}
