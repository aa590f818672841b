"""The module leaves its inputs as they were.

Wrong: `x += self.pe[:, :S]` writes into the caller's tensor, which the residual branch, the next
layer or the next batch then reads.
Right: `x = x + self.pe[:, :S]`.

Rests on the word of the process that ran the candidate.
"""

from attnlab.checks.base import Failure, Inputs, Probe, first_index, masks

TITLE = "Inputs stay unchanged"
NEEDS = ("output",)
AFTER = ("output-shape",)
ADVICE = "Look for in-place operations on an argument: +=, *=, a name that ends in _, x[...] = ..."
TRUSTED = False


def run(probe: Probe) -> Failure | None:
    for mask in masks(probe.contract, "random"):
        failure = _changed(probe, probe.draw(mask))
        if failure:
            return failure
    return None


def _changed(probe: Probe, inputs: Inputs) -> Failure | None:
    after = probe.inputs_after(inputs)
    for name, before in inputs.items():
        if before is None or name not in after:
            continue
        now = after[name]
        if tuple(now.shape) != tuple(before.shape):
            return Failure(
                message=f"{name} had shape {tuple(before.shape)} and has {tuple(now.shape)} now"
            )
        changed = now != before
        if changed.any().item():
            return Failure(
                message=f"forward wrote into its argument {name}: {int(changed.sum().item())} of "
                f"{before.numel()} values differ after it, the first at {first_index(changed)}"
            )
    return None
