"""run, grade, trace, check, doctor: the job that is asked for, and what becomes of the answer."""

from dataclasses import replace
from pathlib import Path

import pytest
from sample_records import CHECKS, FINDINGS, REPORT, TRACE, check

from attnlab.errors import Broken
from attnlab.records import Report, Trace
from attnlab.records.program import ProgramReport
from attnlab.records.trial import FileTrialReport, ProgramTrialReport, TrialResult
from attnlab.tracer.crash import explain
from attnlab.verdict import EARLIER

NAME = "crash-at-out-proj"
SLUG = f"attention/{NAME}"
GOOD = Report(outcome="ok", trace=Trace(ops=TRACE.ops), checks=(check("finite", "passed"),))
BAD = replace(GOOD, checks=(check("finite", "failed", "NaN at [0]"),))


class FakeWorker:
    """Answers every job with the same report, and remembers the jobs."""

    report: Report | Exception = REPORT
    notes = ()  # of the warm judge
    jobs: list = []  # noqa: RUF012 - one list for all, emptied by the fixture

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def close(self):
        return None

    def run_job(self, job):
        self.jobs.append(job)
        if isinstance(self.report, Exception):
            raise self.report
        return self.report

    def run_program(self, job):
        return ProgramReport(outcome="error", message="programs are not run here")

    def trials(self, job):
        results = (TrialResult(reports=(self.run_job(job.job),)) for _ in job.candidates)
        return FileTrialReport(results=tuple(results))

    def program_trials(self, job):
        return ProgramTrialReport()


@pytest.fixture
def worker(monkeypatch):
    """A worker that never starts a process; set `.report` to what it should say."""
    monkeypatch.setattr(FakeWorker, "jobs", [])
    monkeypatch.setattr("attnlab.worker.client.Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "report", REPORT)
    return FakeWorker


def standing(shell, slug=SLUG):
    rows = shell("list", "--json").json["challenges"]
    return next(row for row in rows if row["slug"] == slug)


def test_a_pass_names_the_next_of_the_track(shell, worker):
    """The easier ones come first, and none that is solved."""
    worker.report = GOOD
    shell("start", NAME)
    following = shell("grade", NAME, "--json").json["next"].partition("; attnlab run ")[2]
    name = following.partition(" ")[0]
    shell("start", name)
    shell("grade", name)
    assert f"attnlab run {name} " not in shell("grade", NAME, "--json").json["next"]
    assert following == f"{name} goes on"


# ---------------------------------------------------------------- which file


def test_the_shipped_file_where_there_is_no_other(shell, worker):
    """And stderr says so."""
    said = shell("grade", NAME, "--json")
    assert said.err == "grading buggy.py as shipped\n"
    assert said.json["file"] == f"{SLUG}/buggy.py"
    assert worker.jobs[0].candidate.file == "buggy.py"


def test_how_much_is_looked_at_and_from_which_seed(shell, worker):
    """A quick verdict first; --all goes on, --full takes longer, --seed repeats."""
    for more in ([], ["--all"], ["--full"], ["--seed", "7"]):
        shell("grade", NAME, *more)
    assert [job.until for job in worker.jobs] == ["reason", "end", "reason", "reason"]
    assert [(j.full, j.seed, j.limits.seconds) for j in worker.jobs] == [
        *[(False, None, 10.0)] * 2,
        *[(True, None, 60.0), (False, 7, 10.0)],
    ]


def test_the_file_here_goes_before_the_shipped_one(shell, worker):
    """The one that `start` wrote is the one that is meant."""
    shell("start", NAME)
    said = shell("grade", SLUG, "--json")
    assert said.err == f"grading ./{NAME}.py (your file)\n"
    assert said.json["file"] == f"./{NAME}.py"
    assert worker.jobs[0].candidate.text.startswith("# attnlab: ")


def test_a_file_for_another_challenge_is_not_taken(shell, worker):
    """A file of this name whose first line names another challenge is not meant."""
    Path(f"{NAME}.py").write_text(f"# attnlab: other/{NAME}\n")
    assert shell("grade", NAME, "--json").json["file"] == f"{SLUG}/buggy.py"


def test_a_started_file_names_its_challenge(shell, worker):
    """Wherever it lies and whatever it is called."""
    shell("start", NAME)
    Path(f"{NAME}.py").rename("mine.py")
    said = shell("grade", "mine.py", "--json")
    assert (said.json["challenge"], said.json["file"]) == (SLUG, "mine.py")


def test_a_file_given_beside_the_slug(shell, worker):
    """FILE wins over everything."""
    shell("start", NAME)
    Path("answer.py").write_text(Path(f"{NAME}.py").read_text().partition("\n")[2])
    assert shell("grade", NAME, "answer.py", "--json").json["file"] == "answer.py"


def test_a_file_given_before_the_slug(shell, worker):
    """Swapped arguments are understood: a challenge has no name that ends like a file's."""
    shell("start", NAME)
    Path(f"{NAME}.py").rename("mine.py")
    said = shell("grade", "mine.py", NAME, "--json")
    assert (said.json["challenge"], said.json["file"]) == (SLUG, "mine.py")


@pytest.mark.parametrize("seed", ["abc", "-1", "1.5", str(2**63)])
def test_a_seed_that_is_none_is_refused(shell, worker, seed):
    """In words of ours."""
    said = shell("grade", "too-sharp", f"--seed={seed}")
    assert said.code == 2
    assert f"--seed {seed}: a whole number from 0 to {2**63 - 1} is needed" in said.err


def test_a_name_that_is_empty_is_refused(shell, worker):
    """`grade NAME "$FILE"` with a variable that is not set: nothing else is graded for it."""
    said = shell("grade", NAME, "")
    assert (said.code, worker.jobs) == (2, [])
    assert "the name of the file is empty" in said.err


def test_limits_reach_the_job(shell, worker):
    """Seconds and bytes."""
    shell("grade", NAME, "--timeout", "2.5", "--memory", "512M")
    limits = worker.jobs[0].limits
    assert (limits.seconds, limits.memory) == (2.5, 512 << 20)


# ---------------------------------------------------------------- grade


@pytest.mark.parametrize(
    ("report", "outcome", "code"),
    [
        (GOOD, "passed", 0),
        (BAD, "failed", 1),
        (Report(outcome="timeout", message="not done after 10 s"), "timeout", 1),
        (Report(outcome="memory"), "memory", 1),
        (
            replace(GOOD, checks=(check("finite", "error", reason="no-weights"),)),
            "cannot-compare",
            3,
        ),
    ],
)
def test_grade_ends_with_the_exit_code_of_its_outcome(shell, worker, report, outcome, code):
    """The contract's codes, and the same word in the document."""
    worker.report = report
    said = shell("grade", NAME, "--json")
    assert (said.json["outcome"], said.code) == (outcome, code)
    assert said.json["format"] == 1
    assert shell("grade", NAME).code == code


@pytest.mark.parametrize(
    ("report", "outcome", "code"),
    [
        (
            Report(outcome="refused", message="no parameter of that name", hint="Name it."),
            "refused",
            2,
        ),
        (Report(outcome="unreadable", message="not Python"), "unreadable", 2),
        (Report(outcome="error", message="the judge died"), "error", 70),
        (Broken("the worker does not answer"), "error", 70),
    ],
)
@pytest.mark.parametrize("command", ["run", "grade", "trace"])
def test_a_job_that_could_not_begin_is_an_error(shell, worker, command, report, outcome, code):
    """No verdict is made of it."""
    worker.report = report
    said = shell(command, NAME, "--json")
    assert (said.json["outcome"], said.code) == (outcome, code)
    assert said.json["error"]["message"]
    assert standing(shell)["tries"] == 0


def test_grading_ones_own_file_is_recorded(shell, worker):
    """Tries, the best score, and that it is solved; the shipped file does not count."""
    worker.report = BAD
    shell("grade", NAME)
    assert standing(shell)["tries"] == 0
    shell("start", NAME)
    shell("grade", NAME)
    assert (standing(shell)["status"], standing(shell)["tries"]) == ("tried", 1)
    worker.report = GOOD
    shell("grade", NAME)
    assert (standing(shell)["status"], standing(shell)["best"]) == ("solved", 1.0)
    assert shell("explain", NAME).code == 0


# ---------------------------------------------------------------- run


def test_run_does_not_spoil(shell, worker):
    """The findings are counted and not shown, also in the document."""
    said = shell("run", NAME)
    assert said.code == 1
    assert "broadcast" not in said.out
    assert "2 findings hidden" in said.out
    document = shell("run", NAME, "--json").json
    assert (document["findings"], document["hidden_findings"]) == ([], 2)


def test_reveal_shows_all_and_is_recorded(shell, worker):
    """Like a hint."""
    said = shell("run", NAME, "--reveal")
    assert "broadcast" in said.out
    assert standing(shell)["revealed"]
    assert standing(shell)["status"] != "new"


def test_reveal_of_nothing_is_not_recorded(shell, worker):
    """Who saw nothing has used no help."""
    worker.report = BAD
    shell("run", NAME, "--reveal")
    assert not standing(shell)["revealed"]


def test_a_solved_challenge_hides_nothing(shell, worker):
    """There is no puzzle left to spoil."""
    shell("start", NAME)
    worker.report = GOOD
    shell("grade", NAME)
    worker.report = REPORT
    assert "broadcast" in shell("run", NAME).out


@pytest.mark.parametrize(
    ("findings", "code"),
    [((), 0), (FINDINGS[1:], 0), (FINDINGS, 1)],
    ids=["none", "note", "warning"],
)
def test_findings_decide_where_all_checks_pass(shell, worker, findings, code):
    """Notes do not fail a run; warnings do, also while they are hidden."""
    worker.report = replace(GOOD, trace=Trace(ops=TRACE.ops, findings=findings))
    assert shell("run", NAME).code == code


def test_run_asks_for_trace_and_checks(shell, worker):
    """And grade only for the checks."""
    shell("run", NAME)
    shell("grade", NAME)
    shell("trace", NAME)
    assert [job.stages for job in worker.jobs] == [("trace", "check"), ("check",), ("trace",)]


# ---------------------------------------------------------------- trace

OWN = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("report", "outcome", "code"),
    [
        (Report(outcome="ok", trace=Trace(ops=TRACE.ops)), "ok", 0),
        (Report(outcome="ok", trace=Trace(findings=FINDINGS[1:])), "ok", 0),
        (Report(outcome="ok", trace=Trace(findings=FINDINGS)), "found", 1),
        (REPORT, "crashed", 1),
        (Report(outcome="timeout"), "timeout", 1),
        (Report(outcome="memory"), "memory", 1),
    ],
)
def test_trace_outcomes(shell, worker, report, outcome, code):
    """What the trace found decides; notes alone are fine."""
    worker.report = report
    said = shell("trace", NAME, "--json")
    assert (said.json["outcome"], said.code) == (outcome, code)


def test_trace_of_a_puzzle_does_not_spoil_it(shell, worker):
    """As `run` does: the findings are counted, --reveal shows them and is recorded."""
    said = shell("trace", NAME)
    assert said.code == 1
    assert "broadcast" not in said.out
    assert "2 findings hidden" in said.out
    document = shell("trace", NAME, "--json").json
    assert (document["findings"], document["hidden_findings"]) == ([], 2)
    assert not standing(shell)["revealed"]
    assert "broadcast" in shell("trace", NAME, "--reveal").out
    assert standing(shell)["revealed"]


FILED = (f"{NAME}.py", f"{NAME}.py:MultiHeadSelfAttention", f"{NAME}.py:Helper")


@pytest.mark.parametrize("target", [NAME, *FILED])
def test_triage_of_a_puzzle_does_not_spoil_it(shell, worker, target):
    """It hides what `trace` hides, however the file is named; --reveal shows it and is recorded."""
    shell("start", NAME)
    with Path(f"{NAME}.py").open("a") as file:
        file.write("\n\nclass Helper(nn.Module):\n    def forward(self, x):\n        return x\n")
    worker.report = replace(REPORT, trace=replace(TRACE, crash=None), checks=())
    said = shell("triage", target)
    assert said.code == 1
    assert "broadcast" not in said.out
    assert f"next: fix ./{NAME}.py" in said.out.replace(f"fix {NAME}", f"fix ./{NAME}")
    assert shell("triage", target, "--json").json["hidden_suspicions"] == 2
    assert "2 findings hidden" in shell("trace", target).out
    assert not standing(shell)["revealed"]
    assert "broadcast" in shell("triage", target, "--reveal").out
    assert standing(shell)["revealed"]


def test_triage_of_a_crash_shows_what_trace_shows_of_it(shell, worker):
    """The crash is the symptom; what its explanation repeats of a finding is left out."""
    crash = replace(TRACE.crash, explanation=f"The weight wants 8. {EARLIER}chunk on line 24.")
    worker.report = replace(REPORT, trace=replace(TRACE, crash=crash))
    page = " ".join(shell("triage", NAME).out.split())
    assert "The weight wants 8." in page
    assert "on line 24" not in page


def test_verify_of_a_puzzle_hides_the_line(shell, worker):
    """What is broken is the symptom, and `grade` tells it too; the line is the cause."""
    broken = replace(check("causality", "failed", "it sees ahead"), file="buggy.py", line=31)
    worker.report = replace(GOOD, checks=(broken,))
    page = shell("verify", NAME).out
    assert "it sees ahead" in page
    assert "buggy.py:31" not in page
    assert "1 line hidden" in page
    assert "buggy.py:31" in shell("verify", NAME, "--reveal").out
    assert standing(shell)["revealed"]


@pytest.mark.parametrize("command", ["triage", "verify"])
def test_the_contract_feeds_a_file_of_a_challenge(shell, worker, command):
    """Nothing is guessed of it; what is typed changes the size that the contract names."""
    shell(command, NAME, "--init", "embed_dim=12")
    shell(command, NAME)
    typed, plain = (job.contract for job in worker.jobs)
    assert typed.inputs == plain.inputs
    assert (typed.sizes["D"], plain.sizes["D"]) == (12, 8)
    assert "guessed" not in shell(command, NAME).err


@pytest.mark.parametrize("command", ["trace", "triage", "verify"])
def test_a_program_means_the_file_that_trains_it(shell, worker, command):
    """Where it was not started, the command that starts it is named."""
    said = shell(command, "char-gpt")
    assert said.code == 2
    assert "attnlab start char-gpt" in said.err
    shell("start", "char-gpt")
    for target in ("char-gpt", "./char-gpt"):
        shell(command, target)
        assert worker.jobs[-1].candidate.file == "char-gpt/train.py"


def test_a_trace_that_finds_nothing_names_the_command_that_judges(shell, worker):
    """Values are not compared by it; once the challenge is solved there is nothing to do."""
    worker.report = GOOD
    assert f"next: attnlab grade {NAME} tells whether it is right" in shell("trace", NAME).out
    shell("start", NAME)
    shell("grade", NAME)
    assert "next:" not in shell("trace", NAME).out


@pytest.mark.parametrize("command", ["run", "trace"])
def test_a_crash_does_not_spoil_either(shell, worker, command):
    """Its explanation stays, what it echoes of a finding goes; the lab's words are the ones cut."""
    said = "The weight wants 8. It went wrong earlier, at chunk on line 24 (leftover-axis)."
    assert EARLIER in (Path(explain.__file__).read_text())
    crash = replace(TRACE.crash, explanation=said)
    worker.report = replace(REPORT, trace=replace(TRACE, crash=crash))
    page = shell(command, NAME).out
    assert "The weight wants 8." in page
    assert "leftover-axis" not in page
    assert "leftover-axis" in shell(command, NAME, "--reveal").out


def test_trace_of_a_solved_challenge_shows_every_finding(shell, worker):
    """There is no puzzle left to spoil."""
    shell("start", NAME)
    worker.report = GOOD
    shell("grade", NAME)
    worker.report = REPORT
    assert "broadcast" in shell("trace", NAME).out


def test_trace_of_ones_own_file(shell, worker):
    """It runs as the user's own code, and stderr says under what terms."""
    Path("m.py").write_text(OWN)
    said = shell("trace", "m.py:M", "--input", "x: B S D", "--sizes", "B=2, S=3, D=5", "--json")
    job = worker.jobs[0]
    assert job.own is not None
    assert job.contract.sizes["D"] == 5
    assert "not isolated" in said.err
    assert said.json["target"] == "m.py:M"


def test_trace_of_a_started_file_uses_the_challenge(shell, worker):
    """Its first line says how to feed it; flags say that one knows better."""
    shell("start", NAME)
    shell("trace", f"{NAME}.py")
    shell("trace", f"{NAME}.py", "--input", "x: B S D")
    assert [job.own is None for job in worker.jobs] == [True, False]


# ---------------------------------------------------------------- check and doctor


def test_check_of_one_challenge(shell, worker):
    """Progress on stderr, the table on stdout, exit code 1 for any problem."""
    worker.report = GOOD  # so that the broken file and every mutant pass, which they must not
    said = shell("check", NAME)
    assert said.code == 1
    assert said.err == f"checked 1 of 1: {SLUG}\n"
    assert f"✗ {SLUG} buggy.py: must fail" in " ".join(said.out.split())


def test_check_json(shell, worker):
    """One document, with every problem in it."""
    worker.report = GOOD
    said = shell("check", NAME, "--json")
    assert (said.code, said.json["outcome"]) == (1, "found")
    assert said.json["challenges"][0]["problems"]


def test_check_counts_an_unreadable_challenge(shell, worker, tmp_path):
    """A folder that cannot be read is a problem, with its file and line."""
    folder = tmp_path / "more" / "topic" / "broken"
    folder.mkdir(parents=True)
    (folder / "challenge.toml").write_text("format = ")
    document = shell("check", "--catalogue", str(tmp_path / "more"), "--json").json
    assert "challenges" in document, document
    found = document["challenges"]
    broken = next(row for row in found if row["slug"] == "topic/broken")
    assert "challenge.toml" in broken["problems"][0]


def test_doctor_names_what_is_missing(shell, worker):
    """A layer of isolation that this machine lacks is a warning, not a failure."""
    worker.report = Report(outcome="ok", isolation=("own session",), missing=("memory limit",))
    document = shell("doctor", "--json").json
    states = {vital["text"]: vital["state"] for vital in document["vitals"]}
    assert (states["own session"], states["memory limit"]) == ("ok", "warn")
    assert document["outcome"] == "ok"


@pytest.mark.parametrize(
    "report", [Broken("the worker ended", "see there"), Report(outcome="crashed", message="no")]
)
def test_doctor_fails_where_the_worker_does(shell, worker, report):
    """A worker that does not work is what `doctor` is asked about: exit code 1, no error."""
    worker.report = report
    said = shell("doctor")
    assert said.code == 1
    assert "✗ fail  worker" in said.out


def test_rest_of_checks_is_used():
    """The sample report holds every outcome, so that the pages above show each."""
    assert {c.outcome for c in CHECKS} == {"failed", "passed", "skipped", "error"}
