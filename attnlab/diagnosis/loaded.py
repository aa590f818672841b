"""Weights that a state dict brings: those that mine holds otherwise than the reference does.

Where both load the same layers, as converters of checkpoints do, a weight of the same name tells
more than what is computed with it: no operation is at fault, but the line that fills it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attnlab.diagnosis.lines import loading_line, nearest_difference
from attnlab.diagnosis.pairing import Pairing, Side, equal
from attnlab.diagnosis.place import Sources
from attnlab.diagnosis.relations import Relation, relate
from attnlab.records.diagnosis import Diagnosis

LIKELY = 0.6
MOST = 5


def misloaded(pairing: Pairing, sizes: Mapping[str, int], sources: Sources) -> Iterator[Diagnosis]:
    """The lines that fill weights with other numbers than the reference's have, at most five."""
    mine, theirs = _loaded(pairing.mine), _loaded(pairing.theirs)
    wrong = [
        name
        for name in mine.keys() & theirs.keys()
        if not equal(
            pairing.mine.values[mine[name]].numbers, pairing.theirs.values[theirs[name]].numbers
        )
    ]
    for name in sorted(wrong, key=mine.__getitem__)[:MOST]:
        value, right = pairing.mine.values[mine[name]], pairing.theirs.values[theirs[name]]
        relation = relate(value.numbers, right.numbers, sizes)
        swapped = next((n for n in wrong if theirs[n] in pairing.matches[mine[name]]), "")
        if swapped and swapped != name:
            relation = Relation("exchanged", f"what belongs into `{swapped}`")
        for file, text in sources.mine.items():  # of two alike files only what differs is named
            line = loading_line(text, name)
            others = sources.theirs.values() or [text]
            near = {nearest_difference(text, other, line) or line for other in others}
            if line and file and line in near and _is_at_fault(pairing, mine[name], line):
                yield Diagnosis(
                    file=file,
                    line=line,
                    end_line=line,
                    source=text.splitlines()[line - 1].strip(),
                    relation=relation.kind if relation else "wrong-weight",
                    message=f"what is loaded into `{name}` is "
                    + (relation.says if relation else "not what the reference loads there"),
                    confidence=LIKELY,
                    confirmed=False,
                )
                break


def makes_weights(side: Side, steps: Sequence[int]) -> bool:
    """Whether all these steps stand before what is loaded, as those of a converter do."""
    made = (side.ancestors(weight) for weight in _loaded(side).values())
    return set().union(*made).issuperset(steps)


def _is_at_fault(pairing: Pairing, weight: int, line: int) -> bool:
    """Whether what the line fills in was right before it: else an earlier step is wrong."""
    made = (pairing.mine.values[i] for i in pairing.mine.ancestors(weight) & {*pairing.wrong})
    return all(v.call < 0 or line in (v.line, *v.callers) for v in made)


def _loaded(side: Side) -> dict[str, int]:
    """The values of weights that were filled unseen, by their names."""
    return {v.module: i for i, v in enumerate(side.values) if v.call < 0 and v.module}
