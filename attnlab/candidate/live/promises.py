"""What a model seems to promise, by what is seen of it, with the reason of each promise."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from attnlab.candidate.live.properties import POSITION, SOME, Bench
from attnlab.candidate.live.watching import MaskWatch, is_triangle

SHIFTED = 0.95  # of the targets that are the next inputs


def find_promises(bench: Bench, targets: Tensor | None) -> dict[str, str]:
    """The reason of each promise by its name. `targets` are those of a loss."""
    layout, model = bench.layout, bench.live.model
    found: dict[str, str] = {}
    given = [leaf.name for leaf in bench.live.leaves if is_triangle(leaf.value)]
    watch = MaskWatch()
    bench.live.call({}, watch=watch)
    seen = [t.place for t in watch.triangles if t.length == layout.length]
    if given:
        found["causal"] = f"its argument {given[0]} is a triangle"
    elif seen:
        found["causal"] = f"{str(seen[0]) or 'one of its layers'} masks with a triangle"
    if _predicts_next(bench, targets):
        found.setdefault("causal", "its targets are the next inputs")
        found["ordered"] = "it predicts the next inputs"
    names = [n for n, _ in (*model.named_parameters(), *model.named_buffers())]
    names += [n for n, _ in model.named_modules()]
    place = next((n for n in names if POSITION.search(n.lower())), None)
    if place and layout.targets:
        found["ordered"] = f"it has {place}"
    if drops := next(_dropouts(bench), ""):
        found["dropout"] = f"it has {drops}"
    return found


def _dropouts(bench: Bench) -> Iterator[str]:
    for name, module in bench.live.model.named_modules():
        if "Drop" in type(module).__name__ and vars(module).get("p"):
            yield name


def _predicts_next(bench: Bench, targets: Tensor | None) -> bool:
    own = [leaf.value for leaf in bench.live.leaves if leaf.role == "targets"]
    ids = [leaf.value for leaf in bench.layout.targets if leaf.role == "ids"]
    given = own if targets is None else [targets, *own]
    return any(_is_next(mine, theirs) for mine in ids for theirs in given)


def _is_next(ids: Tensor, targets: Tensor) -> bool:
    """Whether targets are the inputs of one position later."""
    if targets.numel() != ids.numel() or ids.dim() != 2 or ids.shape[1] < SOME:
        return False
    targets = targets.detach().cpu().reshape(ids.shape)
    return (targets[:, :-1] == ids[:, 1:]).double().mean().item() >= SHIFTED
