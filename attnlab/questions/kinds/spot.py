"""Read 20 to 40 lines and find the bug, unrun, if there is one.

Type the number of the line that is wrong, or `nothing`: some are right, and some only look wrong.
Then: what kind of bug is it, and what would be seen?
"""

from __future__ import annotations

import ast
import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from attnlab.catalogue.categories import CATEGORIES
from attnlab.catalogue.places import changed_spans
from attnlab.errors import Refused
from attnlab.questions.base import Judged, Part, Runner, about, asked, choice
from attnlab.questions.effects import effect_of
from attnlab.questions.kinds.effect import ask_effect, changed_lines
from attnlab.questions.material import Excerpt, Patched, excerpt, promised, tree_of

MATERIAL = "patched"
ABOUT = (*CATEGORIES, "decoy", "clean")  # what it can be asked about
FILE = Path(__file__).parents[1] / "spot.toml"  # which kinds a bug may be called
# Shares: of bugs in whose place the right file is shown, of right files and decoys that are shown.
# There are as many of these as of bugs, and a third of what is shown is right.
CLEAN, RIGHT = 0.1, 0.3
FEWEST = 2  # kinds that a bug is surely none of
NEAR = 2  # lines from the bug that count half
NUMBER = "the number of a line, or the word nothing"
NOTHING = {"nothing", "none", "no", "clean", "ok", "0"}


def draw(one: Patched, dice: random.Random, runner: Runner) -> Sequence[Part] | None:
    if len(one.files) > 1:
        return None
    if one.is_right and dice.random() > RIGHT:
        return None
    if not one.is_right and dice.random() < CLEAN:
        one = replace(one, text=one.right, id="", category="", why="The file is as it should be.")
    wrong = wrong_lines(one)
    if one.id and not wrong:
        return None
    place = min(wrong) if wrong else dice.choice(_body_lines(one.text))
    shown = excerpt(one.text, place, until=max(wrong, default=0))
    if not all(shown.first <= n <= shown.last for n in wrong):
        return None  # who sees one of two changes alone cannot tell whether it is wrong
    right = "decoy" if one.decoy else "clean"
    material = {"base": one.base, "bug": one.id, "category": one.category or right}
    first = Part(
        question=asked("Which line is wrong, if one is?", NUMBER),
        right="nothing is wrong" if one.is_right else _name_lines(wrong, one.text),
        judge=lambda typed: judge_line(typed, set() if one.is_right else wrong, shown),
        why=one.why or "Nothing was changed in it.",
    )
    parts = [first]
    if not one.is_right:
        parts += filter(None, [ask_category(one, dice)])
        found = effect_of(one, runner)
        # A crash of some calls alone depends on sizes, which are not shown.
        if found and found.worst and not (found.worst == "crash" and found.passed):
            parts.append(replace(ask_effect(one, found, runner), why=found.message))
    code = shown.code(one.file) | {"log": promised(one)}
    return [about(part, code, material) for part in parts]


def wrong_lines(one: Patched) -> set[int]:
    """Lines of the patched text that differ from the right one; beside what was taken out, those
    around the gap."""
    after, changed = one.text.splitlines(), changed_spans(one.right, one.text)
    spans = (range(j1, j2) if j2 > j1 else range(j1 - 1, j1 + 1) for j1, j2 in changed)
    return {n + 1 for n in chain(*spans) if 0 <= n < len(after) and after[n].strip()}


def _body_lines(text: str) -> list[int]:
    functions = (n for n in ast.walk(tree_of(text)) if isinstance(n, ast.FunctionDef))
    return [statement.lineno for function in functions for statement in function.body] or [1]


def _name_lines(lines: set[int], text: str) -> str:
    all_lines = text.splitlines()
    return "; ".join(f"line {n}: {all_lines[n - 1].strip()}" for n in sorted(lines)[:3])


def judge_line(typed: str, bad: set[int], shown: Excerpt) -> Judged:
    word = typed.lower().removeprefix("line").strip(" :.")
    if word in NOTHING or word.startswith("nothing"):
        message = "a line of it is wrong" if bad else ""
        return Judged("wrong" if bad else "right", "nothing", message)
    if not word.isdecimal() or not shown.first <= int(word[:9]) <= shown.last:
        hint = f"type {NUMBER}; the lines are {shown.first} to {shown.last}"
        raise Refused(f'"{typed[:40]}" is no line that is shown', hint)
    number = int(word)
    if number in bad:
        return Judged("right", f"line {number}", "")
    if not bad:
        return Judged("wrong", f"line {number}", "that line is right, and so are the others")
    if min(abs(number - line) for line in bad) <= NEAR:
        return Judged("partly", f"line {number}", "close: the bug is beside it")
    return Judged("wrong", f"line {number}", "that line is right")


def ask_category(one: Patched, dice: random.Random) -> Part | None:
    """The choice of what kind of bug it is; None where it may be called nearly everything."""
    said = "\n".join(_said(one))
    groups = [
        [kind for kind, words in sorted(group.items()) if not re.search(words, said, re.IGNORECASE)]
        for group in tomllib.loads(FILE.read_text("utf-8"))["groups"]
        if one.category not in group
    ]
    groups = [group for group in groups if group]
    if len(groups) < FEWEST:
        return None
    wrong = [dice.choice(group) for group in dice.sample(groups, min(3, len(groups)))]
    question, right, judge = choice(dice, one.category, wrong, "What kind of bug is it?")
    return Part(question=question, right=right, judge=judge)


def _said(one: Patched) -> Iterator[str]:
    """What a bug may be called by: what is told of it, and the names of what it stands in."""
    bug = one.program.patches[one.id] if one.program else one.challenge
    yield from (one.base, one.effect, one.symptom, one.why, *(bug.hints if bug else ()))
    definitions = (ast.ClassDef, ast.FunctionDef)
    around = [node for node in ast.walk(tree_of(one.right)) if isinstance(node, definitions)]
    for number, text in changed_lines(one):
        yield text
        yield from (n.name for n in around if n.lineno <= number <= (n.end_lineno or 0))
