"""What the training half of a program does from given weights, beside what the right one does.

Both count in float64, and dropout scales in place of dropping, so two right programs agree in all
digits however they are written; modes and dropout are noted apart.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from attnlab.candidate.host import Died, Raised
from attnlab.candidate.session import HUNG

LOSS_TOLERANCE = 1e-7  # relative; two right programs differ by 1e-12
CAST_TOLERANCE = 1e-4  # relative, where casts to 16 bits are done
SHARPER = 8.0  # times the right program's first matrices, where ids are generated
GRADIENT_TOLERANCE = 1e-3  # relative to the largest, there
START_FACTOR = 10.0  # by which the sizes of first weights may differ: drawn or tied in another way
START_SHIFT = 0.25  # of first weights that are all the same in the right program: 0 or 1
UPDATE_TOLERANCE = 1e-7  # absolute, of a parameter after an update; two right ones differ by 1e-12
MISSING = "MissingName"  # the name of what a program raises that lacks a declared one
IGNORED = -100  # a target that counts for nothing
Weights = Mapping[str, Tensor]
Rename = Callable[[Weights], dict[str, Tensor]]
Enough = Callable[[int, Any], object]  # of the number of a training run, and the run
Observed = dict[str, Any]
Cases = Mapping[str, Sequence[Any]]  # for each part of a program, what its entry is called with

TITLES = {
    "training": "a few steps of training give the same losses and parameters",
    "evaluation": "evaluation gives the same number",
    "generation": "generation gives the same ids",
    "prediction": "prediction gives the same classes",
}


@dataclass(frozen=True)
class Extent:
    """How much of a program is looked at."""

    runs: tuple[int, ...] = (3, 2)  # optimizer steps; casts to 16 bits count in the last
    new_ids: int = 5  # of a prompt; odd, so that what is turned round each time shows


# The entry that a verb calls, for what goes wrong in the call itself.
CALLED = {
    "observe_training": "train",
    "train_model": "train",
    "observe_evaluation": "evaluate",
    "observe_generation": "generate",
    "observe_prediction": "predict",
}


class Answering(Protocol):
    """A process with a program in it."""

    def ask(self, verb: str, **args: Any) -> dict[str, Any]: ...


def crash_text(error: Raised) -> str:
    """`train.py:41: RuntimeError: ...`."""
    if error.error == MISSING:
        return error.message
    place = f"{error.file}:{error.line}: " if error.line else ""
    if not place and error.verb in CALLED:
        place = f"{CALLED[error.verb]} cannot be called as it was given: "
    if error.error == HUNG:
        return f"{place}still running when the time was up: {error.source}"
    return f"{place}{error}"


def failure_reason(seen: Any) -> Literal["", "crashed", "timeout", "memory"]:
    """How the program ended where it did not answer; "" where it did."""
    if isinstance(seen, Died):
        return seen.reason
    if isinstance(seen, Raised):
        return "timeout" if seen.error == HUNG else "memory" if seen.memory else "crashed"
    return ""


def observe(side: Answering, weights: Weights, cases: Cases, extent: Extent = Extent()) -> Observed:
    """What each part of the training half does from these weights; an exception where it raised."""
    return {part: observe_part(part, side, weights, cases, extent) for part in cases}


def observe_part(
    part: str,
    side: Answering,
    weights: Weights,
    cases: Cases,
    extent: Extent = Extent(),
    enough: Enough | None = None,
) -> dict[str, Any] | Raised | Died:
    """What one part does; raises `Raised` where the program does not even load.

    No further run is made after one of which `enough` says so: the last has the loose constants,
    and what the program casts to 16 bits is cast."""
    given = dict(weights)

    def train() -> dict[str, Any]:
        seen = []
        for number, steps in enumerate(extent.runs):
            exact = number + 1 < len(extent.runs)
            seen.append(side.ask("observe_training", weights=given, steps=steps, exact=exact))
            if enough and enough(number, seen[-1]):
                break
        return {"runs": seen}

    ask: dict[str, Callable[[], dict[str, Any]]] = {
        "training": train,
        "evaluation": lambda: side.ask("observe_evaluation", weights=given),
        "generation": lambda: (
            side.ask(
                "observe_generation",
                weights=_sharper(given),
                prompts=list(cases[part]),
                count=extent.new_ids,
            )
            | {"prompts": cases[part]}
        ),
        "prediction": lambda: side.ask(
            "observe_prediction", weights=given, items=list(cases[part])
        ),
    }
    try:
        return ask[part]()
    except (Raised, Died) as error:
        if isinstance(error, Raised) and error.verb == "load_program":
            raise
        return error


def _sharper(weights: Weights) -> Weights:
    """Larger matrices: at first weights the next id hangs on the last one alone, so a model that
    sees the wrong positions goes on with the same ids."""
    return {
        name: tensor * SHARPER if tensor.dim() > 1 and tensor.is_floating_point() else tensor
        for name, tensor in weights.items()
    }


def compare(part: str, mine: Observed, right: Observed, rename: Rename) -> str:
    """How a part differs from the right program's; "" where it does the same."""
    seen, wanted = mine.get(part), right[part]
    if isinstance(seen, Raised):
        return crash_text(seen)
    if isinstance(seen, Died):
        return f"the program {seen}"
    return COMPARISONS[part](seen, wanted, rename)


def _compare_training(mine: Any, right: Any, rename: Rename) -> str:
    pairs = list(zip(mine["runs"], right["runs"], strict=False))  # one that differs is the last
    wrong = next(filter(None, (compare_runs(*pair, rename) for pair in pairs)), "")
    run, wanted = pairs[0]
    return wrong or _other_start(run["first weights"], rename(wanted["first weights"]))


def compare_runs(run: Any, wanted: Any, rename: Rename) -> str:
    """How one training run differs from the right program's; "" where it does the same."""
    losses, expected = run["losses"], wanted["losses"]
    steps = len(expected)
    drops = wanted["dropout"] and all(wanted["modes"])
    if drops and not (run["dropout"] and all(run["modes"])):
        return "a training step ran in eval mode, so that its dropout dropped nothing"
    if losses.shape != expected.shape:
        return f"train returned {len(losses)} losses for {steps} steps, not {len(expected)}"
    for step, (loss, good) in enumerate(zip(losses.tolist(), expected.tolist(), strict=True), 1):
        if not _close(loss, good, LOSS_TOLERANCE if wanted["exact"] else CAST_TOLERANCE):
            return f"the loss of step {step} is {_beside(loss, good)}"
    if wanted["exact"]:
        wrong = _wrong_parameter(run["parameters"], rename(wanted["parameters"]), steps)
    else:
        wrong = _wrong_gradient(run["gradients"], rename(wanted["gradients"]))
        wrong = wrong or _wrong_rate(run["rates"], wanted["rates"])
    if not wrong and run["graph"] and not wanted["graph"]:
        return "the losses that train returns still hold their graphs, and so all activations"
    return wrong


def _other_start(mine: Weights, right: Weights) -> str:
    """The first parameter that the program starts with values of another size."""
    for name, wanted in right.items():
        tensor = mine.get(name)
        if tensor is None or tensor.numel() != wanted.numel() or not wanted.numel():
            continue
        size, expected = (t.double().square().mean().sqrt().item() for t in (tensor, wanted))
        if wanted.min() == wanted.max():
            differs = not abs(tensor.double() - wanted.flatten()[0]).max() <= START_SHIFT
        else:  # drawn at random: the fewer there are, the more it may differ by chance
            most = math.log(START_FACTOR) + 4.0 / math.sqrt(wanted.numel())
            bias = wanted.dim() == 1 and max(size, expected) <= START_SHIFT  # 0, or small numbers
            differs = not (bias or (size and abs(math.log(size / expected)) <= most))
        if differs:
            return (
                f"the parameter {name} starts with values of size {size:.2g}, in the right "
                f"program of size {expected:.2g}"
            )
    return ""


def _wrong_parameter(mine: Weights, right: Weights, steps: int) -> str:
    for name, wanted in right.items():
        tensor = mine.get(name)
        if tensor is None:  # another name of a tied parameter
            continue
        if wanted.shape != tensor.shape:
            return f"the parameter {name} has another shape after {steps} steps"
        gap = (tensor.double() - wanted.double()).abs().max().item() if tensor.numel() else 0.0
        if not gap <= UPDATE_TOLERANCE:
            return f"after {steps} steps the parameter {name} is off by {gap:.2g}"
    return ""


def _wrong_gradient(mine: Weights, right: Weights) -> str:
    for name, wanted in right.items():
        tensor = mine.get(name)
        if tensor is None or tensor.shape != wanted.shape or not wanted.numel():
            continue
        gap = (tensor.double() - wanted.double()).abs().max().item()
        if not gap <= GRADIENT_TOLERANCE * max(1e-6, wanted.abs().max().item()):
            return f"at the first update the gradient of {name} is off by {gap:.2g}"
    return ""


def _wrong_rate(mine: Tensor, right: Tensor) -> str:
    """An optimizer of the candidate's own may note none."""
    for step, (rate, good) in enumerate(zip(mine.tolist(), right.tolist(), strict=False), 1):
        if not math.isclose(rate, good, rel_tol=GRADIENT_TOLERANCE):
            return f"the learning rate of step {step} is {rate:.3g}, the right program's {good:.3g}"
    return ""


def _compare_evaluation(mine: Any, right: Any, _: object) -> str:
    value, wanted = mine["value"].item(), right["value"].item()
    if mine["dropout"] and not right["dropout"]:
        return "evaluation runs with dropout on"
    if not _close(value, wanted, LOSS_TOLERANCE):
        return f"evaluate returned {_beside(value, wanted)}"
    return ""


def _compare_generation(mine: Any, right: Any, _: object) -> str:
    if mine["dropout"] and not right["dropout"]:
        return "generation runs with dropout on"
    for ids, wanted, prompt in zip(mine["ids"], right["ids"], right["prompts"], strict=True):
        if not isinstance(ids, Tensor) or ids.shape[:-1] != wanted.shape[:-1]:
            shape = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
            return f"generate returned {shape}, the right program {tuple(wanted.shape)}"
        if not torch.equal(ids, wanted):
            return _other_ids(ids, wanted, prompt)
    return ""


def _compare_prediction(mine: Any, right: Any, _: object) -> str:
    if mine["dropout"] and not right["dropout"]:
        return "prediction runs with dropout on"
    for classes, wanted in zip(mine["classes"], right["classes"], strict=True):
        if classes.shape != wanted.shape:
            return (
                f"predict returned {tuple(classes.shape)}, the right program {tuple(wanted.shape)}"
            )
        if not torch.equal(classes, wanted):
            wrong = int((classes != wanted).sum())
            return f"predict returned other classes for {wrong} of {wanted.numel()} items"
    return ""


COMPARISONS: dict[str, Callable[[Any, Any, Any], str]] = {
    "training": _compare_training,
    "evaluation": _compare_evaluation,
    "generation": _compare_generation,
    "prediction": _compare_prediction,
}


def behaves_alike(part: str, mine: Any, theirs: Any, rename: Rename) -> bool:
    """Whether a part does the same in both, also where both raise."""
    if isinstance(mine, Exception) or isinstance(theirs, Exception):
        return str(mine) == str(theirs) and type(mine) is type(theirs)
    differs = COMPARISONS[part]
    return not differs(mine, theirs, rename) and not differs(theirs, mine, dict)


def _other_ids(ids: Tensor, wanted: Tensor, prompt: Tensor) -> str:
    """The first row of a batch that differs: its prompt, what came of it, and what should have."""
    rows = list(zip(prompt.tolist(), ids.tolist(), wanted.tolist(), strict=True))
    given, mine, right = next((row for row in rows if row[1] != row[2]), rows[0])
    kept = max(len(right) - Extent.new_ids, 0)
    kept *= mine[kept:] != right[kept:]
    told = f"generate went on with {mine[kept:]}, the right program with {right[kept:]}"
    return f"for {given} {told}"


def _beside(mine: float, right: float) -> str:
    """Both numbers, with as many digits as it takes to see that they differ."""
    shown = ((f"{mine:.{digits}g}", f"{right:.{digits}g}") for digits in (6, 9, 12))
    one, other = next((pair for pair in shown if pair[0] != pair[1]), (str(mine), str(right)))
    return f"{one}, the right program's {other}"


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(b)) or (math.isnan(a) and math.isnan(b))


def constant_answers(observed: Observed) -> Iterator[str]:
    """What the right program says whatever it is given, so that a wrong answer may be right too."""
    given, adds = observed.get("generation"), Extent.new_ids
    if given and len({tuple(row[-adds:].tolist()) for ids in given["ids"] for row in ids}) == 1:
        yield "the right program adds the same ids to all prompts: choose others, or more of them"
    given = observed.get("prediction")
    if given and len({n for ids in given["classes"] for n in ids.flatten().tolist()}) == 1:
        yield "the right program predicts one class for all items: choose others, or more of them"


def loss_of(logits: Tensor, targets: Tensor) -> float:
    flat = logits.double().reshape(-1, logits.shape[-1])
    if flat.shape[0] != targets.numel():
        return math.inf
    return F.cross_entropy(flat, targets.reshape(-1), ignore_index=IGNORED).item()


def accuracy_of(logits: Tensor, targets: Tensor) -> float:
    if logits.shape[:-1] != targets.shape:
        return 0.0
    counted = targets != IGNORED
    return (logits.argmax(dim=-1) == targets)[counted].double().mean().item()
