"""Masks that are right for one position at a time."""

from dataclasses import replace

from sources import CACHED, DECODER
from trial import Case, changed

TRIU = "future = torch.ones(S, K, dtype=torch.bool).triu(K - S + 1)"
ORDERED = replace(DECODER, promises=("causal",))


def mask(line, contract=DECODER):
    return Case(changed(CACHED, (TRIU, line)), contract, None)


WRONG = {
    "no mask behind a cache": mask(
        f"{TRIU}\n        future = future if cache is None else torch.zeros(S, K, dtype=torch.bool)"
    ),
    "only the newest key in a chunk": mask(
        f"{TRIU}\n        future = future | ((cache is not None) & (torch.arange(K) > K - S))"
    ),
}
RIGHT = {
    "aligned with the last key": mask(TRIU),
    "by positions": mask("future = torch.arange(K)[None] > torch.arange(K - S, K)[:, None]"),
}
