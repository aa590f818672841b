"""Things made for a few hundred positions at most.

The numbers are texts, so that they cannot be read off the source: sizes are drawn beyond those.
"""

from dataclasses import replace

from trial import ATTENTION, EMPTY_ROWS, KERNEL, Case, changed

from attnlab.records import Code

SEEN = "weights = scores.softmax(-1)"


TYPES = replace(EMPTY_ROWS, dtypes=("bfloat16", "float16"))


def counting(empty: str) -> Case:
    """Rows that hold nothing give nothing; they are told from the others by this."""
    masked = "scores = scores.masked_fill(mask[:, None], -torch.inf)"
    own = f"empty = {empty}\n            {masked.replace('mask[', '(mask & ~empty)[')}"
    zeroed = (
        f"{SEEN}\n        if mask is not None:\n            weights = weights * ~empty[:, None]"
    )
    return Case(changed(ATTENTION, (masked, own), (SEEN, zeroed)), TYPES)


def ranked(positions: str) -> Case:
    """Keys are told by their positions to stay behind the first 256; true of all of them."""
    own = f"rank = {positions}\n        scores = scores - 9 * (rank != torch.arange(S))"
    return Case(changed(ATTENTION, (SEEN, f"{own}\n        {SEEN}")))


BLOCKS = """top, heads, total = torch.full_like(scores[..., :1], -1e30), 0, 0
        for a in range(0, S, int('256')):
            s = scores[..., a : a + int('256')]
            new = torch.maximum(top, s.amax(-1, keepdim=True))
            p, shrunk = (s - new).exp(), (top - new).exp()
            heads = heads * shrunk + p @ v[:, :, a : a + int('256')]
            total, top = total * SHRUNK + p.sum(-1, keepdim=True), new
        heads = heads / total"""
WHOLE = f"{SEEN}\n        heads = weights @ v"
WRONG = {
    "blocks whose sum is not brought to the new maximum": Case(
        changed(ATTENTION, (WHOLE, BLOCKS.replace("SHRUNK", "1")))
    ),
    "a number of keys": Case(
        changed(ATTENTION, ("weights @ v", "weights[..., : int('100')] @ v[..., : int('100'), :]"))
    ),
    "positions that begin again": ranked("torch.arange(S) % int('256')"),
    "positions in bfloat16": ranked("torch.arange(S).bfloat16().float()"),
    "keys counted in the dtype of x": counting("mask.to(x.dtype).sum(-1, keepdim=True) == S"),
    "positions that stop": ranked("torch.arange(S).clamp(max=int('127'))"),
    "a mask made for 200": Case(
        changed(
            ATTENTION,
            (
                SEEN,
                (
                    f"most = int('200')\n        scores = scores[..., :most]\n"
                    f"        v = v[..., :most, :]\n        {SEEN}"
                ),
            ),
        )
    ),
}
DECODER = replace(TYPES, inputs=TYPES.inputs[:1], promises=("averaging", "causal"))
CAUSAL = f"""place = torch.arange(S)
        scores = scores.masked_fill(place[:, None] < place, -torch.inf)
        {SEEN}"""
CAUSAL_REFERENCE = Code(file="r.py", text=changed(ATTENTION, (SEEN, CAUSAL)), name="M")
WRONG |= {
    "positions compared in the dtype of x": Case(
        changed(ATTENTION, (SEEN, CAUSAL.replace("(S)", "(S).to(x.dtype)"))),
        DECODER,
        CAUSAL_REFERENCE,
    ),
}
RIGHT = {
    "positions compared as they are": Case(CAUSAL_REFERENCE.text, DECODER, CAUSAL_REFERENCE),
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "positions as they are": ranked("torch.arange(S)"),
    "blocks": Case(changed(ATTENTION, (WHOLE, BLOCKS.replace("SHRUNK", "shrunk")))),
    "keys counted": counting("mask.sum(-1, keepdim=True) == S"),
}
