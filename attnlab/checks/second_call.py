"""What a call leaves behind does not reach the next one.

Wrong: a mask or a table that is made at the first call and kept, though the second sequence is
longer; a cache that goes on where the last sequence ended; a buffer that is written to.
Right: a fresh module and a used one give the same output, in either order of a short and a longer
sequence.

`deterministic-eval` repeats the same length; here it is another one, and the module is built anew.
Where queries and keys have lengths of their own, there are also fewer queries for as many keys.
"""

from attnlab.catalogue.contract_facts import query_axis
from attnlab.checks.base import (
    Failure,
    Inputs,
    Mask,
    Probe,
    Skip,
    Tensor,
    Tier,
    data_inputs,
    far,
    first_index,
)
from attnlab.checks.shared.inputs import ordered, parts

TITLE = "A used module is as good as a new one"
NEEDS = ("positions",)
ONCE = True
TIER = Tier.SYMMETRY
ADVICE = "Look for what forward stores on self, and for the length that it was made for."
MORE = 2
GROWS = (1, 30, 90, 270)  # positions more, one after the other


def run(probe: Probe) -> Failure | None:
    pairs = [(probe.draw(mask), probe.draw(mask, longer=MORE)) for mask in _kinds(probe)]
    spec = data_inputs(probe.contract, query_axis(probe.contract))[0]
    short, longer = pairs[0]
    if short[spec.name].shape == longer[spec.name].shape:
        raise Skip("its length is fixed")
    failure = (_confirmed if probe.confirming else _either_way)(probe, pairs)
    failure = failure or _again(probe) or _fewer_queries(probe)
    return failure or (_growing(probe) if probe.contract.position else None)


def _either_way(probe: Probe, pairs: list[tuple[Inputs, Inputs]]) -> Failure | None:
    """Short and long, and long and short."""
    upward = probe.fresh_instance([given for pair in pairs for given in pair]).outputs
    downward = probe.fresh_instance([given for pair in pairs for given in reversed(pair)]).outputs
    for i in range(0, len(upward), 2):
        (new_short, used_long), (new_long, used_short) = upward[i : i + 2], downward[i : i + 2]
        failure = _changed(new_long, used_long, "a shorter sequence")
        failure = failure or _changed(new_short, used_short, "a longer sequence")
        if failure:
            return failure
    return None


def _confirmed(probe: Probe, drawn: list[tuple[Inputs, Inputs]]) -> Failure | None:
    """Right values of short sequences are right after longer ones, too."""
    samples = [probe.sample(mask) for mask in _kinds(probe)]
    pairs = [(longer, inputs) for (_, longer), (inputs, _) in zip(drawn, samples, strict=True)]
    outputs = probe.fresh_instance([given for pair in pairs for given in pair]).outputs
    failures = (
        _changed(right, used, "a longer sequence")
        for (_, right), used in zip(samples, outputs[1::2], strict=True)
    )
    return next(filter(None, failures), None) or _smaller_batch(probe)


def _smaller_batch(probe: Probe) -> Failure | None:
    """As long as before, and fewer of them; then as many as before."""
    inputs, right = probe.sample()
    alone = probe.draw(alone=True)
    new, after, again = probe.fresh_instance([alone, inputs, alone]).outputs
    failure = _changed(right, after, "a smaller batch of the same length")
    return failure or _changed(new, again, "a larger batch of the same length")


def _growing(probe: Probe) -> Failure | None:
    """What grows with the longest sequence so far grows more than once."""
    known = "M" in probe.contract.init.values() and "M" in probe.sizes
    room = probe.sizes.get("S", 1) + GROWS[-1] + 1  # as long as can be is another matter
    roomy = probe.variant({"M": room}) if known else probe
    longer = [roomy.draw(longer=more) for more in GROWS]
    grown, new = (
        roomy.fresh_instance(longer).outputs[-1],
        roomy.fresh_instance(longer[-1:]).outputs[0],
    )
    return _changed(new, grown, "several shorter sequences, each longer than the one before")


def _fewer_queries(probe: Probe) -> Failure | None:
    """As many keys as in the call before, and fewer queries: one may be all that is kept."""
    queries, contract = probe.sizes.get("Sq", 1), probe.contract
    if queries < MORE or "Sq" not in contract.vary:
        return None
    inputs, right = probe.sample()
    fewer = probe.variant({"Sq": queries - 1}).draw()
    new, after = probe.fresh_instance([fewer, inputs]).outputs
    used = probe.fresh_instance([inputs, fewer]).outputs[1]
    failure = _changed(right, after, "fewer queries for as many keys")
    return failure or _changed(new, used, "more queries for as many keys")


def _kinds(probe: Probe) -> tuple[Mask, ...]:
    """What is kept without a mask may be another thing than what is kept with one."""
    kinds: tuple[Mask, ...] = ("random", "none")
    return kinds if any(i.role == "mask" for i in probe.contract.inputs) else kinds[:1]


def _changed(new: Tensor, used: Tensor, said: str) -> Failure | None:
    gap = far(new, used)
    if not gap.any().item():
        return None
    return Failure(
        message=f"after {said} the output at {first_index(gap)} is not what a new module "
        f"gives: they differ by up to {(new - used).abs().max().item():.2g}"
    )


def _again(probe: Probe) -> Failure | None:
    """A cache begun anew knows nothing of the sequence before."""
    if probe.contract.cache is None or "causal" not in probe.contract.promises:
        return None
    inputs = ordered(probe)
    length = inputs[data_inputs(probe.contract, "S")[0].name].shape
    total = length[data_inputs(probe.contract, "S")[0].axes.index("S")]
    if total < 2:
        return None
    lengths = [total - 1, 1]
    first = probe.cached_steps(parts(probe.contract, inputs, lengths))[1]
    probe.cached_steps(parts(probe.contract, ordered(probe), lengths))
    again = probe.cached_steps(parts(probe.contract, inputs, lengths))[1]
    gap = far(first, again)
    if gap.any().item():
        return Failure(
            message=f"the same prompt and step, with a cache begun anew, gave another output at "
            f"{first_index(gap)} after another sequence"
        )
    return None
