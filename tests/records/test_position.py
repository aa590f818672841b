"""What `attnlab position` may be asked: everything that makes no sense is refused without torch."""

import pytest

from attnlab.errors import Refused
from attnlab.records import from_json, to_json
from attnlab.records.position import KINDS, USES, PositionJob, PositionReport, position_job


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_may_be_asked_without_more(kind):
    """The defaults suit all of them."""
    job = position_job(kind)
    assert (job.kind, job.dim, job.length, job.heads, job.base) == (kind, 64, 64, 8, 10000.0)


def test_sizes_are_read():
    """Each flag lands where it belongs; a head's width is dim / heads."""
    job = position_job("rope", dim="96", length="70", heads="12", base="5e5")
    assert (job.dim, job.length, job.heads, job.base, job.width) == (96, 70, 12, 5e5, 8)
    assert position_job("sinusoidal", dim="96").width == 96


def test_the_sizes_of_the_papers_may_be_asked():
    """GPT-2's and the first Transformer's tables, and wide heads."""
    assert position_job("sinusoidal", dim="768", length="1024").dim == 768
    assert position_job("sinusoidal", dim="512", length="5000").length == 5000
    assert position_job("rope", dim="4096", heads="32", length="4096").width == 128


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        ("sinusoidal", {"dim": "7"}, "--dim 7: for sinusoidal the number of columns must be even"),
        ("xl", {"dim": "63"}, "--dim 63: for xl the number of columns must be even"),
        ("2d", {"dim": "6"}, "--dim 6: for 2d the number of columns must be a multiple of 4"),
        ("rope", {"dim": "60"}, "--dim 60 is not divisible by --heads 8"),
        ("xpos", {"heads": "7"}, "--dim 64 is not divisible by --heads 7"),
        ("rope", {"dim": "24"}, "--dim 24 --heads 8: a head has 3 columns"),
        ("learned", {"length": "0"}, "--length 0: a whole number from 1 to 5000 is needed"),
        ("learned", {"length": "-3"}, "--length -3: a whole number"),
        ("t5", {"length": "5001"}, "--length 5001: a whole number from 1 to 5000 is needed"),
        ("alibi", {"heads": "257"}, "--heads 257: a whole number from 1 to 256 is needed"),
        ("alibi", {"heads": "many"}, "--heads many: a whole number"),
        ("rope", {"dim": "9" * 5000}, "--dim 9999"),
        ("sinusoidal", {"dim": "64.0"}, "--dim 64.0: a whole number"),
        ("sinusoidal", {"dim": "4096", "length": "1025"}, "a table of more than 4,194,304 entries"),
        ("sinusoidal", {"base": "1"}, "--base 1: a finite number above 1 is needed"),
        ("sinusoidal", {"base": "inf"}, "--base inf: a finite number above 1"),
        ("sinusoidal", {"base": "nan"}, "--base nan: a finite number above 1"),
        ("sinusoidal", {"base": "ten"}, "--base ten: a finite number above 1"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, asked, said):
    """One line that names the flag and its value."""
    with pytest.raises(Refused) as error:
        position_job(kind, **asked)
    assert said in error.value.message
    assert "\n" not in error.value.message


def test_an_odd_width_is_told_the_nearest_that_fits():
    """What to do next stands in the hint."""
    for kind, dim, better in (("sinusoidal", "7", "8"), ("2d", "6", "8"), ("xl", "1", "2")):
        with pytest.raises(Refused) as error:
            position_job(kind, dim=dim)
        assert error.value.hint == f"try --dim {better}"
        position_job(kind, dim=better)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("sinusodial", "Did you mean sinusoidal?"),
        ("Rope", "Did you mean rope?"),
        ("alibaba", "Did you mean alibi?"),
        ("zzz", "kinds are sinusoidal, learned, rope, alibi, t5, xl, xpos, 2d"),
        ("", "kinds are sinusoidal"),
    ],
)
def test_an_unknown_kind_is_refused_with_a_near_name(kind, hint):
    """Or with all of them."""
    with pytest.raises(Refused) as error:
        position_job(kind)
    assert error.value.message == f'no kind of positions is called "{kind}"'
    assert hint in error.value.hint


def test_sizes_that_mean_nothing_are_not_judged():
    """ALiBi and T5 see no columns, so any number of them will do; a learned width may be odd."""
    assert position_job("alibi", dim="7").dim == 7
    assert position_job("t5", dim="7", heads="3").heads == 3
    assert position_job("learned", dim="7").dim == 7


def test_every_kind_says_what_it_uses():
    """The two tables know the same kinds, and only sizes that exist."""
    assert USES.keys() == KINDS.keys()
    assert all(hasattr(PositionJob(kind="t5"), name) for names in USES.values() for name in names)


def test_both_records_travel():
    """As JSON and back."""
    job = position_job("2d", dim="8", length="6")
    assert from_json(PositionJob, to_json(job)) == job
    report = PositionReport(outcome="error", message="no")
    assert from_json(PositionReport, to_json(report)) == report
