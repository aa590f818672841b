"""Another instance of the class changes nothing of this one.

A model holds many layers of one class, of different sizes; what they keep belongs to each.

Wrong: `MultiHeadSelfAttention.scale = head_dim**-0.5` in the constructor, which is the class's: the
layer that was built last sets it for all. A dict of norms at the top of the file, by width: layers
of one width train the same one.
Right: `self.scale = ...`, and parameters that each instance makes for itself.

An instance with another number of heads, or of another width, is built and called, and its
parameters are changed; then this one must give what it gave before.
"""

from attnlab.checks.base import Failure, Probe, far, first_index

TITLE = "Instances have nothing in common"
NEEDS = ("output",)
AFTER = (
    "output-shape",
    "finite",
    "deterministic-eval",
    "input-unchanged",
    "no-global-state",
    "matches-reference",
)
ADVICE = "Look for what is kept on the class, at the top of the file or in a default argument."
ONCE = True


def run(probe: Probe) -> Failure | None:
    inputs, before = probe.sample()
    sizes = _other(probe)
    after = probe.beside(sizes, inputs)
    gap = far(before, after)
    if not gap.any().item():
        return None
    named = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return Failure(
        message=f"after another instance{f' with {named}' if named else ''} was built, called and "
        f"given other parameters, the output of this one is another at {first_index(gap)}, by up "
        f"to {(before - after).abs().max().item():.2g}"
    )


def _other(probe: Probe) -> dict[str, int]:
    """Another number of heads of the same width, else another width, where these may be chosen."""
    sizes, vary = probe.sizes, probe.contract.vary
    grouped = "Hkv" in sizes
    if {"D", "H"} <= sizes.keys() and "H" in vary and not grouped:
        heads = 1 if sizes["H"] > 1 else 2 - sizes["D"] % 2
        return {"H": heads} if heads != sizes["H"] else {}
    if "D" in vary and "H" not in sizes:
        return {"D": sizes["D"] + 2}
    return {}
