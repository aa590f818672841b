"""Dropout that drops nothing, or changes the mean."""

from dataclasses import replace

from trial import ATTENTION, DROPOUT, LAST, Case, changed

UNBIASED = replace(DROPOUT, promises=(*DROPOUT.promises, "unbiased-dropout"))
INIT = ("self.H = num_heads", "self.H = num_heads\n        self.drop = nn.Dropout(0.25)")


def dropped(line, contract=UNBIASED):
    return Case(
        changed(ATTENTION, INIT, (LAST, f"out = {LAST[7:]}\n        return {line}")), contract
    )


WRONG = {
    "built and never called": Case(changed(ATTENTION, INIT), DROPOUT),
    "never in training": dropped("F.dropout(out, 0.25, training=False)", DROPOUT),
    "not scaled up": dropped("self.drop(out) * (0.75 if self.training else 1)"),
    "scaled twice": dropped("self.drop(out) / (0.75 if self.training else 1)"),
    "on scores that are -inf": Case(
        changed(
            ATTENTION, INIT, ("weights = scores.softmax", "weights = self.drop(scores).softmax")
        ),
        DROPOUT,
    ),
    "train mode that stays": dropped(
        "self.drop(out) + setattr(self, 'n', getattr(self, 'n', 0) + self.training) "
        "if False else self.drop(out) + self.__dict__.setdefault('k', []).__len__() "
        "+ (self.__dict__['k'].append(1) or 0 if self.training else 0)",
        DROPOUT,
    ),
}
RIGHT = {
    "a submodule": dropped("self.drop(out)"),
    "by hand": dropped("out * (torch.rand_like(out) > 0.25) / 0.75 if self.training else out"),
    "on the weights": Case(
        changed(ATTENTION, INIT, ("weights @ v", "self.drop(weights) @ v")), DROPOUT
    ),
}
