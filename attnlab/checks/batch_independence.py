"""What one sample of a batch is computed from is that sample alone.

Wrong: `view(B, H, S, hd)` where a transpose was needed, softmax over axis 0,
`nn.MultiheadAttention` without `batch_first=True`: rows of the batch read each other, and a batch
of one never shows it.
Right: changing sample b changes output b and no other.
"""

from attnlab.checks.base import Failure, Probe, Skip, Steps, far, first_index
from attnlab.checks.pieces import moved

TITLE = "Samples of a batch do not mix"
NEEDS = ("batch",)
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval")
ADVICE = "Follow the batch axis through the trace: it must stay first and never be summed over."


def run(probe: Probe) -> Steps:
    size = probe.sizes.get("B", 1)
    if size < 2:
        raise Skip("a batch of one has nothing to mix with")
    at = probe.contract.output.index("B")
    inputs, before = probe.sample()
    samples = probe.some(range(min(size, 4)))
    changed = [moved(probe, inputs, "B", slice(b, b + 1)) for b in samples]
    outputs = yield changed
    for b, after in zip(samples, outputs, strict=True):
        gap = far(before, after)
        gap.select(at, b).fill_(False)
        if gap.any().item():
            return Failure(
                message=f"only sample {b} of the batch was changed, but the output at "
                f"{first_index(gap)} changed too"
            )
    return None
