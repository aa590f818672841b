"""The shape of the code: who may import whom, where torch may appear, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from attnlab.run_store import WITHOUT_A_SAY

PACKAGE = Path(__file__).parent.parent / "attnlab"
# Rooms from the lowest to the highest: each may import itself and those above it in this list.
# A room is a folder or a file of the package; "worker/sandbox" is a room of its own.
ROOMS = (
    {"errors", "suggest", "files", "sizes"},
    {"records"},
    {"catalogue"},
    {"target"},
    {"lessons", "progress", "ranked_suspicions", "run_store", "suspicions", "verdict"},
    {"practice"},
    {"tracer"},
    {"training"},
    {"mutation_testing/operators", "mutation_testing/training_code"},  # texts alone
    {"candidate"},
    {"references"},
    {"probe"},
    {"checks"},
    {"diagnosis"},
    {"grading"},
    {"worker/sandbox"},
    {"mutation_testing"},
    {"worker"},
    {"batch"},
    {"doctor"},
    {"questions"},
    {"render"},
    {"testing", "api"},  # for the user's own tests and notebooks
    {"commands"},
    {"cli"},
    {"__main__"},
)
FRONT = {
    "render",
    "commands",
    "cli",
    "__main__",
    "doctor",
    "progress",
    "practice",
    "batch",
    "questions",
    "ranked_suspicions",
    "suspicions",
    "verdict",
    "catalogue",
}
LONGEST = 350  # lines of a file, without its classes
SECRET = {
    "probe",
    "grading",
    "references",
    "checks",
    "mutation_testing",
}  # what a candidate must not see


class Import(NamedTuple):
    """One imported module, as `attnlab.grading.round` or `torch.nn`."""

    name: str
    line: int
    later: bool  # inside a function, or for type checkers alone


def files() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "challenges" not in p.parts)


def shown(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def dotted(path: Path) -> str:
    """`attnlab.probe.inputs.draw` of a file; a folder's `__init__` is the folder."""
    parts = ("attnlab", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = set.union(*ROOMS)
MODULES = {dotted(path): path for path in files()}


def room(module: str) -> str:
    """The room of a module: `grading` of `attnlab.grading.round`, "" of the package itself."""
    names = module.split(".")[1:3]
    return "/".join(names) if "/".join(names) in KNOWN else "".join(names[:1])


def rank(name: str) -> int:
    """Of a room; the package itself, from which everybody takes the version, is the lowest."""
    return next((i for i, rooms in enumerate(ROOMS) if name in rooms), -1)


@cache
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


def test_every_room_has_its_place():
    """A new file or folder says where it belongs: put it into ROOMS."""
    assert {room(module) for module in MODULES} - {""} == KNOWN


def test_imports_point_one_way():
    """What is lower knows nothing of what is built on it."""
    wrong = [
        at(path, used)
        for path, used in all_imports()
        if used.name.startswith("attnlab.")
        and rank(room(used.name)) > rank(room(dotted(path)))
        and not (dotted(path) == "attnlab" and used.later)  # what it hands out when it is asked
    ]
    assert not wrong


def test_what_judges_imports_nothing_that_a_kept_result_leaves_out():
    """A result outlives a change in those rooms: no verdict may depend on one of them."""
    silent = {name.removesuffix(".py") for name in WITHOUT_A_SAY}
    assert silent <= KNOWN
    judging = {name for rooms in ROOMS[: ROOMS.index({"batch"})] for name in rooms} - silent
    wrong = [
        at(path, used)
        for path, used in all_imports()
        if room(dotted(path)) in judging and room(used.name) in silent
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


def needed(module: str) -> set[str]:
    """The modules that are loaded by importing one, itself among them."""
    todo, seen = {module}, set()
    while todo:
        seen.add(name := todo.pop())
        now = {i.name for i in imports(MODULES[name]) if not i.later and i.name in MODULES}
        todo |= now - seen
    return seen


def test_the_front_never_needs_torch():
    """Commands and pages see records, never a tensor: a job goes out, a report comes in."""
    wrong = {
        f"{name} needs {other}"
        for name in MODULES
        if room(name) in FRONT
        for other in needed(name)
        if any(i.name.split(".")[0] == "torch" and not i.later for i in imports(MODULES[other]))
    }
    assert not wrong


def test_the_judge_never_sees_a_challenge():
    """It gets a job; what the answer would be is not in it."""
    for path in files():
        if room(dotted(path)) in {"tracer", "candidate", "probe", "grading", "worker", "checks"}:
            names = {
                alias.name
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.ImportFrom) and node.module == "attnlab.records"
                for alias in node.names
            }
            assert not names & {"Challenge", "Verdict", "ChallengeProgress"}, shown(path)


LIBRARIES = {
    "rich": {"render", "cli"},
    "typer": {"commands", "cli"},
    "jinja2": {"render"},
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_stay_in_their_rooms(library):
    """Importing one elsewhere would slow down or tie down what does not need it."""
    found = [(path, i) for path, i in all_imports() if i.name.split(".")[0] == library]
    assert found
    wrong = [at(path, i) for path, i in found if room(dotted(path)) not in LIBRARIES[library]]
    assert not wrong


@pytest.mark.parametrize("name", ["child", "zygote"])
def test_what_a_candidate_inherits_knows_no_answers(name):
    """Child and zygote never import what judges: no check, no reference, nothing of a grade."""
    loaded = needed(f"attnlab.worker.{name}")
    assert "attnlab.candidate.session" in loaded
    assert not {room(module) for module in loaded} & SECRET
    assert "attnlab.worker.judge" not in loaded


def test_files_can_be_read_in_one_go():
    """A file of functions over the limit holds two things; a class is one, however long."""
    long = {shown(path): n for path in files() if (n := lines_outside_classes(path)) > LONGEST}
    assert not long


def lines_outside_classes(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    return len(text.splitlines()) - sum(c.end_lineno - c.lineno + 1 for c in classes)


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
from attnlab.catalogue.load import read_challenge
from attnlab.candidate.host import LocalHost
from attnlab.grading.pipeline import run_job
from attnlab.target.challenge_job import challenge_job

torch.set_num_threads(1)
for folder in sys.argv[1:]:
    challenge = read_challenge(Path(folder))
    for file in (challenge.file, challenge.solution):
        report = run_job(challenge_job(challenge, Path(file)), lambda *a: LocalHost())
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
