"""Do two modules do the same? Only their outputs are compared; no check is involved.

The right files of a challenge set the standard. What they agree on is promised, and their distance
from each other is what rounding may do. A candidate is equivalent if it stays within the standard
at many sizes, with every kind of mask, in eval and train mode, with gradients, with a cache and in
other dtypes. That asks more than a grade, and may take longer.

Files are compared value by value if their parameters have the same names and shapes, so that both
get the same weights. Files with other parameters set a standard of their own. To the first standard
they add only what needs no values: that a call raises, or which dtype it returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.input_copies import cast_inputs
from attnlab.candidate.program import ExactNumbers
from attnlab.candidate.session import Session
from attnlab.candidate.uninitialised import new_memory_is_nan
from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.shared.inputs import cached_calls
from attnlab.mutation_testing.scenarios import Scenario, Step, make_scenarios
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.records import Code, Contract, plain
from attnlab.sizes import constructor_arguments

Observation = dict[str, Tensor | str]  # the result of a step by name: values, or a word
# Relative to the largest value: users do not see less, and sums may run in another order.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.05}
MARGIN = 6.0  # times the distance of two right files
COARSEST = TOLERANCES[torch.float32] / TOLERANCES[torch.float64]  # more is no rounding
INFINITE = float("inf")


@dataclass
class Standard:
    """What right files with the same parameters do in each scenario, and how far they differ.

    `expected` and `tolerances` hold one entry for each step, and one for the state at the end."""

    scenarios: list[Scenario]
    contract: Contract
    weights: list[dict[str, Tensor]] = field(default_factory=list)
    expected: list[list[Observation]] = field(default_factory=list)
    tolerances: list[list[dict[str, float]]] = field(default_factory=list)

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """The shapes of the parameters in the first scenario."""
        return {name: weight.shape for name, weight in self.weights[0].items()}


def standard(right: Sequence[Code], contract: Contract, seed: int) -> list[Standard]:
    """The standards that right files set: first that of the solution and of files with the same
    parameters."""
    in_program = any(code.siblings for code in right)
    narrow = bool(contract.dtypes) or not in_program
    scenarios = list(make_scenarios(contract, seed, narrow))
    groups: dict[frozenset[tuple[str, torch.Size]], list[LoadedFile]] = {}
    for code in right:
        file = LoadedFile(code, contract)
        if file.raised:
            raise RuntimeError(f"{code.file}, which is right, raised {file.raised}")
        shapes = file.parameter_shapes(scenarios[0])
        groups.setdefault(frozenset(shapes.items()), []).append(file)
    standards = [_make_standard(files, scenarios, contract, seed) for files in groups.values()]
    for one, other in permutations(standards, 2):
        _drop_disagreements(one, other)
    return standards


def _make_standard(
    files: list[LoadedFile], scenarios: list[Scenario], contract: Contract, seed: int
) -> Standard:
    """The standard of files with the same parameters."""
    made = Standard(scenarios, contract)
    first, *others = files
    for number, scenario in enumerate(scenarios):
        made.weights.append(draw.weights(first.parameter_shapes(scenario), Dice(seed + number)))
        expected = list(first.observe(made, number))
        made.expected.append(expected)
        made.tolerances.append(
            [{k: _tolerance(scenario, v) for k, v in seen.items()} for seen in expected]
        )
        if scenario.dtype is torch.float64:
            _allow_rounding(made, number, list(first.observe(made, number, exact=True)))
        for other in others:
            _widen(made, number, list(other.observe(made, number)))
    return made


@new_memory_is_nan()
def difference(candidate: Code, standards: Sequence[Standard]) -> str:
    """The first step at which the candidate differs from the files with the same parameters, in
    one sentence; "" where it is equivalent. Uninitialised memory reads as NaN."""
    solution = standards[0]
    file = LoadedFile(candidate, solution.contract)
    if file.raised:
        return f"loading it raises {file.raised['error']}"
    shapes = file.parameter_shapes(solution.scenarios[0])
    right = next((r for r in standards if shapes == r.shapes), solution)
    for number, scenario in enumerate(right.scenarios):
        for step, seen in enumerate(file.observe(right, number)):
            why = _differs(right.expected[number][step], right.tolerances[number][step], seen)
            if why:
                return f"{why} at {_describe_step(scenario, step)}"
    return ""


def first_difference(candidate: Code, right: Code, contract: Contract, seed: int = 0) -> str:
    """As `difference` from one right file, which goes no further than to where they differ."""
    file = LoadedFile(right, contract)
    for scenario in make_scenarios(contract, seed):
        found = difference(candidate, [_make_standard([file], [scenario], contract, seed)])
        if found:
            return found
    return ""


def _describe_step(scenario: Scenario, number: int) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in scenario.sizes.items())
    place = f"{sizes}, {str(scenario.dtype).removeprefix('torch.')}"
    if number >= len(scenario.steps):
        return place
    step = scenario.steps[number]
    return f"{place}, step {number + 1} ({step.verb}, {'train' if step.train else 'eval'})"


# ---------------------------------------------------------------- observing


class LoadedFile:
    """A file loaded into a session; `raised` says why it could not be loaded."""

    def __init__(self, code: Code, contract: Contract) -> None:
        self.session, self.name, self.contract = Session(), code.name, contract
        self.in_program = bool(code.siblings)
        answer = self.session.ask(
            "load",
            file=code.file,
            text=code.text,
            path=code.path,
            own=None,
            siblings=dict(code.siblings),
        )
        self.raised = answer.get("raised")
        if contract.cache is not None and not self.raised:
            self.session.ask("declare_cache", **plain(contract.cache))
        self.session.ask("declare_containers", containers=plain(contract.containers))

    def parameter_shapes(self, scenario: Scenario) -> dict[str, torch.Size]:
        """By name; empty where it cannot be built."""
        if "raised" in self._build(scenario):
            return {}
        return {n: p.shape for n, p in self.session.ask("parameters")["tensors"].items()}

    def _build(self, scenario: Scenario) -> dict[str, Any]:
        init = constructor_arguments(self.contract.init, scenario.sizes)
        return self.session.ask("build", name=self.name, init=init, seed=7)

    def observe(self, right: Standard, number: int, exact: bool = False) -> Iterator[Observation]:
        """The results of the steps of a scenario, and at the end the state of the module; `exact`:
        what is computed in float32 by name is computed in float64."""
        scenario = right.scenarios[number]
        answer = self._build(scenario)
        if "raised" in answer:
            yield from [self._refusal(answer, scenario)] * (len(scenario.steps) + 1)
            return
        answer = self.session.ask("set_parameters", tensors=right.weights[number])
        if any(answer.get(key) for key in ("missing", "extra", "shapes", "raised")):
            yield {"parameters": "others"}
            return
        module = self.session.target
        if isinstance(module, nn.Module) and scenario.dtype is not torch.float32:
            module.to(scenario.dtype)  # after it was built, so a table of another dtype shows
        for step in scenario.steps:
            with self._numbers(scenario, exact):
                seen = self._observe_step(step, scenario)
            yield seen
        yield self._observe_state()

    def _numbers(self, scenario: Scenario, exact: bool) -> AbstractContextManager[object]:
        """In a program float64 is only for exact comparison, unless its unit promises it: casts to
        float32 by name are right, and are float64 too."""
        exact |= scenario.dtype is torch.float64 and not self.contract.dtypes and self.in_program
        return ExactNumbers() if exact else nullcontext()

    def _observe_step(self, step: Step, scenario: Scenario) -> Observation:
        inputs = cast_inputs(list(step.inputs.items()), scenario.dtype)
        torch.manual_seed(11)
        before = torch.get_rng_state()
        seen: Observation = {}
        if step.verb == "call":
            answer = self.session.ask("call", inputs=inputs, train=step.train)
            same = torch.equal(before, torch.get_rng_state())
            seen["random state"] = "kept" if same else "changed"
        elif step.verb == "gradients":
            answer = self._gradients(inputs, scenario)
        elif step.verb == "cached_steps":
            answer = self._call_in_chunks(dict(inputs), step)
        else:
            answer = self.session.ask(step.verb, inputs=inputs)
        if "raised" in answer:
            return self._refusal(answer, scenario)
        for key, value in answer.items():
            values = value if isinstance(value, Mapping) else {key: value}
            seen |= {n if n == key else f"{key} {n}": _plain(v) for n, v in values.items()}
        # A unit of a program promises none, unless its contract says so.
        tensors = seen.items() if self.contract.dtypes or not self.in_program else ()
        dtypes = {n: str(v.dtype) for n, v in tensors if isinstance(v, Tensor)}
        return seen | {f"dtype of {n}": dtype for n, dtype in dtypes.items()}

    def _gradients(self, inputs: list[Any], scenario: Scenario) -> dict[str, Any]:
        """Gradients by input and by weight; a missing one is zero."""
        output = self.session.ask("call", inputs=inputs).get("output")
        if not isinstance(output, Tensor):
            return {"output": "no tensor"}
        cotangent = Dice(scenario.cotangent).normal(output.shape).to(scenario.dtype)
        answer = self.session.ask("gradients", inputs=inputs, cotangent=cotangent)
        if "raised" in answer:
            return answer
        floats = {n: t for n, t in inputs if t is not None and t.is_floating_point()}
        groups = {"inputs": floats, "weights": self.session.ask("parameters")["tensors"]}
        return {
            group: {n: answer.get(group, {}).get(n, torch.zeros_like(t)) for n, t in like.items()}
            for group, like in groups.items()
        }

    def _call_in_chunks(self, inputs: dict[str, Any], step: Step) -> dict[str, Any]:
        chunks = cached_calls(self.contract, inputs, list(step.lengths))
        spec = data_inputs(self.contract, "S")[0]
        rows = inputs[spec.name].shape[spec.axes.index("B")] if "B" in spec.axes else 1
        return self.session.ask(
            "cached_steps",
            calls=[list(chunk.items()) for chunk in chunks],
            batch=rows,
            length=sum(step.lengths),
            train=step.train,
        )

    def _observe_state(self) -> Observation:
        """The weights after the calls, and whether the tables that must be buffers are buffers."""
        weights = self.session.ask("parameters")["tensors"]
        buffers = self.session.ask("buffers")["tensors"]
        state = {f"weight {n}": _plain(t) for n, t in weights.items()}
        return state | {
            f"buffer {n}": "there" if n in buffers else "missing" for n in self.contract.buffers
        }

    def _refusal(self, answer: dict[str, Any], scenario: Scenario) -> Observation:
        """Which exception is raised matters only if the contract promises one."""
        if not scenario.refused:
            return {"raised": "an exception"}
        kinds = {answer["raised"]["error"], *answer["raised"].get("kinds", ())}
        sizes = scenario.sizes.items()
        wanted = {r.error for r in self.contract.refusals if r.sizes.items() <= sizes}
        good = "any" in wanted or wanted & kinds
        return {"raised": "as promised" if good else "another exception"}


def _plain(value: object) -> Tensor | str:
    """A dense real tensor as it is, another one by the name of its class, anything else as text."""
    if isinstance(value, Tensor) and value.layout is torch.strided and not value.is_complex():
        return value
    return type(value).__name__ if isinstance(value, Tensor) else str(value)


# ---------------------------------------------------------------- comparing


def _differs(right: Observation, tolerances: Mapping[str, float], seen: Observation) -> str:
    """The first difference in what the right files agree on; "" if there is none."""
    for key, tolerance in tolerances.items():
        if key not in seen:
            return _describe_missing(key, seen)
        mine, theirs = seen[key], right[key]
        if isinstance(mine, str) or isinstance(theirs, str):
            if mine is not theirs and mine != theirs:
                return f"{key} is {mine if isinstance(mine, str) else 'a tensor'}"
        elif mine.shape != theirs.shape:
            return f"{key} is of shape {tuple(mine.shape)}"
        elif (gap := _gap(mine, theirs)) > tolerance:
            return f"{key} differs by {gap:.2g}, {tolerance:.2g} is allowed,"
    return ""


def _describe_missing(key: str, seen: Observation) -> str:
    """Why there is nothing to compare."""
    if "raised" in seen:
        return "it raises"
    return "its parameters are others" if "parameters" in seen else f"{key} is missing"


def _gap(a: Tensor, b: Tensor) -> float:
    """The largest difference; infinite unless NaN and inf stand at the same places."""
    if not a.numel():
        return 0.0
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    gap = (a - b).abs().masked_fill(same, 0.0)
    return gap.nan_to_num(INFINITE, INFINITE).max().item()


def _distance(a: Tensor | str, b: Tensor | str) -> float:
    """`_gap` of two tensors; words and shapes that differ are infinitely far apart."""
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a is b or (isinstance(a, str) and a == b) else INFINITE
    return _gap(a, b) if a.shape == b.shape else INFINITE


def _tolerance(scenario: Scenario, value: Tensor | str) -> float:
    if isinstance(value, str) or not value.numel():
        return 0.0
    largest = value.double().abs().nan_to_num(0.0, 0.0, 0.0).max().item()
    return TOLERANCES[scenario.dtype] * max(1.0, largest)


def _allow_rounding(made: Standard, number: int, exact: list[Observation]) -> None:
    """Raise the tolerances to what the first file's own steps in float32, as of angles, round."""
    for step, tolerances in enumerate(made.tolerances[number]):
        right = made.expected[number][step]
        seen = exact[step] if step < len(exact) else {}
        for key in tolerances.keys() & seen.keys():
            rounding = MARGIN * _distance(seen[key], right[key])
            if rounding <= COARSEST * tolerances[key]:
                tolerances[key] = max(tolerances[key], rounding)


def _widen(made: Standard, number: int, others: list[Observation]) -> None:
    """Raise the tolerances to what another right file does; drop what it does not share."""
    for step, tolerances in enumerate(made.tolerances[number]):
        right = made.expected[number][step]
        seen = others[step] if step < len(others) else {}
        for key in list(tolerances):
            distance = _distance(seen[key], right[key]) if key in seen else INFINITE
            tolerances[key] = max(tolerances[key], MARGIN * distance)
            if distance == INFINITE:
                del tolerances[key]


def _drop_disagreements(one: Standard, other: Standard) -> None:
    """Drop what files with other parameters do otherwise, as far as words show it."""
    for number, steps in enumerate(one.tolerances):
        expected = other.expected[number]
        for step, tolerances in enumerate(steps):
            mine = one.expected[number][step]
            theirs = expected[step] if step < len(expected) else {}
            if ("raised" in theirs) != ("raised" in mine):
                tolerances.clear()
            for key in [k for k in tolerances if isinstance(mine[k], str) and k in theirs]:
                if isinstance(theirs[key], str) and theirs[key] != mine[key]:
                    del tolerances[key]
