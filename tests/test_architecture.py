"""The shape of the code: who may import whom, where torch may appear, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "attnlab"
# Each layer may import itself and those above it. A part is a folder or a file of the package.
LAYERS = (
    {"errors", "jsonable", "near", "records", "traces"},
    {
        *(
            "abilities",
            "catalogue",
            "case",
            "files",
            "starter",
            "tables",
            "terms",
            "validate",
        ),  # challenges
        *("target", "guess", "outline", "source", "literals", "names", "feeds", "ready"),
        *("configs", "presets", "widths"),  # what is to be looked at
        *("lessons", "positions", "progress", "trials", "verdict"),
    },
    {"checks", "mutations"},
    {"references"},
    {"lab"},
    {"worker"},
    {"batch", "health", "strength"},
    {"render"},
    {"testing", "pytest_plugin", "tracer"},  # for the user's own tests
    {"commands"},
    {"cli"},
    {"__main__"},
)
LAST = 350  # lines of a file
TORCH = {"lab", "references", "worker", "testing"}
TORCHLESS = {"worker/client.py", "worker/wire.py", "worker/isolation.py"}
BORDER = "attnlab.worker.client"  # the one door from the front into the lab
LAB = {"lab", "references", "worker"}  # what stands behind it
DOORS = {"", "testing", "tracer"}  # public functions for the user's own process: the package itself


class Import(NamedTuple):
    """One imported module, as `attnlab.lab.draw` or `torch.nn`."""

    name: str
    line: int
    later: bool  # inside a function, or for type checkers alone


def files() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "challenges" not in p.parts)


def shown(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def dotted(path: Path) -> str:
    """`attnlab.lab.draw` of a file; a folder's `__init__` is the folder."""
    parts = ("attnlab", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in files()}


def part(module: str) -> str:
    """The first name below the package: `lab` of `attnlab.lab.draw`, "" of the package itself."""
    return module.split(".")[1] if "." in module else ""


def rank(name: str) -> int:
    """Of a part; the package itself, from which everybody takes the version, is the lowest."""
    return next((i for i, layer in enumerate(LAYERS) if name in layer), -1)


def imports(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    first = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        later = id(node) not in first
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, later) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide where a name comes from"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                name = full if full in MODULES or node.module == "attnlab" else node.module
                found.append(Import(name, node.lineno, later))
    return found


def all_imports() -> list[tuple[Path, Import]]:
    return [(path, used) for path in files() for used in imports(path)]


def at(path: Path, used: Import) -> str:
    return f"{shown(path)}:{used.line} imports {used.name}"


def test_every_part_has_its_place():
    """A new file or folder says which layer it belongs to: put it into LAYERS."""
    parts = {part(module) for module in MODULES} - {""}
    assert parts <= set.union(*LAYERS)


def test_imports_point_one_way():
    """What is lower knows nothing of what is built on it."""
    wrong = [
        at(path, used)
        for path, used in all_imports()
        if used.name.startswith("attnlab.")
        and rank(part(used.name)) > rank(part(dotted(path)))
        and not (dotted(path) == "attnlab" and used.later)  # what it hands out when it is asked
    ]
    assert not wrong


def test_no_module_needs_itself():
    """Modules load in some order, whatever is imported first."""
    needs = {
        name: {i.name for i in imports(path) if not i.later and i.name in MODULES} - {name}
        for name, path in MODULES.items()
    }
    while ready := {name for name, wanted in needs.items() if not wanted & needs.keys()}:
        needs = {name: wanted for name, wanted in needs.items() if name not in ready}
    assert not needs, f"in a circle: {sorted(needs)}"


def test_the_front_knows_one_door_to_the_lab():
    """Commands and pages see records, never a tensor: a job goes out, a report comes in."""
    wrong = [
        at(path, used)
        for path, used in all_imports()
        if part(dotted(path)) not in {*LAB, "checks", *DOORS}
        and used.name.startswith("attnlab.")
        and part(used.name) in LAB
        and used.name != BORDER
    ]
    assert not wrong


def test_the_lab_never_sees_a_challenge():
    """It gets a job; what the answer would be is not in it."""
    for path in files():
        if part(dotted(path)) in {*LAB, "checks"}:
            names = {
                alias.name
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.ImportFrom) and node.module == "attnlab.records"
                for alias in node.names
            }
            assert not names & {"Challenge", "Verdict", "Standing"}, shown(path)


ROOMS = {
    "torch": lambda path, here: here in TORCH and shown(path) not in TORCHLESS,
    "rich": lambda path, here: here in {"render", "cli"},
    "typer": lambda path, here: here in {"commands", "cli"},
    "pydantic": lambda path, here: here == "jsonable",
}


@pytest.mark.parametrize("library", ROOMS)
def test_libraries_stay_in_their_rooms(library):
    """Importing one elsewhere would slow down or tie down what does not need it."""
    found = [(path, i) for path, i in all_imports() if i.name.split(".")[0] == library]
    assert found
    wrong = [at(path, i) for path, i in found if not ROOMS[library](path, part(dotted(path)))]
    assert not wrong


def test_pydantic_is_imported_late():
    """Its import costs as much as all of `attnlab list`."""
    used = [i for i in imports(PACKAGE / "jsonable.py") if i.name.split(".")[0] == "pydantic"]
    assert all(i.later for i in used)


@pytest.mark.parametrize("name", ["child", "server"])
def test_what_a_candidate_inherits_knows_no_answers(name):
    """Zygote and child load no check, no reference and nothing of the judge."""
    todo, seen = {f"attnlab.worker.{name}"}, set()
    while todo:
        module = todo.pop()
        seen.add(module)
        now = {i.name for i in imports(MODULES[module]) if not i.later and i.name in MODULES}
        todo |= now - seen
    secret = {f"attnlab.{m}" for m in ("worker.judge", "lab.probe", "lab.battery", "lab.draw")}
    assert secret <= MODULES.keys()
    assert not seen & secret
    assert not {part(module) for module in seen} & {"checks", "references", "catalogue"}


def test_files_can_be_read_in_one_go():
    """A file that grew over the limit holds two things."""
    long = {
        shown(path): count
        for path in files()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LAST
    }
    assert not long


def test_every_module_says_what_it_is():
    """The first lines tell a reader whether this is the file; of a command, its help does."""
    silent = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        command = functions.get("command") if path.parent.name == "commands" else None
        if text.strip() and not ast.get_docstring(command or tree):
            silent.append(shown(path))
    assert not silent


# ---------------------------------------------------------------- dynamo

PIPELINE = """
import sys
import torch
from pathlib import Path
from attnlab.catalogue import read_challenge
from attnlab.lab.host import LocalHost
from attnlab.lab.inspect import inspect
from attnlab.target import challenge_job

torch.set_num_threads(1)
for folder in sys.argv[1:]:
    challenge = read_challenge(Path(folder))
    for file in (challenge.file, challenge.solution):
        report = inspect(challenge_job(challenge, Path(file)), lambda *a: LocalHost())
        print(report.outcome, report.trace.crash is None, len(report.checks) > 5)
print(sorted(m for m in sys.modules if m.startswith("torch._dynamo")))
"""


def test_neither_trace_nor_checks_import_dynamo():
    """It would cost two seconds; judge and candidate together do without, crash or not."""
    slugs = ("attention/crash-at-out-proj", "position/beats-out-of-step")
    folders = [str(PACKAGE.parent / "challenges" / slug) for slug in slugs]
    command = [sys.executable, "-c", PIPELINE, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    said = ["ok False True", "ok True True", "ok True True", "ok True True", "[]"]
    assert done.stdout.splitlines() == said, done.stderr
