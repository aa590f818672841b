"""Work in proportion to the length."""

from dataclasses import replace

from trial import ATTENTION, SELF, Case, changed

LOCAL = replace(SELF, inputs=SELF.inputs[:1], promises=("linear-time",))
BLOCKS = """rows = []
        for i in range(0, S, 64):
            s = (q[:, :, i : i + 64] @ k[:, :, max(0, i - 4) : i + 64].mT) / q.shape[-1] ** 0.5
            rows.append(s.softmax(-1) @ v[:, :, max(0, i - 4) : i + 64])
        heads = torch.cat(rows, 2)"""
WHOLE = BLOCKS.replace("k[:, :, max(0, i - 4) : i + 64]", "k").replace(
    "v[:, :, max(0, i - 4) : i + 64]", "v"
)
KERNEL = """keep = torch.ones(S, S, dtype=torch.bool).triu(-4)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)"""


def attending(lines: str) -> Case:
    text = changed(
        ATTENTION,
        ("        scores = q @ k.mT / q.shape[-1] ** 0.5\n", ""),
        (
            "            scores = scores.masked_fill(mask[:, None], -torch.inf)\n",
            "            pass\n",
        ),
        ("weights = scores.softmax(-1)\n        heads = weights @ v", lines),
    )
    return Case(text, LOCAL, reference=None)


WRONG = {
    "all keys for a block of queries": attending(WHOLE),
    "a kernel that hides most keys": attending(KERNEL),
}
RIGHT = {
    "some keys for a block of queries": attending(BLOCKS),
    "blocks of 256": attending(BLOCKS.replace("64", "256")),
}
