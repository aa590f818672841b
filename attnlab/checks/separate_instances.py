"""Another instance of the class changes nothing of this one.

A model holds many layers of one class, of different sizes; what they keep belongs to each.

Wrong: `MultiHeadSelfAttention.scale = head_dim**-0.5` in the constructor, which is the class's: the
layer that was built last sets it for all. A dict of norms at the top of the file, by width: layers
of one width train the same one.
Right: `self.scale = ...`, and parameters that each instance makes for itself.

An instance with another number of heads, or of another width, is built and called, and its
parameters are changed; then this one must give what it gave before. So it must after one that is
built for shorter sequences, and where both keep keys and values, after one that is called between
two steps.
"""

from attnlab.catalogue.contract_facts import abilities
from attnlab.checks.base import Failure, Inputs, Probe, Tensor, Tier, far, first_index
from attnlab.checks.shared.inputs import ordered, parts

TITLE = "Instances have nothing in common"
NEEDS = ("output",)
TIER = Tier.REGIMES
ADVICE = "Look for what is kept on the class, at the top of the file or in a default argument."
ONCE = True
KNOWN = ("D", "H", "Hkv", "hd", "M", "S", "B")  # not to be changed by themselves
PAIR = 2  # positions: a prompt and a step
OWN = 2  # sizes of a challenge's own that are changed


def run(probe: Probe) -> Failure | None:
    inputs, before = probe.sample()
    others = [_other(probe), *_own(probe), _shorter(probe)]
    for sizes in list(filter(None, others)) or [{}]:
        failure = _changed(probe, sizes, inputs, before)
        if failure:
            return failure
    return _in_turns(probe)


def _in_turns(probe: Probe) -> Failure | None:
    """A layer that keeps keys and values, and another one that reads a prompt between two steps."""
    facts, length = abilities(probe.contract), probe.sizes.get("S", 1)
    if not {"cache", "causal", "sequence"} <= facts or length < PAIR:
        return None
    calls = parts(probe.contract, ordered(probe), [length - 1, 1])
    alone, after = (probe.cached_steps(calls, beside=beside)[1] for beside in (False, True))
    gap = far(alone, after)
    if not gap.any().item():
        return None
    return Failure(
        message="after another instance was given a prompt, the next step of this one gave "
        f"another output at {first_index(gap)}, by up to {(alone - after).abs().max().item():.2g}"
    )


def _changed(probe: Probe, sizes: dict[str, int], inputs: Inputs, before: Tensor) -> Failure | None:
    after = probe.after_sibling(sizes, inputs)
    gap = far(before, after)
    if not gap.any().item():
        return None
    named = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return Failure(
        message=f"after another instance{f' with {named}' if named else ''} was built, called and "
        f"given other parameters, the output of this one is another at {first_index(gap)}, by up "
        f"to {(before - after).abs().max().item():.2g}"
    )


def _other(probe: Probe) -> dict[str, int]:
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


def _own(probe: Probe) -> list[dict[str, int]]:
    """Others of the sizes that it is built with, each by itself."""
    sizes, vary, times = probe.sizes, probe.contract.vary, probe.contract.multiples
    told = dict.fromkeys(map(str, probe.contract.init.values()))
    free = [s for s in told if s in vary and s in sizes and s not in KNOWN]
    return [{s: sizes[s] + 2 * times.get(s, 1)} for s in free[:OWN]]


def _shorter(probe: Probe) -> dict[str, int]:
    """A longest sequence that is shorter than that of the inputs, where the module is told one."""
    sizes = probe.sizes
    known = "M" in probe.contract.init.values() and "S" in probe.contract.vary
    known &= all(i.role != "data" or i.dtype != "int" for i in probe.contract.inputs)  # may be rows
    if not known or sizes.get("S", 1) < 2 or sizes["M"] < sizes["S"]:
        return {}
    return {"M": sizes["S"] - 1, "S": sizes["S"] - 1}
