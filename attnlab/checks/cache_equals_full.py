"""A sequence that is read in steps, with a cache, gives what it gives in one pass.

Keys and values of earlier positions never change under a causal mask, so they are kept.

Wrong: a cache joined along the wrong axis or in the wrong order; positions that begin at 0 again in
each step; keys cached before rotation and read after it; the newest key left out.
Right: output t of the whole sequence is the output of step t.

Steps of one position, from nothing and after a prompt; in train mode too, unless there is dropout;
and in each dtype of the contract.

Chunks: inside a chunk the mask must be causal too, aligned with the last key. Wrong: no mask in a
chunk, since "the cache holds only the past"; `is_causal=True` with more keys than queries. Right:
query i of a chunk behind p positions sees the keys up to p + i.

Work: a step computes keys and values of its new positions alone. Wrong: a cache of inputs, or of
ids, from which each step computes all keys again: the outputs are right, and nothing is saved.
Right: what is kept is the keys and values themselves, so that a change of the weights between two
steps changes only those that come after it.

Memory: where the task says so, the cache holds no more positions than a window, or its tensors
are made by the first call and later only written to. Wrong: all keys kept, and those outside of the
window masked; a larger tensor for each step, into which the old one is copied. Right: what leaves
the window is dropped, or overwritten; `keys[:, used : used + new] = k`.

Branches: a returned cache is a new one, so the one before can be gone on from twice, as for two
answers to a prompt. Wrong: a list that forward appends to; keys written into the caller's tensor.
Right: `torch.cat`, or a copy that is written to.

Beams: in beam search row b of the next step continues row `parents[b]` of this one. Wrong: keys
reordered and values not; positions or lengths that are not reordered. Right:
`index_select(0, parents)` of everything that the cache holds for a row.
"""

from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import failure_at, first_failure, size_from_two
from attnlab.checks.shared.inputs import (
    EPS,
    ROUNDINGS,
    cached_calls,
    cached_mismatch,
    causal_inputs,
    step_mismatch,
    steps_mismatch,
)
from attnlab.probe.answers import Inputs, Skip, Tensor

TITLE = "Decoding with a cache equals one pass"
IN_TYPE = "Look at the dtype of what the cache holds: it is that of the keys that come."
CHUNK = 3
PAIR = 2
BRANCHED = 3  # positions: a prompt, a step, and one that reads what the step left
STEPS = 2  # after the reorder


@check(
    id="prefill-equals-decode",
    title="Decoding with a cache equals one pass",
    needs=("cache", "causal", "sequence"),
    tier=Tier.MASKS,
    advice="Print the shape of keys after each step, and the positions that each step was given.",
    few=True,
)
def _single_steps(probe: Probe) -> Failure | None:
    length = size_from_two(probe, "S", "one position is one step")
    lengths, some = [length - 1, 1], probe.random_integer(1, length)
    busy = "dropout" not in probe.contract.promises
    failure = first_failure(cached_mismatch(probe, steps) for steps in ([1] * length, lengths))
    steps = [some, *[1] * (length - some)]
    failure = failure or (cached_mismatch(probe, steps, train=True) if busy else None)
    dtypes = probe.contract.dtypes
    return failure or first_failure(_in_dtype(probe, dtype, lengths) for dtype in dtypes)


def _in_dtype(probe: Probe, dtype: str, lengths: list[int]) -> Failure | None:
    """The last position, with what the cache holds of those before it in this type."""
    other = probe.variant({}, dtype)
    inputs = causal_inputs(other)
    whole = other.call(inputs)
    last = other.cached_steps(cached_calls(other.contract, inputs, lengths))[-1]
    right = whole.narrow(other.contract.output.index("S"), lengths[0], lengths[1])
    if last.shape != right.shape or last.dtype != right.dtype:
        return Failure(
            message=f"in {dtype} the step after a prompt gave {tuple(last.shape)} in {last.dtype}, "
            f"the whole sequence {tuple(right.shape)} in {right.dtype}"
        )
    gap = (last.double() - right.double()).abs().max().item()
    limit = ROUNDINGS * EPS[dtype] * max(1.0, whole.abs().max().item())
    if gap <= limit:
        return None
    return Failure(
        message=f"in {dtype} the step after a prompt differs from the whole sequence by up to "
        f"{gap:.2g}; rounding explains {limit:.2g}",
        advice=IN_TYPE,
    )


@check(
    id="chunked-prefill",
    title="A prompt in chunks equals one pass",
    needs=("cache", "causal", "sequence"),
    tier=Tier.WEIGHTS,
    advice="Print the mask of the second chunk: its last row sees all keys, its first does not.",
    few=True,
)
def _chunks(probe: Probe) -> Failure | None:
    length = probe.sizes.get("S", 1)
    if length < CHUNK:
        raise Skip("too few positions for chunks")
    first = probe.random_integer(1, length - 1)
    rest = [CHUNK] * (length // CHUNK)
    threes = [*rest, length % CHUNK] if length % CHUNK else rest
    return cached_mismatch(probe, threes) or cached_mismatch(probe, [first, length - first])


@check(
    id="cache-kept",
    title="A cache can be gone on from twice",
    needs=("cache", "returned-cache", "causal", "sequence"),
    tier=Tier.WEIGHTS,
    advice="Look for what forward appends to, or writes into: return a new cache instead.",
    few=True,
)
def _two_branches(probe: Probe) -> Failure | None:
    """Each cache goes on with other inputs as well, which must change nothing that follows."""
    length = probe.sizes.get("S", 1)
    if length < BRANCHED:
        raise Skip("too few positions for a prompt and two steps")
    inputs, steps = causal_inputs(probe), [length - 2, 1, 1]
    calls, others = (
        cached_calls(probe.contract, given, steps) for given in (inputs, causal_inputs(probe))
    )
    outputs = probe.cached_steps(calls, others=others)
    how = " (each cache was given to a call with other inputs as well)"
    return steps_mismatch(probe, probe.call(inputs), outputs, steps, how)


@check(
    id="beam-reorder",
    title="The cache follows reordered beams",
    needs=("beams", "causal", "sequence", "batch"),
    tier=Tier.WEIGHTS,
    advice="List what the cache holds, and which of it has a row for each beam: all of that moves.",
    few=True,
)
def _reordered_beams(probe: Probe) -> Failure | None:
    rows, length = probe.sizes.get("B", 1), probe.sizes.get("S", 1)
    if rows < 2 or length < 2:
        raise Skip("one beam, or one position, has nothing to reorder")
    inputs, contract = causal_inputs(probe), probe.contract
    order = [probe.random_integer(0, rows) for _ in range(rows)]
    order[0], order[1] = 1, 1  # one row has two children, and row 0 has none of its own
    parents = inputs[data_inputs(contract, "S")[0].name].new_tensor(order).long()
    after = min(STEPS, length - 1)
    prompt = length - after
    calls = cached_calls(contract, inputs, [prompt, *[1] * after])
    outputs = probe.cached_steps(calls, parents)
    whole = probe.call(_children(probe, inputs, parents, prompt))
    at = contract.output.index("S")
    return first_failure(
        step_mismatch(
            probe,
            whole.narrow(at, prompt + number, 1),
            out,
            f"step {number + 1} after beams were reordered by {order}",
        )
        for number, out in enumerate(outputs[1:])
    )


@check(
    id="keys-computed-once",
    title="A step computes keys and values of its new positions alone",
    needs=("cache", "causal", "sequence", "reference"),
    tier=Tier.REGIMES,
    advice="Keep the keys and values themselves, and project only the new positions in each step.",
    once=True,
)
def _computed_once(probe: Probe) -> Failure | None:
    """All weights change their sign between a prompt and a step: old keys must stay as they are."""
    length = size_from_two(probe, "S", "one position is one step")
    inputs = causal_inputs(probe)
    calls = cached_calls(probe.contract, inputs, [length - 1, 1])
    step = probe.cached_steps(calls, negate=True)[-1]
    right = probe.expected_steps(calls, negate=True)[-1]
    prompt = f"a prompt of {length - 1} position{'s' if length > PAIR else ''}"
    return failure_at(
        ~((step.double() - right).abs() <= probe.tolerance(right)),
        lambda at: (
            f"keys and values of {prompt} were computed again in the step behind it: with other "
            f"weights there, its output differs at {at} from what follows from those of the prompt"
        ),
    )


@check(
    id="cache-memory",
    title="The cache takes no more memory than the task allows",
    needs=("cache-memory", "sequence"),
    tier=Tier.ASIDE,
    advice="Print the shapes of what the cache holds after each step.",
    trusted=False,
    once=True,
)
def _memory(probe: Probe) -> Failure | None:
    cache = probe.contract.cache
    assert cache is not None  # the fact that it needs
    if cache.in_place:
        steps = size_from_two(probe, "S", "one position is one step")
        calls = cached_calls(probe.contract, causal_inputs(probe), [1] * steps)
        first, *later = (each.places for each in probe.held_by_cache(calls))
        moved = next((i for i, places in enumerate(later, 1) if places != first), 0)
        return (
            Failure(message=f"step {moved + 1} makes new tensors for its cache") if moved else None
        )
    most = probe.measure(cache.most)
    long = probe.variant({"S": 2 * most + 3})
    calls = cached_calls(long.contract, causal_inputs(long), [1] * (2 * most + 3))
    held = [each.numbers for each in long.held_by_cache(calls)]
    if max(held) <= held[most - 1]:
        return None
    return Failure(
        message=f"after {len(held)} steps the cache holds {held[-1]} numbers, after {most} "
        f"{held[most - 1]}: it keeps more than the last {cache.most} = {most} positions"
    )


def _children(probe: Probe, inputs: Inputs, parents: Tensor, prompt: int) -> Inputs:
    """Each row's own sequence: the parent's prompt, then what it is given itself."""
    found = dict(inputs)
    for spec in data_inputs(probe.contract, "S"):
        if "B" not in spec.axes:
            continue
        rows, at = spec.axes.index("B"), spec.axes.index("S")
        new = inputs[spec.name].clone()
        old = inputs[spec.name].index_select(rows, parents)
        new.narrow(at, 0, prompt).copy_(old.narrow(at, 0, prompt))
        found[spec.name] = new
    return found
