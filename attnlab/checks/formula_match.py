"""The table of positions is the formula that the task states.

For the sinusoidal encoding: PE[p, 2i] = sin(p * w_i) and PE[p, 2i+1] = cos(p * w_i) with
w_i = base ** (-2i / D). One frequency per pair of columns; low i is the fast oscillation.

Wrong: an exponent that grows with every column gives sin and cos of a pair two frequencies.
Right: the exponent is that of the even column, for both.

The expected table is computed here in float64. What is compared is the output where forward returns
the table, and output minus input where it adds it.
"""

import math

from attnlab.checks.base import Failure, Probe, Tensor, describe, expected_shape

TITLE = "The encoding follows its formula"
NEEDS = ("position", "sequence")
AFTER = ("output-shape", "finite", "deterministic-eval", "input-unchanged", "batch-independence")
ADVICE = "Work out D=4 by hand: w = [1, 0.01], and row 1 is [0.8415, 0.5403, 0.0100, 0.99995]."
TOLERANCE = 2e-4  # float32 angles at position 100 are off by 1e-5, the subtraction by as much


def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    assert position is not None
    inputs = probe.draw("none")
    out = probe.call(inputs).double()
    if tuple(out.shape) != expected_shape(probe):  # an empty table has no wrong value
        return Failure(message=f"the output is {describe(out, probe)} this time")
    if position.form == "added":
        out = out - next(iter(inputs.values())).double()
    for b in range(out.shape[0]):
        failure = _compare(out[b], position.base, b)
        if failure:
            return failure
    return None


def _compare(table: Tensor, base: float, b: int) -> Failure | None:
    length, width = table.shape
    for p, row in enumerate(table.tolist()):
        for column, value in enumerate(row):
            frequency = base ** (-2 * (column // 2) / width)
            wave = math.cos if column % 2 else math.sin
            right = wave(p * frequency)
            if not abs(value - right) <= TOLERANCE:
                return Failure(
                    message=f"at position {p}, column {column} of {width} (length {length}, "
                    f"sample {b}) the encoding is {value:.5f}, expected {wave.__name__}"
                    f"({p} * {base:g}^(-{2 * (column // 2)}/{width})) = {right:.5f}"
                )
    return None
