"""Loading a candidate's file: its name, its surroundings, and all that it may raise."""

import os
import sys

import pytest
from modules import loaded

from attnlab.candidate.session import Session
from attnlab.records import UserEnvironment, plain

# ---------------------------------------------------------------- load


def test_load_runs_the_file_as_a_module_of_its_own(monkeypatch):
    """It has a name and a file, can be found by its classes, and is no `__main__`."""
    text = "NAME = __name__\nMAIN = __name__ == '__main__'\nFILE = __file__\n"
    session = Session()
    session.ask("load", file="my-net.py", text=text, path="/there/my-net.py", own=None)
    space = vars(session.module)
    assert (space["NAME"], space["MAIN"], space["FILE"]) == ("my_net", False, "/there/my-net.py")
    assert sys.modules["my_net"] is session.module


def test_load_serves_dataclasses():
    """A dataclass asks sys.modules for its module while the file still runs."""
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Config:\n    width: int = 4\n"
    )
    assert loaded(text).module.Config().width == 4


@pytest.mark.parametrize("file", ["json.py", "random.py", "torch.py", "bisect.py", "typing.py"])
def test_load_takes_no_name_that_others_import(file):
    """A candidate in a file called torch.py must not replace torch for everybody."""
    name = file.removesuffix(".py")
    before = sys.modules.get(name)
    loaded("x = 1", file=file)
    assert sys.modules.get(name) is before


def test_load_again_replaces_the_module():
    """A second submission of the same name is the one that counts."""
    loaded("x = 1", file="again_and_again.py")
    second = loaded("x = 2", file="again_and_again.py")
    assert sys.modules["again_and_again"] is second.module
    assert second.module.x == 2


@pytest.mark.parametrize(
    ("text", "error", "line"),
    [
        ("x = 1\nraise ValueError('no')", "ValueError", 2),
        ("import no_such_module_at_all", "ModuleNotFoundError", 1),
        ("import sys\n\nsys.exit(3)", "SystemExit", 3),
        ("def f():\n    return f()\nf()", "RecursionError", 2),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
        ("class E(BaseException): pass\nraise E", "E", 2),
    ],
)
def test_load_reports_what_the_file_raises(text, error, line):
    """Whatever the file raises when it is read becomes an answer with the line."""
    session = Session()
    raised = session.ask("load", file="net.py", text=text, path="", own=None)["raised"]
    assert (raised["error"], raised["file"], raised["line"]) == (error, "net.py", line)
    assert raised["source"] == text.splitlines()[line - 1].strip()


def test_an_exception_is_told_with_its_bases():
    """Checks ask for ValueError: a subclass of it counts, and so its bases are told."""
    session = Session()
    text = "class Mine(ValueError): pass\nraise Mine('no')"
    raised = session.ask("load", file="net.py", text=text, path="", own=None)["raised"]
    assert raised["kinds"][:2] == ["ValueError", "Exception"]
    assert raised["memory"] is False


@pytest.mark.parametrize("error", ["MemoryError()", "RuntimeError('cannot allocate memory: 9 GB')"])
def test_running_out_of_memory_is_told_apart(error):
    """Python's MemoryError and PyTorch's message are the same outcome."""
    session = Session()
    answer = session.ask("load", file="net.py", text=f"raise {error}", path="", own=None)
    assert answer["raised"]["memory"] is True


def test_load_in_the_users_surroundings(tmp_path, monkeypatch):
    """A user's own target finds its helpers, its folder and its environment, and nothing else."""
    (tmp_path / "helper_of_mine.py").write_text("VALUE = 5\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path.parent)
    before = dict(os.environ)
    own = UserEnvironment(cwd=str(tmp_path), sys_path=(str(tmp_path),), env={"MINE": "1"})
    text = "import os, helper_of_mine\nseen = helper_of_mine.VALUE, os.getcwd(), dict(os.environ)"
    session = Session()
    try:
        assert session.ask("load", file="net.py", text=text, path="", own=plain(own)) == {}
    finally:
        os.environ.clear()
        os.environ.update(before)
    value, cwd, env = session.module.seen
    assert (value, cwd, env) == (5, str(tmp_path), {"MINE": "1"})
