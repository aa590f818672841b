"""`attnlab watch` and `attnlab next`: what is looked at, when again, and what each key does."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
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
    """In a terminal; what is pressed is not shown. So it is after Ctrl-Z and `fg`; while a command
    runs keys are kept, and `q` ends it."""
    import termios

    went_on = []
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r+b", buffering=0) as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", terminal)
        patch.setattr(sys, "stdout", terminal)
        before = termios.tcgetattr(theirs)
        keyboard = Keyboard()
        assert keyboard.works
        with keyboard.listen(lambda: went_on.append(1)):
            os.write(ours, b"hh")
            assert keyboard.wait(5) == "h"
            assert keyboard.wait(0) == ""
            termios.tcsetattr(theirs, termios.TCSANOW, before)  # as a shell may after Ctrl-Z
            signal.raise_signal(signal.SIGCONT)
            assert not termios.tcgetattr(theirs)[3] & (termios.ICANON | termios.ECHO)
            assert went_on
            os.write(ours, b"tq")
            with pytest.raises(KeyboardInterrupt), keyboard.attend(lambda: None):
                time.sleep(5)
            assert [keyboard.wait(0), keyboard.wait(0)] == ["t", "q"]
        assert termios.tcgetattr(theirs) == before
    os.close(ours)


def test_a_pipe_has_no_keys():
    """Nothing is read from it."""
    with Keyboard().listen(lambda: None):
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
            super().__init__()
            self.works = False

        def listen(self, go_on):
            return nullcontext()

        def attend(self, late):
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
    called = played(file.unlink, " ", lambda: file.write_text(text))
    said = shell("watch", "too-sharp")
    assert said.out.count("too-sharp.py is gone; waiting until it is back") == 2
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


def test_next_goes_where_the_page_of_the_pass_says(shell, played, monkeypatch):
    """It starts that and runs it, and all is about it then; of one that is not solved it asks."""
    shell("start", "too-sharp")
    played.real()
    real, called = watch.Watch._call, []

    def call(self, words):
        called.append(words)
        return real(self, words) if words[0] == "start" else 0

    def save():
        file = max(Path().glob("*.py"), key=lambda path: path.stat().st_mtime_ns)
        file.write_text(file.read_text() + "\n")

    played("n", "l", "n", "n", save)
    monkeypatch.setattr(watch.Watch, "_call", call)
    said = shell("watch", "too-sharp")
    assert said.out.count("too-sharp is not solved yet: press n again to skip it") == 2
    following = called[2][1]
    assert following != "too-sharp"
    assert called == [
        ["grade", "too-sharp", "--steps"],
        ["list"],
        ["start", following],
        ["run", following],
        ["grade", following, "--steps"],
    ]


def test_next_is_what_a_grade_names(shell):
    """Programs take an hour: one that an interview began elsewhere is not gone on with."""
    from attnlab.progress import Progress
    from attnlab.records.practice import Event

    with Progress.open() as store:
        store.mark_started("programs/char-gpt")
        passed = Event(kind="grade", base="scaling/too-sharp", outcome="passed")
        store.add_grade("scaling/too-sharp", "passed", 1.0, "too-sharp.py", passed)
    first = shell("next").out
    assert "too-sharp" not in first
    assert "char-gpt" not in first


def test_the_footer_is_empty_until_what_is_watched_was_graded(shell, played):
    """And it is the word of the heading, also where the file cannot be read."""
    shell("start", "too-sharp")
    played("q")
    played.real()
    file = Path("too-sharp.py")
    file.write_text("def f(:\n")
    watched = []
    with pytest.MonkeyPatch.context() as patch:
        choose = watch.Watch._choose
        patch.setattr(
            watch.Watch, "_choose", lambda self, what: (watched.append(self), choose(self, what))
        )
        shell("watch", "too-sharp")
    assert watched[0].head == ("✗ not graded", "bad")
    assert watched[0].place[1] == 1  # where the editor opens
    watched[0]._choose("too-sharp")
    assert watched[0].head == ("", "")


def test_ctrl_c_ends_a_grade_and_not_the_watch(shell, played, monkeypatch):
    """A line says how to leave; the exit code is that of the last grade."""
    shell("start", "too-sharp")
    codes = [1, KeyboardInterrupt]
    played(" ")

    def call(self, words):
        code = codes.pop(0)
        if code is KeyboardInterrupt:
            raise code
        return code

    monkeypatch.setattr(watch.Watch, "_call", call)
    said = shell("watch", "too-sharp")
    assert said.code == 1
    assert "the grade was ended; Ctrl-C again or q leaves" in said.out


def test_ctrl_c_between_two_looks_leaves_as_q_does(shell, played, monkeypatch):
    """Nothing was interrupted: no error is said, and the exit code is that of the last grade."""
    shell("start", "too-sharp")
    played("")
    monkeypatch.setattr(watch.Watch, "_call", lambda *_: 1)

    def wait(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Keyboard, "wait", wait)
    said = shell("watch", "too-sharp")
    assert said.code == 1
    assert said.err == ""


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
