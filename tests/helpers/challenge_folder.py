"""A complete challenge folder for tests."""

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
