"""The acts that no graded file may do, and a file that tries each. They stand in forbidden.toml."""

import textwrap
import tomllib
from pathlib import Path

from attnlab.records import record

HEAD = """\
import ctypes, os, torch

HOME_FILE, SOLUTION = {home_file!r}, {solution!r}
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

class Trial(torch.nn.Module):
    def forward(self, x):
        for name, act in ACTS.items():
            try:
                act()
                print("{mark}", name, "done", flush=True)
            except BaseException as error:
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                print("{mark}", name, "refused", why.splitlines()[0], flush=True)
        return x

"""
MARK = "attnlab-trial"


@record
class Act:
    """Something that a graded file must not do, and the layer that refuses it."""

    id: str
    title: str
    layer: str
    code: str


def forbidden_acts() -> tuple[Act, ...]:
    """All of them, in the order of the file."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return tuple(Act(id=name, **table) for name, table in tables.items())


def trial_source(home_file: str, solution: str) -> str:
    """A module that tries each act when it is called, and prints what came of it."""
    text = HEAD.format(home_file=home_file, solution=solution, mark=MARK)
    for act in forbidden_acts():
        name = act.id.replace("-", "_")
        text += f"def {name}():\n{textwrap.indent(act.code.strip(), '    ')}\n\n"
    pairs = ", ".join(f"{act.id!r}: {act.id.replace('-', '_')}" for act in forbidden_acts())
    return f"{text}ACTS = {{{pairs}}}\n"


def read_trial(output: str) -> dict[str, str]:
    """What came of each act that was tried: why it was refused, or "" where it was done."""
    found = {}
    for line in output.splitlines():
        mark, _, rest = line.partition(" ")
        name, _, outcome = rest.partition(" ")
        if mark == MARK:
            found[name] = "" if outcome == "done" else outcome.removeprefix("refused ")
    return found
