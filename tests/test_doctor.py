"""What doctor finds out, and what happens where isolation is required."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from attnlab import doctor
from attnlab.catalogue.forbidden import MARK, forbidden_acts, read_trial, trial_source
from attnlab.worker.client import Worker
from attnlab.worker.sandbox import layers, seccomp

locked = pytest.mark.skipif(
    sys.platform != "linux" or seccomp.calls() is None, reason="this system lacks layers"
)


def test_every_act_names_a_layer_that_exists():
    """What is missing where an act is done."""
    assert len(forbidden_acts()) > 20
    assert {act.layer for act in forbidden_acts()} <= layers.CANDIDATE.keys()


def test_an_act_that_is_done_and_one_that_ends_the_process_are_told_apart():
    """What a candidate prints beside is not read."""
    output = f"hello\n{MARK} read-answers refused Permission denied\n{MARK} mount done\n"
    assert read_trial(output) == {"read-answers": "Permission denied", "mount": ""}


@pytest.mark.filterwarnings("ignore:unclosed file")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_acts_are_code_that_would_do_them(tmp_path):
    """Without any layer reading works: that an act is refused says something."""
    file = tmp_path / "file"
    file.write_text("x")
    space = {}
    exec(trial_source(str(file), str(file)), space)
    for name in ("read-your-files", "list-your-files", "read-answers", "change-your-files"):
        space["ACTS"][name]()
    file.unlink()
    with pytest.raises(OSError, match="No such file"):
        space["ACTS"]["read-answers"]()


@locked
def test_every_forbidden_act_is_refused(shell):
    """Each is really tried; the table says why it was refused."""
    said = shell("doctor", "--isolation")
    assert said.code == 0, said.out
    count = len(forbidden_acts())
    assert f"{count} of {count} forbidden acts refused" in said.out
    assert "DONE" not in said.out


def test_an_act_that_is_done_fails_the_trial(shell, monkeypatch):
    """It says which layer is missing."""
    acts = forbidden_acts()
    tried = [doctor.Attempt(act=act, refused=act.id != "mount", why="no") for act in acts]
    monkeypatch.setattr(doctor, "try_isolation", lambda: tried)
    said = shell("doctor", "--isolation")
    assert said.code == 1
    assert "DONE; the layer that refuses it is missing: no other process, no network" in " ".join(
        said.out.split()
    )
    assert shell("doctor", "--isolation", "--json").json["outcome"] == "failed"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("--require-isolation", "much", "grade", "too-sharp"), 2, "there is no such level"),
        (("grade", "too-sharp", "--require-isolation", "full"), 78, "this machine lacks"),
        (("grade", "too-sharp", "--require-isolation=basic"), 1, ""),
        (("grade", "too-sharp", "--require-isolation", "none"), 1, ""),
    ],
)
def test_what_is_required_is_there_or_nothing_runs(args, code, says, shell, monkeypatch):
    """A missing layer that matters at this level ends the command with 78."""
    monkeypatch.setenv("ATTNLAB_REQUIRE_ISOLATION", "")
    run_job = Worker.run_job

    def lacking(self, job):
        return replace(run_job(self, job), missing=("writes no files: not here",))

    monkeypatch.setattr(Worker, "run_job", lacking)
    said = shell(*args)
    assert said.code == code, said.err
    assert says in said.err


def test_own_code_is_never_fully_isolated(shell, tmp_path, monkeypatch):
    """It may read and write what the user may; who requires more is told so."""
    monkeypatch.setenv("ATTNLAB_REQUIRE_ISOLATION", "full")
    path = tmp_path / "mine.py"
    path.write_text(
        "from torch import nn\nclass M(nn.Module):\n    def forward(self, x): return x\n"
    )
    said = shell("trace", str(path), "--input", "x: B D")
    assert said.code == 78
    assert "code of your own runs under limits" in said.err
    assert os.environ["ATTNLAB_REQUIRE_ISOLATION"] == "full"
