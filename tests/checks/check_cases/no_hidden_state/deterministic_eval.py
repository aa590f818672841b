"""Randomness that eval mode does not switch off, and state kept between two calls."""

from trial import ATTENTION, DROPOUT, KERNEL, Case, changed

WRONG = {
    "dropout in eval mode": Case(
        changed(ATTENTION, ("weights @ v", "F.dropout(weights, 0.1) @ v"))
    ),
    "the keys of the last call": Case(
        changed(
            ATTENTION,
            (
                "scores = q @ k.mT",
                "k, self.last = getattr(self, 'last', k), k\n        scores = q @ k.mT",
            ),
        )
    ),
    "a sum of all calls": Case(
        changed(
            ATTENTION,
            (
                "heads = weights @ v",
                "self.seen = getattr(self, 'seen', 0) + 1\n        heads = weights @ v * self.seen",
            ),
        )
    ),
}
RIGHT = {
    "dropout as a submodule": Case(
        changed(
            ATTENTION,
            ("self.H = num_heads", "self.H = num_heads\n        self.drop = nn.Dropout(0.5)"),
            ("weights @ v", "self.drop(weights) @ v"),
        ),
        DROPOUT,
    ),
    "dropout that asks for the mode": Case(
        changed(ATTENTION, ("weights @ v", "F.dropout(weights, 0.5, self.training) @ v")), DROPOUT
    ),
    "the kernel": Case(KERNEL),
}
