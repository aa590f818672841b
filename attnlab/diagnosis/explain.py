"""Say of a repair which line is wrong, and how: by its operands, then by its numbers."""

from __future__ import annotations

import linecache
from collections.abc import Mapping

import torch
from torch import Tensor

from attnlab.diagnosis.families import called, same_family
from attnlab.diagnosis.lines import replacing_lines
from attnlab.diagnosis.pairing import Side, equal, is_mask, layouts
from attnlab.diagnosis.place import OF_NUMBERS, Finding, Sources, is_in_difference, lines_to_name
from attnlab.diagnosis.relations import Relation, relate
from attnlab.diagnosis.repair import Repair
from attnlab.records.diagnosis import Diagnosis

SPECIFIC = ("mask", "scale", "sign", "offset", "softmax", "base", "sine", "dropped")
TELLING = (*SPECIFIC, "axes", "transposed", "roll", "shift", "flip", "order", "exchanged", "extra")
COPIES = ("repeat", "repeat_interleave", "expand", "expand_as", "tile")
ALONG_AXES = ("mean", "sum", "amax", "amin", "var", "std", "cumsum", "logsumexp", "norm", "unbind")
SURE, LIKELY = 0.95, 0.6
SOURCE = 80  # characters of a line that are shown


def describe(repair: Repair, sizes: Mapping[str, int], sources: Sources, sure: bool) -> Diagnosis:
    """The diagnosis of one repair."""
    found = find_relation(repair, sizes)
    mine, theirs = repair.before, repair.pairing.theirs
    at, until = mine.values[found.at], mine.values[found.until]
    seen, line = lines_to_name(repair, found, sources)
    says, exact = found.relation.says, _is_exact(repair, found)
    exact = exact and (is_in_difference(sources, at.file, line) or _is_proven(repair, found))
    if line != seen:
        says, exact = f"seen on line {seen}: {says}", False
    other = theirs.values[found.beside] if found.beside >= 0 else None
    end = until.line if at.file == until.file and line == seen else line
    if not is_in_difference(sources, at.file, end) and is_in_difference(sources, at.file, line):
        end = line
    there = other.file if other else ""
    texts = sources.mine.get(at.file, ""), sources.theirs.get(there, "")
    right = (replacing_lines(*texts, line) or (other.line,)) if other else (0,)
    return Diagnosis(
        file=at.file,
        line=line,
        end_line=max(line, end),
        source=line_text(sources.mine, at.file, line),
        relation=found.relation.kind,
        message=says,
        confidence=SURE if sure and exact else LIKELY,
        confirmed=sure and exact,
        their_file=there,
        their_line=right[0],
        their_end_line=right[-1],
        their_source="\n".join(line_text(sources.theirs, there, n) for n in right),
    )


def _is_exact(repair: Repair, found: Finding) -> bool:
    """Whether nothing before the line can be what is wrong: the numbers themselves say how they
    are, and there is no step that the reference does not have."""
    mine, kind = repair.before, found.relation.kind
    made = mine.values[repair.mine]
    if not kind.startswith(SPECIFIC if repair.bold else TELLING):
        return False
    if not made.inputs or repair.told:
        return False  # a number that it was given may be wrong, or another step
    if kind in OF_NUMBERS[:3] and repair.theirs >= 0:
        other = repair.pairing.theirs.values[repair.theirs]
        if not same_family(made.op, other.op) and found.at == found.until:
            return False  # the reference may scale elsewhere
    one_line = mine.values[found.at].line == mine.values[found.until].line
    return not repair.region or one_line


def _is_proven(repair: Repair, found: Finding) -> bool:
    """Whether the values alone tell: the step and the reference's do one thing to the same values,
    all of them right, and the step's own arguments are no reason to look at another line.

    Where the two are written otherwise, the reference may mask or scale elsewhere, and what is put
    here only makes up for what went wrong before."""
    here, pairing = repair.mine, repair.pairing
    if repair.theirs < 0 or repair.region or not here == found.at == found.until:
        return bool(repair.swapped)
    mine, theirs = repair.before.values[here], pairing.theirs.values[repair.theirs]
    right = all(pairing.matches[i] for i in mine.inputs)
    same = pairing.input_classes(here) == pairing.their_input_classes(repair.theirs)
    given = mine.scalars == theirs.scalars or found.relation.kind == "softmax-axis"
    return right and same and given and same_family(mine.op, theirs.op)


def line_text(texts: Mapping[str, str], file: str, line: int) -> str:
    """A line of a file, without spaces around it."""
    lines = texts[file].splitlines() if file in texts else linecache.getlines(file)
    return lines[line - 1].strip()[:SOURCE] if 0 < line <= len(lines) else ""


def find_relation(repair: Repair, sizes: Mapping[str, int]) -> Finding:
    """What is wrong with a step, from what it takes and from its numbers."""
    here = repair.mine
    if repair.told:
        return Finding(repair.told, here, here, -1)
    if repair.swapped or repair.theirs < 0 or _is_right_before(repair):
        return Finding(_own_step(repair), here, here, -1)
    if (shape := _shape_at_end(repair)) is not None:
        return shape
    numbers = relate(*broadcast(repair.before.values[here].numbers, repair.value), sizes)
    told = Finding(_with_subject(numbers), here, here, repair.theirs) if numbers else None
    if numbers and _says_all(repair, numbers):
        return Finding(
            _with_subject(numbers), _source_of_scale(repair, numbers), here, repair.theirs
        )
    if repair.region:
        return _somewhere(repair, numbers)
    found = _operands(repair, sizes) or told
    return found or Finding(_other_operation(repair), here, here, repair.theirs)


def _is_right_before(repair: Repair) -> bool:
    """Whether a step takes what it should give."""
    values = repair.before.values
    taken = (values[i].numbers for i in values[repair.mine].inputs)
    told = bool(repair.value.isfinite().any())  # infinities are equal by accident
    return told and any(equal(numbers, repair.value) for numbers in taken)


def _own_step(repair: Repair) -> Relation:
    """What is wrong with a step that is right with another value of mine."""
    op = called(repair.before.values[repair.mine].op)
    if repair.swapped:
        return Relation(
            "exchanged", f"the results of {op} are taken in another order than they have"
        )
    return Relation("extra-step", f"{op} is one step too many: without it the output is right")


def _shape_at_end(repair: Repair) -> Finding | None:
    """What is wrong with an output of another shape; None where the shape is right."""
    pairing, here = repair.pairing, repair.mine
    made, theirs = repair.before.values[here], pairing.theirs
    if here != repair.before.output or made.numbers.shape == repair.value.shape:
        return None
    if theirs.classes[repair.theirs] in pairing.input_classes(here):
        says = f"{called(made.op)} changes the shape of what is right before it"
        return Finding(Relation("extra-step", says), here, here, repair.theirs)
    return _missing_at_end(repair) or Finding(_other_operation(repair), here, here, repair.theirs)


def broadcast(mine: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one shape, where they have one."""
    try:
        a, b = torch.broadcast_tensors(mine.double(), theirs.double())  # type: ignore[no-untyped-call]
    except RuntimeError:
        return mine, theirs
    return a, b


def _somewhere(repair: Repair, numbers: Relation | None) -> Finding:
    """Steps that the reference does not have stand before the one that could be put right."""
    first = repair.region[0]
    says = f"what line {repair.before.values[repair.mine].line} computes is wrong"
    says += f" ({numbers.says})" if numbers else ""
    kind = numbers.kind if numbers else "other"
    return Finding(Relation(kind, f"from here on: {says}"), first, repair.mine, repair.theirs)


def _with_subject(relation: Relation) -> Relation:
    return Relation(relation.kind, f"what this line computes is {relation.says}")


def _source_of_scale(repair: Repair, relation: Relation | None) -> int:
    """The step to name: of a wrong factor, the product before it that is only mine."""
    if relation and relation.kind in ("scale", "sign", "offset"):
        for index in repair.region:
            if same_family(repair.before.values[index].op, "mul"):
                return index
    return repair.mine


def _says_all(repair: Repair, numbers: Relation) -> bool:
    """Whether the numbers tell how a step is wrong, whatever it takes: as of two masks."""
    masks = numbers.kind.startswith("mask") and is_mask(repair.before.values[repair.mine].numbers)
    return masks or (numbers.kind.startswith(SPECIFIC) and _same_operands(repair))


def _same_operands(repair: Repair) -> bool:
    pairing = repair.pairing
    mine = {c for c in pairing.input_classes(repair.mine) if c >= 0}
    return mine == pairing.their_input_classes(repair.theirs) or bool(repair.region)


def _operands(repair: Repair, sizes: Mapping[str, int]) -> Finding | None:
    """What is taken in place of what."""
    pairing, here = repair.pairing, repair.mine
    theirs = pairing.theirs
    mine = {c for c in pairing.input_classes(here) if c >= 0}
    wanted = pairing.their_input_classes(repair.theirs)
    wanted = {c for c in wanted if theirs.values[c].numbers.numel() > 1}
    extra, missing = sorted(mine - wanted), sorted(wanted - mine)
    alike = same_family(repair.before.values[here].op, theirs.values[repair.theirs].op)
    if len(missing) == 1 and len(extra) <= 1 and (alike or not extra):
        lost = missing[0]
        if extra and extra[0] in theirs.ancestors(lost) and _is_unclaimed(repair, lost):
            return _omission(repair, extra[0], lost, sizes)
        what = _describe_class(repair, lost)
        if extra and not _is_unclaimed(repair, lost):
            says = f"takes {_describe_class(repair, extra[0])} where the reference takes {what}"
            return Finding(Relation("wrong-operand", f"it {says}"), here, here, repair.theirs)
        if not extra and not _is_unclaimed(repair, lost):
            says = f"it leaves out {what}, which the reference takes here"
            return Finding(Relation("missing-term", says), here, here, repair.theirs)
    if extra and not missing and alike:
        says = f"it also takes {_describe_class(repair, extra[0])}, which the reference does not"
        return Finding(Relation("extra-term", says), here, here, repair.theirs)
    if not alike and mine & theirs.ancestors(repair.theirs) and not repair.region:
        return _missing_at_end(repair)
    return None


def _is_unclaimed(repair: Repair, theirs: int) -> bool:
    classes = repair.pairing.theirs.classes
    return any(classes[i] == classes[theirs] for i in repair.pairing.unclaimed)


def _omission(repair: Repair, taken: int, lost: int, sizes: Mapping[str, int]) -> Finding | None:
    """The reference does something to an operand first; None where it only copies it."""
    pairing, before = repair.pairing, repair.before
    theirs = pairing.theirs
    operand = next(i for i in before.values[repair.mine].inputs if pairing.class_of(i) == taken)
    step = _first_step(repair, taken, lost)
    made = before.values[operand]
    right = theirs.values[lost].numbers.double()
    laid = next(layouts(right, tuple(made.numbers.shape)), None)
    relation = relate(made.numbers, laid, sizes) if laid is not None else None
    op = called(theirs.values[step].op)
    if relation and relation.kind == "scale" and is_mask(made.numbers) and is_mask(right):
        return None  # one mask, with other numbers: what it closes tells more
    filled = relation is not None and relation.kind == "dropped"  # room that theirs writes into
    if relation and relation.kind.startswith(SPECIFIC) and not filled:
        says = f"what this line computes is left {relation.says}"
    else:
        relation = Relation("missing-step", "")
        says = f"the reference applies {op} to what this line computes, and this file does not"
    here = repair.mine
    if relation.kind == "missing-step" and theirs.values[step].op in COPIES:
        return None  # as where a product broadcasts over groups: nothing is missing
    on_line = theirs.values[step].line == theirs.values[repair.theirs].line
    turned = relation.kind == "mask-inverted"  # where it is taken; else masks are wrong as made
    own_line = on_line and not relation.kind.startswith("mask")
    at = here if own_line or turned else _made_at(repair, operand)
    return Finding(Relation(relation.kind, says), at, here, step)


def _made_at(repair: Repair, operand: int) -> int:
    """The last step that has an operand's value on a line before the one that takes it."""
    before, pairing = repair.before, repair.pairing
    taker, wanted = before.values[repair.mine], pairing.class_of(operand)
    for index in range(repair.mine - 1, -1, -1):
        made = before.values[index]
        elsewhere = made.file == taker.file and made.line not in (0, taker.line)
        if made.call >= 0 and elsewhere and pairing.class_of(index) == wanted:
            return index
    while operand >= 0 and before.values[operand].line == taker.line:
        operand = next(iter(before.values[operand].inputs), -1)
    made = before.values[operand] if operand >= 0 else taker
    return operand if made.file == taker.file and made.line else repair.mine


def _missing_at_end(repair: Repair) -> Finding | None:
    """Mine stops where the reference goes on."""
    pairing, here = repair.pairing, repair.mine
    theirs = pairing.theirs
    found = theirs.find(repair.before, here)
    if not found:
        return None
    step = _first_step(repair, theirs.classes[found[0]], repair.theirs)
    made = theirs.values[step]
    others = [i for i in made.inputs if theirs.classes[i] != theirs.classes[found[0]]]
    what = _describe_class(repair, theirs.classes[others[0]]) if others else ""
    if what and same_family(made.op, "add"):
        relation = Relation("missing-term", f"{what} is not added to what this line computes")
    else:
        op = called(made.op)
        says = f"the reference applies {op} to what this line computes, and this file does not"
        relation = Relation("missing-step", says)
    return Finding(relation, here, here, step)


def _first_step(repair: Repair, start: int, end: int) -> int:
    """The first step of theirs on the way from one class to another."""
    theirs = repair.pairing.theirs
    way = theirs.ancestors(end)
    for index in sorted(way):
        classes = {theirs.classes[i] for i in theirs.values[index].inputs}
        if start in classes and theirs.classes[index] != start:
            return index
    return end


def _describe_class(repair: Repair, which: int) -> str:
    """A value by its name, or by the line of mine that computes it."""
    pairing, mine = repair.pairing, repair.before
    theirs = pairing.theirs.values[which]
    for index, value in enumerate(mine.values):
        if pairing.class_of(index) == which:
            if value.name:
                return f"`{value.name}`"
            if value.line:
                return f"the result of {called(value.op)} on line {value.line}"
    return f"`{theirs.name}`" if theirs.name else f"the result of {called(theirs.op)}"


def _other_operation(repair: Repair) -> Relation:
    mine = repair.before.values[repair.mine]
    theirs = repair.pairing.theirs.values[repair.theirs]
    if mine.op == theirs.op and _plain(mine.scalars) != _plain(theirs.scalars):
        right = f"`{theirs.op}({theirs.scalars})`"
        says = f"`{mine.op}({mine.scalars})` where the reference has {right}"
        kind = "softmax-axis" if same_family(mine.op, "softmax") else "arguments"
        kind = "wrong-axis" if mine.op in ALONG_AXES else kind
        return Relation(kind, says)
    if same_family(mine.op, theirs.op):
        return Relation("other", "this line computes something else from the right operands")
    return Relation("other-step", f"{called(mine.op)} where the reference has {called(theirs.op)}")


def _plain(scalars: str) -> str:
    """Arguments without the name of the axis, which may be said or not."""
    return scalars.replace("dim=", "").replace("axis=", "")


def step_name(side: Side, index: int) -> str:
    """The operation of a value, or its name where it came from outside."""
    value = side.values[index]
    return value.op or value.name or "constant"
