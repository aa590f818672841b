"""Walk through one module, line by line: what shape, and why is it there?

Of some lines, in the order in which they run: type the axes of what each makes, as names or
as numbers; then say why it is there. Shapes are compared with the trace of that code.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from attnlab.questions.base import Part, Runner, about, choice
from attnlab.questions.kinds.shapes import ask_shape, shown
from attnlab.questions.material import Piece, excerpt
from attnlab.questions.readable import Line, lines_of
from attnlab.questions.walk import texts

MATERIAL = "piece"
ABOUT = ("shapes",)  # what it can be asked about
FEWEST, MOST = 4, 6  # lines that are walked through
STAGES = (
    {"projection", "split", "heads in front", "merge", "rotate", "scale"},
    {"scores", "scale", "mask", "bias", "weights", "context", "attention"},
    {"norm", "residual", "embedding", "activation", "gate"},
)


def draw(piece: Piece, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    lines = lines_of(piece, runner)
    known = sorted((one for one in lines.all if one.known_as), key=lambda one: one.value.index)
    here = excerpt(piece.text, known[len(known) // 2].number if known else 1)
    found = [one for one in known if here.first <= one.number <= here.last][:MOST]
    if len(found) < FEWEST:
        return None
    code = shown(piece, here, None, lines.sizes[0])
    parts = [[ask_shape(one, lines.sizes), _ask_why(one, dice)] for one in found]
    material = {"base": piece.base, "category": "shapes"}
    return [about(part, code, material) for both in parts for part in both if part]


def _ask_why(line: Line, dice: random.Random) -> Part | None:
    """The reason for a line among those for other stages: of its own more may be true."""
    name, *_ = names = line.known_as
    mine = set[str]().union(*(stage for stage in STAGES if stage & {*names}))
    why, source = texts()["why"], line.value.source
    others = [other for other in why if other not in mine and other not in source]
    if len(others) < 3:
        return None
    wrong = [why[other] for other in dice.sample(others, 3)]
    prompt = f"What is line {line.number} itself there for?"
    question, right, judge = choice(dice, why[name], wrong, prompt)
    return Part(question=question, right=right, judge=judge, why=f"It is known as: {name}.")
