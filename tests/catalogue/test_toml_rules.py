"""What is said of a wrong challenge.toml: the file, the line, the key and what is allowed."""

import os

import pytest
from challenge_folder import TOML, write

from attnlab.catalogue.load import read_challenge
from attnlab.errors import Unreadable


def broken(folder):
    with pytest.raises(Unreadable) as caught:
        read_challenge(folder)
    return caught.value


BAD = [
    # what is replaced, by what, the line, the message, a word of the hint
    ("level = 2", "level = 9", 4, "level = 9: expected 1 to 5", ""),
    ("level = 2", "level = true", 4, "level = true: expected 1 to 5", ""),
    ("level = 2", 'level = "2"', 4, 'level = "2": expected 1 to 5', ""),
    ("level = 2", "levle = 2", 4, "levle: unknown key", "Did you mean level?"),
    ('"Too sure"\n', '"Too\u2028sure"\nlevle = 2\n', 3, "levle: unknown key", "level"),
    ("level = 2\n", "", None, "level: missing", "Add level"),
    ('"debug"', '"debgu"', 3, 'kind = "debgu": expected debug or implement', '"debug"'),
    ("format = 1", "format = 2", 1, "format = 2: this attnlab reads format 1", "Update"),
    ("format = 1", "format = true", 1, "format = true: this attnlab reads format 1", "format = 1"),
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
    ('x = "B S D"', 'x = "B S -1"', 23, 'inputs.x = "B S -1": -1 is not an axis', "3*D"),
    ('x = "B S D"', 'x = "B S float int"', 23, "contradicts itself", "float|int|bool"),
    ('x = "B S D"', 'x = "B S forbids"', 23, "forbids needs the word bool", ""),
    ('x = "B S D"', 'x = "int"', 23, 'inputs.x = "int": names no axes', ""),
    ('axes = "B S D"', 'axis = "B"', 27, "output.axis: unknown key", "axes"),
    ("[output]\n", "", None, "output: missing", "Add output"),
    ('axes = "B S D"', "", 26, "output.axes: missing", "Add axes"),
    ("[init]", "[innit]", 19, "innit: unknown key", "Did you mean init"),
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
        ("[contract]\npromisses = []", 30, "contract.promisses: unknown key"),
        ('[contract]\npromises = ["casual"]', 30, 'contract.promises[0] = "casual": expected'),
        ('[contract]\nmask = "full"', 30, 'contract.mask = "full": expected causal, random'),
        ('[contract]\nvary = ["Q"]', 30, "contract.vary: Q is not in [sizes]"),
        ("[contract]\nvary = [\n 'B',\n 3]", 30, "contract.vary[1] = 3: expected a symbol"),
        ("[contract]\n[[contract.extra_sizes]]\nS = 1\n[[contract.extra_sizes]]\nQ = 1", 33,
         "contract.extra_sizes[1].Q: Q is not in [sizes]"),
        ("[contract]\n[[contract.probes]]\nS = 1", 30, "contract.probes is called extra_sizes now"),
        ("[contract]\nextra_sizes = [{}]", 30, "contract.extra_sizes[0]: the table is empty"),
        ("[[contract.refusals]]\nerror = 'any'", 29, "contract.refusals[0].sizes: missing"),
        ("[[contract.refusals]]\nsizes = { Q = 1 }", 30, "contract.refusals[0].sizes.Q: Q is not"),
        ("[contract.position]\nbase = -1.0", 30, "contract.position.base = -1.0: expected a"),
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
