"""An interview from the command line: clock, notes, hand-in, scorecard, and slips on the way."""

import re
import shutil
from pathlib import Path

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.places import bug_lines
from attnlab.catalogue.programs import read_program
from attnlab.progress import Progress
from attnlab.records.practice import Event

CLOCK = re.compile(r"interview 1: \d+ (seconds )?of 30 minutes left")
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
    noted = shell("interview", "note", f"{file}:{line} {first.symptom}")
    assert "noted" in noted.out
    assert first.id not in noted.out
    for edit in first.edits:
        path = Path("char-gpt") / edit.file
        path.write_text(path.read_text().replace(edit.new, edit.old))
    assert shell("interview", "ask").out.startswith("a good question")
    for command in (("grade", "char-gpt"), ("interview", "submit")):
        said = shell(*command)
        assert said.code == 1
        assert "interview 1: " in said.err
        assert "of 30 minutes left" in said.err
        assert not any(bug.id in said.out for bug in bugs)
    status = shell("interview", "status", "--json").json
    assert [status[key] for key in ("grades", "submits", "hints")] == [1, 1, 0]
    assert len(status["notes"]) == 1
    assert [note["text"] for note in status["numbered_notes"]] == status["notes"]
    assert (status["passed_at"], status["triages"]) == (None, 0)
    card = shell("interview", "end", "--json").json
    by_id = {bug["id"]: bug for bug in card["bugs"]}
    assert (by_id[first.id]["fixed"], by_id[first.id]["named"]) == (True, True)
    assert by_id[first.id]["reason"] == "open"
    assert by_id[first.id]["fixed_at"] is not None
    assert (by_id[second.id]["fixed"], by_id[second.id]["named"]) == (False, False)
    assert (card["fixed"], card["found"], len(card["asked"])) == (1, 1, 1)
    assert not card["new_fault"]
    assert (card["rating"]["name"], card["rating"]["next"]) == ("partial", "solid")
    assert card["trend"]["weakest"] == second.category
    assert 0 < card["changed_lines"] < 20
    history = shell("interview", "history")
    assert "1 of 2" in history.out
    assert "kinds of bugs, what is weakest in all answers first" in history.out
    assert f"interview start --about {second.category}" in history.out
    again = shell("interview", "questions")
    assert "at a terminal" in again.err


@pytest.mark.parametrize("broken", [True, False])
def test_a_program_is_solved_where_its_interview_ended_right(shell, broken):
    """Not where it passed on the way and was broken again; `list` says what the scorecard says."""
    shell("interview", "start", "char-gpt", "--seed", "2", "--bugs", "1")
    (bug,) = [PROGRAM.patches[each] for each in drawn() if not PROGRAM.patches[each].decoy]
    (edit,) = bug.edits
    path = Path("char-gpt") / edit.file
    given = path.read_text()
    path.write_text(given.replace(edit.new, edit.old))
    assert shell("interview", "submit").code == 0
    if broken:
        path.write_text(given)
    shell("interview", "end")
    solved = shell("list", "--kind", "program", "--status", "solved").out
    assert ("char-gpt" in solved) is not broken


def test_a_triage_that_names_something_counts_as_help(shell):
    """It is told at once and on the scorecard; one of a file elsewhere does not count."""
    shell("interview", "start", "char-gpt", "--bugs", "1", "--seed", "2")
    faulty = "import torch.nn.functional as F\nfrom torch import nn\n\nclass A(nn.Module):\n"
    faulty += "    def forward(self, x):\n        return F.softmax(x @ x.mT, dim=-2) @ x\n"
    for file in ("char-gpt/own.py", "own.py"):
        Path(file).write_text(faulty)
    elsewhere = shell("triage", "own.py", "--input", "x: B S D")
    assert "1. " in elsewhere.out
    assert "so far" not in elsewhere.err
    right = ("char-gpt/right.py", "--input", "x: B S D")
    Path(right[0]).write_text(faulty.replace("-2", "-1"))
    advice = " ".join(shell("trace", *right).out.split())
    assert "a triage that names something costs as a hint does: then the rating is solid" in advice
    said = shell("triage", "char-gpt/own.py", "--input", "x: B S D")
    assert "1 triage so far: the rating is solid at most" in said.err
    hides = shell("trace", "char-gpt/own.py", "--input", "x: B S D")
    assert "so far" not in hides.err
    shows = shell("trace", "char-gpt/own.py", "--input", "x: B S D", "--reveal")
    assert "2 triages so far: the rating is partial at most" in shows.err
    assert "softmax runs over" in shows.out
    assert "softmax runs over" not in hides.out
    card = shell("interview", "end", "--json").json
    assert (card["hints"], card["triages"]) == (0, 2)


def test_where_its_folder_is_gone_no_other_round_is_taken_for_it(shell):
    """The program as shipped has other bugs: a grade or a hint of those would mislead."""
    shell("interview", "start", "char-gpt", "--seed", "2")
    shutil.rmtree("char-gpt")
    for command in (("grade",), ("run", "char-gpt"), ("hint", "char-gpt")):
        said = shell(*command)
        assert said.code == 2
        assert "char-gpt/ is gone: the files of interview 1 were there" in said.err
    assert shell("interview", "status", "--json").json["hints"] == 0


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
    assert "1 hint so far: the rating is solid at most, partial from 5 on" in hint.out
    assert shell("interview", "status", "--json").json["hints"] == 1
    assert shell("interview", "abandon").code == 0
    said = shell("interview", "submit")
    assert said.code == 2
    assert "no interview is going on" in said.err
    assert "dropped" in shell("interview", "history").out


def test_the_name_of_the_program_means_the_round_from_any_folder(shell, monkeypatch, tmp_path):
    """Not the files as they were shipped: hints of a round are for its bugs."""
    assert shell("interview", "start", "char-gpt", "--untimed", "--seed", "4").code == 0
    assert "begins at" in shell("run").out  # without a name, too
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert "no limit" in shell("hint", "char-gpt").err
    (tmp_path / "here" / "char-gpt" / "model.py").write_text("def broken(:\n")
    said = shell("grade", "char-gpt")
    assert "as shipped" not in said.err
    assert said.code != 0
    assert shell("grade").err == said.err


def test_without_an_interview_a_name_is_needed(shell):
    """Grade and run say what to type."""
    for command in ("grade", "run"):
        said = shell(command)
        assert said.code == 2
        assert "Missing argument 'NAME', and no interview is going on" in said.err
        assert f"type attnlab {command} NAME" in said.err
    shell("start", "too-sharp")
    assert shell("hint").err == shell("hint", "too-sharp").err == ""
    shell("start", "char-gpt")
    assert "here are char-gpt, too-sharp" in shell("grade").err


def test_the_status_says_which_time_counts(shell):
    """That of the first grade or submit that passes, while the clock runs on."""
    shell("interview", "start", "char-gpt", "--seed", "4", "--bugs", "1")
    said = shell("interview", "status").out
    assert "the time that counts is that of the first grade or submit that passes" in said
    assert "next: attnlab run char-gpt shows what it does" in said
    shell("interview", "submit")
    said = shell("interview", "status").out
    assert re.search(r"handed in at 0:\d\d, which counts until a grade or submit passes", said)
    assert "next: attnlab grade char-gpt, once you changed something" in said
    assert "a hint, then the rating is solid at most" in " ".join(shell("grade").out.split())
    assert "an interview about it is going on" in shell("show", "char-gpt").out


def test_after_a_solved_round_comes_what_follows_it(shell):
    """Its next stage, its end, another round: no challenge that has nothing to do with it."""
    shell("start", "char-gpt")
    stage, *_ = PROGRAM.stages
    with Progress.open() as kept:
        kept.add_grade(PROGRAM.slug, "passed", 1.0, "char-gpt")
    for said in (shell("--json"), shell("next", "--json")):
        following = f"attnlab interview stage char-gpt goes on with {stage.id}"
        assert said.json["next"].startswith(following)
    with Progress.open() as kept:
        kept.add_event(Event(kind="stage", base=PROGRAM.slug, question=stage.id, outcome="open"))
    assert f"attnlab grade char-gpt grades stage {stage.id}; " in shell("--json").json["next"]
    shutil.rmtree("char-gpt")
    assert shell("--json").json["next"] == "attnlab interview start draws another round"
    shell("interview", "start", "char-gpt")
    assert shell("--json").json["next"].startswith("attnlab run char-gpt shows what it does; ")


def test_a_deleted_folder_costs_no_more_than_itself(shell):
    """Handing in says where it is missing; the scorecard has what the last grade found."""
    shell("interview", "start", "char-gpt", "--seed", "1", "--bugs", "1")
    shell("grade", "char-gpt")
    shutil.rmtree("char-gpt")
    for command in (("interview", "submit"), ("trace", "char-gpt")):
        said = shell(*command)
        assert said.code == 2
        assert "./char-gpt/ is gone: the files of interview 1 were there" in said.err
    said = shell("interview", "status")
    assert "./char-gpt/ is gone" in said.out
    assert "next: attnlab reset char-gpt writes its files again" in said.out
    assert "blank" not in shell("interview", "note", "train.py:3 still taken").out
    said = shell("interview", "end", "--json")
    assert said.code == 0, said.err
    assert said.json["notes"] == [
        "./char-gpt/ is gone: the last grade stands for what became of it"
    ]
    assert [bug["fixed"] for bug in said.json["bugs"]] == [False]


def test_numbers_that_are_none_are_refused_in_a_line(shell):
    """Each flag says what it takes, and no clock starts."""
    for args in (("--minutes", "0"), ("--minutes", "abc"), ("--bugs", "9"), ("--level", "6"),
                 ("--seed", "-1"), ("--minutes", "5", "--untimed")):  # fmt: skip
        said = shell("interview", "start", "char-gpt", *args)
        assert said.code == 2, args
        assert args[0] in said.err
    assert "is not a program" in shell("interview", "start", "too-sharp").err
    assert "Did you mean char-gpt?" in shell("interview", "start", "char-gp").err
    assert "no interview is going on" in shell("interview", "status").err
    assert not Path("char-gpt").exists()


def shift(seconds):
    """Let the interview have begun so much earlier."""
    with Progress.open() as kept:
        kept._db.execute("UPDATE event SET at = at - ?", (seconds,))


def test_every_command_of_the_round_shows_the_clock(shell, monkeypatch):
    """Also reset, what is refused, and all of them from other folders."""
    shell("interview", "start", "char-gpt", "--bugs", "1", "--minutes", "30", "--seed", "3")
    commands = (
        ("run", "char-gpt"), ("grade", "char-gpt"), ("hint", "char-gpt"), ("reset", "char-gpt"),
        ("start", "char-gpt", "--force"), ("solution", "char-gpt"),
        ("grade", "char-gpt", "--reveal"), ("interview", "note", "x"), ("interview", "ask"),
    )  # fmt: skip
    for command in commands:
        said = shell(*command)
        assert CLOCK.search(said.err), command
    assert CLOCK.match(shell("interview", "status").out)
    alone = shell()
    assert "interview 1, char-gpt: 30 of 30 minutes left" in alone.out
    assert "next: attnlab grade char-gpt, once you changed something" in alone.out
    monkeypatch.chdir("/")
    said = shell("interview", "submit")
    assert CLOCK.search(said.err)
    assert (said.code, "submitted: not yet" in said.out) == (1, True)


def test_what_is_handed_in_after_the_time_is_graded_and_marked(shell):
    """On the page of the hand-in, in the scorecard, and in the history."""
    shell("interview", "start", "char-gpt", "--bugs", "1", "--minutes", "10")
    shift(10 * 60 + 90)
    said = shell("interview", "submit")
    assert said.code == 1
    assert "the time ran out 9" in said.err
    assert "after the time: " in said.out
    assert shell("interview", "end", "--json").json["late"]
    assert "late" in shell("interview", "history").out


def test_a_clock_that_was_set_back_is_told(shell):
    """Time never runs back: it stands, and a line says why."""
    shell("interview", "start", "char-gpt", "--bugs", "1", "--minutes", "10")
    shift(-7200)
    assert "that of this machine was set back by 1" in shell("interview", "status").out
    assert shell("interview", "status", "--json").json["elapsed"] == 0


def test_a_deleted_or_older_folder_is_written_anew_with_the_same_bugs(shell):
    """Reset takes the interview's bugs; a mark that cannot be read stops no grade."""
    shell("interview", "start", "char-gpt", "--seed", "5", "--bugs", "2")
    given = Path("char-gpt/model.py").read_text() + Path("char-gpt/train.py").read_text()
    shutil.rmtree("char-gpt")
    assert shell("reset", "char-gpt").code == 0
    assert Path("char-gpt/model.py").read_text() + Path("char-gpt/train.py").read_text() == given
    Path("char-gpt/.attnlab.json").write_text('{"format": 0}')
    said = shell("grade", "char-gpt")
    assert said.code == 1
    assert "another version" not in said.out
    shell("interview", "abandon")
    assert "another version of attnlab (format 0)" in shell("grade", "char-gpt").out


def test_an_interview_of_another_version_can_be_dropped(shell):
    """It lacks what this version notes: a line says so, and the next one starts."""
    with Progress.open() as kept:
        kept.add_event(Event(kind="note", base="programs/char-gpt", interview=1, text="no start"))
        kept.add_event(Event(kind="start", base="programs/char-gpt", interview=2, text="[1"))
    said = shell("interview", "submit")
    assert (said.code, "of another version of attnlab" in said.err) == (2, True)
    assert shell("interview", "history").code == 0
    assert shell("interview", "abandon").code == 0
    assert shell("interview", "start", "char-gpt").code == 0


def test_no_interview_begins_where_its_clock_cannot_be_kept(shell, monkeypatch, tmp_path):
    """A read-only home or a full disk: one line, no folder, and a note is not said to be taken."""
    (tmp_path / "file").write_text("")
    home = tmp_path / "home"
    monkeypatch.setenv("ATTNLAB_HOME", str(tmp_path / "file"))
    said = shell("interview", "start", "char-gpt")
    assert (said.code, said.out, Path("char-gpt").exists()) == (2, "", False)
    assert "progress is not saved" in said.err
    assert "set ATTNLAB_HOME" in said.err
    monkeypatch.setenv("ATTNLAB_HOME", str(home))
    shell("interview", "start", "char-gpt", "--bugs", "1")
    monkeypatch.setattr(Progress, "add_event", fail_to_write)
    for command in (("interview", "note", "train.py:3 x y z"), ("interview", "ask")):
        said = shell(*command)
        assert (said.code, "disk is full" in said.err, said.out) == (2, True, "")
    said = shell("interview", "submit")
    assert (said.code, "disk is full" in said.err, "submitted" in said.out) == (1, True, True)


def fail_to_write(store, event):
    store.path, store.warning = None, "progress is not saved: disk is full; set ATTNLAB_HOME to x"


def test_follow_ups_are_kept_answer_by_answer(shell, monkeypatch):
    """Ctrl-C in the middle loses none, and the others wait for the next time."""
    import sys

    import typer

    shell("interview", "start", "char-gpt", "--bugs", "1", "--seed", "2")
    shell("interview", "end")
    keys = iter(["aloud", "", "yn", "yes", KeyboardInterrupt])

    def press(*_, **__):
        if (key := next(keys)) is KeyboardInterrupt:
            raise key
        return key

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", press)
    said = shell("interview", "questions")
    assert said.code == 0
    assert "the other questions wait" in said.err
    assert "you said 1 of 2 answers; 1 to be ticked" in said.out
    cards = shell("interview", "questions", "--json").json["questions"]
    assert [card["outcome"] for card in cards] == ["said", "open"]
    keys = iter(["q", "", "q", "", "n"])
    for left in (1, 1, 0):
        assert (f"{left} to be ticked" in shell("interview", "questions").out) == bool(left)
    assert "you said 1 of 2 answers\n" in shell("interview", "questions").out


def test_a_note_is_judged_at_the_end_beside_what_is_true(shell, monkeypatch):
    """Before the questions; the rating follows."""
    import sys

    import typer

    shell("interview", "start", "char-gpt", "--bugs", "1", "--seed", "2")
    (bug,) = [PROGRAM.patches[each] for each in drawn() if not PROGRAM.patches[each].decoy]
    file, line, _ = bug_lines(PROGRAM, drawn())[bug.id][0]
    shell("interview", "note", f"{file} line {line}: it is wrong for a reason")
    for edit in bug.edits:
        path = Path("char-gpt") / edit.file
        path.write_text(path.read_text().replace(edit.new, edit.old))
    said = shell("interview", "end", "--html", "before.html")
    assert "compare your note" in said.out
    assert "the rating lacks your ticks" in said.err
    assert "rating <strong>solid</strong>" in Path("before.html").read_text()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    keys = iter(["y", "q"])
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(keys))
    said = shell("interview", "questions").out
    assert f"question 1 of 3, your note at {bug.id}" in said
    assert "you said 0 of 2 answers, 1 of 1 note said why; 2 to be ticked" in said
    assert "rating strong" in said
    assert shell("interview", "history", "1", "--html", "after.html").code == 0
    assert "rating <strong>strong</strong>" in Path("after.html").read_text()


def test_the_card_that_end_writes_has_what_was_ticked(shell, monkeypatch):
    """It is written behind the questions, and so is what to do next."""
    import sys

    import typer

    shell("interview", "start", "char-gpt", "--bugs", "1", "--seed", "2")
    (bug,) = [PROGRAM.patches[each] for each in drawn() if not PROGRAM.patches[each].decoy]
    file, line, _ = bug_lines(PROGRAM, drawn())[bug.id][0]
    shell("interview", "note", f"{file} line {line}: it is wrong for a reason")
    for edit in bug.edits:
        path = Path("char-gpt") / edit.file
        path.write_text(path.read_text().replace(edit.new, edit.old))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    keys = iter(["y", "q"])
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(keys))
    said = shell("interview", "end", "--html", "card.html")
    assert said.out.index("rating strong") < said.out.index("next: ")
    said = shell("interview", "history", "1", "--html", "nowhere/card.html")
    assert (said.code, "--html nowhere/card.html cannot be written" in said.err) == (2, True)
    assert "rating <strong>strong</strong>" in Path("card.html").read_text()


def test_a_note_that_says_nothing_is_refused_and_a_wrong_one_is_dropped(shell):
    """A line behind the end and no text are refused; a dropped one keeps the others' numbers."""
    shell("interview", "start", "char-gpt", "--seed", "2", "--bugs", "1")
    for text, says in (("", "the note is empty"), (" ", "the note is empty"),
                       ("train.py:9999 x", "so there is no train.py:9999"),
                       ("model.py:0 x", "so there is no model.py:0"),
                       ("model.py:9-3 x", "there is no"),
                       ("modle.py:30 x", "Did you mean model.py"),
                       ("data.py:3 x", "the bugs are in model.py or train.py"),
                       ("line 3 is wrong", "line 3 of which file, model.py or train.py?"),
                       ("model.py:30", "does not say what is wrong there")):  # fmt: skip
        said = shell("interview", "note", text)
        assert (said.code, says in said.err) == (2, True), text
    shell("interview", "note", "train.py:3 one")
    shell("interview", "note", "train.py:4 two")
    assert "? noted: three" in shell("interview", "note", "three").out
    said = shell("interview", "note", "train.py:3 one").out
    assert ("no code stands there" in said, "it gives no reason" in said) == (False, True)
    assert "✓" not in said
    shell("interview", "note", "--drop", "4")
    path = Path("char-gpt/train.py")
    path.write_text("\n# why\n" + path.read_text())
    for line, stands in ((1, "blank"), (2, "# why")):
        said = shell("interview", "note", f"train.py:{line} is odd").out
        assert f"? noted: train.py:{line} is odd\n  train.py:{line}  {stands}\n  no code" in said
    assert "dropped note 1: train.py:3 one" in shell("interview", "note", "--drop", "1").out
    said = shell("interview", "note", "--drop", "1")
    assert (said.code, "there is 2, 3" in said.err) == (2, True)
    status = shell("interview", "status")
    assert "note 2  0:0" in status.out
    assert "train.py:3" not in status.out


def test_a_new_round_in_an_old_folder_takes_force_and_has_no_file_of_a_stage(shell):
    """The refusal names the flag; what a stage gave is gone, what was changed of it stays."""
    shell("start", "char-gpt")
    stage = PROGRAM.stages[0]
    path = Path("char-gpt/cache.py")
    path.write_text(stage.given["cache.py"])
    said = shell("interview", "start", "char-gpt")
    assert (said.code, "start over with --force" in said.err) == (2, True)
    assert shell("interview", "start", "char-gpt", "--force").code == 0
    assert not path.exists()


def test_pages_are_read_at_forty_columns(shell, monkeypatch):
    """Names and what became of them stay whole, whatever has to go."""
    monkeypatch.setenv("COLUMNS", "40")
    shell("interview", "start", "char-gpt", "--bugs", "1", "--seed", "1")
    shell("interview", "end")
    for command, whole in (
        (("interview", "history"), "0 of 1  0 of 3  early"),
        (("list", "--all"), "sinusoidal-from-scratch "),
        (("doctor",), "catalogue\n  "),
    ):
        said = shell(*command).out
        assert whole in said, command
        assert max(len(line) for line in said.splitlines() if "attnlab " not in line) <= 40


def test_the_history_says_what_the_card_said(shell):
    """Changed lines, counted once each, also after the folder is gone; grades without the last."""
    shell("interview", "start", "char-gpt", "--seed", "4", "--bugs", "1")
    path = Path("char-gpt/train.py")
    lines = path.read_text().splitlines()
    lines[2:4] = ["# one", "# two", "# three"]
    path.write_text("\n".join(lines) + "\n")
    shell("grade", "char-gpt")
    card = shell("interview", "end", "--json").json
    assert (card["changed_lines"], card["grades"]) == (3, 1)
    shutil.rmtree("char-gpt")
    (past,) = shell("interview", "history", "--json").json["scorecards"]
    assert [past[key] for key in ("changed_lines", "grades", "decoys")] == [
        card[key] for key in ("changed_lines", "grades", "decoys")
    ]
    assert all(place.partition(":")[0] in PROGRAM.edit for place in card["bugs"][0]["places"])
    one = shell("interview", "history", "1")
    assert "0 of 1 bug fixed" in one.out
    assert "3 lines changed" in one.out
    assert shell("interview", "history", "1", "--json").json["number"] == 1
    for number in ("2", "x"):
        said = shell("interview", "history", number)
        assert said.code == 2
        assert f"no scorecard of interview {number}" in said.err


def test_a_question_of_ones_own_is_told_that_nobody_answers(shell):
    """Rather than that there is an argument too many."""
    shell("interview", "start", "char-gpt", "--bugs", "1")
    said = shell("interview", "ask", "is the head tied?")
    assert (said.code, "nobody is there to answer" in said.err) == (2, True)
    assert (
        "Usage: attnlab interview ask [OPTIONS] [[N]]\n" in shell("interview", "ask", "--help").out
    )
    assert shell("interview", "status", "--json").json["asked"] == []
