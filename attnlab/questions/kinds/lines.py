"""Walk through one module, line by line: what shape, and why is it there?

Of some lines, in the order in which they run: type the axes of what each makes, as names or
as numbers; then say why it is there. Shapes are compared with the trace of that code.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from attnlab.questions.base import Part, Runner, about, choice
from attnlab.questions.kinds.shapes import SETS, ask_shape, fits, readable_lines, run, shown
from attnlab.questions.material import Piece, excerpt
from attnlab.questions.walk import texts, walk
from attnlab.records.walk import WalkStep

MATERIAL = "piece"
ABOUT = ("shapes",)  # what it can be asked about
FEWEST, MOST = 4, 6  # lines that are walked through
STAGES = (
    {"projection", "split", "heads in front", "merge", "rotate", "scale"},
    {"scores", "scale", "mask", "bias", "weights", "context", "attention"},
    {"norm", "residual", "embedding", "activation", "gate"},
)


def draw(piece: Piece, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    runs = [run(piece, number, runner) for number in SETS]
    steps = {step.line: step for step in walk(runs[0].trace) if step.why}
    found = [one for one in readable_lines(piece, runs) if one.number in steps]
    found = sorted(
        (one for one in found if fits(one.rows, runs)), key=lambda one: one.rows[0].index
    )
    here = excerpt(piece.text, found[len(found) // 2].number if found else 1)
    lines = [one for one in found if here.first <= one.number <= here.last][:MOST]
    if len(lines) < FEWEST:
        return None
    code = shown(piece, here, None, runs[0])
    parts = [[ask_shape(one, runs), _ask_why(steps[one.number], dice)] for one in lines]
    material = {"base": piece.base, "category": "shapes"}
    return [about(part, code, material) for both in parts for part in both if part]


def _ask_why(step: WalkStep, dice: random.Random) -> Part | None:
    """The reason for a line among those for other stages: of its own more may be true."""
    mine = set().union(*(stage for stage in STAGES if stage & step.why.keys()))
    others = [name for name in texts()["why"] if name not in mine and name not in step.source]
    if len(others) < 3:
        return None
    wrong = [texts()["why"][name] for name in dice.sample(others, 3)]
    name, right = next(iter(step.why.items()))
    prompt = f"What is line {step.line} itself there for?"
    question, right, judge = choice(dice, right, wrong, prompt)
    return Part(question=question, right=right, judge=judge, why=f"It is known as: {name}.")
