"""Parameters that take no part."""

from trial import ATTENTION, KERNEL, Case, changed

EXTRA = "self.H = num_heads\n        self.spare = nn.Linear(embed_dim, embed_dim, bias=False)"
WRONG = {
    "built and never called": Case(
        changed(ATTENTION, ("self.H = num_heads", EXTRA)), reference=None
    ),
    "called for nothing": Case(
        changed(ATTENTION, ("self.H = num_heads", EXTRA), ("+ x", "+ x + 0 * self.spare(x)")),
        reference=None,
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "frozen": Case(
        changed(ATTENTION, ("self.H = num_heads", f"{EXTRA}.requires_grad_(False)")), reference=None
    ),
}
