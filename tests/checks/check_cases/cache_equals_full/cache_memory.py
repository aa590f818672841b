"""Caches that grow beyond what the task allows, or are made anew in each step."""

from dataclasses import replace

from sources import CACHED, DECODER
from trial import Case, changed

from attnlab.records import Cache, Code

LAST = "return out, (k, v)"
WINDOW = replace(
    DECODER,
    sizes={**DECODER.sizes, "W": 2},
    promises=("causal", "local"),
    cache=Cache(most="W"),
)
FUTURE = "torch.ones(S, K, dtype=torch.bool).triu(K - S + 1)"
WINDOWED = changed(
    CACHED, (FUTURE, f"{FUTURE} | {FUTURE.replace('triu(K - S + 1', 'tril(K - S - 2')}")
)
JOINED = "k = torch.cat((cache[0], k), dim=2)\n            v = torch.cat((cache[1], v), dim=2)"
WRITTEN = """new, S = torch.stack((k, v), 1), k.shape[2]
        if cache is None:
            cache = k.new_zeros(len(k), 2, self.H, int(5e3), k.shape[3]), 0
        room, used = cache
        room[..., used : used + S, :] = new
        k, v = room[..., : used + S, :].unbind(1)"""
ROOM = changed(
    CACHED,
    (f"if cache is not None:\n            {JOINED}", WRITTEN),
    (LAST, "return out, (room, used + S)"),
)
RIGHT_CODE = Code(file="solution.py", text=CACHED, name="M")
ONCE = replace(DECODER, cache=Cache(in_place=True))


def windowed(kept):
    return Case(
        changed(WINDOWED, (LAST, f"return out, ({kept})")),
        WINDOW,
        Code(file="solution.py", text=WINDOWED, name="M"),
    )


WRONG = {
    "all is kept and masked": windowed("k, v"),
    "one more than the window is kept": windowed("k[:, :, -3:], v[:, :, -3:]"),
    "joined anew in each step": Case(CACHED, ONCE, RIGHT_CODE),
    "room that is copied in each step": Case(
        changed(ROOM, ("room, used = cache", "room, used = cache[0].clone(), cache[1]")), ONCE
    ),
}
RIGHT = {
    "what leaves the window is dropped": windowed("k[:, :, -2:], v[:, :, -2:]"),
    "room that is written to": Case(ROOM, ONCE, RIGHT_CODE),
}
