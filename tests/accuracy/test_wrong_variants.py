"""Real bugs made again in many styles: each is found where it is, and its right twin is quiet."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
import torch

from benchmarks.accuracy.measure import coincidences, wrong
from benchmarks.accuracy.wrong import Variant, build, twin, variants

WRONG, APART = list(variants()), list(variants(apart=True))
examined = cache(wrong)
# With one sample they give the same: it is the next size of the batch that breaks.
LATENT = {"squeeze_drops_batch"}


def by_file(found: list[Variant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", found, ids=[v.file for v in found])


@by_file(WRONG)
def test_a_wrong_variant_is_found_at_its_line(variant: Variant):
    """The finding stands at the mistake, or where it can be seen first."""
    found = examined(variant)
    assert found.at is not None, [(f.line, f.rule) for f in found.others]
    assert found.at.severity in {"warning", "error"}


@by_file([*WRONG, *APART])
def test_a_right_twin_raises_nothing(variant: Variant):
    """The same module with the right line: a finding on it would be a false alarm."""
    assert not examined(variant).twins


@pytest.mark.parametrize("name", ["merge_sequence_first", "mha_sequence_first", "merge_reshape"])
def test_a_right_twin_raises_nothing_where_sizes_coincide(name: str):
    """With B = hd a legal view has the sizes of a transpose; with B = S much looks like much."""
    variant = next(v for v in WRONG if v.name == name)
    assert not coincidences(variant)


@by_file([*WRONG, *APART])
def test_a_mistake_changes_the_output(variant: Variant):
    """Else it would be another style of the same, and a finding on it a false alarm."""
    outs = []
    for text in (variant, twin(variant)):
        call = build(text)
        with torch.no_grad():
            outs.append(call.module(**call.inputs))
    same = outs[0].shape == outs[1].shape and torch.allclose(*outs, atol=1e-5)
    assert same == (variant.name in LATENT)


def test_there_are_enough_of_every_family():
    """Eight or more of each family, each of a real bug, with every mistake marked."""
    assert len(WRONG) >= 48
    assert min(Counter(v.family for v in WRONG).values()) >= 8
    assert all(v.wrong and v.atlas and v.title for v in [*WRONG, *APART])


def test_what_is_not_expected_says_why():
    """A bug that axes cannot show is kept apart for a reason, not because it was missed."""
    assert APART
    assert all(v.why_not for v in APART)
    assert not any(v.why_not for v in WRONG)


def test_a_twin_keeps_its_lines():
    """Line numbers of a wrong text and its twin agree, so that the two can be read together."""
    variant = next(v for v in WRONG if v.name == "merge_reshape")
    (line,) = variant.wrong
    before, after = variant.text.splitlines(), twin(variant).text.splitlines()
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b] == [
        line,
        line + 1,
    ]
    assert after[line] == before[line].replace("# RIGHT: ", "")
