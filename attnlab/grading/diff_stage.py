"""The diff stage: mine beside a reference, at sizes and inputs that tell them apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import inf

from torch import Tensor

from attnlab.candidate.gradient_recorder import Backward
from attnlab.candidate.host import Raised
from attnlab.candidate.session import HUNG
from attnlab.diagnosis.diagnose import Draw, diagnose, other_shape, with_files
from attnlab.diagnosis.edits import UNCHANGED, Holds, Lines
from attnlab.diagnosis.gradients import (
    GradientDraw,
    Put,
    diagnose_gradients,
    diagnose_overwritten,
    gradient_of,
)
from attnlab.diagnosis.pairing import Side, equal
from attnlab.diagnosis.place import Sources
from attnlab.diagnosis.repair import Patches
from attnlab.errors import Refused
from attnlab.grading.checkpoints import Checkpoints, read_checkpoints
from attnlab.grading.diff_inputs import draws_by_mask, with_small_pictures
from attnlab.grading.likely_weights import load_likely_weights
from attnlab.probe.answers import CannotTell, Inputs, Mask, Skip
from attnlab.probe.decode import UnexpectedOutput
from attnlab.probe.inputs.sizes import rounds
from attnlab.probe.probe import GradingContext, Probe
from attnlab.probe.reference import BadReference
from attnlab.records import Code, Job
from attnlab.records.diagnosis import DiffReport
from attnlab.sizes import Sizes, with_head_dim

ROUNDS = 4  # sets of sizes that are tried until the outputs differ
ALL = "outputs and gradients"
SEVERAL = "at several sizes, with drawn weights and inputs, in float64"
ONE_SIZE = "at the checkpoint's sizes, with its weights and drawn inputs, in float64"
NAN = "both give NaN, of which nothing more can be said"
MAPPED = (
    "--weights FILE says how they go, as in a TOML file with [weights] and lines such as "
    '"qkv.weight" = "cat(q.weight, k.weight, v.weight)"; '
    "--checkpoint with --reference-checkpoint needs no map"
)
NARROW = (
    "values are compared in float64: a line that names float32 or half meets float64 there; "
    ".to(x.dtype) in place of .float() follows what comes in"
)
LONGER = "--timeout gives it more seconds; smaller sizes need fewer, as in --sizes S=3"
NAMES = 4  # of what learns wrongly that a message has
ELSEWHERE = 2  # sets of sizes at which a change of the text must hold as well
MATCHED, TOLD = 0.35, 0.75  # shares of the time limit, for matching weights and for all
LEAST = 30.0  # seconds of a limit that is shared out like that
PATIENCE = 4.0  # seconds of CPU that trying some changes may take


def compare(context_of: Callable[[], GradingContext], job: Job) -> DiffReport:
    """How mine differs from the reference, at the first sizes and inputs where it does."""
    try:
        return _compare(context_of(), job)
    except Raised as error:
        if error.error == HUNG:
            says = f"{error.file}:{error.line}: still running after {job.limits.seconds:g} seconds"
            return DiffReport(outcome="cannot-compare", message=says, hint=LONGER)
        says = f"{error.file}:{error.line}: {error}"
        if "dtype" in says:  # of ours: it may well run in its own
            return DiffReport(outcome="cannot-compare", message=says, hint=NARROW)
        return DiffReport(outcome="crashed", message=says)
    except Refused as error:
        return DiffReport(outcome="cannot-compare", message=str(error), hint=error.hint)
    except (BadReference, CannotTell, UnexpectedOutput, TypeError) as error:
        return DiffReport(outcome="cannot-compare", message=str(error))


def _compare(context: GradingContext, job: Job) -> DiffReport:
    begun = time.monotonic()
    limit = job.limits.seconds if job.limits.seconds >= LEAST else inf
    matched, until = (begun + share * limit for share in (MATCHED, TOLD))
    if context.reference is not None:
        context.reference.names = job.reference_names
        context.reference.own_init = job.reference_init
    sizes_of = rounds(context.contract, context.dice.plain, narrow=True)
    telling = [*sizes_of[1:2], sizes_of[0], *sizes_of[2:]][:ROUNDS]
    telling += [s for s in [with_head_dim(context.contract.sizes)] if s not in telling]
    if job.guessed:
        context = with_small_pictures(context, telling[0], job.guessed)
    files = Checkpoints()
    if any(job.checkpoints):
        built = [Probe(context, sizes) for sizes in telling[:2]]
        files = read_checkpoints(built, job.checkpoints, context.contract.sizes)
        telling = [files.sizes]
    report = DiffReport(outcome="cannot-compare", message="nothing could be compared")
    refused: BadReference | None = None
    for sizes in telling:
        probe = Probe(context, sizes)
        others = [] if files.sizes else [other for other in telling if other != sizes]
        try:
            probe.equip()
            known = report.weights if report.guessed else {}
            report = _compare_at(probe, job, files, others[:ELSEWHERE], known, (matched, until))
        except BadReference as error:  # as where an even size of a head was drawn odd
            refused = error
            continue
        if report.outcome != "same":
            break
    else:
        if refused and report.outcome != "same":
            raise refused
        said = f"{_looked_at(report)}, {ONE_SIZE if files.sizes else SEVERAL}"
        report = replace(report, message="; ".join(filter(None, (said, report.message))))
    found = context.weight_matcher.found
    names = report.weights or (found.entries if found else None) or context.contract.weights
    renamed = {n: said for n, said in names.items() if n != said}
    return replace(report, weights=renamed, loaded=files.says)


def _compare_at(
    probe: Probe,
    job: Job,
    files: Checkpoints,
    others: Sequence[Sizes],
    guess: Mapping[str, str],
    ends: tuple[float, float],
) -> DiffReport:
    """The report at these sizes; `guess` is the map of weights at the sizes before. When to stop
    matching weights, and to tell what was found, is in `ends`."""
    report = DiffReport(outcome="same")
    known = all(job.checkpoints) or not probe.loaded.refusal
    likely = {} if known else load_likely_weights(probe, guess, ends[0])
    if likely is None or (likely and files.sizes):
        refused = DiffReport(outcome="cannot-compare", message=probe.loaded.refusal)
        return replace(refused, hint=MAPPED if job.own else "")
    if files.sizes:
        files.load(probe)
    for mask, drawn in draws_by_mask(probe):
        report, right = _each_output(probe, mask, drawn, others, _sources(job), ends[1])
        if report.outcome == "same" and not report.returned:
            report = _with_gradients(report, probe, drawn, _sources(job))
            if report.outcome == "same" and right is not None and right.isnan().any():
                return replace(report, message=NAN)
        if report.outcome != "same":
            break
    if report.outcome == "same" and all(job.checkpoints):
        report = files.compare(probe) or report
    report = replace(report, weights=likely, guessed=bool(likely))
    return with_files(report, _names(job))


def _each_output(
    probe: Probe,
    mask: Mask,
    drawn: Sequence[Inputs],
    others: Sequence[Sizes],
    sources: Sources,
    until: float,
) -> tuple[DiffReport, Tensor | None]:
    """What is to say of the first returned tensor that differs, or of all; and what the reference
    returns first."""

    def draws_of(pick: int) -> tuple[Draw, Draw]:
        one, two = (_draw(probe, inputs, pick) for inputs in drawn)
        return replace(one, holds=_holds_at(others, probe, mask, pick), until=until), two

    draws = draws_of(0)
    right = draws[0].theirs.result
    report = diagnose(*draws, probe.sizes, sources)
    compared, apart = [1], []
    for pick in range(1, min(report.returned, default=1)):
        if report.outcome != "same":
            break
        draws = draws_of(pick)
        mine, theirs = draws[0].mine({}).result, draws[0].theirs.result
        if mine is not None and theirs is not None and other_shape(mine, theirs):
            shapes = f"{tuple(mine.shape)} in yours, {tuple(theirs.shape)} in the reference"
            apart.append(f"tensor {pick + 1} is not compared: it is {shapes}")
            continue
        compared.append(pick + 1)
        report = diagnose(*draws, probe.sizes, sources)
    if report.outcome == "different" and report.returned:
        says = f"tensor {compared[-1]} of the {max(report.returned)} that are returned differs"
        report = replace(report, message="; ".join(filter(None, (says, report.message))))
    if report.outcome == "same":
        report = replace(report, message="; ".join(apart))
    return replace(report, compared=tuple(compared) if report.returned else ()), right


def _looked_at(report: DiffReport) -> str:
    """What is equal: outputs and gradients, or which of several tensors."""
    if not report.returned:
        return ALL
    mine, theirs = report.returned
    if (len(report.compared),) * 2 == report.returned:
        which = (
            f"all {mine} tensors that are returned"
            if mine > 1
            else "the tensor in what is returned"
        )
    else:
        noun = "tensor" if len(report.compared) == 1 else "tensors"
        numbers = " and ".join(map(str, report.compared))
        many = f"{mine} of yours and {theirs} of the reference" if mine != theirs else f"{mine}"
        which = f"{noun} {numbers} of what is returned ({many})"
    return f"{which}, without gradients"


def _with_gradients(
    report: DiffReport, probe: Probe, drawn: Sequence[Inputs], sources: Sources
) -> DiffReport:
    """The report of equal outputs, unless gradients differ."""
    inputs = drawn[0]
    try:
        shown = [_gradient_draw(probe, given) for given in drawn]
        found = diagnose_gradients(shown[0], shown[1], probe.sizes, sources)
    except Raised as error:
        raised = str(error).partition(" Hint:")[0]
        message = f"outputs are equal; with gradients it raises {raised}"
        named = diagnose_overwritten(Side(probe.values(inputs, {})), str(error), sources)
        failed = replace(report, outcome="different", part="gradient", message=message)
        return replace(failed, diagnosis=named)
    if not found.names:
        return report
    draws = [_draw(probe, inputs) for _ in range(2)]
    values = diagnose(draws[0], draws[1], probe.sizes, sources)
    if values.outcome == "different":  # which way the code takes may depend on the numbers
        return values
    names = list(found.names)
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    noun, are = ("gradients", "are") if len(names) > 1 else ("gradient", "is")
    told = f"the {noun} of {', '.join(names[:NAMES])}{more} {are} wrong"
    return replace(
        report,
        outcome="different",
        part="gradient",
        max_error=max(found.names.values()),
        message=f"outputs are equal; {told}",
        diagnosis=found.diagnosis,
        runs=found.runs,
    )


def _gradient_draw(probe: Probe, inputs: Inputs) -> GradientDraw:
    reference = probe.reference
    assert reference is not None
    cotangent = probe.noise(reference.call(inputs)).double()
    theirs = Side(reference.values(inputs, Backward(cotangent)))
    learnt = {v.name: gradient_of(v) for v in theirs.values if v.name and v.live}
    weights = {n: g for n, g in learnt.items() if n in reference.weights}
    wanted = {n: g for n, g in learnt.items() if n in inputs}
    if not probe.loaded.refusal and len(weights) == len(reference.weights):
        wanted |= probe.loaded.gradients(weights)

    def mine(put: Put, undo: Collection[int]) -> Side:
        asked = Backward(cotangent, list(put.items()), list(undo))
        try:
            return Side(probe.gradient_values(inputs, asked))
        except Raised:
            if put or undo:
                return Side.empty()
            raise

    return GradientDraw(mine, theirs, wanted)


def _draw(probe: Probe, inputs: Inputs, pick: int = 0) -> Draw:
    assert probe.reference is not None

    def mine(patches: Patches) -> Side:
        try:
            return Side(probe.values(inputs, patches, pick))
        except Raised:
            if patches:
                return Side.empty()
            raise

    def edited(
        text: str, changes: Sequence[tuple[int, int, str]], seconds: float
    ) -> tuple[Sequence[Tensor | None], float]:
        try:
            return probe.edited_results(text, changes, inputs, seconds, pick)
        except Raised:  # what is no file, as in a notebook, cannot be run again
            return [], seconds

    def with_change(text: str, change: Lines) -> Side:
        try:
            return Side(probe.edited_values(text, change, inputs, pick))
        except Raised:
            return Side.empty()

    theirs = Side(probe.reference.values(inputs, pick=pick), wholes=True)
    return Draw(mine, theirs, edited, with_change)


def _holds_at(others: Sequence[Sizes], probe: Probe, mask: Mask, pick: int) -> Holds:
    """Which changes of a text make outputs right at other sizes as well, and whether it is wrong
    there as it is: what is right at one may have another number by accident."""
    reference = probe.reference
    assert reference is not None

    def holds(text: str, changes: Sequence[Lines]) -> tuple[Sequence[bool], bool]:
        weights, mine = dict(reference.weights), probe.parameters()
        good, telling = [True] * len(changes), False
        for sizes in others:
            other = Probe(probe.context, sizes)
            try:
                other.equip()
                inputs = other.draw(mask)
            except (BadReference, Raised, Skip):  # sizes that one of them refuses
                continue
            if other.loaded.refusal:
                continue
            right = reference.values(inputs, pick=pick).result
            asked = [UNCHANGED, *changes]
            made, _ = other.edited_results(text, asked, inputs, PATIENCE, pick)
            same, made = next(iter(made), None), made[1:]
            telling = telling or same is None or right is None or not equal(same, right)
            pairs = zip_longest(good, made)
            good = [g and r is not None and right is not None and equal(r, right) for g, r in pairs]
        probe.equip()
        reference.put(weights)
        probe.set_parameters(mine)
        return good, telling

    return holds


def _sources(job: Job) -> Sources:
    theirs = job.reference
    mine = {job.candidate.path or job.candidate.file: job.candidate.text}
    mine[job.candidate.file] = job.candidate.text
    other = (
        {theirs.path or theirs.file: theirs.text, theirs.file: theirs.text}
        if isinstance(theirs, Code)
        else {}
    )
    return Sources(mine=mine, theirs=other)


def _names(job: Job) -> dict[str, str]:
    """Files by the names that messages show."""
    found = {job.candidate.path: job.candidate.file}
    if isinstance(job.reference, Code):
        found |= {job.reference.path: job.reference.file}
    return found
