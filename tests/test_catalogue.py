"""Reading challenges: what a good folder gives, and what is said of a bad one."""

import os
import subprocess
import sys

import pytest

from attnlab import catalogue
from attnlab.catalogue import load, read_challenge
from attnlab.errors import Broken, Refused, Unreadable
from attnlab.records import Input, Position, Refusal

TOML = """\
format = 1
title = "Too sure"
kind = "debug"
level = 2
class = "Net"
reference = "MultiHeadSelfAttention"
source = "constructed"
symptom = "It is too sure."
task = "Make it less sure."
expected = ["matches-reference"]
hints = ["one", "two", "three"]

[sizes]
B = 2
S = 4
D = 8
H = 2

[init]
embed_dim = "D"

[inputs]
x = "B S D"
mask = "B S S bool forbids optional"

[output]
axes = "B S D"
"""


def write(root, slug="attention/too-sharp", toml=TOML, leave_out=()):
    """A complete challenge folder under `root`."""
    folder = root / slug
    names = ["buggy.py", "starter.py", "solution.py", "notes.md"]
    names += [f"alternatives/a{i}.py" for i in range(2)] + [f"mutants/m{i}.py" for i in range(6)]
    for name in names:
        if name not in leave_out:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("class Net: ...\n")
    (folder / "challenge.toml").write_text(toml)
    return folder


def broken(folder):
    with pytest.raises(Unreadable) as caught:
        read_challenge(folder)
    return caught.value


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A catalogue whose shipped part is the folder returned."""
    monkeypatch.setattr(catalogue, "shipped", lambda: tmp_path)
    monkeypatch.delenv("ATTNLAB_CATALOGUE", raising=False)
    return tmp_path


# ---------------------------------------------------------------- a good folder


def test_a_folder_becomes_a_challenge(tmp_path):
    """Every key of challenge.toml and every file of the folder arrives in the record."""
    folder = write(tmp_path)
    found = read_challenge(folder)
    assert (found.slug, found.title, found.kind, found.level) == (
        "attention/too-sharp", "Too sure", "debug", 2,
    )  # fmt: skip
    assert (found.class_name, found.reference) == ("Net", "MultiHeadSelfAttention")
    assert found.expected == ("matches-reference",)
    assert found.hints == ("one", "two", "three")
    assert found.file == str(folder / "buggy.py")
    assert found.solution == str(folder / "solution.py")
    assert found.notes == str(folder / "notes.md")
    assert [os.path.basename(p) for p in found.alternatives] == ["a0.py", "a1.py"]
    assert len(found.mutants) == 6


def test_the_tables_become_a_contract(tmp_path):
    """Sizes, constructor arguments, inputs and output are read, and defaults hold otherwise."""
    contract = read_challenge(write(tmp_path)).contract
    assert contract.sizes == {"B": 2, "S": 4, "D": 8, "H": 2}
    assert contract.init == {"embed_dim": "D"}
    assert contract.inputs == (
        Input(name="x", axes=("B", "S", "D")),
        Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True),
    )
    assert contract.output == ("B", "S", "D")
    assert contract.vary == ("B", "S", "D", "H")
    assert contract.example_mask == "causal"


def test_every_key_of_the_contract_table_is_read(tmp_path):
    """promises, mask, vary, buffers, probes, refusals and position reach the record."""
    toml = (
        TOML
        + """
[contract]
promises = ["averaging", "empty-rows"]
mask = "empty-rows"
vary = ["B", "S"]
buffers = ["pos.pe"]
[[contract.probes]]
S = 1
[[contract.refusals]]
sizes = { S = 101 }
error = "ValueError"
[contract.position]
kind = "sinusoidal"
form = "added"
base = 500
"""
    )
    contract = read_challenge(write(tmp_path, toml=toml)).contract
    assert contract.promises == ("averaging", "empty-rows")
    assert contract.example_mask == "empty-rows"
    assert contract.vary == ("B", "S")
    assert contract.buffers == ("pos.pe",)
    assert contract.probes == ({"S": 1},)
    assert contract.refusals == (Refusal(sizes={"S": 101}, error="ValueError"),)
    assert contract.position == Position(form="added", base=500.0)


def test_an_implement_challenge_ships_its_starter(tmp_path):
    """`kind = "implement"` has starter.py where `debug` has buggy.py."""
    toml = TOML.replace('"debug"', '"implement"')
    folder = write(tmp_path, toml=toml, leave_out=["buggy.py"])
    assert read_challenge(folder).file == str(folder / "starter.py")


def test_axes_may_be_products_numbers_and_hd(tmp_path):
    """`hd` is D / H where both are known; 3*D and 4 need no size of their own."""
    toml = TOML.replace('x = "B S D"', 'x = "B 1 hd 3*D"')
    assert read_challenge(write(tmp_path, toml=toml)).contract.inputs[0].axes == (
        "B", "1", "hd", "3*D",
    )  # fmt: skip


# ---------------------------------------------------------------- a bad challenge.toml

BAD = [
    # what is replaced, by what, the line, the message, a word of the hint
    ("level = 2", "level = 9", 4, "level = 9: expected 1 to 5", ""),
    ("level = 2", "level = true", 4, "level = true: expected 1 to 5", ""),
    ("level = 2", 'level = "2"', 4, 'level = "2": expected 1 to 5', ""),
    ("level = 2", "levle = 2", 4, "levle: unknown key", "Did you mean level?"),
    ("level = 2\n", "", None, "level: missing", "Add level"),
    ('"debug"', '"debgu"', 3, 'kind = "debgu": expected debug or implement', '"debug"'),
    ("format = 1", "format = 2", 1, "format = 2: this attnlab reads format 1", "Update"),
    ("format = 1", "format = true", 1, "format = True: this attnlab reads format 1", "format = 1"),
    ("format = 1\n", "", None, "format: missing; this attnlab reads format 1", "format = 1"),
    ('"Too sure"', '" "', 2, 'title = " ": expected text on one line', ""),
    ('"Net"', '"class"', 5, 'class = "class": expected a Python name', ""),
    ('"MultiHeadSelfAttention"', '"other.py"', 6, 'reference = "other.py": expected', ""),
    (
        '"Make it less sure."',
        f'"""{chr(10) * 25}{"a" + chr(10) * 21}b"""',
        9,
        "expected at most 20",
        "",
    ),
    (
        '["matches-reference"]',
        "[]",
        10,
        "expected = a list of 0: expected a list of at least 1",
        "",
    ),
    ('["matches-reference"]', "[3]", 10, "expected[0] = 3: expected the id of a check", ""),
    ('"one", "two", "three"', '"one"', 11, "hints = a list of 1: expected a list of 3", ""),
    ('"one", "two"', '"one", ""', 11, 'hints[1] = "": expected text', ""),
    ("B = 2", "B = 0", 14, "sizes.B = 0: expected a whole number of at least 1", ""),
    ("B = 2", "2B = 2", 14, "sizes.2B: the key must be a symbol", ""),
    ('embed_dim = "D"', "embed_dim = [1]", 20, "init.embed_dim = a list of 1: expected text", ""),
    ('embed_dim = "D"', "embed_dim = nan", 20, "init.embed_dim = nan: expected a finite", ""),
    ('x = "B S D"', 'x = "B S E"', 23, "inputs.x: E is not in [sizes]", "Known symbols: B, S, D"),
    ('x = "B S D"', 'x = "B S hdd"', 23, "inputs.x: hdd is not in [sizes]", "hd"),
    ('x = "B S D"', 'x = "B S -1"', 23, 'inputs.x = "B S -1": -1 is no axis', "3*D"),
    ('x = "B S D"', 'x = "B S float int"', 23, "says two things at once", "float|int|bool"),
    ('x = "B S D"', 'x = "B S forbids"', 23, "forbids needs the word bool", ""),
    ('x = "B S D"', 'x = "int"', 23, 'inputs.x = "int": names no axes', ""),
    ('axes = "B S D"', 'axis = "B"', 27, "output.axis: unknown key", "axes"),
    ("[output]\n", "", 26, "axes", ""),
    ('axes = "B S D"', "", 26, "output.axes: missing", "Add axes"),
    ("[init]", "[innit]", 19, "innit: unknown key", "Did you mean init?"),
]


@pytest.mark.parametrize(("old", "new", "line", "message", "hint"), BAD, ids=lambda v: str(v)[:30])
def test_a_wrong_key_is_named_with_its_file_and_line(tmp_path, old, new, line, message, hint):
    """The author of a challenge reads where the mistake is and what is allowed there."""
    assert old in TOML
    folder = write(tmp_path, toml=TOML.replace(old, new, 1))
    error = broken(folder)
    file = str(folder / "challenge.toml")
    assert message in error.message
    assert hint in error.hint
    assert error.where == (f"{file}:{line}" if line else file)


@pytest.mark.parametrize(
    ("extra", "line", "message"),
    [
        ('[contract]\npromisses = []', 30, "contract.promisses: unknown key"),
        ('[contract]\npromises = ["casual"]', 30, 'contract.promises[0] = "casual": expected'),
        ('[contract]\nmask = "full"', 30, 'contract.mask = "full": expected causal, random, none or'),
        ('[contract]\nvary = ["Q"]', 30, "contract.vary: Q is not in [sizes]"),
        ("[contract]\nvary = [\n 'B',\n 3]", 30, "contract.vary[1] = 3: expected a symbol"),
        ("[contract]\n[[contract.probes]]\nS = 1\n[[contract.probes]]\nQ = 1", 33,
         "contract.probes[1].Q: Q is not in [sizes]"),
        ("[contract]\nprobes = [{}]", 30, "contract.probes[0]: the table is empty"),
        ("[[contract.refusals]]\nerror = 'any'", 29, "contract.refusals[0].sizes: missing"),
        ("[[contract.refusals]]\nsizes = { Q = 1 }", 30, "contract.refusals[0].sizes.Q: Q is not"),
        ("[contract.position]\nbase = -1.0", 30, "contract.position.base = -1.0: expected a number"),
        ("[contract]\nposition = 'sin'", 30, 'contract.position = "sin": expected a table'),
    ],
)  # fmt: skip
def test_wrong_keys_deep_inside_are_placed_too(tmp_path, extra, line, message):
    """Arrays of tables, inline tables and lists over several lines keep their line."""
    folder = write(tmp_path, toml=f"{TOML}\n{extra}\n")
    error = broken(folder)
    assert message in error.message
    assert error.where.endswith(f"challenge.toml:{line}")


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ("format = 1\ntitle = \n", 2),
        ("format = 1\ntitle = 'a'\ntitle = 'b'\n", 3),
        ("format = 1\n\ntask = '''\nnever\nends\n", 3),
        ("format = 1\nhints = ['a',\n'b'\n", 2),
        (f"format = 1\nlevel = {'[' * 5000}", 2),
        ("format = 1\nlevel = " + "9" * 5000, 2),
    ],
    ids=["no-value", "twice", "open-string", "open-list", "deep", "huge-number"],
)
def test_toml_that_does_not_parse_names_the_line(tmp_path, toml, line):
    """A slip in the TOML itself is one message with the line where the statement begins."""
    error = broken(write(tmp_path, toml=toml))
    assert error.message.startswith("no valid TOML: ")
    assert error.where.endswith(f"challenge.toml:{line}")


def test_a_description_that_is_not_utf8_names_the_line(tmp_path):
    """An editor that saves Latin-1 is told so."""
    folder = write(tmp_path)
    (folder / "challenge.toml").write_bytes(b"format = 1\ntitle = '\xe9'\n")
    error = broken(folder)
    assert "is not UTF-8 text" in error.message
    assert error.where.endswith("challenge.toml:2")


def test_a_description_that_is_a_fifo_does_not_hang(tmp_path):
    """`attnlab list` must not wait for a pipe that nobody writes to."""
    folder = write(tmp_path)
    (folder / "challenge.toml").unlink()
    os.mkfifo(folder / "challenge.toml")
    assert "is a FIFO" in broken(folder).message


# ---------------------------------------------------------------- missing files


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("buggy.py", "buggy.py is missing"),
        ("solution.py", "solution.py is missing"),
        ("notes.md", "notes.md is missing"),
        ("alternatives/a1.py", "alternatives/*.py: 1 found, at least 2 needed"),
        ("mutants/m3.py", "mutants/*.py: 5 found, at least 6 needed"),
    ],
)
def test_a_missing_file_is_named(tmp_path, left_out, message):
    """A challenge is whole or it is not shown."""
    error = broken(write(tmp_path, leave_out=[left_out]))
    assert error.message == message
    assert "too-sharp" in error.where


def test_a_folder_without_description_is_broken(tmp_path):
    """A forgotten challenge.toml is told, with the path it should have."""
    folder = write(tmp_path)
    (folder / "challenge.toml").unlink()
    error = broken(folder)
    assert error.message.endswith("challenge.toml: no such file")


def test_a_slug_must_be_easy_to_type(tmp_path):
    """The folder's name is typed on the command line."""
    error = broken(write(tmp_path, slug="attention/Too_Sharp"))
    assert '"Too_Sharp" is no slug' in error.message


# ---------------------------------------------------------------- the whole catalogue


def test_challenges_stand_by_topic_level_and_slug(alone):
    """`attnlab list` begins with attention, and with what is easy."""
    for slug, level in [("position/b", 1), ("attention/z", 1), ("attention/a", 3), ("blocks/c", 1)]:
        write(alone, slug=slug, toml=TOML.replace("level = 2", f"level = {level}"))
    assert [c.slug for c in load().challenges] == [
        "attention/z", "attention/a", "position/b", "blocks/c",
    ]  # fmt: skip


def test_a_broken_challenge_hides_no_other(alone):
    """The rest loads, the error is kept, and asking for the broken one raises it."""
    write(alone, slug="attention/good")
    write(alone, slug="attention/bad", toml=TOML.replace("level = 2", "level = 9"))
    found = load()
    assert [c.slug for c in found.challenges] == ["attention/good"]
    assert [e.message for e in found.broken] == ["level = 9: expected 1 to 5"]
    for what in ("bad", "attention/bad"):
        with pytest.raises(Unreadable, match="level = 9"):
            found.find(what)


def test_empty_and_hidden_folders_are_no_challenges(alone):
    """What git and Python leave behind is passed over."""
    write(alone)
    for name in ("attention/gone", "attention/old/__pycache__", ".git/hooks", "attention/.x/y"):
        (alone / name).mkdir(parents=True)
    found = load()
    assert (len(found.challenges), found.broken) == (1, ())


def test_find_takes_full_and_bare_names(alone):
    """`too-sharp` and `attention/too-sharp` are the same challenge."""
    write(alone)
    for what in ("too-sharp", "attention/too-sharp", " too-sharp/ "):
        assert load().find(what).slug == "attention/too-sharp"


@pytest.mark.parametrize(
    "what", ["to-sharp", "attention/too-shap", "Too-Sharp", "atention/too-sharp"]
)
def test_a_slip_in_the_name_gets_the_near_name(alone, what):
    """Nobody types a slug right the first time."""
    write(alone)
    with pytest.raises(Refused) as caught:
        load().find(what)
    assert caught.value.message == f'no challenge is called "{what}"'
    assert caught.value.hint.startswith("Did you mean ")
    assert "too-sharp" in caught.value.hint


def test_a_name_far_from_all_points_to_list(alone):
    """No guess is better than a wild one."""
    write(alone)
    with pytest.raises(Refused) as caught:
        load().find("x" * 3000)
    assert caught.value.hint == "attnlab list shows them all."


def test_a_bare_name_of_two_topics_is_refused(alone):
    """Which one is meant cannot be guessed: both are shown."""
    write(alone, slug="attention/same")
    write(alone, slug="position/same")
    with pytest.raises(Refused) as caught:
        load().find("same")
    assert caught.value.hint == "Write attention/same or position/same."


def test_another_folder_adds_challenges(alone, tmp_path_factory, monkeypatch):
    """--catalogue and ATTNLAB_CATALOGUE add to what ships."""
    write(alone)
    more = tmp_path_factory.mktemp("more")
    write(more, slug="position/mine")
    expected = ["attention/too-sharp", "position/mine"]
    assert [c.slug for c in load(more).challenges] == expected
    monkeypatch.setenv("ATTNLAB_CATALOGUE", str(more))
    assert [c.slug for c in load().challenges] == expected


def test_the_shipped_folder_named_again_changes_nothing(alone):
    """`--catalogue challenges` in a checkout is no catalogue full of doubles."""
    write(alone)
    found = load(alone)
    assert (len(found.challenges), found.broken) == (1, ())


def test_a_slug_that_is_taken_is_told(alone, tmp_path_factory):
    """A second challenge of the same name neither replaces the first nor vanishes."""
    write(alone)
    more = tmp_path_factory.mktemp("more")
    folder = write(more)
    found = load(more)
    assert found.find("too-sharp").folder == str(alone / "attention/too-sharp")
    assert found.broken[0].message.startswith("attention/too-sharp already stands in ")
    assert found.broken[0].where == str(folder)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "does not exist"),
        (lambda p: p.write_text(""), "is not a folder"),
        (lambda p: p.mkdir(), "holds no TOPIC/SLUG/challenge.toml"),
        (lambda p: write(p.parent, slug="more/mine"), "holds no TOPIC/SLUG/challenge.toml"),
    ],
    ids=["missing", "file", "empty", "one-topic"],
)
def test_a_wrong_catalogue_folder_is_refused(alone, tmp_path_factory, make, message):
    """A mistyped --catalogue is not silently an empty one."""
    folder = tmp_path_factory.mktemp("base") / "more"
    make(folder)
    with pytest.raises(Refused) as caught:
        load(folder)
    assert message in caught.value.message
    assert "--catalogue" in caught.value.message


def test_the_variable_is_named_when_it_is_wrong(alone, monkeypatch):
    """Who set ATTNLAB_CATALOGUE long ago learns that it is still set."""
    monkeypatch.setenv("ATTNLAB_CATALOGUE", "/nowhere")
    with pytest.raises(Refused, match="ATTNLAB_CATALOGUE: /nowhere does not exist"):
        load()


def test_an_installation_without_challenges_is_our_fault(monkeypatch, tmp_path):
    """A wheel built wrong says so, with exit code 70, and is no empty list."""
    (tmp_path / "attnlab").mkdir()
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "attnlab" / "catalogue.py"))
    with pytest.raises(Broken, match="challenges that ship with attnlab are missing"):
        catalogue.shipped()


def test_the_wheel_folder_comes_before_the_checkout(monkeypatch, tmp_path):
    """Inside a wheel the challenges lie in the package."""
    for folder in ("attnlab/challenges", "challenges"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "attnlab" / "catalogue.py"))
    assert catalogue.shipped() == tmp_path / "attnlab" / "challenges"


def test_reading_the_catalogue_imports_nothing_heavy():
    """`attnlab list` starts at once: neither torch, nor pydantic, nor rich, nor typer."""
    heavy = "{'torch', 'pydantic', 'rich', 'typer', 'difflib'} & set(sys.modules)"
    code = f"import sys; from attnlab.catalogue import load; load(); print({heavy} or 'light')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "light\n"
