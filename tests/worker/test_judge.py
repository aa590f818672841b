"""The judge's side of honest work: what stands in a report, whose code ran where, and that it is
the same again."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from attacks import HONEST, candidate

from attnlab.candidate.host import Died
from attnlab.probe.reference import MOST_HELD
from attnlab.records import Code, Contract, Input, Job, Limits, UserEnvironment
from attnlab.worker.child import BROKEN, MEMORY
from attnlab.worker.judge import Child, Orphaned
from attnlab.worker.sandbox import layers

FLAT = Contract(
    sizes={"B": 2, "D": 4}, inputs=(Input(name="x", axes=("B", "D")),), output=("B", "D"), vary=()
)


MODULE = """
import os
from torch import nn
{top}

class M(nn.Module):
    def forward(self, x):
        {forward}

"""


def module(forward="return x + 1", top=""):
    return MODULE.format(top=dedent(top), forward=forward)


def traced(text, **more):
    """A job that only looks at a small module."""
    code = Code(file="m.py", text=text, name="M")
    return Job(**{"candidate": code, "contract": FLAT, "stages": ("trace",), **more})


def own(folder, **more):
    return UserEnvironment(cwd=str(folder), sys_path=(str(folder),), env=dict(os.environ), **more)


def test_a_report_names_what_ran_and_what_held_it(grader):
    """Target, rows, layers, time and seed: all that the front shows."""
    report = grader.run_job(HONEST, stages=("trace", "check"), seed=11)
    assert report.target == "MultiHeadSelfAttention(embed_dim=64, num_heads=4)"
    assert report.seed == 11
    assert report.seconds > 0
    assert report.trace.ops[0].source == "parts = self.qkv_proj(x).chunk(3, dim=-1)"
    assert {c.outcome for c in report.checks} == {"passed", "skipped"}
    if sys.platform == "linux":
        assert report.isolation == tuple(layers.CANDIDATE)
        assert report.missing == ()


@pytest.mark.parametrize("source", [HONEST, candidate(right=False)], ids=["right", "sharp"])
def test_a_seed_gives_the_same_report_again(grader, source):
    """Only the time differs; without a seed every job draws its own."""
    one, two = (grader.run_job(source, stages=("trace", "check"), seed=3) for _ in "ab")
    assert replace(one, seconds=0) == replace(two, seconds=0)
    assert len({grader.run_job(source, stages=("trace",)).seed for _ in range(3)}) > 1


def test_a_solution_as_reference_runs_in_a_child(grader):
    """It is compared like a unit, and what it prints is nobody's output."""
    reference = Code(
        file="solution.py",
        text=candidate(top="print('told')"),
        name=grader.challenge.class_name,
    )
    right = grader.run_job(HONEST, reference=reference)
    assert {c.outcome for c in right.checks} == {"passed", "skipped"}
    assert "told" not in right.output
    wrong = grader.run_job(candidate(right=False), reference=reference)
    failed = [c for c in wrong.checks if c.outcome == "failed"]
    assert [c.id for c in failed if not c.folded_under] == ["matches-reference"]


def test_a_solution_waits_for_the_next_job(grader):
    """To start it costs as much as the candidate; those used last are kept, and no more."""
    solutions = [
        Code(file="solution.py", text=f"{candidate()}\n# {n}", name=grader.challenge.class_name)
        for n in range(MOST_HELD + 1)
    ]
    alive = []
    for reference in (solutions[0], solutions[0], *solutions[1:]):
        assert grader.run_job(HONEST, reference=reference).outcome == "ok"
        alive.append(_children(grader.worker.connection.process.pid))
    assert max(len(pids) for pids in alive) == 1 + MOST_HELD  # the judge and solutions
    assert alive[0] == alive[1]
    assert alive[0][-1] in alive[-2]
    assert alive[0][-1] not in alive[-1]


def _children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("place", ["top", "init"])
def test_a_reference_that_breaks_is_the_challenge_s_fault(grader, place):
    """Nothing is said of the candidate when the answer itself cannot be had."""
    text = candidate(**{place: "os.abort()"})
    reference = Code(file="solution.py", text=text, name=grader.challenge.class_name)
    report = grader.run_job(HONEST, reference=reference)
    assert report.outcome == "error"
    assert "the reference solution.py was killed by SIGABRT" in report.message
    assert "fault of the challenge" in report.hint
    grader.still_serves()


def test_a_reference_that_raises_says_where_and_with_what(grader):
    """Its author has to know at which sizes it does not work."""
    text = candidate(init="if num_heads > 4: raise KeyError(num_heads)")
    reference = Code(file="solution.py", text=text, name=grader.challenge.class_name)
    report = grader.run_job(HONEST, reference=reference)
    assert report.outcome == "error"
    assert "the reference solution.py raised KeyError" in report.message
    assert "(built with embed_dim=" in report.message
    grader.still_serves()


def test_what_asks_for_a_folder_to_write_to_gets_a_name(grader):
    """No file can be written, but importing what keeps a cache somewhere must not fail."""
    text = candidate(top="import tempfile; tempfile.gettempdir()")
    assert "failed" not in {c.outcome for c in grader.run_job(text).checks}


def test_an_unknown_reference_is_our_fault(grader):
    """A challenge that names no unit gets one line; the worker lives on."""
    report = grader.run_job(HONEST, reference="NoSuchUnit")
    assert report.outcome == "error"
    assert "NoSuchUnit" in report.message
    grader.still_serves()


def test_the_memory_limit_is_the_job_s(grader):
    """The same allocation under a low limit and under a high one."""
    text = module("return x + x.new_zeros(100 << 20).sum()")
    low, high = (
        grader.worker.run_job(traced(text, limits=Limits(memory=size << 20))) for size in (200, 900)
    )
    assert "allocate memory" in low.trace.crash.message
    assert high.trace.crash is None


def test_neither_trace_nor_check_imports_dynamo(grader):
    """torch._dynamo costs more than two seconds; a candidate sees whether it is there."""
    text = candidate(before="assert 'torch._dynamo' not in sys.modules, 'dynamo is loaded'")
    report = grader.run_job(text, stages=("trace", "check"))
    assert report.trace.crash is None
    assert {c.outcome for c in report.checks} == {"passed", "skipped"}


# ---------------------------------------------------------------- a user's own target


def test_own_code_runs_where_the_user_runs_it(grader, tmp_path):
    """Folder, import path and environment are the user's, and files may be written."""
    (tmp_path / "helper.py").write_text("VALUE = 1")
    top = """
    from helper import VALUE
    from pathlib import Path
    Path("log.txt").write_text(os.environ["ATTNLAB_TEST"])
    print(os.getcwd())
    """
    job = traced(module("return x + VALUE", top), own=own(tmp_path))
    job.own.env["ATTNLAB_TEST"] = "seen"
    report = grader.worker.run_job(job)
    assert report.outcome == "ok"
    assert [op.op for op in report.trace.ops] == ["add"]
    assert report.output == f"{tmp_path}\n"
    assert (tmp_path / "log.txt").read_text() == "seen"
    assert "writes no files" not in report.isolation


def test_a_module_of_a_package_is_imported(grader, tmp_path):
    """`package.module:Class`, relative imports included."""
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "values.py").write_text("VALUE = 2")
    text = module("return x * VALUE", "from .values import VALUE")
    (package / "net.py").write_text(text)
    job = traced(text, own=own(tmp_path, module="mine.net"))
    assert [op.op for op in grader.worker.run_job(job).trace.ops] == ["mul"]


def test_a_demo_is_run_up_to_its_first_module(grader, tmp_path):
    """Without a class named, the file runs as a script and its first call is the trace."""
    text = module() + "import torch\nprint(__name__)\nM()(torch.ones(3))\nprint('never')\n"
    job = Job(candidate=Code(file="demo.py", text=text), stages=("trace",), own=own(tmp_path))
    report = grader.worker.run_job(job)
    assert [op.shape for op in report.trace.ops] == [(3,)]
    assert report.output == "__main__\n"


def test_own_code_meets_the_same_ends(grader, tmp_path):
    """A loop and a crash in one's own file become reports as well."""
    loop = traced(module("while True: pass"), own=own(tmp_path), limits=Limits(seconds=0.5))
    assert grader.worker.run_job(loop).outcome == "timeout"
    dead = traced(module("os.abort()"), own=own(tmp_path))
    assert "SIGABRT" in grader.worker.run_job(dead).message
    grader.still_serves()


# ---------------------------------------------------------------- a child by itself


class FakeZygote:
    """Answers the judge's requests for a process that this test plays; `status` None: it dies."""

    def __init__(self, status):
        self.status = status
        self.sock, self.far = socket.socketpair()
        self.ours, self.theirs = socket.socketpair()
        self.out, self.printed = os.pipe()

    def sendall(self, data):
        if b'"fork"' in data:
            fds = [self.theirs.fileno(), self.out]
            socket.send_fds(self.far, [b'{"pid": 1}\n'], fds)
        elif self.status is None:
            self.far.shutdown(socket.SHUT_RDWR)
        else:
            self.far.sendall(b'{"status": %d}\n' % self.status)

    def __getattr__(self, name):
        return getattr(self.sock, name)

    def close(self):
        for end in (self.sock, self.far, self.ours, self.theirs):
            end.close()
        os.close(self.out)
        os.close(self.printed)


def born(zygote):
    """A child that ends before it says hello."""
    zygote.ours.shutdown(socket.SHUT_RDWR)
    try:
        return Child(zygote, Limits(), own=False, deadline=float("inf"))
    finally:
        zygote.close()


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (0, "crashed", "exit status 0"),
        (12 << 8, "crashed", "exit status 12"),
        (MEMORY << 8, "memory", "out of memory"),
        (BROKEN << 8, "crashed", "broke the process that runs it"),
        (24, "timeout", "CPU time"),
        (9, "crashed", "was killed, or closed its connection"),
        (11, "crashed", "SIGSEGV"),
        (45, "crashed", "signal 45"),
    ],
)
def test_each_way_to_end_has_its_words(status, reason, words):
    """A wait status becomes the outcome and a sentence about the candidate."""
    with pytest.raises(Died, match=words) as caught:
        born(FakeZygote(status))
    assert caught.value.reason == reason


# A judge that ends closes nothing by hand.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_zygote_that_is_gone_ends_the_judge():
    """In the middle of a request and before it: the judge does not wait for ever."""
    with pytest.raises(Orphaned):
        born(FakeZygote(None))
    gone = FakeZygote(0)
    gone.far.close()
    with pytest.raises(Orphaned):
        Child(gone.sock, Limits(), own=False, deadline=float("inf"))
    gone.close()
