"""Say what comes of a change before it is run.

A change of right code is shown: a bug, or a change that looks wrong and is right. Say the worst
that comes of it in any use that the file promises: a crash counts before NaN, NaN before a leak, a
leak before wrong values, those before training that is worse. Then: which property sees it?
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnlab.catalogue.categories import CATEGORIES
from attnlab.questions.base import Part, Runner, about, choice
from attnlab.questions.effects import EFFECTS, Effect, effect_of, known_mutants, measure
from attnlab.questions.material import Patched, excerpt

MATERIAL = "patched"
ABOUT = (*CATEGORIES, "decoy")  # what it can be asked about
LONGEST = 10  # lines of a change
MUTATED = 0.15  # share of the right files into which a generated bug is put
PROMPT = "What is the worst that comes of it, in any call that the code allows?"


def draw(one: Patched, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    mutated, found = not one.id and one.challenge is not None and dice.random() < MUTATED, None
    if mutated:
        one, found = _mutated(one, dice)
    if not one.id or len(one.files) > 1:
        return None
    lines = list(changed_lines(one))
    found = (found or effect_of(one, runner)) if 0 < len(lines) <= LONGEST else None
    if found is None or not found.worst:
        return None
    if mutated and found.worst == "nothing":  # that all checks pass is no proof
        return None
    place = next(number for number, _ in lines)
    shown = excerpt(one.right, place)
    code = shown.code(one.file, place) | {"log": tuple(text for _, text in lines)}
    material = {"base": one.base, "bug": one.id, "category": one.category or "decoy"}
    parts = [ask_effect(one, found, runner), _ask_property(found, dice)]
    return [about(part, code, material) for part in parts if part]


def _mutated(one: Patched, dice: random.Random) -> tuple[Patched, Effect | None]:
    """A right file with a generated bug in it, and what comes of that where it is known."""
    if known := known_mutants(one):
        bug = dice.choice(known)
        text = one.right.replace(*bug.edit, 1)
        named = replace(one, text=text, id=f"mutant-{bug.mutation}", category=bug.category)
        return named, bug.effect
    from attnlab.mutation_testing.operators.base import category_of, drawn_mutants  # not before

    for made in drawn_mutants(one.right, dice):
        category = category_of(made.mutation)
        return replace(one, text=made.text, id=f"mutant-{made.mutation}", category=category), None
    return one, None


def ask_effect(one: Patched, found: Effect, runner: Runner) -> Part:
    """The choice of what comes of a change."""
    question, right, judge = choice(
        random.Random(0), EFFECTS[found.worst], EFFECTS.values(), PROMPT, ordered=True
    )
    why = f"{found.message}\n\n{one.why}" if found.message and not one.decoy else one.why

    def run() -> str:
        seen = measure(one, runner)
        return seen.message or f"it passes: {len(seen.passed)} checks see no difference"

    return Part(question=question, right=right, judge=judge, why=why, show=run)


def changed_lines(one: Patched) -> Iterator[tuple[int, str]]:
    """The lines of a change as in a diff, each with the number of a line of the right file."""
    before, after = one.right.splitlines(), one.text.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield from ((i + 1, f"- {before[i]}") for i in range(i1, i2))
            yield from ((min(i1 + 1, len(before)), f"+ {after[j]}") for j in range(j1, j2))


def _ask_property(found: Effect, dice: random.Random) -> Part | None:
    """Which check fails: one that does, among some that pass."""
    passed = [title for title in found.passed if title not in found.seen]
    if not found.seen or len(passed) < 2:
        return None
    wrong = dice.sample(passed, min(3, len(passed)))
    prompt = "Which of these sees it?"
    question, right, judge = choice(dice, found.seen[0], wrong, prompt)
    return Part(question=question, right=right, judge=judge, why=found.message)
