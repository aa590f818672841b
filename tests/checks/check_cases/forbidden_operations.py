"""What was to be written by hand."""

from dataclasses import replace

from trial import ATTENTION, KERNEL, SELF, Case, changed

BY_HAND = replace(SELF, forbidden=("scaled_dot_product_attention", "nn.MultiheadAttention"))
PIECES = replace(SELF, forbidden=("S S",))
ROWS = """rows = []
        for i in range(S):
            s = (q[:, :, i : i + 1] @ k.mT) / q.shape[-1] ** 0.5
            if mask is not None:
                s = s.masked_fill(mask[:, None, i : i + 1], -torch.inf)
            rows.append(s.softmax(-1) @ v)
        heads = torch.cat(rows, 2)"""
TILED = changed(
    ATTENTION,
    ("        scores = q @ k.mT / q.shape[-1] ** 0.5\n", ""),
    ("            scores = scores.masked_fill(mask[:, None], -torch.inf)\n", "            pass\n"),
    ("weights = scores.softmax(-1)\n        heads = weights @ v", ROWS),
)
SPARE = "self.H = num_heads\n        self.spare = nn.MultiheadAttention(embed_dim, num_heads)"
SPARE += ".requires_grad_(False)"
WRONG = {
    "the kernel": Case(KERNEL, BY_HAND),
    "all scores at once": Case(ATTENTION, PIECES),
    "PyTorch's own module": Case(
        changed(ATTENTION, ("self.H = num_heads", SPARE)), BY_HAND, reference=None
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION, BY_HAND),
    "row by row": Case(TILED, PIECES),
}
