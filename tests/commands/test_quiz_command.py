"""attnlab quiz: as a script drives it, at a terminal, and with bad input."""

from __future__ import annotations

import pytest

from attnlab.progress import Progress
from attnlab.questions.base import kind_names


def events():
    with Progress.open() as kept:
        return kept.events()


def test_a_script_asks_and_answers(shell):
    """One document each; the answer is recorded with its category and kind."""
    asked = shell("quiz", "numbers", "--seed", "9", "--json").json
    assert (asked["id"], asked["kind"], asked["seed"]) == ("numbers.9", "numbers", 9)
    assert not events()
    said = shell("quiz", "--answer", "numbers.9=1", "--json")
    assert (said.code, said.json["outcome"], said.json["score"]) == (1, "wrong", 0.0)
    said = shell("quiz", "--answer", f"numbers.9={said.json['right'].partition(' (')[0]}", "--json")
    assert (said.code, said.json["outcome"]) == (0, "right")
    assert [(e.kind, e.question, e.outcome) for e in events()] == [
        ("quiz", "numbers", "wrong"),
        ("quiz", "numbers", "right"),
    ]
    assert all(e.category and e.base.startswith("numbers/") for e in events())


@pytest.mark.parametrize(
    "answer",
    [
        "numbers.9=",
        f"shapes.5={'9' * 999}",
        "",
        "numbers.9",
        "numbers.9.7=1",
        "tunes.1=2",
        "numbers.9=abc",
        "=",
        "why.4=z",
    ],
)
def test_what_is_no_answer_is_refused_and_not_recorded(shell, answer):
    """One line, exit code 2, one document with --json."""
    said = shell("quiz", "--answer", answer)
    assert (said.code, said.out) == (2, "")
    assert said.err.count("error: ") == 1
    assert shell("quiz", "--answer", answer, "--json").json["outcome"] == "refused"
    assert not events()


def test_what_is_asked_next_is_shown_by_its_id(shell):
    """The id that a verdict names; it is the question that --answer judges."""
    first = shell("quiz", "spot", "--seed", "9", "--json").json
    follows = shell("quiz", "spot.9.2", "--json").json
    assert (follows["id"], follows["code"]) == ("spot.9.2", first["code"])
    assert follows["prompt"] != first["prompt"]
    assert shell("quiz", "spot.9.99").code == shell("quiz", "spot.x").code == 2


@pytest.mark.parametrize(
    ("kind", "about"), [("spot", "mask"), ("why", "loss"), ("numbers", "cache")]
)
def test_a_category_is_asked_about(shell, kind, about):
    """The id is one of the kind as always: an answer to it is judged without the flag."""
    asked = shell("quiz", kind, "--about", about, "--seed", "1", "--json").json
    shell(
        "quiz",
        "--answer",
        f"{asked['id']}={'1' if kind == 'numbers' else 'nothing' if kind == 'spot' else 'a'}",
    )
    assert [event.category for event in events()] == [about]
    said = shell("quiz", kind, "--about", "weather")
    assert (said.code, "asks nothing about that" in said.err) == (2, True)
    assert "weather" not in said.err.partition("hint")[2]


def test_its_help_lists_every_kind(shell):
    """Whoever asks what there is need not start a quiz to see it."""
    text = shell("quiz", "--help").out
    assert [name for name in kind_names() if name not in text] == []


def test_flags_that_make_no_sense_are_refused(shell):
    assert shell("quiz", "shape").code == 2
    assert shell("quiz", "why", "--answer", "why.1=a").code == 2
    assert shell("quiz", "why", "--seed", "x").code == 2


@pytest.fixture
def typed(monkeypatch):
    """`typed("a", "q")`: what a person types, line by line; then the terminal is closed."""

    def type_lines(*lines):
        left = list(lines)

        def prompt(*_args, **_flags):
            if not left:
                raise EOFError
            if left[0] == "^C":
                raise KeyboardInterrupt
            return left.pop(0)

        monkeypatch.setattr("typer.prompt", prompt)
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    return type_lines


def test_a_sitting_goes_on_until_the_person_leaves(shell, typed):
    """Nonsense is asked for again; what was answered is recorded, what was not is not."""
    typed("zebra", "?", "", "a", "b", "^C")
    said = shell("quiz", "why", "--seed", "4", "--count", "9")
    assert said.code == 0
    assert "of 2 answers right, recorded" in said.out
    assert all(f"{number} of 9  why." in said.out for number in (1, 2, 3))
    assert said.err.count("type a letter") == 2
    assert "what is often said" in said.out  # ? explains the kind
    assert len(events()) == 2
    assert all(event.seconds >= 0 for event in events())


def test_only_yes_and_no_are_taken_for_that(shell, typed):
    """Whoever types something else is asked again, and has not missed what was to be run."""
    typed("a", "maybe", "", "n")
    assert shell("quiz", "effect", "--seed", "4").err.count("type y or n") == 2


def test_a_flag_alone_draws_a_question(shell):
    """Without a terminal as at one: of any kind that can be asked about it."""
    asked = shell("quiz", "--about", "mask", "--seed", "1", "--json").json
    assert asked["id"].partition(".")[0] in kind_names()
    assert "no terminal" in shell("quiz", "why", "--count", "3").err


def test_an_answer_that_was_looked_up_is_shown_once(shell, typed):
    """It stands above what is ticked; whoever ticks without looking still gets to see it."""
    for lines in (("1", "b"), ("b",)):
        typed(*lines)
        said = shell("quiz", "explain", "--seed", "4").out
        answer = shell("quiz", "--answer", "explain.4=a", "--json").json["right"]
        assert " ".join(said.split()).count(" ".join(answer.split())) == 1


def test_a_sitting_without_an_answer_records_nothing(shell, typed):
    typed("q")
    assert "nothing is recorded" in shell("quiz", "why", "--seed", "4").out
    assert not events()


def test_a_question_and_its_verdict_look_as_they_did(shell, golden, shown, monkeypatch):
    """At 60 columns without Unicode, and at 80."""
    golden("quiz_why", shell("quiz", "why", "--seed", "4").out)
    golden("quiz_verdict", shell("quiz", "--answer", "why.4=a").out)
    golden("quiz_spot", shell("quiz", "spot", "--seed", "3").out)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    golden("quiz_shapes_60", shell("quiz", "shapes", "--seed", "5").out)
    golden("quiz_kinds", shell("quiz").out)


def test_no_question_tells_of_the_round_that_is_going_on(shell, monkeypatch):
    """Its program waits, as what was asked lately does."""
    monkeypatch.setattr("random.randrange", lambda _: 5)
    assert shell("quiz", "spot", "--json").json["id"] == "spot.5"  # of char-gpt
    shell("interview", "start", "char-gpt")
    assert shell("quiz", "spot", "--json").json["id"] != "spot.5"
    shell("interview", "abandon")
    assert shell("quiz", "spot", "--json").json["id"] == "spot.5"
