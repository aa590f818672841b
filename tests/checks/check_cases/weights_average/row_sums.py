"""Weights whose rows all sum to the same wrong number."""

from trial import ATTENTION, Case, changed

SOFTMAX = "weights = scores.softmax(-1)"


def weights(line):
    return Case(changed(ATTENTION, (SOFTMAX, line)), reference=None)


WRONG = {
    "scaled afterwards": weights("weights = scores.softmax(-1) / 0.9"),
    "a temperature in the wrong place": weights("weights = scores.softmax(-1) * 0.5"),
    "a negative share": weights(
        "weights = scores.softmax(-1)\n        squares = weights.square()\n"
        "        weights = 3 * squares / squares.sum(-1, keepdim=True) - 2 * weights"
    ),
}
RIGHT = {
    "a softmax": Case(ATTENTION),
    "the largest made to sum to 1": weights(
        "weights = scores.softmax(-1)\n        weights = weights / weights.sum(-1, keepdim=True)"
    ),
    "einsum": Case(
        changed(ATTENTION, ("weights @ v", 'torch.einsum("bhqk,bhkd->bhqd", weights, v)'))
    ),
    "dropout in between": Case(
        changed(ATTENTION, ("weights @ v", "F.dropout(weights, 0.5, self.training) @ v")),
        reference=None,
    ),
}
