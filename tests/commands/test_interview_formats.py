"""Rounds of review, incident, implement, explain and mixed from the command line."""

import re
from pathlib import Path

import pytest

from attnlab.catalogue.load import load
from attnlab.commands.rounds import price_of_triage
from attnlab.practice import formats
from attnlab.practice.interviews import current
from attnlab.progress import Progress

CLOCK = re.compile(r"interview 1: \d+ (seconds )?of 25 minutes left")
SHORT = formats.Format("Short", 25, ("why", "numbers", "implement"))


def events(kind="task"):
    with Progress.open() as kept:
        return [event for event in kept.events() if event.kind == kind]


@pytest.fixture
def short(monkeypatch):
    """A mixed round of two questions that need no worker, and a file."""
    monkeypatch.setattr(formats, "formats", lambda: {"mixed": SHORT})


@pytest.fixture
def typed(monkeypatch):
    """`typed("a", "^C")`: what a person types at a terminal."""

    def type_lines(*lines):
        left = list(lines)

        def prompt(*_args, **_flags):
            if left[0] == "^C":
                raise KeyboardInterrupt
            return left.pop(0)

        monkeypatch.setattr("typer.prompt", prompt)
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    return type_lines


def test_a_round_from_start_to_scorecard(shell, short):
    """Every command shows the clock; what is right, and where tasks are from, at the end alone."""
    said = shell("interview", "start", "mixed", "--seed", "5")
    assert said.code == 0, said.err
    assert "the clock runs: 25 minutes, 3 tasks (seed 5)" in said.out
    with Progress.open() as kept:
        tasks = current(kept).tasks
    shown = [said.out, shell("interview", "status").out]
    for typed in ("a", "1"):
        said = shell("interview", "answer", typed)
        assert said.code == 0
        assert CLOCK.search(said.err)
        shown.append(said.out)
    assert "task 3 of 3  implement  interview-1/task3.py" in shown[-1]
    slug = tasks[2].id
    text = Path("interview-1/task3.py").read_text()
    for output in (*shown, text):
        assert not any(secret in output for secret in (slug, tasks[0].id, tasks[1].id))
    said = shell("interview", "submit")
    assert (said.code, slug in said.out) == (1, False)
    assert shell("interview", "ask").out.strip().startswith("hint 1 of 3")
    price = price_of_triage(None, "interview-1/task3.py:Net")
    assert "costs as a hint" in price
    assert not price_of_triage(None, "elsewhere/task3.py")
    solution = load().find(slug).solution
    Path("interview-1/task3.py").write_text(Path(solution).read_text())
    for command in ("trace", "walk"):  # built and fed as the task says
        said = shell(command, "interview-1/task3.py")
        assert (said.code, "inputs guessed" in said.err, slug in said.out) == (0, False, False)
    said = shell("interview", "submit", "--json")
    assert (said.code, said.json["outcome"], said.json["task"]) == (0, "right", None)
    assert "every task is done" in shell("interview", "answer", "a").err
    card = shell("interview", "end", "--json").json
    assert [task["outcome"] for task in card["tasks"]][2] == "partly"  # a hint, and a second try
    assert card["tasks"][2]["points"] == 0.8
    assert "mixed" in shell("interview", "history").out
    card = shell("interview", "history", "1").out
    assert card.count(slug) == 1
    assert card.count("    asked  ") == card.count("    you    ") - 1, card  # the last is a file
    stats = shell("stats", "--json").json
    assert {row["name"] for row in stats["kinds"]} == {"why", "numbers", "implement"}
    assert stats["answers"] == 3


def test_bad_input_costs_nothing(shell, short):
    """One line that says what to type; no answer is kept."""
    assert shell("interview", "answer", "a").code == 2
    assert "formats are mixed" in shell("interview", "start", "revue").err
    assert shell("interview", "start", "mixed", "--bugs", "2").code == 2
    assert shell("interview", "start", "mixed", "--minutes", "0").code == 2
    shell("interview", "start", "mixed", "--seed", "5", "--untimed")
    assert "is going on" in shell("interview", "start", "mixed").err
    assert "is going on" in shell("interview", "start", "char-gpt").err
    for typed in ("", "  ", "zebra", "z"):
        said = shell("interview", "answer", typed)
        assert (said.code, said.out, said.err.count("error: ")) == (2, "", 1)
    assert "asks for no file" in shell("interview", "submit").err
    for command in (("note", "x.py:3"), ("stage",)):
        said = shell("interview", *command)
        assert (said.code, "about no program" in said.err) == (2, True)
    assert "about no program" in shell("grade").err
    asked = shell("interview", "ask").err
    assert "task 1 has nothing to measure" in asked
    assert "interview answer" in asked
    assert not events()
    assert shell("interview", "answer", "skip").code == 0
    said = shell("interview", "abandon")
    assert (said.code, "attnlab interview start begins another" in said.out) == (0, True)
    assert [event.outcome for event in events()] == ["wrong"]
    assert "dropped" in shell("interview", "history").out


def test_a_terminal_goes_through_the_round(shell, short, typed):
    """Ctrl-C in the middle keeps what was answered; answer goes on there."""
    typed("?", "zebra", "a", "^C")
    said = shell("interview", "start", "mixed", "--seed", "5")
    assert (said.code, len(events())) == (0, 1)
    assert "the clock runs on" in said.err
    typed("12", "^C")
    said = shell("interview", "answer")
    assert len(events()) == 2
    assert "task3.py" in said.out
    Path("interview-1/task3.py").unlink()
    assert shell("interview", "submit").code != 0
    assert "task 3 of 3" in shell("interview", "status").out
    assert Path("interview-1/task3.py").exists()


def test_measurements_of_a_round_are_counted_once(shell, monkeypatch):
    """What is true of an answer that was said aloud is asked for as a measurement is."""
    monkeypatch.setattr(
        formats, "formats", lambda: {"explain": formats.Format("E", 5, ("explain",))}
    )
    shell("interview", "start", "explain", "--seed", "1")
    assert shell("interview", "ask").code == 2
    for _ in range(2):
        assert "what is true" in shell("interview", "ask", "1").out
    assert len(events("ask")) == 1
    shell("interview", "answer", "b")
    card = shell("interview", "end", "--json").json
    assert (card["points"], card["tasks"][0]["outcome"]) == (0.5, "partly")
