"""How the accuracy of the tracer is counted."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from attnlab.records import Op
from benchmarks.accuracy import pages
from benchmarks.accuracy.measure import Named, Right, named, shorter, steady
from benchmarks.accuracy.right import Given, models

OP = Op(
    index=0,
    op="view",
    line=3,
    file="a.py",
    source="x.view(2, 5)",
    shape=(2, 5, 1),
    axes=("B", "5", "1"),
    dtype="float32",
    stride=(5, 1, 1),
    view=True,
)
ROW = Right("m", "lib", 4, 4, Named(95, 100), Named(9, 10), Named(9, 9), ())


def test_a_bare_number_is_no_name():
    """An axis of size 1 needs none; the strict count leaves it out."""
    assert named((OP,), least=0) == Named(2, 3)
    assert named((OP,), least=2) == Named(1, 2)


def test_vectors_are_not_counted():
    """Only tensors with two or more axes are."""
    assert named((replace(OP, shape=(5,), axes=("5",)),), least=0) == Named(0, 0)
    assert Named(0, 0).percent == 100


def test_a_name_that_moves_with_the_sizes_is_not_steady():
    """2 and 2: B twice by chance. Unnamed axes are no names that could move."""
    first, second = replace(OP, axes=("B", "B", "1")), replace(OP, axes=("B", "S", "1"))
    assert steady((first,), (second,)) == Named(1, 1 + 1)
    assert steady((OP,), (OP,)) == Named(1, 1)


def test_other_operations_are_not_compared():
    """Where a model does something else at other sizes, the comparison ends."""
    assert steady((OP, OP), (OP, replace(OP, line=4))) == Named(1, 1)


def test_the_second_run_has_fewer_entries():
    """B and S are cut in every input that has them; a mask keeps to its data."""
    x, mask = torch.zeros(15, 11, 4), torch.zeros(11, 11)
    given = shorter(Given(nn.Identity(), {"x": x, "mask": mask}, "x: B S D, mask: S S"))
    assert [tuple(t.shape) for t in given.kwargs.values()] == [(10, 9, 4), (9, 9)]


def test_a_batch_that_a_cache_remembers_is_not_cut():
    """Keys of fifteen sequences do not fit ten."""
    given = Given(nn.Identity(), {"ids": torch.zeros(15, 4), "past": object()}, "ids: B L")
    assert shorter(given).kwargs["ids"].shape == (15, 3)


def test_a_model_is_good_when_nothing_is_found_and_enough_is_named():
    assert pages.good(ROW)
    assert not pages.good(ROW._replace(axes=Named(94, 100)))
    assert not pages.good(ROW._replace(placed=3))
    assert not pages.good(ROW._replace(crash="RuntimeError: no"))


def test_every_model_has_a_name_of_its_own():
    """Names choose what is run; torch's own modules need no other library."""
    found = list(models())
    assert len({(m.library, m.name) for m in found}) == len(found) > 60
    assert {m.library for m in models("TransformerEncoderLayer")} == {"torch"}


def test_the_page_shows_what_was_counted():
    """One row per model, with the library that it is from."""
    page = pages.page(([ROW], [], []), ["other: model"], 0)
    assert "### lib" in page
    assert "| m | 4 | 100 % | 95.0 % | 90.0 % | 100.0 % | 0 |" in page
    assert "other: model" in page
