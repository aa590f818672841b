"""Chunks on the nodes of a cluster: packed, graded, lost, and refused where versions differ.

The client is a stand-in for Dask's, which runs a chunk at once; `python -m benchmarks.batch --dask`
does it with real nodes.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from attnlab.batch import cluster
from attnlab.batch.cluster import CHUNK, connect, grade_on, node_versions
from attnlab.batch.grader import ChallengeGrader
from attnlab.batch.run import plan_run
from attnlab.batch.submissions import find_submissions
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import solution_text
from attnlab.errors import Broken, Refused
from attnlab.records import Limits, Report
from attnlab.worker.wire import KILLED


class FakeWorker:
    """A node's worker, which fails as the file says."""

    def run_job(self, job):
        text = job.candidate.text
        if "broken" in text:
            raise Broken("the worker ended before its answer")
        if "killed" in text:
            return Report(outcome="crashed", message=KILLED)
        return Report(outcome="crashed", message=f"seed {job.seed}")


class Client:
    """Runs what is submitted at once; what `ends` says becomes of each chunk in turn."""

    def __init__(self, ends=()):
        self.ends, self.sizes, self.status = list(ends), [], "running"

    def nthreads(self):
        return {"tcp://a": 1, "tcp://b": 1}

    def wait_for_workers(self, count, timeout):
        if self.status == "empty":
            raise TimeoutError

    def run(self, function):
        return {"tcp://a": function()}

    def close(self, timeout):
        self.status = "closed"

    def submit(self, function, expected, packed, pure, retries):
        status = self.ends.pop(0) if self.ends else "finished"
        self.sizes.append(len(packed))
        if status == "gone":
            self.status = "closed"
        found = function(expected, packed) if status == "finished" else b""
        return SimpleNamespace(
            status="pending" if status == "gone" else status,
            result=lambda: found,
            exception=lambda: OSError("KilledWorker"),
        )

    __hash__ = object.__hash__


class Future(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.fixture
def a_class(tmp_path, monkeypatch):
    """`a_class(n, **texts)`: the grader, the run and the tasks of n right files and those."""
    monkeypatch.setattr(cluster, "Worker", FakeWorker)
    monkeypatch.setattr(cluster, "GLANCE", 0.0)
    monkeypatch.setattr(f"{__name__}.SimpleNamespace", Future)
    while not cluster._idle.empty():
        cluster._idle.get()
    challenge = load().find("too-sharp")
    right = solution_text(challenge)

    def write(count, **texts):
        many = {f"s{n}": "" for n in range(count)} | texts
        for name, text in many.items():
            (tmp_path / f"{name}.py").write_text(text if text == "def" else f"{right}# {text}\n")
        grader = ChallengeGrader(challenge)
        found = find_submissions(str(tmp_path), grader.file, round_=False)
        run = plan_run(grader, Limits(), 7, len(found))
        return grader, run, [grader.task(one, run) for one in found]

    return write


def test_each_submission_comes_back_once(a_class):
    """In chunks that share what jobs have in common; what cannot be read is not sent."""
    grader, run, tasks = a_class(90, ann="broken", bob="killed", cid="def")
    client = Client()
    found = {one.name: one for one in grade_on(client, grader, run, tasks, len(tasks))}
    assert len(found) == len(tasks) == 93
    assert len(client.sizes) == -(-93 // min(CHUNK, -(-93 // 4)))
    assert max(client.sizes) < 20_000
    outcomes = {name: found[name].verdict.outcome for name in ("ann", "bob", "cid", "s0")}
    assert outcomes == {"ann": "error", "bob": "crashed", "cid": "unreadable", "s0": "crashed"}
    assert "seed 7" in found["s0"].verdict.message


def test_a_chunk_that_no_node_survives_is_an_error(a_class):
    """It is told of its submissions, which --resume grades again; the others have a verdict."""
    grader, run, tasks = a_class(8)
    found = list(grade_on(Client(["error"]), grader, run, tasks, 8))
    assert [one.verdict.outcome for one in found].count("error") == 2
    assert len(found) == 8
    assert "no node could grade it" in found[0].verdict.message


@pytest.mark.parametrize("end", ["cancelled", "lost", "gone"])
def test_a_scheduler_that_dies_ends_the_run(a_class, end):
    """In one line, with what to do; no chunk is waited for that cannot come."""
    grader, run, tasks = a_class(8)
    with pytest.raises(Broken, match="the scheduler is gone") as raised:
        list(grade_on(Client(["finished", end]), grader, run, tasks, 8))
    assert "--resume" in raised.value.hint


def test_other_versions_are_refused_with_both(a_class, monkeypatch):
    """Before anything is graded; also of a node that comes later."""
    grader, run, tasks = a_class(2)
    ours = node_versions()
    theirs = "attnlab 0.0 (sources x) and torch 1.0"
    monkeypatch.setattr(cluster, "node_versions", lambda: theirs)
    with pytest.raises(Refused) as raised:
        cluster._require_nodes(Client(), "tcp://x", ours)
    assert f"tcp://a has {theirs}; this command has {ours}" in raised.value.message
    with pytest.raises(Refused, match=r"the worker that came later has attnlab 0\.0"):
        list(grade_on(Client(), grader, run, tasks, 2))


def test_no_dask_no_scheduler_no_worker(a_class, monkeypatch):
    """One line each, with what to do."""
    _, run, _ = a_class(1)

    def refusal(distributed):
        monkeypatch.setitem(sys.modules, "distributed", distributed)
        with pytest.raises(Refused) as raised, connect("tcp://x", run):
            pass
        return raised.value

    def nobody(*_, **__):
        raise OSError("timed out")

    empty = Client()
    empty.status = "empty"
    assert "--shard" in refusal(None).hint
    assert "no scheduler answers at tcp://x: timed out" in refusal(Future(Client=nobody)).message
    lonely = refusal(Future(Client=lambda *_, **__: empty))
    assert "the scheduler at tcp://x has no worker" in lonely.message
    assert empty.status == "closed"
