"""Values for what a script's parser asks for."""

from attnlab.target.script_flags import flag_values

PARSER = """
parser.add_argument("data")
parser.add_argument("-d", "--d-model", type=int, required=True)
parser.add_argument("--num-layers", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--task", choices=["copy", "sort"])
parser.add_argument("--out", type=str)
parser.add_argument(*names, type=int)
"""


def test_values_have_the_types_that_are_asked_for():
    """Sizes as in a trace, the first of several choices; a path or a text is left to the user."""
    found = flag_values(PARSER)
    assert found == {
        "-d": "12",
        "--d-model": "12",
        "--num-layers": "2",
        "--seed": "1",
        "--lr": "0.001",
        "--task": "copy",
    }


def test_a_text_that_is_no_python_has_none():
    """The script says so itself when it runs."""
    assert flag_values("def (") == {}
