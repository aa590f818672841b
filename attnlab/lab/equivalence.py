"""Do two modules do the same? Looked at by their outputs alone, apart from every check.

The right files of a challenge set the standard: what they agree on is promised, and how far they
lie apart is what rounding may do. A candidate that stays within that, at many sizes, with every
kind of mask, in eval and in train mode, with its gradients and in other number formats, is taken
for equivalent. It is a harder question than a grade, and it may take longer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.checks.base import Inputs, Mask
from attnlab.lab import draw
from attnlab.lab.draw import Dice
from attnlab.lab.session import Session
from attnlab.lab.sizes import Sizes, built, rounds, with_hd, within
from attnlab.records import Code, Contract

Seen = dict[str, Tensor | str]  # what a step showed: values, or a word
# Of the largest value. What is smaller no user of float32 can see; sums may be in another order.
FLOOR = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.05}
ROOM = 4.0  # times the distance of two right files
MORE: tuple[Sizes, ...] = (  # over the example's
    {"B": 5, "S": 2},
    {"B": 1, "S": 3},
    {"B": 2, "S": 300, "H": 2, "D": 8},
    {"B": 3, "H": 1},
    {"B": 3, "S": 8, "H": 8, "D": 8},
    {"B": 6, "S": 6, "H": 6, "D": 36},
)
FAR: tuple[Sizes, ...] = (  # M, the longest a module takes, grows with S
    {"B": 1, "S": 700, "D": 10, "M": 800},
    {"B": 2, "S": 4500, "D": 6, "M": 4500},
)


@dataclass(frozen=True)
class Step:
    """One call: what is given, in which mode, and what is looked at."""

    verb: str  # "call", "gradients", "after"
    inputs: Inputs
    train: bool = False


@dataclass(frozen=True)
class Scene:
    """One module at one set of sizes, with weights, and the calls that follow each other."""

    sizes: Sizes
    dtype: torch.dtype
    steps: tuple[Step, ...]
    cotangent: int  # the seed of what gradients are asked of
    refused: bool = False  # building or calling must raise


@dataclass
class Standard:
    """What the right files showed at every step, and how far they lie apart."""

    scenes: list[Scene]
    contract: Contract
    weights: list[dict[str, Tensor]] = field(default_factory=list)
    expected: list[list[Seen]] = field(default_factory=list)
    allowed: list[list[dict[str, float]]] = field(default_factory=list)


def standard(right: Sequence[Code], contract: Contract, seed: int) -> Standard:
    """What the solution does, with room for what the other right files do otherwise."""
    made = Standard(scenes=list(_scenes(contract, seed)), contract=contract)
    solution, *others = [_loaded(code) for code in right]
    names = [code.name for code in right]
    for number, scene in enumerate(made.scenes):
        made.weights.append(_weights(solution, names[0], scene, contract, seed + number))
        made.expected.append(list(_shown(solution, names[0], made, number)))
        made.allowed.append(
            [{k: _floor(scene, v) for k, v in s.items()} for s in made.expected[-1]]
        )
        for other, name in zip(others, names[1:], strict=True):
            _widen(made, number, list(_shown(other, name, made, number)))
    return made


def difference(candidate: Code, right: Standard) -> str:
    """The first step at which the candidate shows something else, in one sentence; or ""."""
    session = Session()
    told = session.ask("load", file="mutant.py", text=candidate.text, path="", own=None)
    if "raised" in told:
        return f"loading it raises {told['raised']['error']}"
    for number, scene in enumerate(right.scenes):
        shown = _shown(session, candidate.name, right, number)
        for step, seen in enumerate(shown):
            found = _differs(right.expected[number][step], right.allowed[number][step], seen)
            if found:
                return f"{found} at {_at(scene, step)}"
    return ""


def _at(scene: Scene, step: int) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in scene.sizes.items())
    kind = str(scene.dtype).removeprefix("torch.")
    if step >= len(scene.steps):
        return f"{sizes}, {kind}"
    asked = scene.steps[step]
    mode = "train" if asked.train else "eval"
    return f"{sizes}, {kind}, step {step + 1} ({asked.verb}, {mode})"


# ---------------------------------------------------------------- what is asked


def _scenes(contract: Contract, seed: int) -> Iterator[Scene]:
    dice = Dice(seed)
    doubles = list(rounds(contract, random.Random(seed)))
    for number, sizes in enumerate(doubles):
        yield Scene(sizes, torch.float64, tuple(_steps(contract, sizes, dice)), number)
    for number, sizes in enumerate(_more(contract)):
        yield Scene(sizes, torch.float64, tuple(_few_steps(contract, sizes, dice)), number)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        sizes = doubles[1 if len(doubles) > 1 else 0]
        calls = [Step("call", _given(contract, sizes, dice, "random", 1.0)) for _ in range(2)]
        yield Scene(sizes, dtype, tuple(calls), 0)
    for refusal in contract.refusals:
        sizes = {s: n for s, n in contract.sizes.items() if s != "hd" or "D" not in contract.sizes}
        other = with_hd({**sizes, **refusal.sizes})
        call = Step("call", _given(contract, other, dice, "none", 1.0))
        yield Scene(other, torch.float32, (call,), 0, refused=True)


def _more(contract: Contract) -> Iterator[Sizes]:
    for fresh in (*MORE, *(FAR if contract.position else ())):
        free = {*contract.vary, "M"}
        changed = {s: n for s, n in fresh.items() if s in free and s in contract.sizes}
        plain = {s: n for s, n in contract.sizes.items() if s != "hd" or "D" not in contract.sizes}
        sizes = within(with_hd({**plain, **changed}))
        if changed and sizes.get("D", 0) % sizes.get("H", 1) == 0 and "Hkv" not in sizes:
            yield sizes


def _steps(contract: Contract, sizes: Sizes, dice: Dice) -> Iterator[Step]:
    """Longer and shorter calls of one module in turn, so that nothing may be kept between them."""
    kinds: list[Mask] = ["random", "causal", "none"]
    kinds += ["empty-rows"] if "empty-rows" in contract.promises else []
    longer = {**sizes, "S": sizes["S"] + 3} if "S" in contract.vary and "S" in sizes else sizes
    for mask in kinds:
        for scale in (1.0, 0.1, 10.0, 30.0) if mask == "random" else (1.0, 30.0):
            yield Step("call", _given(contract, sizes, dice, mask, scale))
        yield Step("call", _given(contract, within(longer), dice, mask, 1.0))
        yield Step("call", _given(contract, sizes, dice, mask, 1.0), train=True)
        yield Step("gradients", _given(contract, sizes, dice, mask, 1.0))
        yield Step("after", _given(contract, sizes, dice, mask, 1.0))


def _few_steps(contract: Contract, sizes: Sizes, dice: Dice) -> Iterator[Step]:
    yield Step("call", _given(contract, sizes, dice, "random", 1.0))
    yield Step("call", _given(contract, sizes, dice, "none", 10.0))
    if "S" in contract.vary and "S" in sizes:
        yield Step("call", _given(contract, {**sizes, "S": 3}, dice, "random", 1.0), train=True)


def _given(contract: Contract, sizes: Sizes, dice: Dice, mask: Mask, scale: float) -> Inputs:
    return draw.inputs(contract, sizes, dice, mask, scale)


# ---------------------------------------------------------------- what is shown


def _loaded(code: Code) -> Session:
    session = Session()
    told = session.ask("load", file=code.file, text=code.text, path=code.path, own=None)
    if "raised" in told:
        raise RuntimeError(f"{code.file}, which is right, raised {told['raised']}")
    return session


def _weights(
    session: Session, name: str | None, scene: Scene, contract: Contract, seed: int
) -> dict[str, Tensor]:
    init = built(contract.init, scene.sizes)
    if "raised" in session.ask("build", name=name, init=init, seed=seed):
        return {}
    shapes = {n: p.shape for n, p in session.ask("parameters")["tensors"].items()}
    return draw.weights(shapes, Dice(seed))


def _shown(session: Session, name: str | None, right: Standard, number: int) -> Iterator[Seen]:
    """What each step of a scene shows, and at the end what the module holds."""
    scene, contract = right.scenes[number], right.contract
    init = built(contract.init, scene.sizes)
    told = session.ask("build", name=name, init=init, seed=7)
    weights = right.weights[number]
    if "raised" in told:
        for _ in (*scene.steps, None):
            yield _raised(told, contract, scene)
        return
    put = session.ask("put", tensors=weights)
    if any(put.get(key) for key in ("missing", "extra", "shapes", "raised")):
        yield {"parameters": "others"}
        return
    if isinstance(session.built, nn.Module) and scene.dtype is not torch.float32:
        session.built.to(scene.dtype)  # as it was built, a table of another dtype can be seen
    for step in scene.steps:
        yield _asked(session, step, contract, scene)
    yield _held(session, contract)


def _asked(session: Session, step: Step, contract: Contract, scene: Scene) -> Seen:
    inputs = [(name, _as(value, scene.dtype)) for name, value in step.inputs.items()]
    torch.manual_seed(11)
    before = torch.get_rng_state()
    if step.verb == "call":
        told = session.ask("call", inputs=inputs, train=step.train)
        same = torch.equal(before, torch.get_rng_state())
        seen: Seen = {"random state": "kept" if same else "changed"}
    elif step.verb == "gradients":
        told, seen = _gradients(session, inputs, scene), {}
    else:
        told, seen = session.ask(step.verb, inputs=inputs), {}
    if "raised" in told:
        return _raised(told, contract, scene)
    for key, value in told.items():
        found = value if isinstance(value, Mapping) else {key: value}
        seen |= {n if n == key else f"{key} {n}": _plain(v) for n, v in found.items()}
    return seen | {f"dtype of {n}": str(v.dtype) for n, v in seen.items() if isinstance(v, Tensor)}


def _gradients(session: Session, inputs: list[Any], scene: Scene) -> dict[str, Any]:
    """A missing gradient is a zero one."""
    shape = session.ask("call", inputs=inputs).get("output")
    if not isinstance(shape, Tensor):
        return {"output": "no tensor"}
    cotangent = Dice(scene.cotangent).normal(shape.shape).to(scene.dtype)
    told = session.ask("gradients", inputs=inputs, cotangent=cotangent)
    if "raised" in told:
        return told
    floats = {n: t for n, t in inputs if t is not None and t.is_floating_point()}
    weights = session.ask("parameters")["tensors"]
    return {
        "inputs": {n: _or_zero(told.get("inputs", {}), n, t) for n, t in floats.items()},
        "weights": {n: _or_zero(told.get("weights", {}), n, t) for n, t in weights.items()},
    }


def _or_zero(found: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    return found[name] if name in found else torch.zeros_like(like)


def _held(session: Session, contract: Contract) -> Seen:
    """Weights as the calls left them, and the tables that must be buffers."""
    seen = {f"weight {n}": _plain(t) for n, t in session.ask("parameters")["tensors"].items()}
    buffers = session.ask("buffers")["tensors"]
    kept = {f"buffer {n}": "there" if n in buffers else "missing" for n in contract.buffers}
    return seen | kept


def _raised(told: dict[str, Any], contract: Contract, scene: Scene) -> Seen:
    """What is raised matters only where it was promised."""
    if not scene.refused:
        return {"raised": "an exception"}
    kinds = {told["raised"]["error"], *told["raised"].get("kinds", ())}
    wanted = {r.error for r in contract.refusals if r.sizes.items() <= scene.sizes.items()}
    return {"raised": "as promised" if "any" in wanted or wanted & kinds else "another exception"}


def _as(value: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return value.to(dtype) if value is not None and value.is_floating_point() else value


def _plain(value: object) -> Tensor | str:
    if isinstance(value, Tensor) and value.layout is torch.strided and not value.is_complex():
        return value
    return type(value).__name__ if isinstance(value, Tensor) else str(value)


# ---------------------------------------------------------------- comparing


def _differs(right: Seen, allowed: Mapping[str, float], seen: Seen) -> str:
    """What is not as it should be, among that which the right files agree on."""
    for key in allowed:
        if key not in seen:
            return _instead(key, seen)
        mine, theirs = seen[key], right[key]
        if isinstance(mine, str) or isinstance(theirs, str):
            if mine is not theirs and mine != theirs:
                return f"{key} is {mine if isinstance(mine, str) else 'a tensor'}"
        elif mine.shape != theirs.shape:
            return f"{key} is of shape {tuple(mine.shape)}"
        elif (gap := _gap(mine, theirs)) > allowed[key]:
            return f"{key} differs by {gap:.2g}, {allowed[key]:.2g} is allowed,"
    return ""


def _instead(key: str, seen: Seen) -> str:
    """Why there is nothing to compare."""
    if "raised" in seen:
        return "it raises"
    return "its parameters are others" if "parameters" in seen else f"{key} is missing"


def _gap(a: Tensor, b: Tensor) -> float:
    """The largest difference; NaN and inf must stand at the same places."""
    if not a.numel():
        return 0.0
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    gap = (a - b).abs().masked_fill(same, 0.0)
    return gap.nan_to_num(float("inf"), float("inf")).max().item()


def _floor(scene: Scene, value: Tensor | str) -> float:
    if isinstance(value, str) or not value.numel():
        return 0.0
    largest = value.double().abs().nan_to_num(0.0, 0.0, 0.0).max().item()
    return FLOOR[scene.dtype] * max(1.0, largest)


def _widen(made: Standard, number: int, shown: list[Seen]) -> None:
    """Room for another right file; what it does otherwise altogether is not promised."""
    steps = zip(made.expected[number], made.allowed[number], strict=True)
    for place, (right, allowed) in enumerate(steps):
        seen = shown[place] if place < len(shown) else {}
        for key in list(allowed):
            if key in seen and not _differs(right, {key: float("inf")}, seen):
                gap = _distance(seen[key], right[key])
                allowed[key] = max(allowed[key], ROOM * gap)
            if key not in seen or _distance(seen[key], right[key]) == float("inf"):
                del allowed[key]


def _distance(a: Tensor | str, b: Tensor | str) -> float:
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a is b or (isinstance(a, str) and a == b) else float("inf")
    return _gap(a, b) if a.shape == b.shape else float("inf")
