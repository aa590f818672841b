"""What the task refuses raises the exception that it names.

Wrong: a sequence longer than the table is cut or wraps without an error.
Right: `raise ValueError(f"sequence of {S} exceeds max_seq_len {self.max_seq_len}")`.
"""

from attnlab.checks.base import Failure, Probe, Tier, check


@check(
    title="Impossible input is refused",
    needs=("refusals",),
    tier=Tier.ASIDE,
    advice=(
        "Check the sizes first and raise the exception that the task names, with the values in it."
    ),
    once=True,  # sizes are stated outright, so other rounds would repeat it
)
def run(probe: Probe) -> Failure | None:
    for refusal in probe.contract.refusals:
        got = probe.exception_at(refusal.sizes)
        sizes = ", ".join(f"{k}={v}" for k, v in refusal.sizes.items())
        if got is None:
            wanted = "an exception" if refusal.error == "any" else refusal.error
            return Failure(message=f"{sizes} was accepted; expected {wanted}")
        if refusal.error not in ("any", *got):
            return Failure(message=f"{sizes} raised {got[0]}; expected {refusal.error}")
    return None
