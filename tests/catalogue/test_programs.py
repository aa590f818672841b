"""Programs as folders: what is read, what is refused, how bugs are put in."""

import ast
import re
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from attnlab.catalogue.load import load, shipped_folder
from attnlab.catalogue.patches import apply_edits
from attnlab.catalogue.program_entries import read_program_entry
from attnlab.catalogue.programs import check_compatible, compose, read_program
from attnlab.catalogue.round_mark import MARK, read_mark
from attnlab.catalogue.rounds import choose_bugs, restore_file, write_round
from attnlab.catalogue.validate_program import (
    ProgramCase,
    case_problem,
    program_cases,
    text_problems,
)
from attnlab.errors import Refused, Unreadable
from attnlab.records.program import BugResult, PartResult, ProgramReport

SHIPPED = sorted((shipped_folder() / "programs").iterdir())
CHAR_GPT = shipped_folder() / "programs" / "char-gpt"


@pytest.fixture(scope="module")
def program():
    return read_program(CHAR_GPT)


@pytest.fixture
def folder(tmp_path):
    """A copy of a shipped program, to be damaged."""
    copy = tmp_path / "programs" / "char-gpt"
    shutil.copytree(CHAR_GPT, copy)
    return copy


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_program_has_what_a_round_needs(folder):
    """Enough bugs, decoys and styles, no hint quotes a fix, every patched file compiles."""
    program = read_program(folder)
    assert list(text_problems(program)) == []
    files = {text: name for case in program_cases(program) for name, text in case.files.items()}
    for text, name in files.items():
        compile(text, name, "exec")


def test_patches_commute(program):
    """Bugs are put in by their places in the right text, so their order means nothing."""
    one, other = program.chosen[:2], program.chosen[2:]
    assert compose(program, (*one, *other)) == compose(program, (*other, *one))
    assert compose(program, ()) == program.files
    assert apply_edits(program.files, ()) == program.files


def test_the_catalogue_lists_programs_beside_challenges():
    """`attnlab list` needs a line for each, and a name finds it."""
    found = load()
    entry = found.find_program("char-gpt")
    assert entry is not None
    assert entry == read_program_entry(CHAR_GPT)
    assert entry.bugs >= 12
    assert found.find_program("programs/char-gpt/") == entry
    assert found.find_program("too-sharp") is None
    with pytest.raises(Refused, match="whole program"):
        found.find("char-gpt")


BROKEN = {
    "level = 3": ("level = 9", "level = 9: expected 1 to 5"),
    'unit = "gpt"': ('unit = "gptt"', "no such unit"),
    'kind = "loss"': ('kind = "los"', "expected"),
    'make_model = "train.make_model"': ('make_model = "make_model"', "MODULE.NAME"),
    '"mask-one-late", ': ('"mask-two-late", ', "no such bug or decoy"),
    "minutes = 60": ("minutes = 60\nhour = 1", "unknown key"),
}


@pytest.mark.parametrize("old", BROKEN)
def test_a_broken_description_is_one_line_with_its_place(old, folder):
    """A person who writes a program is told the file, the line and the key."""
    new, says = BROKEN[old]
    path = folder / "program.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(Unreadable, match=says) as error:
        read_program(folder)
    assert "program.toml:" in error.value.where


def test_an_edit_that_is_not_found_once_is_refused(folder):
    """A patch names one place of the right file, or it would land somewhere else."""
    path = folder / "bugs" / "no-zero-grad.toml"
    path.write_text(path.read_text().replace("optimizer.zero_grad()", "optimizer.zero()"))
    with pytest.raises(Unreadable, match=r"stands 0 times in train\.py"):
        read_program(folder)


def test_a_bug_that_nothing_sees_is_refused(folder):
    """`seen_by` names parts and goals that exist."""
    path = folder / "bugs" / "no-zero-grad.toml"
    path.write_text(path.read_text().replace('["training"]', '["trainin"]'))
    with pytest.raises(Unreadable, match="no part or goal"):
        read_program(folder)


def test_bugs_of_one_place_cannot_be_combined(program):
    """A round never holds two patches of the same lines, nor one that does not exist."""
    overlapping = next((a.id, b.id) for a, b in combinations(program.bugs, 2) if a.overlaps(b))
    with pytest.raises(Refused, match="changes the same place"):
        check_compatible(program, overlapping)
    with pytest.raises(Refused, match="no bug"):
        choose_bugs(program, "no-zero-grads", None)
    with pytest.raises(Refused, match="both choose"):
        choose_bugs(program, "no-zero-grad", 3)


def test_a_round_is_written_kept_and_put_back(program, tmp_path, monkeypatch):
    """Nothing of the user's is overwritten, and the note in the folder names no bug."""
    monkeypatch.chdir(tmp_path)
    write_round(program, program.chosen)
    mark = Path("char-gpt") / MARK
    assert read_mark(Path("char-gpt")).bugs == program.chosen
    assert not any(bug in mark.read_text() for bug in program.chosen)
    with pytest.raises(Refused, match="already exists"):
        write_round(program, program.chosen)
    model = Path("char-gpt/model.py")
    model.write_text("mine")
    kept = write_round(program, program.chosen, replace=True)
    assert [Path(k).read_text() for k in kept] == ["mine"]
    model.write_text("mine again")
    kept = restore_file(program, Path("char-gpt"), "model.py", program.chosen)
    assert Path(kept).read_text() == "mine again"
    assert model.read_text() == compose(program, program.chosen)["model.py"]


def test_a_damaged_note_is_no_error(program, tmp_path, monkeypatch):
    """The files can be graded without it; only one of another format says what to do."""
    monkeypatch.chdir(tmp_path)
    write_round(program, program.chosen)
    mark = Path("char-gpt") / MARK
    mark.write_text("{")
    assert read_mark(Path("char-gpt")) is None
    mark.write_text('{"format": 7}')
    with pytest.raises(Unreadable, match="another version"):
        read_mark(Path("char-gpt"))


def test_a_round_whose_bugs_are_not_told_is_a_problem(program):
    """A decoy may change what a bug does: the round is rejected, and nobody learns by what."""
    case = next(case for case in program_cases(program) if case.role == "round")
    assert set(case.bugs) == set(program.chosen)
    wrong = PartResult(id="training", title="", outcome="failed")
    told = [BugResult(id="no-zero-grad", fixed=False), BugResult(id="mask-one-late", fixed=None)]
    report = ProgramReport(outcome="failed", parts=(wrong,), bugs=tuple(told[:1]))
    assert case_problem(case, report) == ""
    problem = case_problem(case, replace(report, bugs=tuple(told)))
    assert "not told as still there: mask-one-late" in problem


def test_a_right_program_that_always_says_the_same_is_a_problem():
    """Wrong predictions would be right by chance; the author reads what to change."""
    case = ProgramCase(role="right", name="base", files={})
    assert case_problem(case, ProgramReport(outcome="passed")) == ""
    report = ProgramReport(outcome="passed", notes=("one class for all items",))
    assert case_problem(case, report) == "base: one class for all items"


def test_the_docstring_of_a_warm_up_gives_its_first_factor():
    """`step / WARM_UP` and `(step + 1) / WARM_UP` both rise in a line: which is right is told."""
    warm_up, told = re.compile(r"\w\)? / warm_?up", re.IGNORECASE), {}
    for folder in SHIPPED:
        for text in read_program(folder).files.values():
            functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
            for each in functions:
                if warm_up.search("\n".join(map(ast.unparse, each.body[1:]))):
                    told[folder.name] = ast.get_docstring(each) or ""
    assert len(told) >= 4
    assert [name for name, docstring in told.items() if not warm_up.search(docstring)] == []
