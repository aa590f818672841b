"""Equal calls in eval mode give equal outputs, and a call changes nothing else.

Wrong: `F.dropout(weights, 0.1)`, which is active unless `training=self.training` is given; a cache
that a first call fills and a second call with other values reads.
Right: `nn.Dropout` as a submodule, and no state between calls.

A used module gives what a new one gives, after other lengths and batch sizes. Wrong: a mask or
table made at the first call and kept; a cache that goes on where the last sequence ended.

Instances share nothing. Wrong: `MultiHeadSelfAttention.scale = ...` in the constructor; a dict of
layers at the top of the file, by width.

Forward leaves parameters as they were. Wrong: `self.weight.data /= norm`.

Importing, building and calling leave the process as it was: default dtype, grad mode, random seed,
threads, flags and functions of PyTorch. Wrong: `torch.manual_seed(0)` in a constructor;
`F.softmax = my_softmax`. Right: arguments (`dtype=`, `generator=`) and context managers. While the
file is imported a seed may be set; threads, deterministic algorithms, anomaly detection and the
matmul precision may be, too, and are undone.

The last two rest on the word of the process that ran the candidate.
"""

from attnlab.catalogue.contract_facts import data_inputs, known_facts, query_axis
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure
from attnlab.checks.shared.inputs import cached_calls, causal_inputs
from attnlab.probe.answers import Inputs, Mask, Skip, Tensor

TITLE = "Equal calls give equal outputs"
STORED = "Look for what forward stores on self, and for the inputs that it was made from."
MORE = 2
GROWS = (1, 30, 90, 270)  # positions more, one after the other
KNOWN = ("D", "H", "Hkv", "hd", "M", "S", "B")  # not to be changed by themselves
PAIR = 2  # positions: a prompt and a step
OWN = 2  # sizes of a challenge's own that are changed


@check(
    id="deterministic-eval",
    title="Equal calls give equal outputs",
    needs=("output",),
    tier=Tier.REPEATABLE,
    advice="Look for dropout that ignores training mode, and for state kept between two calls.",
    few=True,
)
def _repeatable(probe: Probe) -> Steps:
    inputs, first = probe.sample()
    other = probe.draw("random")
    changed, again = yield [other, inputs]
    gap = far(first, again)
    if gap.any().item():
        share = gap.float().mean().item()
        stateful = not far(again, probe.call(inputs)).any().item()
        chance = "it is random, or changes with each call"
        why = "it keeps state between calls" if stateful else chance
        return Failure(
            message=f"the same input gave another output the second time: {share:.0%} of the "
            f"values differ, by up to {(first - again).abs().max().item():.2g}: {why}"
        )
    return None if probe.confirming else _stale(probe, other, changed)


def _stale(probe: Probe, inputs: Inputs, out: Tensor) -> Failure | None:
    """Whether this output, of a later call, is made from what an earlier call left behind."""
    return failure_at(
        far(probe.fresh_instance([inputs]).outputs[0], out),
        lambda at: (
            f"a new module gives another output for the second input at {at}: "
            "something is kept from an earlier call, such as its mask or a table"
        ),
        STORED,
    )


@check(
    id="second-call",
    title="A used module gives what a new one gives",
    needs=("positions",),
    tier=Tier.SYMMETRY,
    advice="Look for what forward stores on self, and for the length that it was made for.",
    once=True,
)
def _as_good_as_new(probe: Probe) -> Failure | None:
    pairs = [(probe.draw(mask), probe.draw(mask, longer=MORE)) for mask in _kinds(probe)]
    spec = data_inputs(probe.contract, query_axis(probe.contract))[0]
    short, longer = pairs[0]
    if short[spec.name].shape == longer[spec.name].shape:
        raise Skip("its length is fixed")
    failure = (_confirmed if probe.confirming else _either_way)(probe, pairs)
    failure = failure or _new_cache(probe) or _fewer_queries(probe)
    return failure or (_growing(probe) if probe.contract.position else None)


def _either_way(probe: Probe, pairs: list[tuple[Inputs, Inputs]]) -> Failure | None:
    """Short and long, and long and short."""
    upward = probe.fresh_instance([given for pair in pairs for given in pair]).outputs
    downward = probe.fresh_instance([given for pair in pairs for given in reversed(pair)]).outputs
    return first_failure(
        _differs_from_new(downward[i], upward[i + 1], "a shorter sequence")
        or _differs_from_new(upward[i], downward[i + 1], "a longer sequence")
        for i in range(0, len(upward), 2)
    )


def _confirmed(probe: Probe, drawn: list[tuple[Inputs, Inputs]]) -> Failure | None:
    """Right values of short sequences are right after longer ones, too."""
    samples = [probe.sample(mask) for mask in _kinds(probe)]
    pairs = [(longer, inputs) for (_, longer), (inputs, _) in zip(drawn, samples, strict=True)]
    outputs = probe.fresh_instance([given for pair in pairs for given in pair]).outputs
    failure = first_failure(
        _differs_from_new(right, used, "a longer sequence")
        for (_, right), used in zip(samples, outputs[1::2], strict=True)
    )
    return failure or _smaller_batch(probe)


def _smaller_batch(probe: Probe) -> Failure | None:
    """As long as before, and fewer of them; then as many as before."""
    inputs, right = probe.sample()
    alone = probe.draw(alone=True)
    new, after, again = probe.fresh_instance([alone, inputs, alone]).outputs
    failure = _differs_from_new(right, after, "a smaller batch of the same length")
    return failure or _differs_from_new(new, again, "a larger batch of the same length")


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
    return _differs_from_new(
        new, grown, "several shorter sequences, each longer than the one before"
    )


def _fewer_queries(probe: Probe) -> Failure | None:
    """As many keys as in the call before, and fewer queries: one may be all that is kept."""
    queries, contract = probe.sizes.get("Sq", 1), probe.contract
    if queries < MORE or "Sq" not in contract.vary:
        return None
    inputs, right = probe.sample()
    fewer = probe.variant({"Sq": queries - 1}).draw()
    new, after = probe.fresh_instance([fewer, inputs]).outputs
    used = probe.fresh_instance([inputs, fewer]).outputs[1]
    failure = _differs_from_new(right, after, "fewer queries for as many keys")
    return failure or _differs_from_new(new, used, "more queries for as many keys")


def _kinds(probe: Probe) -> tuple[Mask, ...]:
    """What is kept without a mask may be another thing than what is kept with one."""
    kinds: tuple[Mask, ...] = ("random", "none")
    return kinds if any(i.role == "mask" for i in probe.contract.inputs) else kinds[:1]


def _differs_from_new(new: Tensor, used: Tensor, earlier: str) -> Failure | None:
    return failure_at(
        far(new, used),
        lambda at: (
            f"after {earlier} the output at {at} is not what a new module "
            f"gives: they differ by up to {(new - used).abs().max().item():.2g}"
        ),
    )


def _new_cache(probe: Probe) -> Failure | None:
    """An empty cache knows nothing of the sequence before."""
    if probe.contract.cache is None or "causal" not in probe.contract.promises:
        return None
    inputs, spec = causal_inputs(probe), data_inputs(probe.contract, "S")[0]
    total = inputs[spec.name].shape[spec.axes.index("S")]
    if total < 2:
        return None
    calls = cached_calls(probe.contract, inputs, [total - 1, 1])
    first = probe.cached_steps(calls)[1]
    probe.cached_steps(cached_calls(probe.contract, causal_inputs(probe), [total - 1, 1]))
    return failure_at(
        far(first, probe.cached_steps(calls)[1]),
        lambda at: (
            f"the same prompt and step, with an empty cache, gave another output at {at} "
            "after another sequence"
        ),
    )


@check(
    id="separate-instances",
    title="Instances share nothing",
    needs=("output",),
    tier=Tier.REGIMES,
    advice="Look for what is kept on the class, at the top of the file or in a default argument.",
    once=True,
)
def _separate_instances(probe: Probe) -> Failure | None:
    inputs, before = probe.sample()
    others = [_other_heads_or_width(probe), *_other_own_sizes(probe), _shorter_longest(probe)]
    failure = first_failure(
        _changed_by_another(probe, sizes, inputs, before)
        for sizes in list(filter(None, others)) or [{}]
    )
    return failure or _caches_in_turns(probe)


def _caches_in_turns(probe: Probe) -> Failure | None:
    """A layer that keeps keys and values, and another one that reads a prompt between two steps."""
    facts, length = known_facts(probe.contract), probe.sizes.get("S", 1)
    if not {"cache", "causal", "sequence"} <= facts or length < PAIR:
        return None
    calls = cached_calls(probe.contract, causal_inputs(probe), [length - 1, 1])
    alone, after = (probe.cached_steps(calls, beside=beside)[1] for beside in (False, True))
    return failure_at(
        far(alone, after),
        lambda at: (
            "after another instance was given a prompt, the next step of this one gave "
            f"another output at {at}, by up to {(alone - after).abs().max().item():.2g}"
        ),
    )


def _changed_by_another(
    probe: Probe, sizes: dict[str, int], inputs: Inputs, before: Tensor
) -> Failure | None:
    after = probe.after_sibling(sizes, inputs)
    named = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return failure_at(
        far(before, after),
        lambda at: (
            f"after another instance{f' with {named}' if named else ''} was built, called "
            f"and given other parameters, the output of this one changed at {at}, by up "
            f"to {(before - after).abs().max().item():.2g}"
        ),
    )


def _other_heads_or_width(probe: Probe) -> dict[str, int]:
    """Another number of heads of the same width, else another width, where these may be chosen."""
    sizes, vary, times = probe.sizes, probe.contract.vary, probe.contract.multiples
    if {"D", "H"} <= sizes.keys() and "H" in vary and "Hkv" not in sizes:
        heads = 1 if sizes["H"] > 1 else 2 - (sizes["D"] // times.get("hd", 1)) % 2
        if heads != sizes["H"]:
            return {"H": heads}
    if "D" in vary:
        return {"D": sizes["D"] + 2 * sizes.get("H", 1) * times.get("hd", 1) * times.get("D", 1)}
    if "H" in vary and "H" in sizes and not {"Hkv", "D"} & sizes.keys():
        return {"H": sizes["H"] + 2 * times.get("H", 1)}
    return {}


def _other_own_sizes(probe: Probe) -> list[dict[str, int]]:
    """Others of the sizes that it is built with, each by itself."""
    sizes, vary, times = probe.sizes, probe.contract.vary, probe.contract.multiples
    told = dict.fromkeys(map(str, probe.contract.init.values()))
    free = [s for s in told if s in vary and s in sizes and s not in KNOWN]
    return [{s: sizes[s] + 2 * times.get(s, 1)} for s in free[:OWN]]


def _shorter_longest(probe: Probe) -> dict[str, int]:
    """A longest sequence that is shorter than that of the inputs, where the module is told one."""
    sizes = probe.sizes
    known = "M" in probe.contract.init.values() and "S" in probe.contract.vary
    known &= all(i.role != "data" or i.dtype != "int" for i in probe.contract.inputs)  # may be rows
    if not known or sizes.get("S", 1) < 2 or sizes["M"] < sizes["S"]:
        return {}
    return {"M": sizes["S"] - 1, "S": sizes["S"] - 1}


@check(
    id="parameters-unchanged",
    title="Parameters stay unchanged",
    needs=("output",),
    tier=Tier.ASIDE,
    advice="Look for in-place operations and .data on weights: they belong to the optimizer.",
    trusted=False,
    few=True,
)
def _parameters_unchanged(probe: Probe) -> Failure | None:
    found = probe.fresh_instance([probe.draw("random"), probe.draw("random")], train=(False, True))
    return first_failure(
        _parameter_changed(name, was, found.after.get(name)) for name, was in found.before.items()
    )


def _parameter_changed(name: str, was: Tensor, now: Tensor | None) -> Failure | None:
    if now is None or now.shape != was.shape:
        return Failure(message=f"the parameter {name} is not there any more after a call")
    changed = ~((now == was) | (was.isnan() & now.isnan()))
    return failure_at(
        changed,
        lambda at: (
            f"two calls of forward changed the parameter {name}: "
            f"{int(changed.sum().item())} of {was.numel()} values, the first at {at}"
        ),
    )


@check(
    id="no-global-state",
    title="Nothing outside the module changes",
    needs=("output",),
    tier=Tier.ASIDE,
    advice="Search the file for torch.set_..., manual_seed, and assignments to names in torch.",
    trusted=False,
    few=True,
)
def _process_unchanged(probe: Probe) -> Failure | None:
    found = list(probe.side_effects(probe.draw("random")))
    if not found:
        return None
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return Failure(message="; ".join(found[:3]) + more)
