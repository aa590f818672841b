"""What is kept of the changes of a person: whether the files are still those that passed."""

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import compose, read_program
from attnlab.practice.changes import differ_from_passed, grade_event
from attnlab.records.practice import Event, Interview
from attnlab.records.program import ProgramReport

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
BUGS = ("mask-one-late",)
INTERVIEW = Interview(
    number=1, slug=PROGRAM.slug, folder="char-gpt", bugs=BUGS, minutes=60, seed=1, started=0.0
)


def grade(files, outcome):
    return grade_event(PROGRAM, INTERVIEW, "grade", ProgramReport(outcome=outcome), files)


def test_a_stage_is_built_on_the_files_that_passed():
    """What was broken since, or only graded as wrong, differs; what was put back does not."""
    broken = compose(PROGRAM, BUGS)
    events = [grade(broken, "failed"), grade(PROGRAM.files, "passed")]
    assert not differ_from_passed(PROGRAM, events, PROGRAM.files)
    assert differ_from_passed(PROGRAM, events, broken)
    assert differ_from_passed(PROGRAM, events, {})  # the folder is gone
    other = PROGRAM.files | dict.fromkeys(PROGRAM.given, "# changed")
    assert not differ_from_passed(PROGRAM, events, other)  # the given ones are graded anyway


def test_a_grade_of_an_older_version_is_believed():
    """Its event does not say of which files it was."""
    old = Event(kind="grade", base=PROGRAM.slug, outcome="passed")
    assert not differ_from_passed(PROGRAM, [old], compose(PROGRAM, BUGS))
