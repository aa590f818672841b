"""Stages from the command line: opened after the bugs, graded with them, told in the scorecard."""

import re
from pathlib import Path

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import compose, count_changed_lines, read_program
from attnlab.practice.interviews import current
from attnlab.progress import Progress

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
CACHE = PROGRAM.stages[0]


def write(files, folder="char-gpt"):
    for name in PROGRAM.edit:
        (Path(folder) / name).write_text(files[name])


def drawn():
    """The bugs and decoys of the interview that is going on."""
    with Progress.open() as kept:
        return current(kept).bugs


def test_a_stage_that_breaks_the_bugs_half_says_so_and_costs_the_stage_alone(shell):
    """The bugs were done before: the scorecard has them as fixed, and the stage as not yet."""
    shell("interview", "start", "char-gpt", "--bugs", "1", "--untimed", "--seed", "3")
    write(PROGRAM.files)
    shell("grade", "char-gpt")
    assert shell("interview", "stage").code == 0
    text = CACHE.solution["model.py"].replace("torch.arange(past, past + ", "torch.arange(")
    write(CACHE.solution | {"model.py": text})
    said = shell("interview", "submit")
    assert said.code == 1
    assert "parts that were right before the stage" in said.out
    assert re.search(r"\d+ seconds in stage kv-cache, without a limit\n", said.err)
    assert re.search(r"not yet, 5 of 6 parts right\n  the bugs took 0:\d\d; each stage", said.out)
    status = shell("interview", "status").out
    assert "in stage kv-cache, without a limit\n" in status
    assert f"(meant to take {CACHE.minutes} minutes, no limit)" in status
    card = shell("interview", "end", "--json").json
    assert (card["outcome"], card["fixed"], card["new_fault"]) == ("passed", 1, False)
    assert card["stages"][0]["outcome"] == "failed"
    assert shell("--json").json["next"] == "attnlab interview start draws another round"


def test_a_stage_opens_after_the_bugs_and_is_graded_with_them(shell):
    """Refused before, opened after a grade that passed; the scorecard tells what became of it."""
    shell("interview", "start", "char-gpt", "--bugs", "1", "--untimed", "--seed", "3")
    said = shell("interview", "stage")
    assert said.code == 2
    assert "once the bugs of char-gpt are done, and there is no grade yet" in said.err
    write(PROGRAM.files)
    ids = drawn()
    changed = count_changed_lines(compose(PROGRAM, ids), PROGRAM.files)
    said = shell("interview", "submit")
    assert said.code == 0
    assert "attnlab interview stage" in said.out
    said = shell("interview", "stage", "--json").json
    assert (said["stage"], said["given"]) == (CACHE.id, ["cache.py"])
    assert "needs a default that changes nothing" in said["parts"]
    assert Path("char-gpt/cache.py").read_text() == CACHE.given["cache.py"]
    said = shell("grade", "char-gpt", "--json")
    assert said.code == 1
    assert said.json["outcome"] == "passed"
    assert said.json["stage"]["outcome"] == "failed"
    hint = shell("hint", "char-gpt")
    assert f"stage {CACHE.id}, hint 1 of 2" in hint.out
    assert f"in stage {CACHE.id}, without a limit" in hint.err
    assert f"stage {CACHE.id}\n" in shell("run").out
    Path("char-gpt/model.py").write_text("import nowhere\n")
    shell("grade", "char-gpt")
    status = " ".join(shell("interview", "status").out.split())
    assert "it failed at: char-gpt/model.py:1: ModuleNotFoundError" in status
    said = shell("interview", "stage", PROGRAM.stages[1].id)
    assert "it is open: attnlab grade char-gpt tells what it lacks" in said.err
    Path("char-gpt/cache.py").unlink()
    write(CACHE.solution)
    said = shell("interview", "submit")
    assert said.code == 0, said.out
    assert "7 of 7 checks passed" in said.out
    status = shell("interview", "status").out
    assert f"attnlab interview stage goes on with {PROGRAM.stages[1].id}" in status
    assert "it has passed already" in shell("hint", "char-gpt").out
    card = shell("interview", "end", "--json").json
    assert card["outcome"] == "passed"
    stage = card["stages"][0]
    assert (stage["id"], stage["outcome"], stage["grades"]) == (CACHE.id, "passed", 3)
    # What a stage took is told there.
    assert (card["grades"], card["submits"], card["changed_lines"]) == (0, 1, changed)
    assert {one["outcome"] for one in card["stages"][1:]} <= {"locked"}
    assert any(question["bug"] == CACHE.id for question in card["follow_ups"])
    said = shell("solution", "char-gpt")
    assert all(bug["id"] in said.out for bug in card["bugs"])
    assert CACHE.title in said.out
    assert "write it yourself" not in said.out
    assert card["hints"] == 0  # those of a stage do not count for the bugs


def test_the_bugs_may_be_skipped(shell):
    """The stage begins from the right program, in a folder of its own that is never overwritten."""
    said = shell("interview", "stage", f"char-gpt/{CACHE.id}", "--skip-bugs")
    assert said.code == 0, said.err
    folder = f"char-gpt-{CACHE.id}"
    assert Path(folder, "model.py").read_text() == PROGRAM.files["model.py"]
    assert shell("interview", "stage", "char-gpt", "--skip-bugs").code == 2
    said = shell("grade", folder)
    first = CACHE.checks[0]
    assert "what the first check that failed compares" in said.out
    assert all(line in said.out for line in (*first.setup.strip().splitlines(), first.value))
    write(CACHE.solution, folder)
    Path(folder, "cache.py").write_text("KVCache = None\n")
    said = shell("grade", folder)
    assert said.code == 0, said.out
    assert "cache.py is not as it was given; the given one is used" in said.out
    said = shell("solution", folder, "--yes")
    assert "model.py" in said.out
    assert "+            k, v = cache.append(layer, k, v)" in said.out


def test_what_cannot_be_opened_says_why(shell):
    """No program named, no such stage, no grade yet, an interview that goes on."""
    for args, says in (
        ((), "it is not known which program is meant"),
        (("char-gpt/kv-cach", "--skip-bugs"), "char-gpt has no stage kv-cach"),
        (("char-gpt",), "there is no grade yet"),
    ):
        said = shell("interview", "stage", *args)
        assert said.code == 2
        assert says in said.err
    shell("interview", "start", "char-gpt", "--untimed")
    said = shell("interview", "stage", "--skip-bugs")
    assert said.code == 2
    assert "an interview is going on" in said.err
