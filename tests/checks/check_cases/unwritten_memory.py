"""Memory that is read before it is written: zeros today.

So many numbers come from the system each time, which gives zeros; fewer may be what a test left.
"""

from trial import ATTENTION, ENCODING, TABLE, Case, changed

SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"
OUT = "self.out_proj = nn.Linear(embed_dim, embed_dim)"
ALLOCATED = "pe = torch.zeros(max_len, d_model)"
HIDE = "hide = x.new_empty((1 << 26), dtype=torch.bool)[0]"
WRONG = {
    "a bias that was only allocated": Case(
        changed(
            ATTENTION, (SCORES, f"{SCORES} + torch.empty(1 << 24)[: S * S].view(S, S).clamp(0, 0)")
        )
    ),
    "a number that was only allocated": Case(
        changed(
            ATTENTION,
            (SCORES, f"{SCORES} * (1 + x.new_empty(1 << 23, dtype=torch.long)[0] // 2**62)"),
        )
    ),
    "a mask that was only allocated": Case(
        changed(
            ATTENTION,
            ("weights = scores", f"{HIDE}\n        weights = scores.masked_fill(hide, 0)"),
        )
    ),
    "a parameter without its first values": Case(
        changed(
            ATTENTION,
            (OUT, f"{OUT}\n        self.out_proj.bias = nn.Parameter(torch.empty(embed_dim))"),
        )
    ),
}
BEFORE = "out = heads.transpose(1, 2).reshape(B, S, D)"
LOOP = """out = torch.empty_like(x).view(B, S, self.H, -1)
        for h in range(self.H):
            out[:, :, h] = heads[:, h]
        out = out.flatten(2)"""
FUSED = """whole = torch.baddbmm(x.new_empty(1), q.flatten(0, 1), k.flatten(0, 1).mT, beta=0)
        scores = whole.view(B, self.H, S, S) / q.shape[-1] ** 0.5"""
ZEROS = f"{OUT}\n        self.out_proj.bias = nn.Parameter(torch.Tensor(embed_dim).zero_())"
RIGHT = {
    "all of it is written": Case(changed(ATTENTION, (BEFORE, LOOP))),
    "it is not looked at": Case(
        changed(
            ATTENTION,
            (
                SCORES,
                FUSED,
            ),
        )
    ),
    "a table": Case(
        changed(TABLE, (ALLOCATED, "pe = torch.empty(max_len, d_model)")), ENCODING, None
    ),
    "a parameter that gets its first values": Case(
        changed(
            ATTENTION,
            (
                OUT,
                ZEROS,
            ),
        )
    ),
}
