"""Give the reason: why is it so, what does it do, is that a bug?

Choices, one of which is true. The others are what is often said: `attnlab/questions/why.toml`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attnlab.questions.base import Part, Runner, choice

MATERIAL = ""
FILE = Path(__file__).parents[1] / "why.toml"


@cache
def entries() -> list[dict[str, Any]]:
    import tomllib

    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["why"]
    return found


def draw(piece: object, dice: random.Random, runner: Runner) -> Sequence[Part]:  # noqa: ARG001
    entry = dice.choice(entries())
    question, right, judge = choice(dice, entry["right"], entry["wrong"], entry["prompt"])
    base = f"why/{entry['id']}"
    return [
        Part(
            question=question,
            right=right,
            judge=judge,
            why=entry["why"],
            base=base,
            category=entry["category"],
        )
    ]
