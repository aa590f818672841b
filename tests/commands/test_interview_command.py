"""An interview from the command line: clock, notes, hand-in, scorecard, and slips on the way."""

import shutil
from pathlib import Path

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import read_program
from attnlab.practice.notes import bug_lines
from attnlab.progress import Progress

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")


def drawn():
    """The bugs of the interview that is going on, without the decoy."""
    from attnlab.practice.interviews import current

    with Progress.open() as kept:
        return current(kept).bugs


def test_an_interview_from_start_to_scorecard(shell):
    """One bug is fixed and named, the others missed; each is explained at the end alone."""
    said = shell("interview", "start", "char-gpt", "--seed", "4", "--bugs", "2", "--minutes", "30")
    assert said.code == 0, said.err
    assert "the clock runs: 30 minutes, 2 bugs" in said.out
    ids = drawn()
    bugs = [PROGRAM.patches[i] for i in ids if not PROGRAM.patches[i].decoy]
    first, second = bugs
    file, line, _ = bug_lines(PROGRAM, ids)[first.id][0]
    noted = shell("interview", "note", f"{file}:{line} this line is not as it should be")
    assert "noted" in noted.out
    assert first.id not in noted.out
    for edit in first.edits:
        path = Path("char-gpt") / edit.file
        path.write_text(path.read_text().replace(edit.new, edit.old))
    assert shell("interview", "ask").out.startswith("you ask")
    for command in (("grade", "char-gpt"), ("interview", "submit")):
        said = shell(*command)
        assert said.code == 1
        assert "interview 1: " in said.err
        assert "left of 30 minutes" in said.err
        assert not any(bug.id in said.out for bug in bugs)
    status = shell("interview", "status", "--json").json
    assert (status["grades"], status["hints"], len(status["notes"])) == (2, 0, 1)
    card = shell("interview", "end", "--json").json
    by_id = {bug["id"]: bug for bug in card["bugs"]}
    assert (by_id[first.id]["fixed"], by_id[first.id]["named"]) == (True, True)
    assert by_id[first.id]["reason"]
    assert by_id[first.id]["fixed_at"] is not None
    assert (by_id[second.id]["fixed"], by_id[second.id]["named"]) == (False, False)
    assert (card["fixed"], card["found"], len(card["asked"])) == (1, 1, 1)
    assert not card["new_fault"]
    assert 0 < card["changed_lines"] < 20
    history = shell("interview", "history")
    assert "1 of 2" in history.out
    assert "found by category" in history.out
    again = shell("interview", "questions")
    assert "need a terminal" in again.err


def test_what_would_end_it_is_refused_while_it_is_going_on(shell):
    """Neither --reveal nor the solution nor a second one; all is as before once it is dropped."""
    assert shell("interview", "start", "char-gpt", "--untimed").code == 0
    for args in (("grade", "char-gpt", "--reveal"), ("solution", "char-gpt", "--yes"),
                 ("interview", "start", "tiny-llama")):  # fmt: skip
        said = shell(*args)
        assert said.code == 2
        assert "going on" in said.err
    hint = shell("hint", "char-gpt")
    assert "no limit" in hint.err
    assert shell("interview", "status", "--json").json["hints"] == 1
    assert shell("interview", "abandon").code == 0
    said = shell("interview", "submit")
    assert said.code == 2
    assert "no interview is going on" in said.err
    assert "dropped" in shell("interview", "history").out


def test_a_deleted_folder_costs_no_more_than_itself(shell):
    """Handing in says where it is missing; the scorecard has what the last grade found."""
    shell("interview", "start", "char-gpt", "--seed", "1", "--bugs", "1")
    shell("grade", "char-gpt")
    shutil.rmtree("char-gpt")
    said = shell("interview", "submit")
    assert said.code == 2
    assert "./char-gpt is not in this folder" in said.err
    assert shell("interview", "note", "train.py:3 still taken").code == 0
    said = shell("interview", "end", "--json")
    assert said.code == 0, said.err
    assert said.json["notes"] == ["./char-gpt is gone: the last grade stands for what became of it"]
    assert [bug["fixed"] for bug in said.json["bugs"]] == [False]


def test_numbers_that_are_none_are_refused_in_a_line(shell):
    """Each flag says what it takes, and no clock starts."""
    for args in (("--minutes", "0"), ("--minutes", "abc"), ("--bugs", "9"), ("--level", "6"),
                 ("--seed", "-1"), ("--minutes", "5", "--untimed")):  # fmt: skip
        said = shell("interview", "start", "char-gpt", *args)
        assert said.code == 2, args
        assert args[0] in said.err
    assert "is not a program" in shell("interview", "start", "too-sharp").err
    assert "no interview is going on" in shell("interview", "status").err
    assert not Path("char-gpt").exists()
