"""Do two modules do the same? Looked at by their outputs alone, apart from every check.

The right files of a challenge set the standard: what they agree on is promised, and how far they
lie apart is what rounding may do. A candidate that stays within that, at many sizes, with every
kind of mask, in eval and in train mode, with its gradients, with a cache and in other number
formats, is taken for equivalent. It is a harder question than a grade, and it may take longer.

Files can be compared where their parameters have the same names and shapes, so that they can be
given the same weights. Those whose parameters have others set a standard of their own, and tell
the first only what can be told without values: that there is an exception, or in which dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.session import Session
from attnlab.candidate.uninitialised import new_memory_is_nan
from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.shared.inputs import cached_calls
from attnlab.mutation_testing.scenarios import Scenario, Step, scenarios_of
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.records import Code, Contract, plain
from attnlab.sizes import constructor_arguments

Observation = dict[str, Tensor | str]  # what a step showed: values, or a word
Shapes = frozenset[tuple[str, tuple[int, ...]]]  # of parameters, by name
# Of the largest value. What is smaller no user of float32 can see; sums may be in another order.
FLOOR = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.05}
ROOM = 4.0  # times the distance of two right files


@dataclass
class Standard:
    """What right files showed at every step, and how far they lie apart."""

    scenarios: list[Scenario]
    contract: Contract
    weights: list[dict[str, Tensor]] = field(default_factory=list)
    expected: list[list[Observation]] = field(default_factory=list)
    allowed: list[list[dict[str, float]]] = field(default_factory=list)


def standard(right: Sequence[Code], contract: Contract, seed: int) -> list[Standard]:
    """What the right files do, with room for what they do otherwise; one of the solution and those
    like it first."""
    scenarios = list(scenarios_of(contract, seed))
    alike: dict[Shapes, list[tuple[Session, str | None]]] = {}
    for code in right:
        session = _loaded(code, contract)
        alike.setdefault(_shapes(session, code.name, scenarios[0], contract), []).append(
            (session, code.name)
        )
    made = [_of(files, scenarios, contract, seed) for files in alike.values()]
    for one, other in permutations(made, 2):
        _loosen(one, other)
    return made


def _of(
    files: list[tuple[Session, str | None]],
    scenarios: list[Scenario],
    contract: Contract,
    seed: int,
) -> Standard:
    """Of files whose parameters are alike."""
    made = Standard(scenarios=scenarios, contract=contract)
    (first, named), *others = files
    for number, scenario in enumerate(scenarios):
        made.weights.append(_weights(first, named, scenario, contract, seed + number))
        made.expected.append(list(_observations(first, named, made, number)))
        made.allowed.append(
            [{k: _floor(scenario, v) for k, v in s.items()} for s in made.expected[-1]]
        )
        for other, name in others:
            _widen(made, number, list(_observations(other, name, made, number)))
    return made


def difference(candidate: Code, rights: Sequence[Standard]) -> str:
    """The first step at which the candidate shows something else than the files with parameters
    like its own, in one sentence; or "". What it reads and never wrote is NaN."""
    with new_memory_is_nan():
        return _difference(candidate, rights)


def _difference(candidate: Code, rights: Sequence[Standard]) -> str:
    session = Session()
    told = session.ask("load", file="mutant.py", text=candidate.text, path="", own=None)
    if "raised" in told:
        return f"loading it raises {told['raised']['error']}"
    _keeping(session, rights[0].contract)
    mine = _shapes(session, candidate.name, rights[0].scenarios[0], rights[0].contract)
    right = next((r for r in rights if mine == _given_shapes(r)), rights[0])
    for number, scenario in enumerate(right.scenarios):
        shown = _observations(session, candidate.name, right, number)
        for step, seen in enumerate(shown):
            found = _differs(right.expected[number][step], right.allowed[number][step], seen)
            if found:
                return f"{found} at {_at(scenario, step)}"
    return ""


def _at(scenario: Scenario, step: int) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in scenario.sizes.items())
    kind = str(scenario.dtype).removeprefix("torch.")
    if step >= len(scenario.steps):
        return f"{sizes}, {kind}"
    asked = scenario.steps[step]
    mode = "train" if asked.train else "eval"
    return f"{sizes}, {kind}, step {step + 1} ({asked.verb}, {mode})"


# ---------------------------------------------------------------- what is shown


def _loaded(code: Code, contract: Contract) -> Session:
    session = Session()
    told = session.ask("load", file=code.file, text=code.text, path=code.path, own=None)
    if "raised" in told:
        raise RuntimeError(f"{code.file}, which is right, raised {told['raised']}")
    _keeping(session, contract)
    return session


def _keeping(session: Session, contract: Contract) -> None:
    if contract.cache is not None:
        session.ask("declare_cache", **plain(contract.cache))


def _shapes(session: Session, name: str | None, scenario: Scenario, contract: Contract) -> Shapes:
    """The parameters that a file has, whatever they hold."""
    init = constructor_arguments(contract.init, scenario.sizes)
    if "raised" in session.ask("build", name=name, init=init, seed=0):
        return frozenset()
    found = session.ask("parameters")["tensors"]
    return frozenset((n, tuple(p.shape)) for n, p in found.items())


def _given_shapes(right: Standard) -> Shapes:
    return frozenset((n, tuple(p.shape)) for n, p in right.weights[0].items())


def _weights(
    session: Session, name: str | None, scenario: Scenario, contract: Contract, seed: int
) -> dict[str, Tensor]:
    init = constructor_arguments(contract.init, scenario.sizes)
    if "raised" in session.ask("build", name=name, init=init, seed=seed):
        return {}
    shapes = {n: p.shape for n, p in session.ask("parameters")["tensors"].items()}
    return draw.weights(shapes, Dice(seed))


def _observations(
    session: Session, name: str | None, right: Standard, number: int
) -> Iterator[Observation]:
    """What each step of a scenario shows, and at the end what the module holds."""
    scenario, contract = right.scenarios[number], right.contract
    init = constructor_arguments(contract.init, scenario.sizes)
    told = session.ask("build", name=name, init=init, seed=7)
    weights = right.weights[number]
    if "raised" in told:
        for _ in (*scenario.steps, None):
            yield _raised(told, contract, scenario)
        return
    put = session.ask("set_parameters", tensors=weights)
    if any(put.get(key) for key in ("missing", "extra", "shapes", "raised")):
        yield {"parameters": "others"}
        return
    if isinstance(session.target, nn.Module) and scenario.dtype is not torch.float32:
        session.target.to(scenario.dtype)  # as it was built, a table of another dtype can be seen
    for step in scenario.steps:
        yield _observe(session, step, contract, scenario)
    yield _observe_state(session, contract)


def _observe(session: Session, step: Step, contract: Contract, scenario: Scenario) -> Observation:
    inputs = [(name, _as(value, scenario.dtype)) for name, value in step.inputs.items()]
    torch.manual_seed(11)
    before = torch.get_rng_state()
    if step.verb == "call":
        told = session.ask("call", inputs=inputs, train=step.train)
        same = torch.equal(before, torch.get_rng_state())
        seen: Observation = {"random state": "kept" if same else "changed"}
    elif step.verb == "gradients":
        told, seen = _gradients(session, inputs, scenario), {}
    elif step.verb == "cached_steps":
        told, seen = _in_pieces(session, inputs, step, contract), {}
    else:
        told, seen = session.ask(step.verb, inputs=inputs), {}
    if "raised" in told:
        return _raised(told, contract, scenario)
    for key, value in told.items():
        found = value if isinstance(value, Mapping) else {key: value}
        seen |= {n if n == key else f"{key} {n}": _plain(v) for n, v in found.items()}
    return seen | {f"dtype of {n}": str(v.dtype) for n, v in seen.items() if isinstance(v, Tensor)}


def _gradients(session: Session, inputs: list[Any], scenario: Scenario) -> dict[str, Any]:
    """A missing gradient is a zero one."""
    shape = session.ask("call", inputs=inputs).get("output")
    if not isinstance(shape, Tensor):
        return {"output": "no tensor"}
    cotangent = Dice(scenario.cotangent).normal(shape.shape).to(scenario.dtype)
    told = session.ask("gradients", inputs=inputs, cotangent=cotangent)
    if "raised" in told:
        return told
    floats = {n: t for n, t in inputs if t is not None and t.is_floating_point()}
    weights = session.ask("parameters")["tensors"]
    return {
        "inputs": {n: _or_zero(told.get("inputs", {}), n, t) for n, t in floats.items()},
        "weights": {n: _or_zero(told.get("weights", {}), n, t) for n, t in weights.items()},
    }


def _in_pieces(
    session: Session, inputs: list[Any], step: Step, contract: Contract
) -> dict[str, Any]:
    calls = [list(p.items()) for p in cached_calls(contract, dict(inputs), list(step.lengths))]
    spec = data_inputs(contract, "S")[0]
    rows = dict(inputs)[spec.name].shape[spec.axes.index("B")] if "B" in spec.axes else 1
    return session.ask(
        "cached_steps", calls=calls, batch=rows, length=sum(step.lengths), train=step.train
    )


def _or_zero(found: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    return found[name] if name in found else torch.zeros_like(like)


def _observe_state(session: Session, contract: Contract) -> Observation:
    """Weights as the calls left them, and the tables that must be buffers."""
    seen = {f"weight {n}": _plain(t) for n, t in session.ask("parameters")["tensors"].items()}
    buffers = session.ask("buffers")["tensors"]
    kept = {f"buffer {n}": "there" if n in buffers else "missing" for n in contract.buffers}
    return seen | kept


def _raised(told: dict[str, Any], contract: Contract, scenario: Scenario) -> Observation:
    """What is raised matters only where it was promised."""
    if not scenario.refused:
        return {"raised": "an exception"}
    kinds = {told["raised"]["error"], *told["raised"].get("kinds", ())}
    wanted = {r.error for r in contract.refusals if r.sizes.items() <= scenario.sizes.items()}
    return {"raised": "as promised" if "any" in wanted or wanted & kinds else "another exception"}


def _as(value: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return value.to(dtype) if value is not None and value.is_floating_point() else value


def _plain(value: object) -> Tensor | str:
    if isinstance(value, Tensor) and value.layout is torch.strided and not value.is_complex():
        return value
    return type(value).__name__ if isinstance(value, Tensor) else str(value)


# ---------------------------------------------------------------- comparing


def _differs(right: Observation, allowed: Mapping[str, float], seen: Observation) -> str:
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


def _instead(key: str, seen: Observation) -> str:
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


def _floor(scenario: Scenario, value: Tensor | str) -> float:
    if isinstance(value, str) or not value.numel():
        return 0.0
    largest = value.double().abs().nan_to_num(0.0, 0.0, 0.0).max().item()
    return FLOOR[scenario.dtype] * max(1.0, largest)


def _widen(made: Standard, number: int, shown: list[Observation]) -> None:
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


def _loosen(one: Standard, other: Standard) -> None:
    """What another group of right files does otherwise is not promised, as far as words tell."""
    for number, steps in enumerate(one.allowed):
        for place, allowed in enumerate(steps):
            theirs = other.expected[number]
            seen = theirs[place] if place < len(theirs) else {}
            mine = one.expected[number][place]
            if ("raised" in seen) != ("raised" in mine):
                allowed.clear()
            for key in [k for k in allowed if isinstance(mine[k], str) and k in seen]:
                if isinstance(seen[key], str) and seen[key] != mine[key]:
                    del allowed[key]


def _distance(a: Tensor | str, b: Tensor | str) -> float:
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a is b or (isinstance(a, str) and a == b) else float("inf")
    return _gap(a, b) if a.shape == b.shape else float("inf")
