"""Reading a source file: everything that can be wrong with it is one clear message."""

import ast
import gc
import os
import socket
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnlab.errors import Unreadable
from attnlab.target.source import LARGEST, marked_slug, parse, read_source

GOOD = "class Net:\n    pass\n"


def refused(path, shown=None):
    with pytest.raises(Unreadable) as caught:
        read_source(path, shown)
    assert caught.value.hint
    return caught.value


def test_a_good_file_is_read_as_it_is(tmp_path):
    """The text, the path that messages show, and where the file really lies."""
    path = tmp_path / "net.py"
    path.write_text(GOOD)
    code = read_source(path, "net.py")
    assert (code.file, code.text, code.path, code.name) == ("net.py", GOOD, str(path), None)
    assert read_source(path).file == str(path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "# coding: latin-1\nx = 'é'\n"),
        ("x = 'é'\r\n".encode(), "x = 'é'\r\n"),
    ],
    ids=["bom", "latin-1", "crlf"],
)
def test_encodings_that_python_reads_are_read(tmp_path, data, text):
    """What `python file.py` accepts is accepted here."""
    path = tmp_path / "net.py"
    path.write_bytes(data)
    assert read_source(path).text == text


# ---------------------------------------------------------------- not a file


def test_a_missing_file_suggests_the_near_one(tmp_path):
    """A slip in the name is answered with the file that is there."""
    (tmp_path / "attention.py").write_text(GOOD)
    error = refused(tmp_path / "atention.py", "atention.py")
    assert error.message == "atention.py: no such file"
    assert error.hint == "Did you mean attention.py?"


def test_a_notebook_is_exported_first(tmp_path):
    """A notebook is JSON, which happens to be valid Python without any class."""
    path = tmp_path / "net.ipynb"
    path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    error = refused(path, "net.ipynb")
    assert error.message == "net.ipynb is a notebook, not a Python file"
    assert error.hint == "Export it as a .py file: jupyter nbconvert --to script net.ipynb"


def test_a_missing_folder_is_named(tmp_path):
    """It is the folder that does not exist, not only the file."""
    error = refused(tmp_path / "no" / "net.py")
    assert error.message.endswith("net.py: no such file")
    assert error.hint == f"There is no folder {tmp_path / 'no'} either."


def test_a_folder_lists_what_it_holds(tmp_path):
    """Naming a folder gets the files that could be meant."""
    (tmp_path / "net.py").write_text(GOOD)
    error = refused(tmp_path, "models")
    assert error.message == "models is a folder, not a file"
    assert error.hint == "Name a file in it: net.py"


def test_a_path_through_a_file_is_no_such_file(tmp_path):
    """`net.py/x.py` is answered like any missing file."""
    (tmp_path / "net.py").write_text(GOOD)
    assert "no such file" in refused(tmp_path / "net.py" / "x.py").message


def test_a_fifo_does_not_hang(tmp_path):
    """Opening a pipe nobody writes to would wait for ever."""
    path = tmp_path / "pipe.py"
    os.mkfifo(path)
    assert refused(path, "pipe.py").message == "pipe.py is a FIFO, not a regular file"


def test_a_device_is_not_read():
    """/dev/zero never ends."""
    error = refused(Path("/dev/null"))
    assert error.message == "/dev/null is a device, not a regular file"


def test_a_socket_is_not_read(tmp_path, monkeypatch):
    """A socket is named for what it is."""
    monkeypatch.chdir(tmp_path)  # the names of sockets must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.py")
        assert "is a socket" in refused(tmp_path / "s.py").message


def test_a_file_swapped_for_a_pipe_is_still_refused(tmp_path, monkeypatch):
    """What was opened is looked at again, not only what the name showed before."""
    (tmp_path / "net.py").write_text(GOOD)
    os.mkfifo(tmp_path / "pipe")
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, flags: real(tmp_path / "pipe", flags))
    assert "is a FIFO" in refused(tmp_path / "net.py").message


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    """Permission denied is not "no such file"."""
    path = tmp_path / "net.py"
    path.write_text(GOOD)

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert refused(path, "net.py").message == "net.py cannot be read: permission denied"


@pytest.mark.parametrize("name", ["a" * 5000 + ".py", "a\0b.py"], ids=["too-long", "nul"])
def test_names_that_no_system_has_are_refused(tmp_path, name):
    """An impossible name is a message, never a traceback."""
    assert "cannot be read: " in refused(tmp_path / name).message


def test_a_loop_of_links_is_refused(tmp_path):
    """The system's own words are passed on."""
    (tmp_path / "a.py").symlink_to(tmp_path / "a.py")
    assert "cannot be read: " in refused(tmp_path / "a.py").message


# ---------------------------------------------------------------- not source text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "net.py is empty"),
        (b" \n\t\n", "net.py is empty"),
        (b"\x89PNG\r\n\0\0", "net.py is a binary file (a NUL byte at offset 6)"),
        (b"\0\1\2", "net.py is a binary file (a NUL byte at offset 0)"),
        ("x = 1\n".encode("utf-16"), "net.py is UTF-16 text"),
        (b"x = 1\ny = '\xe9'\n", "net.py is not UTF-8: byte 0xe9 on line 2"),
        (b"# \xe9\n", "net.py is not UTF-8: byte 0xe9 on line 1"),
        (b"# coding: klingon\nx = 1\n", "net.py declares no usable encoding: unknown encoding"),
        (b"# coding: rot13\nk = 1\n", "net.py declares no usable encoding: 'rot13' is not a text"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "net.py declares no usable encoding: encoding prob"),
        (b"# coding: unicode_escape\nx = '\\ud800'\n", "net.py is not text in its declared"),
        (b"# coding: ascii\nx = '\xc3\xa9'\n", "net.py is not text in its declared encoding"),
        (b"#" * (LARGEST + 1), "net.py is larger than 1024 KiB"),
    ],
    ids=lambda v: v[7:30] if isinstance(v, str) else "",
)
def test_what_is_no_source_text_is_refused(tmp_path, data, message):
    """Empty, binary, in another encoding, or too large: each has its own sentence."""
    path = tmp_path / "net.py"
    path.write_bytes(data)
    assert refused(path, "net.py").message.startswith(message)


def test_a_file_of_the_largest_size_is_read(tmp_path):
    """The limit itself is allowed."""
    path = tmp_path / "net.py"
    path.write_bytes(b"#" * LARGEST)
    assert len(read_source(path).text) == LARGEST


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("x = 1\ndef f(:\n    pass\n", 2, "def f(:"),
        ("def f():\npass\n", 2, "pass"),
        ("if x:\n    a\n  b\n", 3, "b"),
        ("\n\nx = (1,\n", 3, "x = (1,"),
        ("return 1\n", 1, "'return' outside function"),
        ("x = '\x1b[31m\n", 1, "?[31m"),
        ("x = 5 5\r\n", 1, "x = 5 5"),
        ("é = 'ü' 'ö'\nä = )\n", 2, "ä = )"),
        ("x = '\x0c'\n# \u2028\ny = )\n", 3, "y = )"),
    ],
)
def test_a_syntax_error_shows_its_line(tmp_path, text, line, shown):
    """The number of the line and what stands there, without control characters."""
    path = tmp_path / "net.py"
    path.write_bytes(text.encode())
    error = refused(path, "net.py")
    assert error.message.startswith(f"net.py:{line}: syntax error, ")
    assert str(line) not in error.hint  # it is named once
    assert shown in error.message
    assert error.message.isprintable()
    assert error.where == f"net.py:{line}"


@pytest.mark.parametrize(
    "text",
    ["-" * 900_000 + "1", "a" + ".b" * 400_000, "1" + "+1" * 400_000, "not " * 200_000 + "1"],
    ids=["minus", "attributes", "sum", "not"],
)
def test_source_that_breaks_the_parser_is_refused(tmp_path, text):
    """Nesting deeper than Python can compile ends in a message, not in a dead process."""
    path = tmp_path / "net.py"
    path.write_text(text)
    assert "nested too deeply" in refused(path).message


def test_warnings_of_the_source_are_not_ours(tmp_path):
    r"""A regular expression written as "\d" is the author's affair."""
    path = tmp_path / "net.py"
    path.write_text('x = "\\d"\ny = 1 is 1\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_source(path).text.startswith("x")


# ---------------------------------------------------------------- started files


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("# attnlab: attention/too-sharp\nimport torch\n", "attention/too-sharp"),
        ("#attnlab:attention/too-sharp\r\nimport torch\n", "attention/too-sharp"),
        ("import torch\n# attnlab: attention/too-sharp\n", None),
        ("# attnlab: too-sharp\n", None),
        ("# attnlab: attention/too-sharp, my second try\n", None),
        ("", None),
    ],
)
def test_a_started_file_names_its_challenge_on_line_1(text, slug):
    """`attnlab grade my.py` knows what to grade it against."""
    assert marked_slug(text) == slug


class Loop:
    """Garbage that runs Python code when it is collected."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        for _ in range(20):
            pass


def test_several_threads_may_parse():
    """Python 3.11 loses count of the depth where one thread gives way within a tree."""
    text = Path(ast.__file__).read_text("utf-8")
    usual, often = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50, 2, 2)

    def parse_beside_garbage(number):
        made = [Loop() for _ in range(30)]
        tree = parse(text, f"{number}.py")
        return len(made) and len(tree.body)

    try:
        with ThreadPoolExecutor(3) as pool:
            assert len(set(pool.map(parse_beside_garbage, range(15)))) == 1
    finally:
        sys.setswitchinterval(usual)
        gc.set_threshold(*often)
