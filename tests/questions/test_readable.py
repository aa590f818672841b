"""Lines that are asked about: whose value is certain, and what is known of the shipped ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnlab.catalogue.load import load
from attnlab.questions.base import Runner
from attnlab.questions.kept import all_entries
from attnlab.questions.material import Material
from attnlab.questions.readable import FILE, Lines, lines_key, lines_of, value_row
from tests.questions.test_kinds import ROW, refuse


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ("q = torch.matmul(x, y)", True), ("return a + b @ c", False), ("q = b @ c  # here", True),
        ("q = self.heads(b @ c)", False), ("q = self.matmul(b @ c)", False), ("b @ c,", False),
        ("q, k = b @ c", False), ("x = f(b @ c)[0]", False), (".mT @ c)", False),
    ],
)  # fmt: skip
def test_the_value_of_a_line_is_known_or_not_asked_for(source, known):
    """A helper may change what the last operation of the line made; a loop may change its shape."""
    row = replace(ROW, op="matmul")
    assert value_row(source, [row]) == (row if known else None)
    assert value_row(source, [replace(row, shape=(2, 3)), row]) is None


def test_every_line_is_asked_about_without_a_trace():
    """lines.json has them as the code is now."""
    keys = {lines_key(piece) for piece in Material(load()).all("piece")}
    differ = all_entries(FILE, Lines).keys() ^ keys
    assert not differ, "python -m benchmarks.quiz --effects writes lines.json anew"


@pytest.mark.parametrize("name", ["too-sharp", "char-gpt"])
def test_what_is_known_of_a_line_is_what_a_trace_shows(name, worker):
    """Else the tracer has changed: `python -m benchmarks.quiz --effects` writes lines.json anew."""
    folder = next(folder for folder in load().folders if folder.name == name)
    piece = Material(load()).of(folder, "piece")[0]
    fresh = lines_of(piece, Runner(worker.run_job, worker.run_program))
    known = lines_of(piece, Runner(refuse, refuse, shipped=True))
    assert fresh.all
    assert without_values(known) == without_values(fresh)


def without_values(lines):
    """They may differ from processor to processor."""
    rows = [[replace(op, min=None, max=None, mean=None) for op in line.rows] for line in lines.all]
    return lines.sizes, [replace(line, rows=()) for line in lines.all], rows
