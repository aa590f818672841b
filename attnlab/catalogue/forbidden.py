"""The acts that no graded file may do, and a file that tries each. They stand in forbidden.toml."""

import textwrap
import tomllib
from pathlib import Path

from attnlab.records import record

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
    head = Path(__file__).with_suffix(".txt").read_text("utf-8")
    text = head.format(home_file=home_file, solution=solution, mark=MARK)
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
