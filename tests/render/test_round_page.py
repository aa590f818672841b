"""What a grade of a round says of goals, and of a stage that computes too much."""

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import read_program
from attnlab.records import CheckResult
from attnlab.records.program import BugResult, GoalResult, PartResult, ProgramReport, StageResult
from attnlab.render.round import count_right, show_count
from attnlab.render.screen import plain_text
from attnlab.render.stage import show_stage

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
STAGE = PROGRAM.stages[0]


def goal(title, outcome):
    return GoalResult(id=title, title=title, outcome=outcome)


def test_a_goal_that_is_missed_is_named_beside_the_counts():
    """Where every part is right, the line would not say why the round has not passed."""
    part = PartResult(id="model", title="model", outcome="passed")
    goals = (goal("the loss is below 1", "failed"), goal("it copies", "passed"))
    report = ProgramReport(outcome="failed", parts=(part,), goals=goals)
    assert count_right(report) == (
        "1 of 1 part right, but it does not reach its goal: the loss is below 1"
    )
    report = ProgramReport(
        outcome="failed", parts=(part,), goals=(goals[0], goal("it ends", "failed"))
    )
    assert count_right(report).endswith("its goals: the loss is below 1; it ends")
    report = ProgramReport(outcome="passed", parts=(part,), goals=goals[1:])
    assert count_right(report) == "1 of 1 part right"


@pytest.mark.parametrize(("reason", "shown"), [("", True), ("too-much", False)])
def test_a_count_is_not_explained_by_code_that_does_not_show_it(reason, shown):
    """The expression of a check gives a value; how much went through a layer, it does not."""
    check = STAGE.checks[0]
    failed = CheckResult(id=check.id, title=check.title, outcome="failed", message="90 rows go "
                         "through one layer, 18 are enough", reason=reason)  # fmt: skip
    stage = StageResult(id=STAGE.id, title=STAGE.title, checks=(failed,))
    report = ProgramReport(outcome="passed", stage=stage)
    text = plain_text(lambda screen: show_stage(PROGRAM, report, screen), 80)
    assert "90 rows go" in text
    assert ("what the first check that failed compares" in text) is shown


def test_a_wrong_fix_is_told_from_a_bug_that_another_change_hides():
    """Which of them it is decides what to read next; a bug that nobody touched is neither."""
    wrong = BugResult(id="a", fixed=False, changed=True)
    hidden, left = BugResult(id="b", fixed=None), BugResult(id="c", fixed=False)
    report = ProgramReport(outcome="failed", bugs=(wrong, hidden, left))
    text = plain_text(lambda screen: show_count(report, screen), 120)
    assert "1 bug where you changed something: what the program does there is still wrong" in text
    assert "1 bug where you changed nothing: a change elsewhere hides" in text
