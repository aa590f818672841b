"""Rounds from the command line: from the starter to the end, and slips on the way."""

import re
from pathlib import Path

from attnlab.catalogue.load import shipped_folder

BASE = shipped_folder() / "programs" / "char-gpt" / "base"


def test_a_round_from_start_to_end(shell):
    """Counts alone while it is open; parts, bugs and their reasons once it has ended."""
    said = shell("start", "char-gpt", "--bugs", "no-zero-grad,softmax-over-queries")
    assert said.code == 0, said.err
    assert "wrote ./char-gpt/" in said.out
    assert "(2 bugs)" in said.out
    said = shell("grade", "char-gpt")
    assert said.code == 1
    assert "not yet: 0 of 2 bugs gone, 4 of 6 parts right" in said.out
    assert not re.search("zero_grad|softmax|attention", said.out)
    said = shell("grade", "char-gpt", "--reveal", "--json")
    told = said.json
    assert (told["parts_right"], told["parts"]) == (4, 6)
    assert told["bugs"] == [
        {"id": "no-zero-grad", "fixed": False, "changed": False},
        {"id": "softmax-over-queries", "fixed": False, "changed": False},
    ]
    for name in ("model.py", "train.py"):
        (Path("char-gpt") / name).write_text((BASE / name).read_text())
    said = shell("grade", "char-gpt")
    assert said.code == 0, said.out
    assert "passed: 2 of 2 bugs gone, 6 of 6 parts right" in said.out
    assert "no-zero-grad  gone" in said.out
    listed = next(line for line in shell("list", "--all").out.splitlines() if "char-gpt" in line)
    assert "solution seen" in listed  # the bugs were named before it passed


def test_a_run_shows_the_loss_and_the_goals(shell):
    """The curve, where it should begin, goals and a sample; nothing names a bug."""
    said = shell("run", "char-gpt")
    assert said.code == 1
    for part in (
        "120 of 120 steps",
        "gives ln 27 = 3.296",
        "goals",
        "train.generate gives",
        "in eval mode",
    ):
        assert part in said.out
    assert "attnlab start char-gpt writes ./char-gpt/" in said.out


def test_hints_come_one_at_a_time_and_do_not_name_the_bug(shell):
    """Each call shows one more, bug by bug."""
    shell("start", "char-gpt", "--bugs", "no-zero-grad")
    assert "bug 1 of 1, hint 1 of 3" in shell("hint", "char-gpt").out
    said = shell("hint", "char-gpt")
    assert "hint 2 of 3" in said.out
    assert "no-zero-grad" not in said.out
    shell("hint", "char-gpt")
    assert "There is no further hint" in shell("hint", "char-gpt").out


def test_the_solution_shows_every_change(shell):
    """What is to be changed stands beside why, and decoys are told apart."""
    shell("start", "char-gpt", "--bugs", "no-zero-grad,odd-loss-layout")
    said = shell("solution", "char-gpt", "--yes")
    assert "+         optimizer.zero_grad()" in said.out
    assert "right code that looks wrong" in said.out


def test_reset_puts_one_file_back_and_keeps_the_old_one(shell):
    """Nothing of the user's is lost."""
    shell("start", "char-gpt")
    file = Path("char-gpt/train.py")
    given = file.read_text()
    file.write_text("mine")
    assert shell("reset", "char-gpt", "train.py").code == 0
    assert file.read_text() == given
    assert Path("char-gpt/train.py.1").read_text() == "mine"
    said = shell("reset", "char-gpt", "tran.py")
    assert (said.code, "has no file tran.py" in said.err) == (2, True)


def test_slips_are_refused_in_one_line(shell):
    """What is wrong, where, and the command that helps."""
    shell("start", "char-gpt")
    slips = {
        ("start", "char-gpt"): "already exists and was not changed",
        ("start", "char-gtp"): 'no challenge is called "char-gtp"',
        ("start", "too-sharp", "--seed", "3"): "too-sharp is one file with one bug",
        ("start", "char-gpt", "--seed", "x"): "a whole number",
        ("start", "char-gpt", "--bugs", "no-zero-gard"): "has no bug",
        ("list", "--kind", "programs"): "there is no such kind",
        ("grade", "char-gpt", "nowhere"): "is not a folder",
        ("grade", "char-gpt/modle.py"): "Did you mean model.py?",
    }
    for words, says in slips.items():
        said = shell(*words)
        assert (said.code, says in said.err) == (2, True), (words, said.err)
    Path("char-gpt/model.py").write_text("def (:\n")
    said = shell("grade", "char-gpt")
    assert (said.code, "char-gpt/model.py:1" in said.err) == (2, True)
    Path("char-gpt/model.py").unlink()
    said = shell("grade", "char-gpt")
    assert (said.code, "attnlab reset char-gpt model.py" in said.err) == (2, True)
    Path("other").mkdir()
    said = shell("grade", "./other")
    assert (said.code, "folder without .attnlab.json" in said.err) == (2, True)


def test_a_changed_given_file_is_noted_and_replaced(shell):
    """The grader uses its own copy, and says so."""
    shell("start", "char-gpt", "--bugs", "no-zero-grad")
    Path("char-gpt/data.py").write_text("LINES = ()\n")
    said = shell("grade", "char-gpt")
    assert "data.py is not as it was given; the given one is used" in said.out
    assert "5 of 6 parts right" in said.out


def test_a_list_of_programs_shows_how_many_stages_follow(shell):
    """The hint of `interview stage` sends here; each kind is counted as what it is."""
    said = shell("list", "--kind", "program")
    (line,) = [line for line in said.out.splitlines() if "char-gpt" in line]
    assert "3 stages" in line
    assert re.search(r"\n0 of \d+ programs solved", said.out)
    shown = {one["slug"]: one["stages"] for one in shell("list", "--json").json["challenges"]
             if one["kind"] == "program"}  # fmt: skip
    assert (shown["programs/char-gpt"], shown["programs/reverse-seq2seq"]) == (3, 1)


def test_what_a_page_says_to_type_works_where_it_was_typed(shell, monkeypatch, tmp_path):
    """From another folder the name alone would mean the program as it was shipped."""
    shell("start", "char-gpt", "--bugs", "no-zero-grad")
    for folder, name in ((".", "char-gpt"), ("char-gpt", "char-gpt"), ("..", "here/char-gpt")):
        monkeypatch.chdir(tmp_path / "here" / folder)
        asked = "char-gpt" if name == "char-gpt" else name
        for command in ("run", "grade", "hint"):
            assert f"attnlab grade {name}" in " ".join(shell(command, asked).out.split()), folder
