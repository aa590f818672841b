"""The front's side: what it says when the worker cannot work, and that nothing stays behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from attacks import HONEST, candidate

from attnlab.errors import Broken
from attnlab.records import Code, Job, Report, to_json
from attnlab.worker import client, cold_start
from attnlab.worker.client import Worker
from attnlab.worker.scratch import PREFIX, remove_scratch
from attnlab.worker.wire import HEAD, receive, send

STRAYS = """
for _ in range(2):  # a child, and its child, each in a session of its own
    if os.fork() == 0:
        os.setsid()
    else:
        break
while True: time.sleep(1)
"""
LOOP = candidate(top=STRAYS)
JOB = Job(candidate=Code(file="my.py", text=""))
proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def family(root):
    """The process `root` and all that descend from it, alive."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found = {root} & parents.keys()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def alive(pids):
    """Those of `pids` that still run after up to three seconds."""
    until = time.monotonic() + 3
    while time.monotonic() < until:
        left = {pid for pid in pids if pid in family(pid)}
        if not left:
            break
        time.sleep(0.02)
    return left


def until_family_of(size, root):
    """The processes below `root`, once there are as many."""
    until = time.monotonic() + 60
    while len(found := family(root)) < size:
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found


def python(tmp_path, monkeypatch, code):
    """Let workers start an interpreter that first runs `code`."""
    wrapper = tmp_path / "python"
    script = "[a.endswith('.py') for a in sys.argv].index(True)"  # behind the flags
    start = f"sys.argv = sys.argv[{script}:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    first = f"import sys, runpy; {code}; {start}"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -I -B -c "{first}" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapper))


# ---------------------------------------------------------------- a worker that cannot work


def test_torch_that_cannot_be_imported_is_told(tmp_path, monkeypatch):
    """The reason is in the hint, on every call, and closing is quiet."""
    python(tmp_path, monkeypatch, "sys.modules['torch'] = None")
    with Worker() as worker:
        for _ in range(2):
            with pytest.raises(Broken) as caught:
                worker.run_job(JOB)
            assert caught.value.message == "the worker ended before its answer"
            assert "import of torch halted" in caught.value.hint
    assert caught.value.exit_code == 70


def test_a_worker_that_says_nothing_names_the_switch(tmp_path, monkeypatch):
    """Without last words there is at least a way to see more."""
    python(tmp_path, monkeypatch, "sys.exit(3)")
    with Worker() as worker, pytest.raises(Broken) as caught:
        worker.run_job(JOB)
    assert "ATTNLAB_DEBUG=1" in caught.value.hint


@pytest.mark.parametrize("name", ["no-such-python", ""])
def test_an_interpreter_that_is_missing_is_told(tmp_path, monkeypatch, name):
    """An installation without its Python gives one line, not a traceback."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / name))
    with pytest.raises(Broken, match="the worker cannot be started"):
        Worker()


def test_a_system_without_fork_is_told(monkeypatch):
    """Windows gets a sentence and a way out."""
    monkeypatch.delattr(os, "fork")
    with pytest.raises(Broken, match="forked processes") as caught:
        Worker()
    assert "WSL" in caught.value.hint


@pytest.fixture
def played(monkeypatch, tmp_path):
    """A worker whose process does nothing, and the other end of its socket to play the judge."""
    ends = []
    real = cold_start.socket.socketpair

    def kept():
        ours, theirs = real()
        ends.append(theirs.dup())
        return ours, theirs

    monkeypatch.setattr(cold_start.socket, "socketpair", kept)
    python(tmp_path, monkeypatch, "import time, signal; signal.pause()")
    with Worker() as worker:
        yield worker, ends
    for end in ends:
        end.close()


def test_a_job_goes_out_and_a_report_comes_in(played):
    """Both as JSON in one frame, the job after the name of its record."""
    worker, ends = played
    send(ends[0], to_json(Report(outcome="ok", seed=5)).encode())
    assert worker.run_job(JOB) == Report(outcome="ok", seed=5)
    assert receive(ends[0]) == b"Job\n" + to_json(JOB).encode()


@pytest.mark.parametrize(
    "answer",
    [HEAD.pack(2) + b"{}", HEAD.pack(3) + b"\xff[x", HEAD.pack(2**62)],
    ids=["no report", "no JSON", "too long"],
)
def test_an_answer_that_makes_no_sense_is_our_fault(played, answer):
    """It is said so, and the connection is not trusted any further."""
    worker, ends = played
    ends[0].sendall(answer)
    with pytest.raises(Broken, match="makes no sense"):
        worker.run_job(JOB)
    assert worker.connection.process.poll() is not None


def test_a_late_answer_is_never_the_next_job_s(played, monkeypatch):
    """After a wait without answer the worker is replaced."""
    worker, ends = played
    monkeypatch.setattr(client, "START_TIME", -9.8)
    monkeypatch.setattr(client, "JUDGE_TIME", 0)
    with pytest.raises(Broken, match="does not answer"):
        worker.run_job(JOB)
    monkeypatch.setattr(client, "START_TIME", 0)
    with pytest.raises(BrokenPipeError):
        send(ends[0], to_json(Report(outcome="ok", seed=1)).encode())
    assert family(worker.connection.process.pid) == set()
    answer = threading.Timer(
        0.2, lambda: send(ends[1], to_json(Report(outcome="ok", seed=2)).encode())
    )
    answer.start()
    assert worker.run_job(JOB).seed == 2
    answer.join()


# ---------------------------------------------------------------- nothing stays behind


@proc
@pytest.mark.parametrize("wait", [0, 0.3])
def test_closing_while_torch_is_imported(wait):
    """A command that is refused closes its worker before that was ready, once or twice."""
    worker = Worker()
    time.sleep(wait)
    worker.close()
    worker.close()
    assert family(worker.connection.process.pid) == set()


@proc
def test_a_worker_that_is_taken_down_is_replaced_and_leaves_nothing(grader):
    """Judge killed, zygote killed or told to end in the middle of a job: each costs one job."""
    with Worker() as worker:
        caught = []

        def graded(source):
            try:
                worker.run_job(grader.job(source, 20))
            except Broken as error:
                caught.append(error)

        def hit(which, source=LOOP, count=5):  # zygote, judge, candidate and its two strays
            job = threading.Thread(target=graded, args=[source])
            job.start()
            root = worker.connection.process.pid
            everyone = until_family_of(count, root)
            which(root, sorted(everyone))
            job.join(60)
            assert not job.is_alive()
            assert alive(everyone) == set()

        hit(lambda root, all_: os.kill(all_[1], signal.SIGKILL))  # the judge: forked first
        assert worker.run_job(grader.job(HONEST)).outcome == "ok"
        hit(lambda root, all_: os.kill(root, signal.SIGTERM))
        assert worker.run_job(grader.job(HONEST)).outcome == "ok"
        hit(lambda root, _: os.kill(root, signal.SIGKILL), candidate(top="time.sleep(60)"), 3)
        assert [error.message for error in caught] == ["the worker ended before its answer"] * 3
        assert worker.run_job(grader.job(HONEST)).outcome == "ok"
        everyone = until_family_of(2, worker.connection.process.pid)
    assert alive(everyone) == set()


@proc
def test_a_front_that_is_killed_leaves_nothing(grader, tmp_path):
    """Without any goodbye: the worker ends with the job it was at, and all its processes."""
    job = tmp_path / "job.json"
    job.write_text(to_json(grader.job(LOOP, 1.0)))
    code = """
import sys
import tempfile
from pathlib import Path
from attnlab.records import Job, from_json
from attnlab.worker.client import Worker
worker = Worker()
print(worker.connection.process.pid, flush=True)
worker.run_job(from_json(Job, Path(sys.argv[1]).read_text()))
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(job)], stdout=subprocess.PIPE, text=True
    ) as front:
        everyone = until_family_of(5, int(front.stdout.readline()))
        front.kill()
    assert alive(everyone) == set()


def test_a_worker_without_a_folder_is_not_among_the_users_files(grader, monkeypatch):
    """Where none can be made, as on a full disk: it grades, and is nowhere."""
    monkeypatch.setattr(tempfile, "mkdtemp", no_room)
    with Worker() as worker:
        assert worker.connection.folder is None
        assert Path(f"/proc/{worker.connection.process.pid}/cwd").resolve() == Path("/")
        assert worker.run_job(JOB).outcome != "ok"


def no_room(**_):
    raise OSError(28, "No space left on device")


def test_folders_within_folders_are_removed(tmp_path):
    """Thousands deep: shutil gives up, and the grade would be lost for it."""
    inner = tmp_path / f"{PREFIX}own"
    inner.mkdir()
    here = os.open(inner, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    remove_scratch(str(inner))
    assert not inner.exists()
