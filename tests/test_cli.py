"""The command line: exit codes, errors in both forms, and what starts without torch."""

import io
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from attnlab import __version__, cli, commands
from attnlab.cli import move_global_options, wants_json
from attnlab.render.streams import prepare_streams

ORDER = """list show start new sabotage next run grade watch hint solution reset quiz interview
review stats plan trace walk diff ablate triage verify cost snippets mutate position explain lesson
batch check doctor server
""".split()  # noqa: SIM905


def attnlab(*args, **environment):
    """The real command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "attnlab", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "80", **environment},
        check=False,
    )


# ---------------------------------------------------------------- help and version


def test_version(shell):
    """One line, exit code 0."""
    assert shell("--version") == (0, f"attnlab {__version__}\n", "")


@pytest.mark.parametrize("args", [("--help",), ("-h",)])
def test_help_lists_the_commands_in_their_order(shell, args):
    """Commands stand in the order of their places, each with all it says on one line."""
    said = shell(*args)
    assert said.code == 0
    listed = [line for line in said.out.split("Practise:")[1].splitlines() if line[:2] == "  "]
    assert [line.split()[0] for line in listed] == ORDER
    assert [line for line in listed if line.endswith("...") or len(line) > 80] == []


@pytest.mark.parametrize("name", ORDER)
def test_every_command_has_help(shell, name):
    """Each says what it does in its first line."""
    said = shell(name, "--help")
    assert said.code == 0
    assert f"attnlab {name}" in said.out


def test_a_command_is_found_by_its_folder(shell, tmp_path, monkeypatch):
    """Adding a file to the folder is all it takes."""
    (tmp_path / "twice.py").write_text(
        'PLACE = 1\ndef command() -> int:\n    """Say it twice."""\n    return 7\n'
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    assert shell("twice").code == 7
    assert "Say it twice." in shell("--help").out
    sys.modules.pop("attnlab.commands.twice")


# ---------------------------------------------------------------- wrong command lines

WRONG = [
    ("lst",),
    ("--frobnicate",),
    ("run",),
    ("run", "--frobnicate", "x"),
    ("grade", "a", "b", "c"),
    ("list", "--json=3"),
    ("--catalogue",),
    ("--catalogue", "/no/such/folder", "list"),
    ("run", "no-such-challenge"),
    ("grade", "no_such_file.py"),
    ("grade", "."),
    ("grade", "too-sharp", "no_such_file.py"),
    ("grade", "too-sharp", "--timeout", "soon"),
    ("grade", "too-sharp", "--timeout", "nan"),
    ("grade", "too-sharp", "--memory", "lots"),
    ("grade", "too-sharp", "--memory", "0"),
    ("explain", "no-such-check"),
    ("explain", "too-sharp"),
    ("solution", "too-sharp"),
    ("trace", "no_such_file.py:X"),
    ("check", "no-such-challenge"),
]


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_refusals_exit_2_with_one_error_line(shell, args):
    """The reason on stderr, nothing on stdout, no traceback."""
    said = shell(*args)
    assert (said.code, said.out) == (2, "")
    lines = said.err.splitlines()
    assert [line.partition(":")[0] for line in lines][:1] == ["error"]
    assert len(lines) <= 2


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_refusals_are_one_document_with_json(shell, args):
    """Also where the command line could not be understood."""
    said = shell(*args, "--json")
    assert said.code == 2
    assert said.err == ""
    assert said.json["format"] == 1
    assert said.json["outcome"] in ("refused", "unreadable")
    assert set(said.json["error"]) == {"message", "hint", "where"}
    assert said.json["error"]["message"]


def test_near_names_are_suggested(shell):
    """Of commands, of challenges and of checks."""
    assert "'grade'" in shell("grad").err
    assert "too-sharp" in shell("run", "to-sharp").err
    assert "causality" in shell("explain", "causalty").err


# ---------------------------------------------------------------- what breaks


def raising(error):
    def load(extra=None):
        raise error

    return load


def test_our_own_fault_is_one_line_and_70(shell, monkeypatch):
    """A mistake of ours is told as one, with how to report it; never a bare traceback."""
    monkeypatch.setattr("attnlab.catalogue.load.load", raising(KeyError("slug")))
    said = shell("list")
    assert said.code == 70
    assert said.err.startswith("error: attnlab broke: KeyError: 'slug' (test_cli.py:")
    assert "ATTNLAB_DEBUG=1" in said.err
    assert "Traceback" not in said.err


def test_our_own_fault_in_json(shell, monkeypatch):
    """The same, as the one document."""
    monkeypatch.setattr("attnlab.catalogue.load.load", raising(KeyError("slug")))
    said = shell("list", "--json")
    assert (said.code, said.json["outcome"]) == (70, "error")


def test_debug_shows_the_traceback(shell, monkeypatch):
    """ATTNLAB_DEBUG=1 is for those who look into it."""
    monkeypatch.setattr("attnlab.catalogue.load.load", raising(KeyError("slug")))
    monkeypatch.setenv("ATTNLAB_DEBUG", "1")
    assert "Traceback" in shell("list").err


def test_an_exception_without_a_traceback_is_told(shell, monkeypatch):
    """The last resort does not itself fail."""
    assert cli._internal_error(ValueError("x")).message == "attnlab broke: ValueError: x"


def test_interrupt_is_130(shell, monkeypatch):
    """Ctrl-C, in words and as a document."""
    monkeypatch.setattr("attnlab.catalogue.load.load", raising(KeyboardInterrupt()))
    assert shell("list").code == 130
    said = shell("list", "--json")
    assert (said.code, said.json["error"]["message"]) == (130, "interrupted")


@pytest.mark.parametrize(("args", "code"), [("list", 0), ("list --json", 0), ("run x", 2)])
def test_a_reader_that_has_gone_is_no_error(tmp_path, args, code):
    """`attnlab list | head` is quiet and keeps its exit code."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "attnlab", *args.split()],
        stdout=write,
        stderr=write if code else subprocess.PIPE,
        env={**os.environ, "ATTNLAB_HOME": str(tmp_path)},
        text=True,
        check=False,
    )
    os.close(write)
    assert (process.returncode, process.stderr or "") == (code, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("args", [("list",), ("list", "--json"), ("--version",)])
def test_output_that_finds_no_room_is_told(tmp_path, args):
    """A full disk behind the output is neither a bug of attnlab nor a success, in any form."""
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "attnlab", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ATTNLAB_HOME": str(tmp_path)},
            check=False,
        )
    lines = process.stderr.splitlines()
    assert process.returncode == 74
    assert lines[0] == "error: the output is not complete: No space left on device"
    assert len(lines) == 2


def test_closed_output_is_no_error(tmp_path):
    """Some services start commands with nothing at all behind stdout."""
    closing = (
        "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    process = subprocess.run(
        [sys.executable, "-c", closing, "-m", "attnlab", "list", "--json"],
        stderr=subprocess.PIPE,
        env={**os.environ, "ATTNLAB_HOME": str(tmp_path)},
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")


# ---------------------------------------------------------------- plain text


def test_ascii_terminal(tmp_path):
    """A terminal that knows only ASCII gets every command's text."""
    said = attnlab("list", PYTHONIOENCODING="ascii", ATTNLAB_HOME=str(tmp_path))
    assert said.returncode == 0
    assert said.stdout.isascii()


def test_pipes_get_no_escapes(tmp_path):
    """No colour codes where nobody sees colours."""
    assert "\x1b" not in attnlab("list", ATTNLAB_HOME=str(tmp_path)).stdout


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_no_color(tmp_path, how):
    """NO_COLOR and --no-color leave no escape code, bold neither, even on a terminal."""
    environment = {"FORCE_COLOR": "1", "ATTNLAB_HOME": str(tmp_path)}
    assert "\x1b[36m" in attnlab("list", **environment).stdout  # cyan, of names
    args = ["list", "--no-color"] if how == "flag" else ["list"]
    more = {"NO_COLOR": "1"} if how == "variable" else {}
    assert "\x1b" not in attnlab(*args, **environment, **more).stdout


# ---------------------------------------------------------------- global options


@pytest.mark.parametrize(
    ("args", "hoisted"),
    [
        ("list --catalogue a", "--catalogue a list"),
        ("list --catalogue=a --json", "--catalogue=a list --json"),
        ("run x --no-color --reveal", "--no-color run x --reveal"),
        ("run -- --catalogue a", "run -- --catalogue a"),
        ("list --catalogue", "--catalogue list"),
        ("list", "list"),
    ],
)
def test_global_options_may_stand_anywhere(args, hoisted):
    """They are moved to where Typer expects them; nothing after `--` is touched."""
    assert move_global_options(args.split()) == hoisted.split()


def test_json_after_dashes_is_no_option():
    """`--` ends the options, for us too."""
    assert wants_json(["list", "--json"])
    assert not wants_json(["run", "--", "--json"])


# ---------------------------------------------------------------- what is loaded

LIGHT = {
    "help": ["--help"],
    "version": ["--version"],
    "list": ["list"],
    "list --json": ["list", "--json"],
    "hint": ["hint", "too-sharp"],
    "start": ["start", "too-sharp"],
    "run --help": ["run", "--help"],
    "refusal": ["run", "no-such-challenge"],
    "completion": [],
}
SPY = """
import json, sys
from attnlab.cli import run
code = "completed"
try:
    code = run(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps([m for m in ("torch", "pydantic", "numpy") if m in sys.modules]), file=sys.stderr)
"""


@pytest.mark.parametrize("name", LIGHT)
def test_small_commands_load_neither_torch_nor_pydantic(name, tmp_path):
    """What needs no tensors must not wait for them."""
    more = {}
    if name == "completion":
        words = {"COMP_WORDS": "attnlab hint too", "COMP_CWORD": "2"}
        more = {"_ATTNLAB_COMPLETE": "complete_bash", **words}
    said = subprocess.run(
        [sys.executable, "-c", SPY, *LIGHT[name]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "ATTNLAB_HOME": str(tmp_path / "home"), **more},
        check=False,
    )
    assert json.loads(said.stderr.splitlines()[-1]) == [], said.stderr
    if name == "completion":
        assert "too-sharp" in said.stdout


def test_a_typer_that_reads_otherwise_is_left_alone():
    """Parameters without the descriptor that we know keep their own reader."""
    param = types.SimpleNamespace()
    assert cli._skip_pydantic([param]) == [param]
    assert vars(param) == {}


# ---------------------------------------------------------------- what people stumbled over


def test_alone_it_says_where_one_is(shell):
    """How much is solved, what lies in this folder, and what is next."""
    said = shell()
    assert (
        said.code,
        bool(re.search(r"0 of \d+ challenges and 0 of \d+ programs solved", said.out)),
    ) == (0, True)
    assert said.out.rstrip().endswith("next: attnlab run peeks-ahead")
    shell("start", "too-sharp")
    said = shell()
    assert "./too-sharp.py  started" in said.out
    assert said.out.rstrip().endswith("next: attnlab watch too-sharp")


def test_a_file_that_is_elsewhere_is_not_suggested_for_grading(shell, tmp_path, monkeypatch):
    """In another folder a grade would be of the shipped file, which fails."""
    shell("start", "too-sharp")
    monkeypatch.chdir(tmp_path)
    assert shell("list").out.rstrip().endswith("next: attnlab run too-sharp")


def test_json_may_stand_before_the_command(shell):
    """It asks for a document wherever it stands."""
    assert shell("--json", "list").json == shell("list", "--json").json
    assert shell("--json").json["next"] == "attnlab run peeks-ahead"


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("too-sharp", "grade"), "did you mean attnlab grade too-sharp?"),
        (("too-sharp",), "did you mean attnlab run too-sharp?"),
        (("continue",), "attnlab alone says where you are and what is next"),
        (("grade",), "type attnlab grade NAME; attnlab list shows the names"),
        (("trace",), "type attnlab trace model.py:MyAttention"),
    ],
)
def test_a_slip_gets_the_command_that_was_meant(shell, args, hint):
    """Swapped, missing or invented words are refused with what to type."""
    said = shell(*args)
    assert (said.code, f"hint: {hint}" in said.err) == (2, True)


def test_installing_completion_says_what_it_writes(monkeypatch, capsys):
    """The shell's start file is the user's own."""
    monkeypatch.setenv("SHELL", "/bin/bash")
    cli._announce_completion()
    assert ".bashrc" in capsys.readouterr().err


def test_a_command_imports_no_other_command():
    """Each of thirty takes its time; help and a name that is none need them all."""
    code = (
        "import sys; from attnlab.cli import run; run(sys.argv[1:]);"
        "print([m for m in sys.modules if m.startswith('attnlab.commands.')], file=sys.stderr)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        ).stderr
        for words in (["hint", "--help"], ["hnt"])
    ]
    assert said[0] == "['attnlab.commands.base', 'attnlab.commands.hint']\n"
    assert "Did you mean 'hint'?" in said[1]


def test_what_the_terminal_cannot_read_is_no_answer(monkeypatch):
    """With PYTHONIOENCODING=ascii an é that is typed is asked about, and ends nothing."""
    typed = io.TextIOWrapper(io.BytesIO("zé\n".encode()), "ascii")
    monkeypatch.setattr("sys.stdin", typed)
    prepare_streams()
    assert typed.readline() == "z\ufffd\ufffd\n"
