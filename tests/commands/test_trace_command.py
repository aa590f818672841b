"""attnlab trace: what its flags ask for, what its page ends with."""

from dataclasses import replace
from pathlib import Path

import pytest
from sample_records import OPS, REPORT, TRACE

from attnlab.commands.trace import complete_dtype, complete_preset
from attnlab.records import Report, Trace, TraceOptions
from attnlab.target.options import FILLS, TINY

NAME = "crash-at-out-proj"
OWN = (
    "import torch\nclass M(torch.nn.Module):\n"
    "    def __init__(self, dim): ...\n    def forward(self, x):\n        return x\n"
)
QUIET = Report(outcome="ok", trace=Trace(ops=OPS))


class FakeWorker:
    """Answers every job with the same report, and remembers the jobs."""

    report = QUIET
    jobs: list = []  # noqa: RUF012 - one list for all, emptied by the fixture

    notes = ()  # of the warm judge

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def run_job(self, job):
        self.jobs.append(job)
        return self.report


@pytest.fixture
def trace(shell, monkeypatch):
    """`trace("--aten", report=...)` of a file of one's own; gives what was said and the job."""
    monkeypatch.setattr("attnlab.worker.client.Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "jobs", [])
    Path("m.py").write_text(OWN)

    def run(*flags, target="m.py", report=QUIET):
        monkeypatch.setattr(FakeWorker, "report", report)
        said = shell("trace", target, *flags)
        return said, FakeWorker.jobs[-1] if FakeWorker.jobs else None

    return run


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ((), TraceOptions()),
        (("--aten", "--backward"), TraceOptions(aten=True, backward=True)),
        (("--time", "--memory"), TraceOptions(time=True, memory=True)),
        (("--symbolic", "--attention"), TraceOptions(symbolic=True, attention=True)),
        (("--values", "scores", "--values", "7"), TraceOptions(values=("scores", "7"))),
        (("--dtype", "bf16", "--device", "cuda"), TraceOptions(dtype="bfloat16", device="cuda")),
        (("--preset", "arange", "--preset", "tiny"), TraceOptions(fill="arange")),
    ],
)
def test_every_flag_reaches_the_job(trace, flags, options):
    """Each sets one field of what is looked at."""
    assert trace(*flags)[1].options == options


def test_a_challenge_is_looked_at_in_the_same_way(trace):
    """Flags for looking do not make a challenge one's own code; presets reach its sizes."""
    job = trace("--aten", "--preset", "tiny", target=NAME)[1]
    assert job.own is None
    assert job.options.aten
    assert (job.contract.sizes["B"], job.contract.sizes["S"]) == (1, 4)


def test_limits_have_a_flag_of_their_own(trace):
    """--memory measures; --max-memory and --timeout are limits, and one's own code has longer."""
    limits = trace("--max-memory", "512M")[1].limits
    assert (limits.memory, limits.seconds) == (512 << 20, 60)
    assert trace("--timeout", "3")[1].limits.seconds == 3
    assert trace(target=NAME)[1].limits.seconds == 10
    assert trace("--device", "cuda")[1].limits.memory == 1 << 40


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (("--dtype", "float31"), "Did you mean float32"),
        (("--device", "tpu"), "--device takes cpu or cuda"),
        (("--preset", "big"), "--preset takes tiny, arange, ones, eye, noise or small"),
        (("--preset", "ones", "--preset", "eye"), "keep one: --preset ones"),
        (("--depth", "deep"), "--depth 1"),
        (("--depth", "-1"), "--depth 1"),
        (("--max-memory", "lots"), "as in 512M or 2G"),
    ],
)
def test_flags_that_make_no_sense_are_refused(trace, flags, hint):
    """Before anything runs, with what would make sense."""
    said, job = trace(*flags)
    assert (said.code, job) == (2, None)
    assert hint in said.err


def test_filters_change_the_page_and_not_the_document(trace):
    """Scripts always get every row."""
    said, _ = trace("--op", "soft*")
    table = said.out.partition("next:")[0].splitlines()
    assert [line.split()[1] for line in table if "×" in line] == ["softmax"]  # noqa: RUF001
    assert len(trace("--op", "soft*", "--json")[0].json["ops"]) == len(OPS)
    assert "no such operation ran" in trace("--module", "nowhere.*")[0].out


def test_rest_of_the_document(trace):
    """What else was asked has its keys also where it was not."""
    document = trace("--json")[0].json
    assert document["backward"] is None
    assert (document["attention"], document["values"], document["guards"]) == ([], [], [])
    assert document["hidden_findings"] == 0


def test_a_crash_of_guessed_inputs_says_how_to_change_them(trace):
    """The command can be pasted: it holds what was guessed."""
    said, _ = trace(report=REPORT)
    assert said.code == 1
    end = " ".join(said.out.split()).partition("next: ")[2]
    assert end.endswith('attnlab trace m.py --sizes "B=2, S=5, D=12" --input "x: B S D"')
    again, job = trace("--sizes", "B=2, S=5, D=12", "--input", "x: B S D", report=REPORT)
    assert job.contract.sizes == {"B": 2, "S": 5, "D": 12}
    assert "guess" not in again.err


def test_a_finding_ends_with_where_to_look_and_what_to_run(trace):
    """The file, the line, and the same command again."""
    said, _ = trace("--init", "dim=8", report=replace(QUIET, trace=replace(TRACE, crash=None)))
    end = " ".join(said.out.split()).partition("next: ")[2]
    assert end == f"fix {NAME}.py:27, then attnlab trace m.py --init dim=8"


def test_nothing_found_says_what_was_not_looked_at(trace):
    """Never a bare ok: the next line names the command that checks more, with the same flags."""
    said, _ = trace("--init", "dim=8")
    assert said.code == 0
    assert "ok" not in said.out.split()
    end = " ".join(said.out.split()).partition("next: ")[2]
    assert end.startswith("values and training were not looked at")
    assert end.endswith("attnlab triage m.py --init dim=8")


def test_a_timeout_says_how_to_wait_longer(trace):
    """With six times the patience."""
    said, _ = trace(
        "--timeout", "5", report=Report(outcome="timeout", message="m.py:3: still running")
    )
    assert said.code == 1
    assert "m.py:3: still running" in said.out
    assert "attnlab trace m.py --timeout 30" in " ".join(said.out.split())
    assert "no operation ran" not in said.out


def test_presets_and_types_are_said_again(trace):
    """A command for the same thing repeats what it was traced with."""
    said, _ = trace("--preset", "ones", "--dtype", "float16", report=REPORT)
    assert said.out.rstrip().endswith("--preset ones --dtype float16")


def test_presets_and_dtypes_complete():
    """A Tab names what the flag takes; all of it is known to the flag."""
    assert [name for name, _ in complete_preset("")] == [TINY, *FILLS]
    assert [name for name, _ in complete_preset("ar")] == ["arange"]
    assert complete_dtype("f") == ["float32", "float64", "float16"]


def test_init_and_sizes_may_be_given_more_than_once(trace):
    """All count, as those of one flag do; the command to repeat has them together."""
    flags = ("--init", "dim=8", "--sizes", "B=3", "--sizes", "S=7, D=8")
    _, job = trace(*flags, "--init", "D=8")
    assert (job.contract.init, job.contract.sizes) == ({"dim": "D"}, {"B": 3, "S": 7, "D": 8})
