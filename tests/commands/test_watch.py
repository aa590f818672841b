"""`attnlab watch` and `attnlab next`: what is looked at, when again, and what each key does."""

from __future__ import annotations

import os
import pty
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from attnlab.commands import watch
from attnlab.commands.watch import first_place
from attnlab.commands.watch.files import Files
from attnlab.commands.watch.keys import Keyboard


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("a = 1\n")
    return path


def rename(path):
    fresh = path.with_suffix(".swp")
    fresh.write_text("a = 1\n")  # the same text in another file
    fresh.replace(path)


@pytest.mark.parametrize(
    "save",
    [lambda p: p.write_text("a = 22\n"), rename, lambda p: p.unlink()],
    ids=["written", "renamed", "removed"],
)
def test_a_save_is_seen_once(save, file):
    """However the editor does it; a file that vanishes is a change, too."""
    files = Files([file])
    assert files.changed() == ()
    save(file)
    assert files.changed(lambda _: None) == (str(file),)
    assert files.changed() == ()


def test_a_formatter_that_writes_after_the_editor_is_waited_for(file):
    """One change, seen when the file is quiet."""
    files = Files([file])
    file.write_text("a  =  1\n")
    later = [lambda: file.write_text("a = 1, 2\n"), lambda: None]
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        later.pop(0)()

    assert files.changed(sleep) == (str(file),)
    assert len(naps) == 2
    assert files.changed() == ()


def test_a_folder_stands_for_its_python_files(tmp_path, file):
    """New ones, too; other files are not looked at."""
    files = Files([tmp_path])
    (tmp_path / "notes.txt").write_text("x")
    assert files.changed() == ()
    (tmp_path / "more.py").write_text("x = 1\n")
    assert files.changed(lambda _: None) == (str(tmp_path / "more.py"),)


def test_keys_are_read_without_enter_and_the_terminal_is_restored():
    """In a terminal; what is pressed is not shown."""
    import termios

    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r+b", buffering=0) as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", terminal)
        patch.setattr(sys, "stdout", terminal)
        before = termios.tcgetattr(theirs)
        keyboard = Keyboard()
        assert keyboard.works
        with keyboard.listen():
            os.write(ours, b"h")
            assert keyboard.wait(5) == "h"
            assert keyboard.wait(0) == ""
        assert termios.tcgetattr(theirs) == before
    os.close(ours)


def test_a_pipe_has_no_keys():
    """Nothing is read from it."""
    with Keyboard().listen():
        assert Keyboard().wait(0) == ""


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({}, ("", 0)),
        ({"crash": {"file": "a.py", "line": 3}, "findings": [{"line": 9}]}, ("a.py", 3)),
        ({"crash": None, "checks": [{"outcome": "passed", "line": 1}]}, ("", 0)),
        ({"checks": [{"outcome": "failed", "file": "b.py", "line": 7}]}, ("b.py", 7)),
        ({"suspicions": [{"file": None, "line": None}, {"file": "c.py", "line": 2}]}, ("c.py", 2)),
    ],
)
def test_the_editor_opens_at_the_first_failure(document, place):
    """Whatever page it was."""
    assert first_place(document) == place


# ---------------------------------------------------------------- the loop


@pytest.fixture
def played(monkeypatch):
    """`played("h", "q")` presses these keys; a function among them runs instead of a key. The
    command lines that were called are in the list that it returns."""
    called = []

    class Played(Keyboard):
        def __init__(self):
            self.works = False

        def listen(self):
            return nullcontext()

        def wait(self, seconds):
            key = keys.pop(0) if keys else "q"
            if callable(key):
                key()
                return ""
            return key

    keys = []

    def play(*pressed):
        keys.extend(pressed)
        return called

    monkeypatch.setattr(watch, "Keyboard", Played)
    call = watch.Watch._call
    monkeypatch.setattr(watch.Watch, "_call", lambda self, words: called.append(words) or 1)
    play.real = lambda: monkeypatch.setattr(watch.Watch, "_call", call)
    return play


def test_every_save_is_graded_and_every_key_is_a_command(shell, played):
    """Without a name it is the file that is under way here; the exit code is the last grade's."""
    shell("start", "too-sharp")
    grade = ["grade", "too-sharp", "--steps"]

    def save():
        Path("too-sharp.py").write_text(Path("too-sharp.py").read_text() + "\n")

    called = played("h", save, "t", "l", "r", " ", "x")
    assert shell("watch").code == 1
    assert called == [
        grade,
        ["hint", "too-sharp"],
        grade,
        ["trace", "too-sharp.py"],
        ["list"],
        ["run", "too-sharp", "--reveal"],
        grade,
    ]


def test_a_file_that_vanishes_is_waited_for(shell, played):
    """It is graded again once it is back, and nothing crashes meanwhile."""
    shell("start", "too-sharp")
    file = Path("too-sharp.py")
    text = file.read_text()
    called = played(file.unlink, lambda: file.write_text(text))
    said = shell("watch", "too-sharp")
    assert "too-sharp.py is gone; waiting until it is back" in said.out
    assert len(called) == 2


@pytest.mark.parametrize(
    ("flags", "look"),
    [((), ["trace", "./mine.py", "--only-findings"]), (("--triage",), ["triage", "./mine.py"])],
)
def test_any_file_is_traced_or_triaged(flags, look, shell, played):
    """A file of one's own has no hints."""
    Path("mine.py").write_text("x = 1\n")
    called = played("h", "q")
    shell("watch", "./mine.py", *flags)
    assert called == [look]


def test_a_file_is_named_once_though_its_folder_is_watched_too(shell, played):
    """What it imports may lie beside it, so a save is seen in the folder as well."""
    Path("mine.py").write_text("x = 1\n")
    played(lambda: Path("mine.py").write_text("x = 22\n"))
    assert "after a change of mine.py\n" in shell("watch", "mine.py").out


def test_the_keys_stand_beside_the_verdict(shell, played, monkeypatch):
    """A long page, as of a round that passed, scrolls its first line away."""
    shell("start", "too-sharp")
    played("q")
    played.real()
    start = watch.Keyboard.__init__
    monkeypatch.setattr(
        watch.Keyboard, "__init__", lambda self: start(self) or setattr(self, "works", True)
    )
    assert shell("watch").out.rpartition("✗ failed  watching too-sharp")[1]


def test_a_hint_that_lowers_a_rating_takes_two_presses(shell, played):
    """In an interview; another key in between takes the first one back."""
    shell("interview", "start", "char-gpt", "--bugs", "1")
    called = played("h", "l", "h", "h")
    assert "press h again" in shell("watch", "char-gpt").out
    assert called[1:] == [["list"], ["hint", "char-gpt"]]


def test_an_error_is_shown_and_the_watch_goes_on(shell, played):
    """A syntax error in between is an everyday event."""
    shell("start", "too-sharp")
    played.real()
    Path("too-sharp.py").write_text("def f(:\n")
    said = shell("watch", "too-sharp")
    assert said.code == 2
    assert "error: " in said.err
    assert "too-sharp.py:1" in said.err + said.out


def test_next_goes_to_the_next_challenge(shell, played):
    """`n` starts it, and it is what is watched then."""
    shell("start", "too-sharp")
    played.real()
    called = []
    real = watch.Watch._call

    def call(self, words):
        called.append(words)
        return 0 if words[0] == "grade" else real(self, words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch.Watch, "_call", call)
        played("n", "q")
        said = shell("watch", "too-sharp")
    assert called[:2] == [["grade", "too-sharp", "--steps"], ["next"]]
    assert "attnlab watch too-sharp" in said.out  # it is still open


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("", "nothing was started in this folder"),
        ("too-sharp", "there is no ./too-sharp.py here"),
        ("char-gpt", "there is no folder ./char-gpt here"),
        ("./no.py", "no.py: no such file"),
        ("no-such", "no-such"),
    ],
)
def test_what_cannot_be_watched_is_refused(what, says, shell, played):
    """In one line, with what to do."""
    said = shell("watch", *([what] if what else []))
    assert said.code == 2
    assert says in said.err
    assert "hint: " in said.err


def test_next_starts_the_first_unsolved_challenge(shell):
    """Called again it says what is under way."""
    first = shell("next")
    assert first.code == 0
    names = [path.stem for path in Path().glob("*.py")]
    assert len(names) == 1
    assert f"wrote ./{names[0]}.py" in first.out
    assert f"attnlab watch {names[0]}" in shell("next").out
