"""`attnlab position`, through the real worker."""

import json

import pytest

from attnlab.worker.client import Worker


def test_shows_a_kind(shell):
    """The page on stdout, what takes its time on stderr."""
    said = shell("position", "rope", "--length", "60", "--heads", "4")
    assert said.code == 0
    assert "dim=64 heads=4 length=60 base=10000" in said.out
    assert "it depends on distance alone" in said.out
    assert said.out.count("✓ yes") == 4
    assert said.err.splitlines() == ["computing rope positions, which loads torch"]


def test_is_one_document(shell):
    """Strict JSON with the numbers of the page."""
    said = shell("position", "sinusoidal", "--dim", "4", "--length", "3", "--json")
    document = json.loads(said.out, parse_constant=float.fromhex)
    assert document["format"] == 1
    assert document["pictures"][0]["values"][1][0] == pytest.approx(0.8414709848)
    assert [turn["offset"] for turn in document["rotation"]] == [1]


def test_refuses_before_torch_is_loaded(shell, monkeypatch):
    """Exit 2, one line and a hint; no worker is started."""
    monkeypatch.setattr(Worker, "__init__", lambda self: pytest.fail("started a worker"))
    said = shell("position", "sinusodial")
    assert said.code == 2
    assert said.err.splitlines() == [
        'error: no kind of positions is called "sinusodial"',
        "hint: Did you mean sinusoidal?",
    ]
    for flags in (("--dim", "7"), ("--length", "0"), ("--length", "999999"), ("--base", "0")):
        said = shell("position", "sinusoidal", *flags, "--json")
        assert (said.code, said.json["outcome"]) == (2, "refused")
    assert shell("position").code == 2


def test_our_own_fault_is_one_line(shell, monkeypatch):
    """Exit 70 where the judge could not compute it."""
    from attnlab.records.position import PositionReport

    broken = PositionReport(outcome="error", message="the judge failed: ValueError: x")
    monkeypatch.setattr(Worker, "position", lambda self, job: broken)
    said = shell("position", "rope")
    assert said.code == 70
    assert "error: the judge failed: ValueError: x" in said.err


def test_compares_two(shell):
    """Both are named by what differs, in the page and in the document."""
    said = shell("position", "rope", "--length", "40", "--vs", "base=500000")
    assert said.code == 0
    assert "base=10000  base=500000" in said.out
    assert "trained on 20 positions, used on 40" in said.out
    said = shell("position", "sinusoidal", "--vs", "number dim=8", "--json")
    first, second = json.loads(said.out)["positions"]
    assert (first["kind"], second["kind"]) == ("sinusoidal", "number")
    assert second["beyond"] == {"largest_seen": 31.0, "largest": 63.0}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("ropee", "Did you mean rope?"),
        ("base", 'error: no kind of positions is called "base"'),
        ("rope bas=3", "Did you mean base?"),
        ("rope base=", '"base=" is no setting'),
        ("scaling=yarm:4", "Did you mean yarn?"),
        ("scaling=yarn:x", "a factor from 1 on is needed"),
        ("layout=concatenated", "it may be interleaved, half"),
        ("trained=0", "--trained 0: a whole number"),
        ("rope", "both are the same"),
        ("trained=65", "only 64 positions are looked at"),
    ],
)
def test_refuses_what_it_cannot_compare(shell, other, says):
    """One line and what to do, before torch is loaded."""
    said = shell("position", "rope", "--vs", other)
    assert said.code == 2
    assert says in said.err


def test_values_are_whole_on_a_narrow_screen(shell, monkeypatch):
    """Words give way to numbers."""
    monkeypatch.setenv("COLUMNS", "60")
    said = shell("position", "sinusoidal", "--vs", "number")
    assert max(map(len, said.out.splitlines())) <= 60
    assert "5.6569" in said.out
    assert "341.25" in said.out


def test_one_kind_says_what_lies_beyond_training(shell):
    """Where it is asked, or where positions are scaled."""
    page = "beyond the 16 positions of training, up to 64"
    assert page in shell("position", "rope", "--trained", "16").out
    assert page in shell("position", "rope", "--scaling", "linear:4").out
    assert "of training" not in shell("position", "rope").out
