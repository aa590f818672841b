"""Queries and keys of unit variance give scores of unit variance, whatever the width of a head.

A dot product of hd terms has variance hd. Divided by sqrt(hd) it has variance 1, and softmax is
neither flat nor a maximum when training begins.

Wrong: no scale, a product with sqrt(hd), sqrt(D) instead of sqrt(hd), a scale applied twice.
Right: `q @ k.mT / hd ** 0.5`, or either side scaled before.

Probed with projections drawn so that queries and keys have unit variance, where the contract
promises `scaled`. Scores are read off the softmax or the fused kernel of a forward pass.
"""

from collections.abc import Mapping

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.probe.answers import Skip, Tensor

DRAWS = 4
LEAST, MOST = 0.66, 1.5  # from 4 features a head and 3 heads on, every wrong scale is outside
HEADS, WIDTH = 3, 4


@check(
    title="Scores have unit variance",
    needs=("scaled", "heads", "floats"),
    tier=Tier.ORDER,
    advice=(
        "Print scores.std() right before the softmax for two widths of a head: it must not grow."
    ),
    trusted=False,
    few=True,
)
def run(probe: Probe) -> Failure | None:
    sizes = probe.sizes
    if sizes["H"] < HEADS or sizes.get("hd", 0) < WIDTH:
        raise Skip(f"fewer than {HEADS} heads of {WIDTH} features do not tell scales apart")
    weights = probe.weights()
    squares, count = 0.0, 0
    for _ in range(DRAWS):
        probe.set_weights(_unit(probe, weights))
        for scores in probe.attention_internals(probe.draw("none")).scores:
            some = scores[scores.abs() < 1e4]  # what a mask put there is no score
            squares += some.double().square().sum().item()
            count += some.numel()
    probe.set_weights(weights)
    if not count:
        raise Skip("no softmax over scores is to be seen")
    spread = (squares / count) ** 0.5
    if LEAST < spread < MOST:
        return None
    return Failure(
        message=f"queries and keys of unit variance gave scores with a standard deviation of "
        f"{spread:.2g}, expected about 1 (sqrt(hd) is {sizes['hd'] ** 0.5:.2g})"
    )


def _unit(probe: Probe, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices that keep the variance, no biases, and norms without a gain."""
    return {
        name: probe.noise(w, w.shape[-1] ** -0.5)
        if w.dim() > 1
        else (w * 0 + 1 if name.endswith("weight") else w * 0)
        for name, w in weights.items()
    }
