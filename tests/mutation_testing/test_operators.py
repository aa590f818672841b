"""Every mutation does what its docstring says, and leaves the rest of the text alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from attnlab.catalogue.load import load
from attnlab.mutation_testing.operators.base import load_mutations, mutants

MUTATIONS = load_mutations()
BASES = {c.base: c for c in load().challenges if c.base}
OWNERS = [*(c for c in load().challenges if not c.base), *[*BASES.values()][::6]]
SOLUTIONS = [Path(c.solution).read_text(encoding="utf-8") for c in OWNERS]
FRAME = "def forward(self, x, mask=None):\n"

every = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.id)


def example(mutation, word):
    """The lines in backticks after `Right:` or `Wrong:`, as the body of a method."""
    part = re.search(rf"^{word}:(.*?)(?=^\w+:|\Z)", mutation.doc, re.MULTILINE | re.DOTALL)
    assert part, f"{mutation.id} has no line {word}:"
    lines = re.findall(r"`([^`]+)`", part[1])
    return FRAME + "".join(f"    {line}\n" for line in lines)


def test_there_are_enough_of_them():
    """A grader that is measured with a handful of bugs is not measured."""
    assert len(MUTATIONS) >= 30


@every
def test_the_docstring_tells_the_bug_with_an_example_that_is_true(mutation):
    """What stands under Wrong is one of the mutants of what stands under Right."""
    right, wrong = example(mutation, "Right"), example(mutation, "Wrong")
    made = [ast.dump(ast.parse(m.text)) for m in mutants(right, mutation.id)]
    assert ast.dump(ast.parse(wrong)) in made
    assert mutation.doc.strip().splitlines()[0].endswith((".", ":"))


@every
def test_the_example_is_not_made_of_itself(mutation):
    """A mutation that yields its own base would count as a bug that nobody can find."""
    right = example(mutation, "Right")
    same = ast.dump(ast.parse(right))
    assert all(ast.dump(ast.parse(m.text)) != same for m in mutants(right, mutation.id))


@pytest.mark.parametrize("text", SOLUTIONS, ids=[c.name for c in OWNERS])
def test_mutants_differ_by_what_they_say(text):
    """Line, before and after are those of the text, comments stay, and no two mutants are alike."""
    lines = text.splitlines()
    found = list(mutants(text))
    assert len(found) > 100
    assert len({m.text for m in found}) == len(found)
    for m in found:
        before = [line.strip() for line in lines[m.line - 1 :]]
        assert before[: len(m.before.splitlines())] == m.before.splitlines()
        assert m.before != m.after
        assert m.text.count("#") >= text.count("#") - m.before.count("#")


@every
def test_it_can_be_put_into_a_real_module_or_an_example(mutation):
    """An operator that finds no place measures nothing."""
    right = example(mutation, "Right")
    assert any(list(mutants(text, mutation.id)) for text in (right, *SOLUTIONS))


@pytest.mark.parametrize(
    "operator", ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"]
)
def test_every_operator_of_python_can_stand_in_a_file(operator):
    """One that a mutation does not know must not end the measuring of a whole challenge."""
    text = (
        f"def f(a, b):\n    return (a {operator} b) {operator} -(b {operator} (a {operator} a))\n"
    )
    found = list(mutants(text))
    assert found
    for mutant in found:
        ast.parse(mutant.text)
