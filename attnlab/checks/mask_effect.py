"""A masked key changes nothing.

Wrong: a mask that is inverted, ignored, multiplied in after the softmax, filled with -1e-9, or
broadcast along the wrong axis: the value of a key that may not be attended to still arrives.
Right: when key j is masked for every query, changing position j changes no output but its own.
"""

from attnlab.checks.base import Failure, Probe, Skip, data_inputs, far, first_index, mask_input

TITLE = "Masked keys change nothing"
NEEDS = ("mask", "sequence")
AFTER = ("output-shape", "finite", "deterministic-eval", "batch-independence", "causality")
ADVICE = (
    "Print the scores right after the mask: every masked entry must be -inf before the softmax."
)


def run(probe: Probe) -> Failure | None:
    length = probe.sizes.get("S", 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    at = probe.contract.output.index("S")
    spec = mask_input(probe.contract)
    for key in sorted({0, length - 1, probe.pick(0, length)}):
        inputs = probe.draw("random")
        if inputs[spec.name].shape[-1] != length:
            raise Skip("the mask's last axis is not the sequence")
        mask = inputs[spec.name].clone()
        mask[..., (key + 1) % length] = not spec.forbids  # so that every query keeps a key
        mask[..., key] = spec.forbids
        inputs[spec.name] = mask
        before = probe.call(inputs)
        for data in data_inputs(probe.contract, "S"):
            new = inputs[data.name].clone()
            part = new.select(data.axes.index("S"), key)
            part.copy_(probe.noise(part))
            inputs[data.name] = new
        gap = far(before, probe.call(inputs))
        gap.select(at, key).fill_(False)
        if gap.any().item():
            return Failure(
                message=f"key {key} was masked for every query; changing position {key} still "
                f"changed the output at {first_index(gap)}"
            )
    return None
