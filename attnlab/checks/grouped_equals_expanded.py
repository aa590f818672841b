"""Shared key heads give what copies of them give.

With Hkv key heads for H query heads, each serves H / Hkv queries. The same module built with H key
heads, each a copy of the one it replaces, gives the same output.

Wrong: `k.repeat` for keys and `repeat_interleave` for values, all queries served by the first key
head, groups of unequal size.
Right: `repeat_interleave(H // Hkv)` of keys and values alike. (Dealing heads out in turn, h % Hkv,
is another order of the same heads and passes here; whether it is the reference's order,
`matches-reference` says.)

Then each key head is changed by itself, to see which query heads it serves.
"""

from collections.abc import Mapping

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import first_index
from attnlab.checks.shared.inputs import beyond_rounding
from attnlab.probe.answers import Skip, Tensor

KEYS = ("k_proj", "v_proj")


@check(
    title="Shared key heads equal copies of them",
    needs=("groups", "heads", "output"),
    tier=Tier.GROUPS,
    advice="Write down which key head each query head reads, for keys and for values.",
    few=True,
)
def run(probe: Probe) -> Failure | None:
    heads, shared = probe.sizes["H"], probe.sizes["Hkv"]
    if heads == shared:
        raise Skip("every query head has a key head of its own at these sizes")
    weights = probe.weights()
    rows = {n: w for n, w in weights.items() if n.split(".")[-2:-1] and n.split(".")[-2] in KEYS}
    if not rows or any(w.shape[0] % shared for w in rows.values()):
        raise Skip("it has no k_proj and v_proj of Hkv heads")
    return _expanded(probe, rows) or _served(probe, rows)


def _expanded(probe: Probe, rows: Mapping[str, Tensor]) -> Failure | None:
    heads, shared = probe.sizes["H"], probe.sizes["Hkv"]
    (inputs, out), gaps = probe.sample(), []
    for in_turn in (False, True):
        order = [n % shared if in_turn else n * shared // heads for n in range(heads)]
        copies = {n: w.unflatten(0, (shared, -1))[order].flatten(0, 1) for n, w in rows.items()}
        expanded = probe.call_rebuilt({"Hkv": heads}, {**probe.weights(), **copies}, inputs)
        gaps.append(beyond_rounding(probe, out, expanded))
        if not gaps[-1].any().item():
            return None
    return Failure(
        message=f"with Hkv={heads}, each key head a copy of the one of {shared} that it replaces, "
        f"the output at {first_index(gaps[0])} differs from that with Hkv={shared}; "
        f"{gaps[0].double().mean().item():.0%} of the values differ"
    )


def _served(probe: Probe, rows: Mapping[str, Tensor]) -> Failure | None:
    """With the identity for an output projection, each head has features of its own: which of them
    move when the keys, or the values, of one head are changed?"""
    heads, shared = probe.sizes["H"], probe.sizes["Hkv"]
    weights = dict(probe.weights())
    out_proj = next((n for n in weights if n.endswith("out_proj.weight")), "")
    short = shared < 2 or probe.sizes.get("S", 1) < 2  # one key has all the weight, whatever it is
    if short or not out_proj or len(set(weights[out_proj].shape)) != 1:
        return None
    bare = {**weights, out_proj: (weights[out_proj] * 0).fill_diagonal_(1.0)}
    probe.set_weights(bare)
    inputs = probe.draw("none")
    before = probe.call(inputs)
    found: dict[str, list[list[int]]] = {}
    for name in (n for n in rows if n.endswith("weight")):
        for group in range(shared):
            new = bare[name].clone()
            part = new.view(shared, -1, *new.shape[1:])[group]
            part.copy_(probe.noise(part, part.shape[-1] ** -0.5))
            probe.set_weights({**bare, name: new})
            changed = probe.call(inputs) != before
            moved = changed.view(*changed.shape[:-1], heads, -1).movedim(-2, 0)
            served = moved.flatten(1).any(1).nonzero().flatten().tolist()
            found.setdefault(name, []).append(served)
    probe.set_weights(weights)
    return _unfair(found, heads, shared)


def _unfair(found: dict[str, list[list[int]]], heads: int, shared: int) -> Failure | None:
    whole = list(range(heads))
    if all(served == whole for groups in found.values() for served in groups):
        return None  # a norm behind it lets every feature move
    for name, groups in found.items():
        if any(len(served) != heads // shared for served in groups):
            return Failure(
                message=f"the {shared} heads of {name} serve the query heads {groups}, expected "
                f"{heads // shared} each"
            )
    first, *others = found.items()
    for name, groups in others:
        if groups != first[1]:
            return Failure(
                message=f"the heads of {first[0]} serve the query heads {first[1]}, those of "
                f"{name} {groups}: expected the same"
            )
    return None
