"""The worked example of B8: every number, and what is said of them (B8, B9, W)."""

import math
import re

import pytest

from attnlab.errors import Refused
from attnlab.lessons import find_lesson, lesson_titles, sinusoidal
from attnlab.lessons.base import Grid, Step
from attnlab.records import to_json


def step(title: str) -> Step:
    return next(s for s in find_lesson("sinusoidal").steps if s.title.startswith(title))


def rows(grid: Grid) -> list[list[float]]:
    """The numbers of a table, without the first column."""
    return [[float(cell) for cell in row[1:]] for row in grid.rows]


def everything() -> str:
    return " ".join(to_json(find_lesson("sinusoidal")).split())


def test_the_frequencies() -> None:
    """B8: w = [1, 0.01], with the exponents written out."""
    assert sinusoidal.frequencies() == pytest.approx([1.0, 0.01], rel=1e-15)
    lines = step("A frequency for each pair").lines
    assert lines[0].endswith("= 1")
    assert lines[1].endswith("10000^-0.5 = 1 / sqrt(10000) = 0.01")
    waves = [row[3] for row in step("A frequency").grids[0].rows]
    assert waves == pytest.approx([2 * math.pi, 200 * math.pi])


def test_every_number_on_the_way_to_the_table() -> None:
    """B8: angles, sines and cosines, and the rows of the specification to its digits."""
    assert rows(step("An angle").grids[0]) == [[0, 0], [1, 0.01], [2, 0.02]]
    sines, cosines = map(rows, step("Sine and cosine").grids)
    table = rows(step("The table").grids[0])
    assert table == [[s[0], c[0], s[1], c[1]] for s, c in zip(sines, cosines, strict=True)]
    by_hand = [
        [0, 1, 0, 1],
        [0.8415, 0.5403, 0.0100, 0.99995],
        [0.9093, -0.4161, 0.0200, 0.9998],
    ]
    for row, expected in zip(table, by_hand, strict=True):
        assert row == pytest.approx(expected, abs=5e-5)


def test_the_table_is_the_formula() -> None:
    """B8: at any width and position, as the references compute it."""
    for d in (2, 8, 64):
        for p in (0, 7, 500):
            expected = [
                f(p / 10000 ** (2 * i / d)) for i in range(d // 2) for f in (math.sin, math.cos)
            ]
            assert sinusoidal.encoding(p, d) == pytest.approx(expected, abs=1e-12)


def test_lengths_and_differences() -> None:
    """B8: lengths sqrt(2); equal dot products and lengths, but different vectors, one apart."""
    found = step("Lengths")
    assert sum("= 1.41421 = sqrt(2)" in line for line in found.lines) == 3
    assert sum("1.54025" in line for line in found.lines) == 2
    assert f"{math.cos(2) + math.cos(0.02):.5f}" in found.lines[-1]
    first, second = rows(found.grids[0])
    assert first[-1] == pytest.approx(second[-1])
    assert first[0] != pytest.approx(second[0], abs=0.1)


def test_the_rotation_takes_each_row_to_the_next() -> None:
    """B9: one matrix for both steps, and products that come out."""
    m = sinusoidal.rotation(1)
    for p in range(9):
        turned = [sinusoidal.dot(row, sinusoidal.encoding(p)) for row in m]
        assert turned == pytest.approx(sinusoidal.encoding(p + 1))
    for line in step("One position further").proof:
        left, _, result = line.partition(" = ")[2].rpartition(" = ")
        assert eval(left) == pytest.approx(float(result), abs=2e-5)


def test_the_addition() -> None:
    """B8: B = 2, L = 3, C = 4: the same table under both sequences."""
    found = step("Added to a batch")
    x0, x1, sum0, sum1 = map(rows, found.grids)
    table = rows(step("The table").grids[0])
    for x, total in ((x0, sum0), (x1, sum1)):
        for p in range(3):
            assert total[p] == pytest.approx([a + b for a, b in zip(x[p], table[p], strict=True)])
    assert x1[2] == [1.2, 1.21, 1.22, 1.23]
    assert found.proof == ("sequence 1, p = 2, column 0: 1.20 + 0.90930 = 2.10930",)


def test_the_decades() -> None:
    """B8: D = 8 at 1, 10, 100, 1000: each pair is ten times slower, so pairs stand on diagonals."""
    angles, table = map(rows, step("Wider").grids)
    assert angles[0] == pytest.approx([1, 0.1, 0.01, 0.001])
    assert angles[3] == pytest.approx([1000, 100, 10, 1])
    for i in range(4):
        assert table[i][2 * i : 2 * i + 2] == pytest.approx([math.sin(1), math.cos(1)])
    assert table[3] == pytest.approx(sinusoidal.encoding(1000, 8))


@pytest.mark.parametrize(
    "asked", ["Why sine and cosine", "Why one frequency", "reversed or random", "difference of two"]
)
def test_what_people_ask_is_answered(asked: str) -> None:
    """B8: the four questions of the specification are among them."""
    questions = step("What people ask").questions
    assert len(questions) >= 10
    found = [q for q in questions if asked in q.question]
    assert len(found) == 1
    assert len(found[0].answer) > 40


@pytest.mark.parametrize(
    "fact",
    ["permutation-equivariant", "BERT and GPT-2 learn", "1.334e-4 at D = 64", "47,117", "60,611"],
)
def test_right_facts_are_stated(fact: str) -> None:
    """B9, B10, W: where study notes are often wrong."""
    assert fact in everything()


@pytest.mark.parametrize(
    "myth",
    [
        r"pair 0 is the slow",
        r"permutation-invariant",
        r"extrapolates? (excellently|well)",
        r"(LLaMA|RoPE) learns? a table",
        r"(BERT|GPT-2) uses? (sines|sinusoid)",
        r"last frequency is (exactly )?1e-4",
        r"only on (the|their) distance: yes",
    ],
)
def test_wrong_ones_are_not(myth: str) -> None:
    """W: what must never be stated."""
    assert not re.search(myth, everything(), re.IGNORECASE)


def test_lessons_are_found_by_their_files() -> None:
    """`sinusoidal` is one, `base` is none."""
    assert lesson_titles()["sinusoidal"] == "Sinusoidal positions by hand"
    assert "base" not in lesson_titles()


def test_an_unknown_lesson_is_refused_with_a_near_name() -> None:
    """A typing slip finds its way; anything else gets the list."""
    with pytest.raises(Refused) as near:
        find_lesson("sinusodial")
    assert near.value.hint == "Did you mean sinusoidal?"
    with pytest.raises(Refused) as far:
        find_lesson("base")
    assert "lessons are attention, kv-cache" in far.value.hint
