"""Grading a stage: what a candidate adds to a program is compared with what the right one gives."""

from itertools import pairwise

import pytest
import torch

from attnlab.catalogue.load import load, shipped_folder
from attnlab.catalogue.patches import apply_edits
from attnlab.catalogue.programs import read_program
from attnlab.catalogue.rounds import write_stage
from attnlab.grading.stages import difference
from attnlab.records import Limits
from attnlab.records.program import ProgramJob
from attnlab.target.rounds import round_job, select_round

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
CACHE = PROGRAM.stage("kv-cache")
SLIPS = {slip.id: slip for slip in CACHE.slips}


@pytest.fixture
def grade(worker):
    def run(files, *stages, seconds=60.0, checks=()):
        return worker.run_program(ProgramJob(
            program=PROGRAM, files=files, label="char-gpt", stages=stages or ("stage",),
            open_stage="kv-cache", limits=Limits(seconds=seconds), checks=checks,
        ))  # fmt: skip

    return run


def failed(report):
    return {check.id: check.message for check in report.stage.checks if check.outcome != "passed"}


def with_text(old, new):
    text = CACHE.solution["model.py"]
    assert text.count(old) == 1
    return CACHE.solution | {"model.py": text.replace(old, new)}


def test_the_solution_passes_with_the_parts_of_the_program(grade):
    """A stage comes on top: what was right before has to stay so."""
    report = grade(CACHE.solution, "grade", "stage")
    assert report.passed, failed(report)
    assert {part.outcome for part in report.parts} == {"passed"}


def test_a_grade_may_end_with_a_check_that_is_named(grade):
    """What comes before it is graded too: a cache that is shared fails only once it was used."""
    ids = [check.id for check in CACHE.checks]
    report = grade(CACHE.solution, checks=(ids[1],))
    assert [check.id for check in report.stage.checks] == ids[:2]


def test_a_message_says_which_step_differs_and_by_how_much(grade):
    """The first place that is off is named in words, with both values."""
    report = grade(apply_edits(CACHE.solution, SLIPS["positions-from-zero"].edits))
    message = failed(report)["steps"]
    assert message.startswith("after a prompt of 5, step 1 (position 5): row 0 of 2: ")
    assert "tolerance 1e-09" in message
    assert message.endswith("; 2 of 2 places differ")


def test_work_done_again_is_counted(grade):
    """Right ids are not enough where everything was read again for each."""
    report = grade(apply_edits(CACHE.solution, SLIPS["generates-without"].edits))
    assert failed(report) == {"generate-reads-once": "136 rows go through one layer, 26 are enough"}
    assert report.stage.failed.reason == "too-much"


def test_a_call_that_does_not_fit_shows_the_call(grade):
    """The untouched program takes no cache: the line of the check says what was called."""
    report = grade(PROGRAM.files | CACHE.given)
    assert failed(report)["steps"].startswith("model(ids[:, :5], cache=cache): TypeError: ")


def test_a_wrong_part_is_tried_with_the_own_model_alone(grade):
    """The right model of before takes no cache: a crash of that mixture would be none of theirs."""
    files = with_text("scores.softmax(dim=-1)", "scores.softmax(dim=-2)")
    parts = {part.id: part for part in grade(files, "grade", "stage").parts}
    assert parts["attention"].outcome == parts["generation"].outcome == "failed"
    assert "argument" not in parts["generation"].message


def test_an_endless_loop_ends_the_stage_and_no_more(grade):
    """The check that hung says so, those behind it were not tried."""
    files = with_text("            past = cache.length(layer)\n", "            while True: pass\n")
    report = grade(files, "grade", "stage", "goals", seconds=4.0)
    assert report.outcome == "timeout"
    messages = failed(report)
    assert "time" in messages["prompt"] or "running" in messages["prompt"]
    assert "not tried" in messages["generate"]


def test_other_names_of_parameters_are_matched(grade):
    """A candidate may rename what is not declared, also in a stage."""
    text = (
        CACHE.solution["model.py"].replace("self.up", "self.fc").replace("self.tokens", "self.wte")
    )
    assert grade(CACHE.solution | {"model.py": text}).stage.passed


@pytest.mark.parametrize(
    ("value", "right", "says"),
    [
        (
            torch.ones(2, 3),
            torch.ones(2, 4),
            "a tensor of shape (2, 3), not a tensor of shape (2, 4)",
        ),
        (
            torch.tensor([[1, 2]]),
            torch.tensor([[1, 3]]),
            "is [1, 2] from position 0 on, not [1, 3]",
        ),
        (
            torch.full((1, 2, 3), torch.nan),
            torch.ones(1, 2, 3),
            "row 0 of 1, position 0 of 2: nan, not 1",
        ),
        ({"a": 1}, {"b": 1}, "{'a': 1}, not values of b"),
        (None, torch.ones(1), "nothing, not a tensor of shape (1,)"),
        (3, 4, "3, not 4"),
        ([2, 3], [2, 3], ""),
        (torch.ones(2), torch.ones(2) + 1e-12, ""),
    ],
)
def test_a_difference_is_told_by_its_first_place(value, right, says):
    """Whatever a candidate returns, it is compared or described, and never raises."""
    told = difference(value, right, 1e-9)
    assert told.startswith(says)
    assert bool(told) == bool(says)


PROGRAMS = [read_program(file.parent) for file in shipped_folder().glob("programs/*/program.toml")]
PAIRS = [(program, before, stage) for program in PROGRAMS
         for before, stage in pairwise(program.stages)]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "before", "stage"), PAIRS, ids=[f"{p.name}-{s.id}" for p, _, s in PAIRS]
)
def test_what_was_written_for_a_stage_works_in_the_next(worker, program, before, stage, tmp_path):
    """The files that it was given are still there, in the folder and in the grade."""
    folder = tmp_path / program.name
    for each in (before, stage):
        write_stage(program, each, folder, program.chosen)
    for name in program.edit:
        (folder / name).write_text(before.solution[name])
    chosen = select_round(load(None), str(folder))
    assert not chosen.notes
    report = worker.run_program(round_job(chosen, ("grade",), Limits(seconds=60.0)))
    assert {part.outcome for part in report.parts} == {"passed"}, report.message
    said = [report.message, *(check.message for check in report.stage.checks)]
    assert "ModuleNotFoundError" not in "\n".join(said)


def test_numbers_round_as_tensors_do():
    """A mean that is added up in another order is the same; an integer has no rounding."""
    assert difference(2.0 + 1e-15, 2.0, 1e-9) == ""
    assert difference([1.0, 2.0 + 1e-15], [1.0, 2.0], 1e-9) == ""
    assert "2.5, not 2 " in difference({"loss": 2.5}, {"loss": 2.0}, 1e-9)
    assert difference(3, 2, 1e-9) == "3, not 2"
    assert difference([4, 8], [4, 9], 1e-9) == "[4, 8], not [4, 9]"
