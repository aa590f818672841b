"""Checks of a module that lives in this process: for the user's own tests.

The module itself is never touched. What is called is a copy, in float32 on the CPU, and the checks,
their sizes and their messages are those of the grader.
"""

import copy
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.host import LocalHost, checked_answer
from attnlab.candidate.live.batch import undisturbed
from attnlab.candidate.load import FunctionModule
from attnlab.candidate.session import Session
from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.base import load_checks, parts_of
from attnlab.files import shown_path
from attnlab.grading.diff_stage import compare
from attnlab.grading.runner import run_checks
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.probe.probe import GradingContext
from attnlab.probe.reference import HostedReference
from attnlab.records import CheckResult, Code, Contract, Job, Trace, from_json
from attnlab.records.diagnosis import DiffReport
from attnlab.sizes import Sizes
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace
from attnlab.tracer.in_process import target_name
from attnlab.tracer.raw_trace import RawTrace

LAST_ROWS = "Look at the last operations before the crash."
FLAGGED = "Look at the first row that is flagged, and at what it was given."
SHORTEST = 3  # positions of which the last one may be changed
Pick = Callable[[Any], Tensor]  # the output, of all that a module returns


@dataclass(frozen=True)
class Subject:
    """What is to be examined, and how it is fed."""

    module: Any  # an nn.Module, or any other callable
    contract: Contract
    seed: int
    pick: Pick | None = None
    reference: Any = None
    keep: bool = False  # module and reference keep the weights they have


@dataclass(frozen=True)
class Examined:
    """The result that decides, and the trace at the sizes where something failed."""

    result: CheckResult
    trace: Trace | None = None


@undisturbed()
def examine(subject: Subject, part: str) -> Examined:
    """A part of a check at all sizes; where it fails, the most basic one that explains it."""
    result = _run(subject, frozenset({part}))[0]
    if result.outcome != "failed":
        return Examined(result)
    if result.reason == "crashed":  # nothing explains it but the rows up to it
        return _with_trace(subject, replace(result, advice=LAST_ROWS))
    more = frozenset({part, *_before(part)})
    basic = next((r for r in _run(subject, more) if r.outcome == "failed"), result)
    return _with_trace(subject, basic)


def _with_trace(subject: Subject, result: CheckResult) -> Examined:
    """With the rows; advice to trace such a call gives way to them."""
    if "a trace of such a call" in result.advice:
        result = replace(result, advice=FLAGGED)
    return Examined(result, _traced(subject, result.sizes))


def _before(part: str) -> set[str]:
    """The parts of checks whose failure explains that of this one."""
    parts = {p.id: p for p in parts_of(load_checks())}
    return {p.id for p in parts.values() if p.tier.explains(parts[part].tier)}


@undisturbed()
def differences(subject: Subject) -> DiffReport:
    """Where the module parts from its reference, as `attnlab diff` says it."""
    mine, theirs = _code(subject.module), _code(subject.reference)
    found = compare(lambda: _context(subject), Job(candidate=mine, reference=theirs))
    apart = _weights_apart(subject) if subject.keep and found.outcome == "different" else []
    if not apart:
        return found
    message = f"they hold other weights: {', '.join(apart)}; no line can be blamed for that"
    hint = 'weights="copied" gives both the same'
    return replace(found, message=message, hint=hint, diagnosis=())


def _weights_apart(subject: Subject) -> list[str]:
    """The parameters that both have and that do not hold the same."""
    sides = subject.module, subject.reference
    if not all(isinstance(side, nn.Module) for side in sides):
        return []
    mine, theirs = (dict(side.named_parameters()) for side in sides)
    both = [n for n in mine if n in theirs and mine[n].shape == theirs[n].shape]
    return [n for n in both if not torch.allclose(mine[n].float(), theirs[n].float())]


def _code(thing: Any) -> Code:
    """The file of a module or function."""
    file = _source_file(thing.forward if isinstance(thing, nn.Module) else thing)
    text = "".join(linecache.getlines(file))
    return Code(file=shown_path(Path(file)) if file else "", text=text, path=file)


def _run(subject: Subject, only: frozenset[str]) -> tuple[CheckResult, ...]:
    return run_checks(_context(subject, only))


def _context(subject: Subject, only: frozenset[str] = frozenset()) -> GradingContext:
    return GradingContext(
        contract=subject.contract,
        name=None,
        host=LiveHost(subject),
        renew=lambda: LiveHost(subject),
        dice=Dice(subject.seed),
        reference=None if subject.reference is None else LiveReference(subject),
        only=only,
    )


def _traced(subject: Subject, sizes: Sizes) -> Trace | None:
    """Every operation of one call at these sizes."""
    host = LiveHost(subject)
    if "raised" in host.ask("build", name=None, init={}, seed=subject.seed):
        return None
    given = draw.inputs(subject.contract, sizes, Dice(subject.seed))
    axes = {i.name: list(i.axes) for i in subject.contract.inputs}
    told = host.ask("trace", inputs=list(given.items()), seed=0, axes=axes, sizes=sizes)
    if "trace" not in told:
        return None
    return build_trace(SizedTrace(from_json(RawTrace, told["trace"]), sizes), None)


@undisturbed()
def output_of(subject: Subject, sizes: Sizes) -> Any:
    """What one call gives: a tensor, or words for what it is; raises `Raised`."""
    host = LiveHost(subject)
    checked_answer(host.ask("build", name=None, init={}, seed=subject.seed))
    given = draw.inputs(subject.contract, sizes, Dice(subject.seed), "none")
    told = checked_answer(host.ask("call", inputs=list(given.items())))
    return told.get("output", told.get("kind"))


@undisturbed()
def is_causal(subject: Subject) -> bool:
    """Whether no position sees a later one though no mask hides it: then a mask that leaves the
    first query later keys alone leaves it nothing."""
    contract, sizes = subject.contract, subject.contract.sizes
    if "S" not in contract.output or sizes.get("S", 1) < SHORTEST:
        return False
    inputs = draw.inputs(contract, sizes, Dice(subject.seed), "none")
    other = draw.inputs(contract, sizes, Dice(subject.seed + 1), "none")
    changed = dict(inputs)
    for spec in data_inputs(contract, "S"):
        at, value = spec.axes.index("S"), inputs[spec.name].clone()
        value.select(at, -1).copy_(other[spec.name].select(at, -1))
        changed[spec.name] = value
    host = LiveHost(subject)
    told = host.ask("build", name=None, init={}, seed=subject.seed)
    asked = [list(given.items()) for given in (inputs, changed)]
    outs = [answer.get("output") for answer in host.ask("calls", inputs=asked).get("answers", ())]
    if (
        "raised" in told
        or not all(isinstance(out, Tensor) and out.dim() for out in outs)
        or not outs
    ):
        return False
    at = contract.output.index("S")
    before, after = (out.narrow(at, 0, out.shape[at] - 1) for out in outs)
    return bool(torch.equal(before, after))


class LiveHost(LocalHost):
    """Answers with copies of a module that is already there."""

    missing: tuple[str, ...] = ()

    def __init__(self, subject: Subject) -> None:
        self.session = LiveSession(subject)


class LiveSession(Session):
    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        target = subject.module.forward if isinstance(subject.module, nn.Module) else subject.module
        self.file = _source_file(target)

    def find(self, name: str | None) -> Any:  # noqa: ARG002
        return _copied(self.subject.module, self.subject.pick)

    def set_parameters(self, tensors: dict[str, Tensor]) -> dict[str, Any]:
        return {} if self.subject.keep else super().set_parameters(tensors)


class LiveReference(HostedReference):
    """The user's own reference, a copy of it in float64."""

    def __init__(self, subject: Subject) -> None:
        host = LiveHost(replace(subject, module=subject.reference))
        super().__init__(host, None, target_name(subject.reference))
        self.keep = subject.keep

    def equip(
        self,
        init: dict[str, object],  # noqa: ARG002
        dice: Dice,
        bias: bool = True,
    ) -> dict[str, Tensor]:
        weights = super().equip({}, dice, bias)
        if self.keep:
            self.weights = weights = self._ask("parameters")["tensors"]
        return weights


def _copied(thing: Any, pick: Pick | None) -> nn.Module:
    """A copy in eval mode, which returns what `pick` makes of what it returns."""
    if isinstance(thing, nn.Module):
        with torch._C.DisableTorchFunction():  # whoever records calls does not record this
            made = copy.deepcopy(thing).cpu().float().eval()
    else:
        made = FunctionModule(thing)
    if pick is not None:
        made.register_forward_hook(lambda *told: pick(told[-1]))
    return made


def _source_file(target: Any) -> str:
    try:
        return inspect.getsourcefile(inspect.unwrap(target)) or ""
    except TypeError:
        return ""


def with_promises(subject: Subject, *promises: str) -> Subject:
    """The subject with more promises; dropout is seen in its layers."""
    found = {*subject.contract.promises, *promises}
    if isinstance(subject.module, nn.Module) and _drops(subject.module):
        found.add("dropout")
    return replace(subject, contract=replace(subject.contract, promises=tuple(sorted(found))))


def _drops(module: nn.Module) -> bool:
    layers = [m for m in module.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]
    numbers = [getattr(m, n, 0) for m in module.modules() for n in ("dropout", "dropout_p")]
    return any(m.p > 0 for m in layers) or any(isinstance(n, float) and n > 0 for n in numbers)
