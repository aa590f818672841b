"""Candidates that crash, hang, cheat and misbehave, through the real worker.

Of each: a report comes, it says what happened, nothing wrong passes, and the next job is served.
"""

import os
import sys

import pytest
from attacks import (
    CHEATS,
    ENDINGS,
    HONEST,
    OUTPUTS,
    RUDE,
    TAKING_DOWN,
    UNRULY,
    candidate,
)
from stealing import STEALING

from attnlab.worker.sandbox import layers, seccomp

LOCKED = "reads only Python's files"
FILTERED = sys.platform == "linux" and seccomp.calls() is not None
SOON = 0.5  # seconds that a candidate without end may have
PLACES = ("top", "init", "before")


@pytest.fixture(autouse=True)
def serves_on(grader):
    yield
    grader.still_serves()


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_honest_pass_and_the_sharp_do_not(grader):
    """What the rest of this file rests on: without mischief the grades are right."""
    assert grader.grade(HONEST).outcome == "passed"
    sharp = grader.grade(candidate(right=False))
    assert sharp.outcome == "failed"
    failed = [c for c in sharp.checks if c.outcome == "failed"]
    assert [c.id for c in failed if not c.folded_under] == ["matches-reference"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [n for n, (want, _) in ENDINGS.items() if want != "timeout"])
def test_each_end_is_told(grader, name, place):
    """At import, in the constructor, in forward: the outcome and one sentence that says why."""
    want, code = ENDINGS[name]
    verdict = grader.grade(candidate(**{place: code}))
    assert verdict.outcome == want
    assert verdict.message.startswith(f"{want}: ")
    assert len(verdict.message) < 1000


@pytest.mark.skipif(not FILTERED, reason="here it would take the worker down, or more")
@pytest.mark.parametrize("name", TAKING_DOWN)
def test_the_worker_is_out_of_reach(grader, name):
    """What a candidate would do to the process that began it is refused, and told as its crash."""
    verdict = grader.grade(candidate(before=TAKING_DOWN[name]))
    assert verdict.outcome == "crashed"
    assert "not permitted" in verdict.message


@pytest.mark.parametrize("place", PLACES)
def test_a_loop_ends_at_the_deadline(grader, place):
    """Wherever it loops, the answer comes once the time is all but up."""
    report = grader.run_job(candidate(**{place: "while True: pass"}), 1.0)
    assert report.seconds >= 0.75
    reasons = {report.outcome, *(c.reason for c in report.checks)}
    assert "timeout" in reasons


@pytest.mark.parametrize("name", [n for n, (want, _) in ENDINGS.items() if want == "timeout"])
def test_each_wait_without_end_is_a_timeout(grader, name):
    """Sleeping, printing, stopped or half an answer: the deadline is the judge's."""
    assert grader.grade(candidate(before=ENDINGS[name][1]), SOON).outcome == "timeout"


@pytest.mark.parametrize(
    "code",
    [
        "class Slow(Exception):\n    def __str__(self): time.sleep(60)\nraise Slow",
        "os.write(3, (100).to_bytes(8, 'little') + b'{'); time.sleep(60)",
    ],
)
def test_what_stalls_and_hears_the_alarm_is_told_as_the_crash_it_is(grader, code):
    """The exception came, and the frame was broken, before anything waited. The alarm has to reach
    it before the judge's patience ends, on a machine that others use too."""
    assert grader.grade(candidate(before=code), 4 * SOON).outcome == "crashed"


@pytest.mark.parametrize("stages", [("trace",), ("trace", "check")])
@pytest.mark.parametrize("name", ["a loop for ever", "a segfault", "sys.exit", "10 GB from torch"])
def test_the_trace_meets_the_same_end(grader, name, stages):
    """`run` and `trace` are told of it, too, each with a report."""
    want, code = ENDINGS[name]
    report = grader.run_job(
        candidate(before=code), SOON if want == "timeout" else 10, stages=stages
    )
    crashed = report.trace is not None and report.trace.crash is not None
    assert report.outcome == want or crashed


def test_what_was_traced_before_a_crash_is_kept(grader):
    """An exception halfway leaves the rows up to it, and its place."""
    report = grader.run_job(candidate(after="raise ValueError('enough')"), stages=("trace",))
    assert report.outcome == "ok"
    assert report.trace.ops[-1].shape == (2, 9, 64)
    crash = report.trace.crash
    assert (crash.error, crash.message, crash.file) == ("ValueError", "enough", "candidate.py")


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_passes(grader, name):
    """Whatever a candidate does to its own process, wrong values stay wrong."""
    verdict = grader.grade(CHEATS[name])
    assert verdict.outcome in ("failed", "crashed", "cannot-compare"), verdict.message


@pytest.mark.parametrize("name", STEALING)
def test_no_answer_is_to_be_had(grader, name):
    """What would be right with the reference or the solution at hand is told what it may not; where
    the system has no rules for files, an import is refused all the same."""
    assert LOCKED in layers.CANDIDATE
    verdict = grader.grade(STEALING[name])
    if LOCKED in verdict.isolation or name == "the reference imported":
        assert verdict.outcome == "crashed"
        assert "has to do without" in verdict.message or "cannot use other files" in verdict.next


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_odd_output_is_a_failed_check(grader, name):
    """It is described, and nothing else of the answer is believed."""
    verdict = grader.grade(candidate(after=OUTPUTS[name]))
    slow = ("timeout",) if name == "a hundred million elements" else ()  # on a busy machine
    assert verdict.outcome in ("failed", "crashed", "memory", *slow), verdict.message
    assert verdict.checks[0].id == "output-shape"


@pytest.mark.parametrize("name", RUDE)
def test_bad_manners_are_no_bug(grader, name):
    """Right values pass, however the code behaves beside them."""
    verdict = grader.grade(RUDE[name])
    assert verdict.outcome == "passed", verdict.message


@pytest.mark.parametrize("name", UNRULY)
def test_what_a_property_is_against_is_told_by_it(grader, name):
    """Values alone would pass: the first failure says what is wrong beside them."""
    text, check = UNRULY[name]
    verdict = grader.grade(text)
    assert (verdict.outcome, verdict.checks[0].id) == ("failed", check)


# ---------------------------------------------------------------- what is left behind

FORKS = {
    "children": """
        for _ in range(3):
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                time.sleep(60)
        time.sleep(0.2)
        """,
    "children in sessions of their own": """
        if os.fork() == 0:
            for _ in range(4):
                os.setsid()
                print(os.getpid(), flush=True)
                if os.fork():
                    break
            time.sleep(60)
        time.sleep(0.2)
        """,
    "children that ignore every signal": """
        import signal
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 32):
                try: signal.signal(number, signal.SIG_IGN)
                except OSError: pass
            print(os.getpid(), flush=True)
            while True: time.sleep(1)
        time.sleep(0.2)
        """,
}


@pytest.mark.parametrize("end", ["", "os._exit(0)", "time.sleep(60)"])
@pytest.mark.parametrize("name", FORKS)
def test_nothing_that_it_started_lives_on(grader, name, end):
    """However the candidate ends, every process that it forked has gone when the report comes."""
    from textwrap import dedent

    report = grader.run_job(candidate(top=dedent(FORKS[name]) + end), 0.5 if "sleep" in end else 10)
    pids = [int(pid) for pid in report.output.split()]
    assert pids
    assert all(gone(pid) for pid in pids)
    if "_exit" in end:  # its children hold the socket open, and its end is seen all the same
        assert report.outcome == "crashed"


def test_no_file_is_filled(grader, tmp_path):
    """A candidate's file is not there or stays empty, and what it could not write is its error."""
    code = f"open({str(tmp_path / 'note')!r}, 'wb', buffering=0).write(b'was here')"
    verdict = grader.grade(candidate(top=code))
    assert verdict.outcome == "crashed"
    why = "Permission denied" if LOCKED in verdict.isolation else "File too large"
    assert why in verdict.message
    note = tmp_path / "note"
    assert note.read_text() == "" if note.exists() else LOCKED in verdict.isolation


def test_one_job_leaves_nothing_for_the_next(grader):
    """Patches, modules, folders and seeds end with the process that made them."""
    mark = """
    sys.modules["left_behind"] = os
    torch.manual_seed(7)
    torch.set_default_dtype(torch.float64)
    os.chdir("/")
    nn.Linear.forward = None
    """
    grader.run_job(candidate(top=mark))
    look = """
    print("left_behind" in sys.modules, torch.get_default_dtype(), nn.Linear.forward is None)
    """
    assert grader.run_job(candidate(top=look)).output == "False torch.float32 False\n"


# ---------------------------------------------------------------- what it can see


def test_it_sees_no_secret(grader):
    """No check, reference, judge or answer is in the process, and nothing but its socket open."""
    top = """
    import gc
    print(*[m for m in sys.modules if m.startswith(("attnlab.", "_pytest"))])
    print(*[fd for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")])
    print(*sorted(os.environ))
    print(repr(sys.stdin.read()), threading.active_count())
    print(*[type(o).__name__ for o in gc.get_objects() if isinstance(o, torch.Tensor)])
    """
    modules, fds, names, rest, tensors = grader.run_job(
        candidate(top="import threading\n" + "\n".join(line.strip() for line in top.splitlines()))
    ).output.splitlines()
    for part in ("checks", "references", "judge", "grading", "probe", "draw", "pipeline", "pytest"):
        assert part not in modules
    assert fds == "0 1 2 3"
    assert not {"HOME", "USER", "PYTHONPATH", "PYTEST_CURRENT_TEST"} & set(names.split())
    assert rest == "'' 1"
    assert tensors == ""


def test_output_is_kept_up_to_the_limit(grader):
    """The first 64 KiB of what was printed reach the report, as text."""
    report = grader.run_job(
        candidate(top="print('first', flush=True); os.write(2, b'\\xff' * 100_000)")
    )
    assert report.output.startswith("first\n" + "\N{REPLACEMENT CHARACTER}" * 10)
    assert len(report.output) == 64 << 10


def test_ten_crashes_cost_ten_jobs(grader):
    """A fresh process follows each crash: one bad file costs nothing but its own job."""
    bad = [grader.grade(candidate(before="os._exit(3)")).outcome for _ in range(10)]
    assert bad == ["crashed"] * 10
    assert grader.grade(HONEST).outcome == "passed"
