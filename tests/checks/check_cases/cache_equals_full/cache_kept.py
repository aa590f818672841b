"""Caches that forward changes while it goes on from them."""

from sources import CACHED, DECODER
from trial import Case, changed

JOINED = (
    "k = torch.cat((cache[0], k), dim=2)",
    "v = torch.cat((cache[1], v), dim=2)",
    "return out, (k, v)",
)


def kept(*lines):
    """The keys and values joined, and the cache returned, in another way."""
    pairs = zip(JOINED, lines, strict=True)
    return Case(changed(CACHED, *pairs), DECODER, None)


WRITE = "cache['k'] = k = torch.cat((cache['k'], k), dim=2)"
WRONG = {
    "a list that is appended to": kept(
        "cache[0].append(k); k = torch.cat(cache[0], dim=2)",
        "cache[1].append(v); v = torch.cat(cache[1], dim=2)",
        "return out, (([k], [v]) if cache is None else cache)",
    ),
    "a dict that is written to": kept(
        WRITE, WRITE.replace("k", "v"), "return out, (dict(k=k, v=v) if cache is None else cache)"
    ),
    "room that all caches share": kept(
        "room, n, S = *cache, k.shape[2]; room[:, 0, :, n : n + S] = k; k = room[:, 0, :, : n + S]",
        "room[:, 1, :, n : n + S] = v; v = room[:, 1, :, : n + S]",
        "room = cache[0] if cache else nn.functional.pad(torch.stack((k, v), 1), (0, 0, 0, 64))\n"
        "        return out, (room, k.shape[2])",
    ),
}
RIGHT = {
    "joined": Case(CACHED, DECODER, None),
    "a list that is copied": kept(
        "cache = ([*cache[0], k], [*cache[1], v]); k = torch.cat(cache[0], dim=2)",
        "v = torch.cat(cache[1], dim=2)",
        "return out, (([k], [v]) if cache is None else cache)",
    ),
}
