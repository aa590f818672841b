"""Weights from files, in place of drawn ones: of mine, of the reference, or of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnlab.diagnosis.pairing import equal
from attnlab.diagnosis.relations import relate
from attnlab.errors import Refused
from attnlab.probe.probe import Probe
from attnlab.probe.weights.layouts import invert_weights, map_weights
from attnlab.probe.weights.match import shapes_of
from attnlab.records.diagnosis import DiffReport
from attnlab.sizes import Sizes, with_head_dim

SAFE = ".safetensors"
FEW = 2  # heads, where those of the example do not divide the width
MOST = 4  # weights that a message names
State = dict[str, Tensor]
Build = tuple[Mapping[str, int], Mapping[str, Sequence[int]]]  # sizes, and shapes of weights there


def read_checkpoint(file: str) -> State:
    """Every tensor of a file of torch.save or safetensors, by its dotted name, on the CPU; raises
    `Refused`."""
    try:
        if file.endswith(SAFE):
            from safetensors.torch import load_file

            tensors: State = load_file(file)
            return tensors
        found = torch.load(file, map_location="cpu", weights_only=True)
    except ImportError:
        raise Refused(f"{file} needs the package safetensors", "pip install safetensors") from None
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except Exception as error:  # whatever a broken file makes them raise
        objects = "Weights only load failed" in str(error) and "GLOBAL" in str(error)
        why = "it holds objects beside tensors" if objects else "torch.save did not write it"
        hint = "torch.save(model.state_dict(), FILE) writes one that holds tensors alone"
        raise Refused(f"{file} cannot be read as a checkpoint: {why}", hint) from None
    return dict(_tensors(found, ""))


def _tensors(found: Any, prefix: str) -> list[tuple[str, Tensor]]:
    if isinstance(found, Tensor):
        return [(prefix.removesuffix("."), found)]
    if not isinstance(found, Mapping):
        return []
    return [one for key, inner in found.items() for one in _tensors(inner, f"{prefix}{key}.")]


def select_weights(state: State, names: Sequence[str], file: str) -> State:
    """The tensors of these names, or of one submodule that has them all: the first of its kind;
    raises `Refused`."""
    if not names:
        raise Refused(f"{file} cannot be loaded: the module has no parameters")
    ends = [key for key in state if f".{key}".endswith(f".{names[0]}")]
    for prefix in (key.removesuffix(names[0]) for key in ends):
        if all(prefix + name in state for name in names):
            return {name: state[prefix + name].double() for name in names}
    missing = next((n for n in names if not any(f".{k}".endswith(f".{n}") for k in state)), "")
    what = f"no {missing}" if missing else f"no module with all of {', '.join(names[:MOST])}"
    held = ", ".join(list(state)[:MOST]) or "no tensor"
    raise Refused(f"{file} has {what}; it holds {held}" + ", ..." * (len(state) > MOST))


def read_sizes(state: State, builds: Sequence[Build]) -> dict[str, int]:
    """The sizes that the shapes of weights tell. `builds` are the shapes of the same weights at
    some sizes: what grows with a symbol there is read off the checkpoint."""
    votes: dict[str, Counter[int]] = {}
    for name, tensor in state.items():
        lengths = zip(tensor.shape, *(shapes[name] for _, shapes in builds), strict=False)
        for length, *built in lengths:
            for symbol in builds[0][0]:
                ratios = {n / sizes[symbol] for n, (sizes, _) in zip(built, builds, strict=True)}
                apart = len({sizes[symbol] for sizes, _ in builds}) > 1
                if apart and len(ratios) == 1 and length % (ratio := ratios.pop()) == 0:
                    votes.setdefault(symbol, Counter())[int(length / ratio)] += 1
    return {symbol: count.most_common(1)[0][0] for symbol, count in votes.items()}


@dataclass(frozen=True)
class Checkpoints:
    """The weights of mine and of the reference, none where there is no file, and the sizes that
    modules need for them."""

    sizes: Sizes = field(default_factory=dict)
    mine: State = field(default_factory=dict)
    theirs: State = field(default_factory=dict)
    says: str = ""

    def load(self, probe: Probe) -> None:
        """Give both sides the weights of the reference's checkpoint, or else of mine; to each its
        own where no map between them is proven. Raises `Refused` where shapes do not fit."""
        reference, loaded = probe.reference, probe.loaded
        assert reference is not None
        for held, state in ((probe.parameters(), self.mine), (reference.weights, self.theirs)):
            for name, tensor in state.items():
                if tensor.shape != held[name].shape:
                    here, there = tuple(held[name].shape), tuple(tensor.shape)
                    says = f"{name} has shape {there} in the checkpoint, and {here} at {self.says}"
                    hint = "--sizes says what its weights do not tell, as in --sizes D=64,H=4"
                    raise Refused(says, hint)
        weights = self.theirs
        if loaded.refusal:
            probe.set_parameters(self.mine)
            reference.put(weights)
            return
        if not weights:
            shapes, at = shapes_of(reference.weights), loaded.indices
            weights = self.mine if at is None else invert_weights(self.mine, at, shapes)
        reference.put(weights)
        probe.set_weights(weights)

    def compare(self, probe: Probe) -> DiffReport | None:
        """How mine's weights differ from the reference's as mine would hold them, where they do."""
        if probe.loaded.refusal:
            return None
        at = probe.loaded.indices
        wanted = self.theirs if at is None else map_weights(self.theirs, at)
        told: list[str] = []
        for name in wanted:
            if equal(self.mine[name], wanted[name]):
                continue
            relation = relate(self.mine[name], wanted[name], probe.sizes)
            same = next((n for n in wanted if _are_equal(self.mine[name], wanted[n])), "")
            other = f"what belongs into {same}" if same else "other numbers than the reference's"
            told.append(f"{name} is {relation.says}" if relation else f"{name} holds {other}")
        if not told:
            return None
        more = f", and {len(told) - MOST} more" if len(told) > MOST else ""
        says = f"the code is equal, the checkpoints are not: {'; '.join(told[:MOST])}{more}"
        return DiffReport(outcome="different", part="weights", message=says)


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and equal(one, other)


def read_checkpoints(
    probes: Sequence[Probe], files: tuple[str, str], given: Mapping[str, int]
) -> Checkpoints:
    """The weights that modules of their sizes take. `probes` show at two sets of sizes what grows
    with what; a size that no weight tells, such as how many heads there are, is as given."""
    builds: tuple[list[Build], list[Build]] = ([], [])
    for probe in probes:
        probe.equip()
        assert probe.reference is not None
        for build, held in zip(builds, (probe.parameters(), probe.reference.weights), strict=True):
            build.append((probe.sizes, shapes_of(held)))
    states, tellings = list[State](), list[dict[str, int]]()
    for file, build in zip(files, builds, strict=True):
        states.append(
            select_weights(read_checkpoint(file), list(build[0][1]), file) if file else {}
        )
        tellings.append(read_sizes(states[-1], build))
    one, other = tellings
    if differ := next((s for s in one if other.get(s, one[s]) != one[s]), ""):
        says = f"{differ} is {one[differ]} in {files[0]} and {other[differ]} in {files[1]}"
        raise Refused(f"the checkpoints are of modules of different sizes: {says}")
    told = {symbol: size for symbol, size in (one | other).items() if symbol != "hd"}
    heads = {s: given[s] for s in ("H", "Hkv") if s in given and s not in told}
    if any(told.get("D", given.get("D", 0)) % count for count in heads.values()):
        told |= dict.fromkeys(heads, FEW)
    sizes = with_head_dim({**given, **told})
    read = ", ".join(f"{s}={size}" for s, size in told.items() if s not in heads)
    rest = ", ".join(f"{s}={sizes[s]}" for s in given if s not in told or s in heads)
    says = f"{read} of the checkpoint" + f", {rest}, which no weight tells" * bool(rest)
    return Checkpoints(sizes, states[0], states[1], says)
