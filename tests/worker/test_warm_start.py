"""The warm judge: found, started, shared and left; whatever is wrong with it, a command goes on."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

from attnlab.catalogue.load import read_challenge
from attnlab.records import Code, Job, Limits, Report, to_json
from attnlab.target.challenge_job import challenge_job
from attnlab.worker import client, server_address, warm_start
from attnlab.worker.client import Worker
from attnlab.worker.server_address import find_address, private_folder
from attnlab.worker.warm_start import INSTALLATION, ask_servers
from attnlab.worker.wire import send

FOLDER = Path(__file__).parents[2] / "challenges/attention/too-sharp"
PATIENCE = 60.0
SLEEPER = (
    "import time\nfrom torch import nn\nclass Attention(nn.Module):\n    pass\ntime.sleep(50)\n"
)


def until(holds):
    """Wait until something holds; fails where it never does."""
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def family(server):
    """The processes that the server and its template have forked."""
    children = threads_and_children(server)[1]
    return [*children, *(pid for child in children for pid in threads_and_children(child)[1])]


def works_in(pid, folder):
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == folder
    except OSError:
        return False


def alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def threads_and_children(pid):
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return len(tasks), Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return 0, []


@pytest.fixture(scope="module")
def home():
    """A private folder for the sockets of these tests, and the warm judge wanted."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place, pytest.MonkeyPatch.context() as patch:
        folder = Path(place)
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        patch.setenv("ATTNLAB_SERVER", "1")
        patch.setenv("TMPDIR", str(folder))
        patch.setattr("tempfile.tempdir", str(folder))
        yield folder
        list(ask_servers("stop"))


@pytest.fixture
def job():
    challenge = read_challenge(FOLDER)
    return challenge_job(challenge, Path(challenge.solution), stages=("check",))


def sleeping(job: Job) -> Job:
    code = Code(file="sleeper.py", text=SLEEPER, name="Attention")
    return Job(candidate=code, contract=job.contract, stages=("trace",), limits=Limits(seconds=40))


def running():
    states = list(ask_servers("status"))
    return states[0] if states else None


def test_commands_share_one_judge_and_leave_nothing(home, job):
    """Two commands, one server; it and its template have one thread; their folders are gone."""
    pids = []
    for _ in range(2):
        with Worker() as worker:
            assert worker.connection.warm
            report = worker.run_job(job)
            assert report.outcome == "ok", report.message
        pids.append(until(running).pid)
    assert pids[0] == pids[1]
    until(lambda: running().commands == 2)
    count, children = threads_and_children(pids[0])
    assert count == 1
    assert {threads_and_children(child)[0] for child in children} <= {0, 1}
    until(lambda: not list(home.glob("attnlab-worker-*")))


def test_a_candidate_leaves_nothing_to_the_next_command(home, job):
    """What a file changes in its process is not there for the next command."""
    changing = job.candidate.text + "\nimport torch\ntorch.set_default_dtype(torch.float64)\n"
    with Worker() as worker:
        code = Code(file="changing.py", text=changing, name=job.candidate.name)
        worker.run_job(Job(candidate=code, contract=job.contract, stages=("trace",)))
    with Worker() as worker:
        assert worker.connection.warm
        assert worker.run_job(job).outcome == "ok"


def test_a_command_that_is_killed_ends_its_processes(home, job):
    """The connection breaks in the middle of a job: zygote, judge, child and folder go."""
    worker = Worker()
    assert worker.connection.warm
    folder = Path(worker.connection.folder)
    send(worker.sock, f"Job\n{to_json(sleeping(job))}".encode())
    serving = until(lambda: [pid for pid in family(running().pid) if works_in(pid, folder)])
    until(lambda: threads_and_children(serving[0])[1])  # the candidate
    worker.sock.close()  # as the kernel does for a killed process
    until(lambda: not any(map(alive, serving)))
    until(lambda: not folder.exists())
    assert running().running == 0


def test_a_judge_that_dies_in_a_job_costs_one_retry(home, job):
    """Everything that serves the command is killed; it goes on without, and says so."""
    with Worker() as worker:
        assert worker.connection.warm
        server = until(running).pid
        exchange = worker._exchange

        def killed_first(message, seconds):
            worker._exchange = exchange
            for pid in family(server):
                if works_in(pid, Path(worker.connection.folder)):
                    os.kill(int(pid), signal.SIGKILL)
            return exchange(message, seconds)

        worker._exchange = killed_first
        assert worker.run_job(job).outcome == "ok"
        assert not worker.connection.warm
        assert worker.notes == ["the warm judge ended before its answer; the job ran again without"]


def test_a_judge_that_stood_still_is_no_fault_of_the_file(home, job):
    """It ran out of time long after the limit: it runs once more, and a note says so."""
    late = Report(outcome="timeout", seconds=job.limits.seconds + 5)
    answers = [late, Report(outcome="ok"), Report(outcome="timeout", seconds=job.limits.seconds)]
    with Worker() as worker, pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "_request", lambda *_: answers.pop(0))
        assert worker.run_job(job).outcome == "ok"
        assert len(worker.notes) == 1
        assert worker.run_job(job).outcome == "timeout"


def test_a_judge_of_another_installation_is_left_alone(home, monkeypatch):
    """Unless all are meant; each says whose it is."""
    with Worker() as worker:
        assert worker.connection.warm
    with monkeypatch.context() as patch:
        patch.setattr("attnlab.worker.warm_start.INSTALLATION", "/elsewhere/attnlab")
        assert [state.installation for state in ask_servers("stop")] == [INSTALLATION]
    assert running() is not None


def test_it_leaves_when_it_is_told(home):
    """Its socket and all its processes go."""
    with Worker() as worker:
        assert worker.connection.warm
    server = running().pid
    processes = [server, *family(server)]
    assert [state.pid for state in ask_servers("stop")] == [server]
    until(lambda: not any(map(alive, processes)))
    assert running() is None


def test_it_leaves_when_it_is_idle(home, monkeypatch):
    """After ATTNLAB_IDLE seconds without a command."""
    monkeypatch.setenv("ATTNLAB_IDLE", "4")  # less, and it is gone before it is asked for
    with Worker() as worker:
        assert worker.connection.warm
    server = running().pid
    until(lambda: not alive(server))
    assert not list(home.glob("attnlab-*/*.sock"))


# ---------------------------------------------------------------- what is not trusted


@pytest.fixture
def place():
    """A folder with a short path: those of sockets are limited."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def address(place, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setattr(warm_start, "_start", lambda address: None)  # torch is not imported
    monkeypatch.setattr(warm_start, "ANSWER_TIME", 0.2)
    return find_address()


@pytest.fixture
def listener(address):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(address.socket))
        sock.listen(8)
        yield sock


def test_a_socket_that_nobody_serves_is_not_used(address, listener):
    """Its process has died: nobody listens any more."""
    listener.close()
    notes = []
    assert warm_start.warm_start("", notes) is None
    assert notes == []


def test_a_judge_that_does_not_answer_is_given_up(address, listener):
    """The command says so, and the next one starts another."""
    notes = []
    assert warm_start.warm_start("", notes) is None
    assert notes == ["the warm judge does not answer; this command runs without it"]
    assert not address.socket.exists()


@pytest.mark.parametrize("answer", [b"\0" * 8, b"\xff" * 8, b"\2" + b"\0" * 7 + b"[]", b""])
def test_an_answer_that_makes_no_sense_is_not_used(address, listener, answer):
    """Empty, endless, of another kind, or none: as if there were no judge."""

    def serve():
        for _ in range(2):
            with listener.accept()[0] as sock:
                sock.recv(1000)
                sock.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    assert warm_start.warm_start("", []) is None


def test_a_judge_of_another_user_is_not_used(address, listener, monkeypatch):
    """Whoever listens there, the folder's owner has to be the user."""
    monkeypatch.setattr(warm_start, "_owner", lambda sock: os.getuid() + 1)
    assert warm_start.warm_start("", []) is None


@pytest.mark.parametrize("spoil", ["rights", "link", "file"])
def test_a_folder_that_others_may_enter_is_not_used(spoil, place, monkeypatch):
    """The next place is taken instead."""
    mine = place / f"attnlab-{os.getuid()}"
    if spoil == "link":
        (place / "elsewhere").mkdir(0o700)
        mine.symlink_to(place / "elsewhere")
    elif spoil == "file":
        mine.touch(0o600)
    else:
        mine.mkdir(0o755)
    (place / "next").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("TMPDIR", str(place / "next"))
    assert private_folder() == place / "next" / mine.name


def test_a_path_that_is_too_long_is_not_used(place, monkeypatch):
    """Systems limit the addresses of sockets; the next place is taken instead."""
    (place / ("x" * 100)).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / ("x" * 100)))
    monkeypatch.setenv("TMPDIR", str(place))
    assert private_folder().parent == place


def test_without_a_folder_there_is_no_judge(monkeypatch):
    """The command starts cold."""
    monkeypatch.setattr(server_address, "_is_private", lambda folder: False)
    assert find_address() is None
    assert warm_start.warm_start("", []) is None


def test_a_system_without_users_and_fork_has_no_judge(monkeypatch):
    """As Windows: `attnlab server status` says so, and nothing else of it is asked."""
    monkeypatch.delattr(os, "getuid")
    monkeypatch.delattr(os, "fork")
    assert warm_start.why_unwanted() == "this system cannot fork processes"
    assert find_address() is None
    assert not list(ask_servers("status"))


def test_other_sources_or_settings_have_another_address(place, monkeypatch):
    """A command never talks to a judge with other code."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    found = {find_address().socket.name}
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found.add(find_address().socket.name)
    monkeypatch.setattr(server_address, "_stamps", lambda: ["changed"])
    found.add(find_address().socket.name)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, ""),
        ({"CI": "true"}, "CI is set"),
        ({"CI": "false"}, ""),
        ({"CI": "true", "ATTNLAB_SERVER": "1"}, ""),
        ({"ATTNLAB_SERVER": "0"}, "ATTNLAB_SERVER is set to 0"),
        ({"ATTNLAB_DEBUG": "1"}, "ATTNLAB_DEBUG is set"),
    ],
)
def test_who_does_without_a_judge(environment, why, monkeypatch):
    """CI, debugging, and users who say so."""
    for name in ("CI", "ATTNLAB_SERVER", "ATTNLAB_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert warm_start.why_unwanted() == why


def test_a_worker_that_cannot_use_it_starts_cold(home, job, monkeypatch):
    """As without a warm judge."""
    monkeypatch.setattr(client, "warm_start", lambda catalogue, notes: None)
    with Worker() as worker:
        assert not worker.connection.warm
        assert worker.run_job(job).outcome == "ok"
