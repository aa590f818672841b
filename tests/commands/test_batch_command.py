"""A class is graded: one verdict for each submission, whatever the others do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from sample_records import check

from attnlab.batch.run import BatchStore, at_once
from attnlab.errors import Broken
from attnlab.records import Report
from attnlab.verdict import UNSEEN
from attnlab.worker.wire import KILLED

RIGHT = "import torch\n\nclass MultiHeadAttention(torch.nn.Module):\n    pass\n"
NAME = "too-sharp"


class FakeWorker:
    """Says of each file what its last line asks for; no process is started."""

    notes = ()
    said: list[str] = []  # noqa: RUF012 - one list for all, emptied by the fixture

    def close(self):
        pass

    def run_job(self, job):
        text = job.candidate.text
        self.said.append(job.candidate.file)
        if "broken" in text:
            raise Broken("the worker ended before its answer")
        if "killed" in text:
            return Report(outcome="crashed", message=f"the process {KILLED}")
        if "stop" in text:
            raise KeyboardInterrupt
        outcome = "failed" if "wrong" in text else "passed"
        checks = [check("finite", outcome, "NaN at [0]", line=3)]
        if "unseen" in text:
            checks.append(check("causality", "skipped", reason=UNSEEN))
        return Report(outcome="ok", checks=tuple(checks))


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr(FakeWorker, "said", [])
    monkeypatch.setattr("attnlab.worker.client.Worker", FakeWorker)
    return FakeWorker


@pytest.fixture
def hand_in(shell):
    """Write files into ./class: `hand_in(alice="wrong")`; the challenge's class is in each."""
    from attnlab.catalogue.load import load

    name = load().find(NAME).class_name

    def write(**texts: str) -> None:
        Path("class").mkdir(exist_ok=True)
        for person, text in texts.items():
            body = RIGHT.replace("MultiHeadAttention", name)
            Path("class", f"{person}.py").write_text(f"{body}\n# {text}\n")

    return write


def grade(shell, *more: str, where: str = "class"):
    return shell("batch", "grade", where, "--challenge", NAME, "--slots", "1", *more)


def outcomes(said) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in said.json["submissions"]}


def test_one_bad_submission_costs_one_submission(shell, worker, hand_in):
    """Files that are missing a class, no text, killed or that break the judge cost themselves."""
    hand_in(ann="right", bob="wrong", cid="killed", dan="broken")
    Path("class/eve.py").write_bytes(b"\0\1")
    Path("class/fay.py").write_text("def f(:\n")
    Path("class/gus").mkdir()
    Path("class/hal").mkdir()
    Path("class/hal/a.py").write_text("")
    Path("class/hal/b.py").write_text("")
    said = grade(shell, "--json")
    assert said.code == 70
    assert outcomes(said) == {
        "ann": "passed",
        "bob": "failed",
        "cid": "crashed",
        "dan": "error",
        **dict.fromkeys(("eve", "fay", "gus", "hal"), "unreadable"),
    }
    assert worker.said.count("class/cid.py") == worker.said.count("class/dan.py") == 2
    first = said.json["failures"][0]
    assert (first["check"], first["names"]) == ("unreadable", ["eve", "fay", "gus", "hal"])
    assert {"message": "gus/ holds no Python file", "names": ["gus"]} in first["messages"]
    assert "8 of 8: " in said.err


def test_what_is_no_submission_is_named(shell, worker, hand_in):
    """Files of another kind are not graded in silence, and a class that has none is asked why."""
    hand_in(ann="right")
    Path("class/README.md").write_text("hand in here")
    Path("class/.DS_Store").write_text("")
    assert "not taken for submissions: README.md\n" in grade(shell).err
    Path("class/ann.py").write_text("class Other: pass\n")
    said = grade(shell, "--resume")
    assert "class/ann.py defines no " in said.out
    assert f"none can be read: was {NAME}" in " ".join(said.out.split()).replace("attention/", "")


def test_resume_grades_what_has_no_verdict(shell, worker, hand_in):
    """Verdicts are kept but for faults of attnlab, files that changed, and files that are gone."""
    hand_in(ann="right", bob="wrong", dan="broken", zoe="right")
    assert grade(shell).code == 70
    refused = grade(shell)
    assert refused.code == 2
    assert "class.run holds 4 of 4 verdicts" in refused.err
    hand_in(bob="right now", dan="right", eve="right")
    Path("class/zoe.py").unlink()
    worker.said.clear()
    said = grade(shell, "--resume", "--json")
    assert worker.said == ["class/bob.py", "class/dan.py", "class/eve.py"]
    assert re.findall(r"^(\d) of 4: ", said.err, re.MULTILINE) == ["2", "3", "4"]
    assert outcomes(said) == dict.fromkeys(("ann", "bob", "dan", "eve"), "passed")
    assert said.code == 0
    worker.said.clear()
    assert grade(shell, "--resume").code == 0
    assert not worker.said


def test_an_interrupted_run_says_what_is_kept(shell, worker, hand_in):
    """Ctrl-C loses what was under way alone; `show` shows the rest."""
    hand_in(ann="right", bob="right", cid="stop")
    said = grade(shell)
    assert said.code == 130
    assert "2 of 3 verdicts are kept; --resume goes on with the rest" in said.err
    shown = shell("batch", "show", "class.run", "--json")
    assert outcomes(shown) == {"ann": "passed", "bob": "passed"}
    assert (shown.code, shown.json["graded"], shown.json["total"]) == (1, 2, 3)


def test_a_run_goes_on_as_it_began(shell, worker, hand_in):
    """Other limits, another challenge or another attnlab give verdicts that cannot be compared."""
    hand_in(ann="right")
    grade(shell)
    assert "limits was 10 s and" in grade(shell, "--resume", "--timeout", "3").err
    other = shell("batch", "grade", "class", "--challenge", "crash-at-out-proj", "--resume")
    assert "challenge was attention/too-sharp and is attention/crash-at-out-proj" in other.err
    store = BatchStore(Path("class.run"))
    run = store.require_run()
    store.results.add("run", "", replace(run, torch="1.0"))
    store.close()
    assert f"torch was 1.0 and is {run.torch}" in grade(shell, "--resume").err
    store = BatchStore(Path("class.run"))
    store.results.add("run", "", replace(run, layout=9))
    store.close()
    assert "another version of attnlab (layout 9; this one reads layout 1)" in grade(shell).err


def test_a_run_in_use_is_left_alone(shell, worker, hand_in):
    """Two commands that wrote one run would grade everything twice."""
    hand_in(ann="right")
    store = BatchStore(Path("class.run"))
    said = grade(shell)
    store.close()
    assert (said.code, said.err.splitlines()[0]) == (
        2, "error: --run: class.run is in use by another attnlab",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "class.csv has no column name: it is empty"),
        ("student,path\n", "class.csv has no column name: it has student, path"),
        ("name,file\n", "class.csv names no submission"),
        ("name,file\nann,a.py\nbob,b.py\nann,c.py\n", "row 4: ann stands in row 2 too"),
        ("name,file\n,a.py\n", "row 2: the name is empty"),
        ("name,file\nann,\n", "row 2: the file is empty"),
        ('name,file\n"ann\n', "class.csv is no CSV file in UTF-8"),
    ],
)
def test_a_bad_manifest_is_one_line(shell, worker, text, why):
    """It says which row, and what is there."""
    Path("class.csv").write_text(text)
    said = grade(shell, where="class.csv")
    assert said.code == 2
    assert why in said.err
    assert not Path("class.run").exists()


def test_names_may_be_anything(shell, worker, hand_in):
    """Slashes, line breaks and commands of a terminal are shown; a spreadsheet computes nothing."""
    hand_in(ann="right")
    rows = ("Ann/Bo,class/ann.py", '"a\nb",class/ann.py', "\x1b[2J,class/ann.py", "=1+1,gone.py")
    Path("class.csv").write_text("name,file,group\n" + "\n".join(f"{row},7" for row in rows))
    said = grade(shell, "--csv", where="class.csv")
    names = [line.partition(",")[0] for line in said.out.splitlines()[1:]]
    assert names == ["'=1+1", "Ann/Bo", "\\x1b[2J", "a\\nb"]
    assert "unreadable" in said.out.splitlines()[1]
    assert re.search(r"no such file", said.out)


def test_a_challenge_or_folder_that_is_not_there(shell, worker, hand_in):
    """One line each, with the nearest name."""
    hand_in(ann="right")
    assert "neither a folder nor a .csv" in grade(shell, where="clas").err
    Path("empty").mkdir()
    assert "empty holds no submission" in grade(shell, where="empty").err
    said = shell("batch", "grade", "class", "--challenge", "too-sharpp")
    assert "Did you mean too-sharp?" in said.err
    assert "--challenge is missing" in shell("batch", "grade", "class").err
    assert "there is no such run" in shell("batch", "show", "nothing.run").err
    Path("text.run").write_text("no database, and longer than its header would be")
    assert "text.run is no file of results" in shell("batch", "show", "text.run").err


def test_who_says_the_same(shell, worker, hand_in):
    """Other names of variables, comments and spaces do not make it another text."""
    hand_in(ann="right", zoe="other")
    text = Path("class/ann.py").read_text()
    for person, name in (("bob", "x"), ("cid", "much")):
        Path("class", f"{person}.py").write_text(
            f"{text}\n\ndef f({name}):\n  return {name}  + 1\n"
        )
    groups = grade(shell, "--json").json["similar"]
    assert [group["names"] for group in groups] == [["ann", "zoe"], ["bob", "cid"]]


def test_a_class_in_a_round(shell, lasting_worker, monkeypatch, worker):
    """A folder for each person; parts and goals stand for checks."""
    from attnlab.catalogue.load import load
    from attnlab.catalogue.programs import compose, read_program
    from attnlab.records.program import PartResult, ProgramReport

    program = read_program(Path(load().find_program("char-gpt").folder))
    for person in ("ann", "bob"):
        Path("class", person).mkdir(parents=True)
        for name, text in compose(program, program.chosen).items():
            Path("class", person, name).write_text(text)
    Path("class/bob/model.py").unlink()
    part = PartResult(id="training", title="it trains", outcome="failed", message="it does not")
    report = ProgramReport(outcome="failed", parts=(part,))
    monkeypatch.setattr(FakeWorker, "run_program", lambda self, job: report, raising=False)
    said = shell("batch", "grade", "class", "--challenge", "char-gpt", "--slots", "1", "--json")
    rows = {
        row["name"]: (row["outcome"], row["check"], row["message"])
        for row in said.json["submissions"]
    }
    assert rows == {
        "ann": ("failed", "training", "failed: training: it does not"),
        "bob": ("unreadable", "", "class/bob/model.py is missing"),
    }


def test_few_results_wait_at_a_time():
    """What is drawn from a long class is what a thread can take."""
    drawn = []
    source = (drawn.append(n) or n for n in range(100))
    found = at_once(source, lambda n: n, 2)
    for _ in range(10):
        next(found)
    assert len(drawn) <= 16
    assert list(found)[-1] == 99


class Borrowed(FakeWorker):
    """The worker of the session, which the pool does not end."""

    def __init__(self, worker):
        self.worker = worker

    def run_job(self, job):
        return self.worker.run_job(job)


def test_one_real_class(shell, worker, lasting_worker, monkeypatch):
    """Through a real judge: one passes, one fails, one never ends; all with one seed."""
    from attnlab.catalogue.load import load
    from attnlab.catalogue.texts import shipped_text, solution_text

    real = Borrowed(lasting_worker.__enter__())
    monkeypatch.setattr("attnlab.worker.client.Worker", lambda: real)
    challenge = load().find(NAME)
    right, wrong = solution_text(challenge), shipped_text(challenge)
    endless = right.replace(
        "def forward(", "def forward(self, *a):\n        while 1: pass\n\n    def g("
    )
    Path("class").mkdir()
    for person, text in {"ann": right, "bob": wrong, "cid": endless}.items():
        Path("class", f"{person}.py").write_text(text)
    said = grade(shell, "--json", "--timeout", "3")
    assert outcomes(said) == {"ann": "passed", "bob": "failed", "cid": "timeout"}
    assert said.json["failures"][0]["check"] == "matches-reference"
    groups = {name: group for group in said.json["similar"] for name in group["names"]}
    assert groups["bob"]["shipped"]


def test_a_page_to_send(shell, worker, hand_in):
    """--html writes a whole page beside what is printed; a bad name is one line."""
    hand_in(ann="right", bob="wrong")
    said = grade(shell, "--html", "class.html")
    assert "wrote class.html" in said.err
    assert "1 of 2 submissions passed" in Path("class.html").read_text()
    refused = grade(shell, "--run", "other.run", "--html", "no/such/folder.html")
    assert refused.code == 2
    assert "--html no/such/folder.html cannot be written: there is no folder such/" in refused.err
    assert not Path("other.run").exists()  # nothing was graded in vain


def test_parts_of_a_class_are_merged(shell, worker, hand_in):
    """Each part has its own file and the seed of the whole; together they are one run."""
    hand_in(ann="right", bob="wrong", cid="right", dan="right", eve="right")
    for part in ("1/2", "2/2"):
        grade(shell, "--shard", part)
    assert worker.said == [f"class/{n}.py" for n in ("ann", "cid", "eve", "bob", "dan")]
    parts = ("class-1-of-2.run", "class-2-of-2.run")
    wrong = shell("batch", "merge", "half.run", parts[0])
    assert (wrong.code, "parts are missing: 2/2" in wrong.err) == (2, True)
    assert not Path("half.run").exists()
    half = shell("batch", "merge", "half.run", parts[0], "--partial")
    assert "part 1/2 of the class only" in half.out
    said = shell("batch", "merge", "all.run", *parts, parts[0], "--json")
    passed = dict.fromkeys(("ann", "cid", "dan", "eve"), "passed")
    assert outcomes(said) == {**passed, "bob": "failed"}
    assert (said.code, said.json["total"], said.json["graded"]) == (1, 5, 5)
    again = shell("batch", "merge", "all.run", *parts)
    assert "all.run holds 5 of 5 verdicts" in again.err
    assert "a part of so many is needed" in grade(shell, "--shard", "3/2").err
    hand_in(ann="anew")
    grade(shell, "--run", "other.run", "--seed", str(said.json["run"]["seed"]))
    wrong = shell("batch", "merge", "new.run", parts[0], "other.run")
    assert "class-1-of-2.run and other.run graded different files of ann" in wrong.err
    grade(shell, "--run", "seed.run", "--seed", "5")
    wrong = shell("batch", "merge", "new.run", parts[0], "seed.run")
    assert re.search(r"do not belong together: seed was \d+ and is 5", wrong.err)
    assert "there is no such run" in shell("batch", "merge", "new.run", "gone.run").err


def test_links_are_not_followed(shell, worker, hand_in, tmp_path):
    """A link to a file, a folder or another's work is unreadable, and nothing of it is shown."""
    hand_in(ann="right")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("root:x:0:0\n")
    Path("class/bob.py").symlink_to(outside / "secret.py")
    Path("class/cid").symlink_to(outside)
    Path("class/dan.py").symlink_to("ann.py")
    Path("class/eve").mkdir()
    Path("class/eve/a.py").symlink_to(outside / "secret.py")
    said = grade(shell, "--json")
    names = ("bob", "cid", "dan", "eve")
    assert outcomes(said) == {"ann": "passed", **dict.fromkeys(names, "unreadable")}
    assert "root:x" not in said.out
    told = {row["name"]: row["message"] for row in said.json["submissions"]}
    assert told["bob"] == "bob.py is a link to a place outside the folder; it was not followed"
    assert "a link to another file in the folder" in told["dan"]


def test_a_manifest_takes_a_folder_as_a_folder_does(shell, worker, hand_in):
    """The one file of somebody's folder is graded; a link in it is not followed."""
    hand_in(ann="right")
    Path("class/ben").mkdir()
    Path("class/ann.py").rename("class/ben/solution.py")
    Path("class/eve.py").symlink_to("ben/solution.py")
    Path("class.csv").write_text("name,file\nben,class/ben\neve,class/eve.py\n")
    assert outcomes(grade(shell, "--json", where="class.csv")) == {
        "ben": "passed",
        "eve": "unreadable",
    }


def test_scores_say_whether_checks_were_not_made(shell, worker, hand_in):
    """CSV and JSON have a field that is true where the score could be higher."""
    from attnlab.render.batch import COLUMNS

    hand_in(ann="right", bob="unseen wrong")
    said = grade(shell, "--json")
    assert [row["score_is_least"] for row in said.json["submissions"]] == [False, True]
    rows = shell("batch", "show", "class.run", "--csv").out.splitlines()
    assert rows[0].split(",") == list(COLUMNS)
    assert [row.rpartition(",")[2] for row in rows[1:]] == ["false", "true"]
