"""What one sample of a batch is computed from is that sample alone.

Wrong: `view(B, H, S, hd)` where a transpose was needed, softmax over axis 0,
`nn.MultiheadAttention` without `batch_first=True`: rows of the batch read each other, and a batch
of one never shows it.
Right: changing sample b changes output b and no other.
"""

from attnlab.checks.base import Failure, Probe, Skip, data_inputs, far, first_index

TITLE = "Samples of a batch do not mix"
NEEDS = ("batch",)
AFTER = ("output-shape", "finite", "deterministic-eval")
ADVICE = "Follow the batch axis through the trace: it must stay first and never be summed over."


def run(probe: Probe) -> Failure | None:
    size = probe.sizes.get("B", 1)
    if size < 2:
        raise Skip("a batch of one has nothing to mix with")
    at = probe.contract.output.index("B")
    inputs = probe.draw("random")
    before = probe.call(inputs)
    for b in range(min(size, 4)):
        changed = dict(inputs)
        for spec in data_inputs(probe.contract, "B"):
            axis = spec.axes.index("B")
            new = inputs[spec.name].clone()
            new.select(axis, b).copy_(probe.noise(new.select(axis, b)))
            changed[spec.name] = new
        gap = far(before, probe.call(changed))
        gap.select(at, b).fill_(False)
        if gap.any().item():
            return Failure(
                message=f"only sample {b} of the batch was changed, but the output at "
                f"{first_index(gap)} changed too"
            )
    return None
