"""With a causal mask, no output depends on what comes after it.

Wrong: `torch.triu(ones, diagonal=2)` forbids too little; a reshape that mixes positions leaks
through the layout although the mask is right.
Right: changing the input from position t on leaves the outputs before t as they were, for every t.

A module that takes a mask is given a causal one; a module that promises to be causal is given none.
"""

from attnlab.checks.base import Failure, Probe, Skip, data_inputs, far

TITLE = "The future does not leak"
NEEDS = ("causal", "sequence")
AFTER = ("output-shape", "finite", "deterministic-eval", "batch-independence")
ADVICE = (
    "Look at which position leaks: the next one points at the mask's diagonal, "
    "scattered ones at a reshape."
)


def run(probe: Probe) -> Failure | None:
    length = probe.sizes.get("S", 1)
    if length < 2:
        raise Skip("a sequence of one has no future")
    at = probe.contract.output.index("S")
    inputs = probe.draw("causal")
    before = probe.call(inputs)
    for t in sorted({*range(1, min(length, 9)), length - 1, probe.pick(1, length)}):
        changed = dict(inputs)
        for spec in data_inputs(probe.contract, "S"):
            axis, new = spec.axes.index("S"), inputs[spec.name].clone()
            part = new.narrow(axis, t, length - t)
            part.copy_(probe.noise(part))
            changed[spec.name] = new
        after = probe.call(changed)
        past = far(before, after).narrow(at, 0, t).movedim(at, 0).flatten(1).any(1)
        if past.any().item():
            gap = (before - after).abs().narrow(at, 0, t).max().item()
            seen = [i for i, leaks in enumerate(past.tolist()) if leaks]
            return Failure(
                message=f"inputs changed from position {t} on, and the output at position "
                f"{', '.join(map(str, seen))} changed too, by up to {gap:.2g}"
            )
    return None
