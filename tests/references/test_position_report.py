"""Portraits of positions: the numbers on the page are those of the formulas (B3, B5-B7, B9)."""

import math

import pytest
import torch

from attnlab.records import from_json, to_json
from attnlab.records.position import KINDS, PositionReport, position_job
from attnlab.references.position_report import build_position_report


def look(kind: str, **sizes: int) -> PositionReport:
    return build_position_report(
        position_job(kind, **{name: str(value) for name, value in sizes.items()})
    )


def fact(report: PositionReport, name: str) -> float:
    return next(f.value for f in report.statistics if f.id == name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_portrait_is_whole_and_travels(kind: str) -> None:
    """Every kind has pictures, a curve and statistics, all finite, and goes to JSON and back."""
    report = look(kind, length=24)
    assert report.outcome == "ok"
    assert report.formula
    for picture in report.pictures:
        values = torch.tensor(picture.values)
        assert values.shape == (len(picture.rows), len(picture.columns)) == picture.shape
        assert values.isfinite().all()
    assert report.curve is not None
    assert report.curve.count == len(report.curve.values) == len(report.curve.distances)
    assert all(math.isfinite(f.value) for f in report.statistics)
    assert from_json(PositionReport, to_json(report)) == report


@pytest.mark.parametrize("kind", KINDS)
def test_one_position_is_enough(kind: str) -> None:
    """Nothing divides by a distance that is not there."""
    report = look(kind, length=1)
    assert report.pictures
    assert not report.rotation


@pytest.mark.parametrize("kind", ["sinusoidal", "rope", "xl"])
def test_waves_turn_by_rotations(kind: str) -> None:
    """B9: M_k to 1e-10 for k = 1, 5, 10, 50, and distance alone decides."""
    report = look(kind, length=64)
    assert [turn.offset for turn in report.rotation] == [1, 5, 10, 50]
    assert all(turn.holds and turn.error < 1e-10 for turn in report.rotation)
    assert report.curve is not None
    assert report.curve.spread < 1e-10
    assert [t.offset for t in look(kind, length=10).rotation] == [1, 5]


def test_a_learned_table_does_not() -> None:
    """B9: it is shown as initialised, always the same, and the global generator is unchanged."""
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    report = look("learned")
    assert torch.equal(torch.randn(3), expected)
    assert look("learned") == report
    assert not any(turn.holds for turn in report.rotation)
    assert report.curve is not None
    assert report.curve.spread > 0.001
    assert math.sqrt(fact(report, "variance")) == pytest.approx(0.02, rel=0.05)
    assert look("learned", dim=7).rotation == ()


@pytest.mark.parametrize(("dim", "wavelength"), [(64, 47_117), (512, 60_611)])
def test_frequencies_of_the_sinusoid(dim: int, wavelength: int) -> None:
    """B9: from 2 pi positions to a little less than 2 pi * 10000."""
    waves = look("sinusoidal", dim=dim, length=4).frequencies
    assert len(waves) == dim // 2
    assert waves[0].wavelength == pytest.approx(2 * math.pi)
    assert waves[-1].wavelength == pytest.approx(wavelength, abs=1)


def test_the_numbers_of_the_sinusoid() -> None:
    """B9: the table, dot products, norms; the law of distance is lost behind W_q and W_k."""
    report = look("sinusoidal", dim=8, length=60)
    entry = report.pictures[0].values[7]
    assert entry[2:4] == pytest.approx((math.sin(0.7), math.cos(0.7)))
    by_hand = sum(math.cos(5 * 10 ** (-i)) for i in range(4))
    assert report.curve is not None
    assert report.curve.values[5] == pytest.approx(by_hand)
    for name in ("norm_min", "norm_max", "norm_expected"):
        assert fact(report, name) == pytest.approx(2.0)
    assert fact(report, "distinct") == 60
    assert fact(report, "spread_after_weights") > 0.5


def test_the_base_is_used() -> None:
    """B3: 100 instead of 10000."""
    for kind in ("sinusoidal", "2d", "rope", "xpos"):
        width = {"sinusoidal": 64, "2d": 32}.get(kind, 8)
        last = look(kind, base=100).frequencies[-1]
        assert last.frequency == pytest.approx(100 ** (-(width - 2) / width))


def test_rope_scores_depend_on_distance_whatever_is_turned() -> None:
    """B7: unlike the sinusoid's, which W_q and W_k spoil; the same for xPos, which fades."""
    assert fact(look("rope"), "spread_of_scores") < 1e-12
    faded = look("xpos", length=50)
    assert fact(faded, "spread_of_scores") < 1e-12
    assert faded.curve is not None
    zeta = [(i / 4 + 0.4) / 1.4 for i in range(4)]
    by_hand = sum(z ** (40 / 512) * math.cos(40 * 10 ** (-i)) for i, z in enumerate(zeta))
    assert faded.curve.values[40] == pytest.approx(by_hand)
    assert not faded.rotation


def test_alibi_falls_by_its_slopes() -> None:
    """B7: -m |i - j| with m = 1/2, 1/4, ... for 8 heads, and as in the paper for 12."""
    report = look("alibi", length=9)
    assert report.pictures[0].values[6][2] == -2.0
    assert report.pictures[0].values[2][6] == -2.0
    assert report.pictures[1].shape == (8, 9)
    assert report.pictures[1].values[2][8] == -1.0
    assert [f.value for f in report.statistics] == [2.0**-h for h in range(1, 9)]
    assert len(look("alibi", heads=12).statistics) == 12


def test_t5_buckets() -> None:
    """B7: one for each distance under 8, then wider ones; keys after the query have 16 more."""
    report = look("t5", length=40)
    values = report.pictures[0].values
    assert values[20][13:24] == (7, 6, 5, 4, 3, 2, 1, 0, 17, 18, 19)
    assert values[39][0] == values[38][0] == 12
    assert report.curve is not None
    assert report.curve.values[:8] == (0, 1, 2, 3, 4, 5, 6, 7)
    long = look("t5", length=300)
    assert fact(long, "used_both") == 31  # 16 would be a key at distance 0 after the query
    assert fact(long, "used_causal") == 32


def test_the_rows_of_transformer_xl_are_distances() -> None:
    """B7: sines first, then cosines."""
    report = look("xl", dim=8, length=20)
    row = report.pictures[0].values[7]
    assert (row[1], row[5]) == pytest.approx((math.sin(0.7), math.cos(0.7)))
    assert report.frequencies[1].columns == (1, 5)


def test_the_grid_is_as_square_as_it_can_be() -> None:
    """B6: 48 cells make 6 x 8; the middle cell is most like itself; a step along a row rotates."""
    report = look("2d", length=48)
    alike = report.pictures[1]
    assert alike.shape == (6, 8)
    assert max(max(row) for row in alike.values) == alike.values[3][4] == pytest.approx(32.0)
    assert [t.offset for t in report.rotation] == [1, 5]
    assert all(t.holds for t in report.rotation)
    assert look("2d", length=47).pictures[1].shape == (1, 47)


def test_large_tables_are_sampled_evenly() -> None:
    """At most 64 rows and 128 columns come back, and at most 512 points of a curve."""
    report = look("sinusoidal", dim=300, length=600)
    picture = report.pictures[0]
    assert picture.shape == (600, 300)
    assert picture.rows == tuple(range(0, 600, 10))
    assert picture.columns == tuple(range(0, 300, 3))
    assert picture.values[2][1] == pytest.approx(math.cos(20 * 10000 ** (-2 / 300)))
    assert report.curve is not None
    assert report.curve.count == 600
    assert report.curve.distances == tuple(range(0, 600, 2))


def test_sizes_without_meaning_are_mentioned() -> None:
    """Where they were asked for, and only there."""
    assert "heads has no effect here" in look("sinusoidal", heads=3).notes
    assert look("alibi", dim=7, base=5).notes[-2:] == (
        "dim has no effect here",
        "base has no effect here",
    )
    assert not any("no part" in n for k in KINDS for n in look(k, length=4).notes)


def test_pairs_that_training_did_not_turn_meet_new_angles() -> None:
    """By hand: of RoPE with w = 1, 0.1, 0.01, 0.001 and 40 positions of training, the first pair
    has turned; the others go on to new angles at 80, unless positions are scaled down by 2."""

    def beyond(**more: str) -> dict[str, float]:
        job = position_job("rope", dim="32", heads="4", length="80", trained="40", **more)
        return {fact.id: fact.value for fact in build_position_report(job).beyond}

    assert beyond() == {"whole_turns": 1, "new_angles": 3}
    assert beyond(scaling="linear:2.1") == {"whole_turns": 1, "new_angles": 0}


def test_the_plane_keeps_the_largest_distances() -> None:
    """One pair of columns is a circle: the plane holds all of it, and distances are its own."""
    report = look("sinusoidal", dim=2, length=12)
    assert report.plane is not None
    assert sum(report.plane.shares) == pytest.approx(1.0)
    points = torch.tensor(report.plane.points, dtype=torch.float64)
    angles = torch.arange(12, dtype=torch.float64)
    circle = torch.stack((angles.sin(), angles.cos()), dim=1)
    torch.testing.assert_close(torch.cdist(points, points), torch.cdist(circle, circle))


def test_norms_and_variances_are_those_of_the_table() -> None:
    """Positions as one number have their own size as norm, and the variance of 0 ... S-1."""
    norms, variances = look("number", length=5).series
    assert norms.values == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert variances.values == pytest.approx((2.0,))


def test_layouts_hold_the_same_waves() -> None:
    """The layout moves columns and changes nothing else."""
    for kind, layout in (("sinusoidal", "concatenated"), ("rope", "half")):
        usual, other = (
            build_position_report(position_job(kind, layout=name)) for name in ("", layout)
        )
        assert usual.curve is not None
        assert other.curve is not None
        assert other.curve.values == pytest.approx(usual.curve.values)
        assert [w.frequency for w in other.frequencies] == [w.frequency for w in usual.frequencies]
        assert all(turn.holds for turn in other.rotation)
