"""What a model seems to promise, by what is seen of it, with the reason of each promise."""

import ast
import re
from collections.abc import Iterator
from inspect import signature
from itertools import chain
from typing import Any

from torch import Tensor, nn

from attnlab.candidate.live.bench import SOME, Bench
from attnlab.candidate.live.turned import doubtful_samples
from attnlab.candidate.live.watching import MATRIX, ROWS, MaskWatch, is_triangle
from attnlab.tracer.class_source import class_source
from attnlab.tracer.findings.positions import POSITION

# Operations that know where a position lies, and layers that do.
INDEXED = {
    *("arange", "linspace", "cumsum", "cumprod", "roll", "flip", "unfold", "sort", "argsort"),
    *("topk", "tril", "triu", "tril_", "triu_", "diff", "sin", "cos", "gather", "scatter"),
    *("conv1d", "conv2d", "fft", "rfft", "pad", "masked_fill", "masked_fill_", "cat"),
    *("view_as_complex", "polar"),
    *("__setitem__", "index_select", ROWS),
}
ORDERED = (nn.RNNBase, nn.Conv1d, nn.Conv2d, nn.AvgPool1d, nn.MaxPool1d)
CALLED = re.compile(  # by its name, or the first word of what is said of it
    r"^(?!.*(non-?causal|bidirectional|encoder))"
    r"(\w*causal(?!LM)|\w+ (a )?causal\b(?!.* (if|option)))",
    re.IGNORECASE,
)
CLOUD = re.compile(r"xyz|points?|pts|coord(inate)?s?|pcd|cloud")  # of points, which have no order
SHIFTED = 0.95  # of the targets that are the next inputs


def find_promises(bench: Bench, targets: Tensor | None) -> dict[str, str]:
    """The reason of each promise by its name. `targets` are those of a loss."""
    layout, model = bench.layout, bench.live.model
    found: dict[str, str] = {}
    given = [leaf.name for leaf in bench.live.leaves if is_triangle(leaf.value)]
    watch = MaskWatch()
    bench.live.call({}, watch=watch)
    bench.keys = watch.keys
    bench.doubt = bench.doubt or doubtful_samples(bench, watch.alone)
    seen = [t.place for t in watch.triangles if t.length == layout.length]
    if given:
        found["causal"] = f"its argument {given[0]} is a triangle"
    elif seen:
        found["causal"] = f"{str(seen[0]) or 'one of its layers'} masks with a triangle"
    elif asked := next(chain(_asked_to_be_causal(model), _called_causal(bench)), ""):
        found["causal"] = asked
    if _predicts_next(bench, targets):
        found.setdefault("causal", "its targets are the next inputs")
        found["ordered"] = "it predicts the next inputs"
    names = [n for n, _ in (*model.named_parameters(), *model.named_buffers())]
    names += [n for n, _ in model.named_modules()]
    place = next((n for n in names if POSITION.search(n.lower())), None)
    cloud = any(CLOUD.fullmatch(leaf.name) for leaf in bench.live.leaves)
    if place and layout.targets and not cloud:
        found["ordered"] = f"it has {place}"
    if "causal" not in found and "ordered" not in found and _is_unordered(bench, watch):
        found["unordered"] = "it attends to all positions, and nothing in it tells them apart"
    if drops := next(_dropouts(bench), ""):
        found["dropout"] = f"it has {drops}"
    return found


def _is_unordered(bench: Bench, watch: MaskWatch) -> bool:
    """Whether it is attention without positions: no table, no operation that knows an index. A
    parameter as long as the input may be a table, whose rows are added as they are."""
    layout, model = bench.layout, bench.live.model
    given = any(leaf.role in ("mask", "other") for leaf in bench.live.leaves)
    if given or watch.keys != {layout.length} or watch.ops & INDEXED or any(model.buffers()):
        return False
    held = chain.from_iterable(vars(module).values() for module in model.modules())
    if any(isinstance(value, Tensor) for value in held):  # angles that are no buffer
        return False
    if any(isinstance(module, ORDERED) for module in model.modules()):
        return False
    if any(layout.length in parameter.shape for parameter in model.parameters()):
        return False
    own = [type(m) for m in model.modules() if any(p.dim() > 1 for p in m.parameters(False))]
    return all(kind.__module__.startswith("torch.nn") for kind in own)


def _asked_to_be_causal(model: nn.Module) -> Iterator[str]:
    """Attributes `causal` that are all true, and calls in the forward of a user's own class that
    give `use_causal_mask=True` or the like."""
    held = [getattr(m, "causal", getattr(m, "is_causal", None)) for m in model.modules()]
    if True in held and not any(asked is False for asked in held):
        yield "its layers have causal=True"
    kinds: set[Any] = {type(module) for module in model.modules()}
    for kind in sorted(kinds, key=lambda k: str(k.__qualname__)):
        forward = class_source(kind).methods.get("forward")
        for node in ast.walk(forward) if forward is not None else ():
            if not isinstance(node, ast.keyword) or "causal" not in (node.arg or ""):
                continue
            if isinstance(node.value, ast.Constant) and node.value.value is True:
                yield f"{kind.__name__} gives {node.arg}=True"


def _called_causal(bench: Bench) -> Iterator[str]:
    """Classes of the user's that are called causal, in a model of one sequence and no mask."""
    kinds: dict[Any, None] = {type(module): None for module in bench.live.model.modules()}
    own = [kind for kind in kinds if not kind.__module__.startswith("torch.")]
    alone = len(bench.layout.targets) == 1 and all(
        leaf.role != "mask" for leaf in bench.live.leaves
    )
    for kind in own if alone else ():
        said = (kind.__doc__ or "").partition("\n")[0]
        if CALLED.search(f"{kind.__name__} {said}") and "causal" not in str(signature(kind)):
            yield f"{kind.__name__} is called causal"
        forward = class_source(kind).methods.get("forward")
        for name in _always_called(forward) if forward is not None else ():
            if re.search("mask|band|tri", name) and CALLED.search(name):
                yield f"{kind.__name__} masks with {name}"
            elif re.search("att|conv", name) and CALLED.search(name):
                yield f"{kind.__name__} calls {name}"


def _always_called(node: ast.AST) -> Iterator[str]:
    """The names of functions and methods that are called under no condition."""
    if isinstance(node, ast.Call):
        yield ast.unparse(node.func).rpartition(".")[2]
    if not isinstance(node, (ast.If, ast.IfExp, ast.BoolOp)):
        yield from chain.from_iterable(map(_always_called, ast.iter_child_nodes(node)))


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
    """Whether targets are the inputs of one position later; negative ones are left out."""
    if ids.dim() != MATRIX or ids.shape[1] < SOME:
        return False
    targets, later = targets.detach().cpu().flatten(), ids[:, 1:]
    if targets.numel() == ids.numel():
        targets = targets.view(ids.shape)[:, :-1].flatten()
    if targets.shape != later.flatten().shape or targets.is_floating_point():
        return False
    asked = targets >= 0
    same = (targets == later.flatten())[asked]
    return bool(asked.any()) and same.double().mean().item() >= SHIFTED
