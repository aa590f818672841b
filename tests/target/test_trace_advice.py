"""What to do after a trace of one's own code, and what forward was not given."""

from dataclasses import replace
from pathlib import Path

import pytest
from own_target import own_job

from attnlab.records import Crash, Finding, Op, Report, Trace, TraceOptions
from attnlab.target.command_line import TraceCommand
from attnlab.target.trace_advice import next_step, omitted_inputs

NET = """
from torch import nn
class Net(nn.Module):
    def forward(self, x, mask=None, scale=None, causal: bool = None, rate=0.5): ...
"""
CRASH = Crash(op="add", file="net.py", line=4, operands=(), message="", explanation="")


@pytest.fixture
def job(tmp_path, monkeypatch):
    """`job(inputs=[...])` of a file of one's own."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)
    return lambda **flags: own_job("net.py", **flags)


def advice(job, inputs, crash, **more):
    typed = TraceCommand(target="net.py", inputs=tuple(inputs))
    report = Report(outcome="ok", trace=Trace(crash=crash, **more))
    return next_step(typed, job(inputs=inputs), report)


def test_inputs_that_forward_did_not_get_are_named(job):
    """Where nothing was said of them they are None; those of a usual name with their axes."""
    assert omitted_inputs(job()) == ["mask: B S S bool forbids", "scale"]
    assert omitted_inputs(job(inputs=["x: B S D", "mask: B S S bool"])) == ["scale"]


def test_a_function_has_such_inputs_too(job):
    """Its arguments are those of the call."""
    Path("f.py").write_text("def attend(q, k, mask=None): return q\n")
    assert omitted_inputs(own_job("f.py:attend")) == ["mask: B S S bool forbids"]


def test_the_users_own_input_is_doubted_before_the_file(job):
    """The one that reached what crashed nearly as it came."""
    inputs = ["x: B S D", "mask: B D"]
    said = advice(job, inputs, replace(CRASH, inputs=("mask",)))
    assert said.startswith(
        'see whether forward takes --input "mask: B D"; if so, fix net.py:4, then'
    )
    assert advice(job, inputs, CRASH).startswith("fix net.py:4, then")


def test_a_guess_is_doubted_before_the_file(job):
    """Where no layer has taken what was guessed, the file may be right."""
    first = advice(job, [], replace(CRASH, inputs=("x",)))
    assert first.startswith("look at net.py:4; the inputs were guessed, and may not be what it ")
    layer = Op(
        index=0, op="linear", line=3, file="net.py", source="", shape=(2,), axes=("D",),
        dtype="float32", stride=(1,), view=False,
    )  # fmt: skip
    later = advice(job, [], replace(CRASH, inputs=("x",)), ops=(layer,))
    assert later == first


def test_a_part_of_an_input_doubts_all_of_it(job):
    """The flag says what all parts are; after a call that took them, none is doubted."""
    inputs = ["x: B S D", "mask: tuple(B D, B D)"]
    crash = replace(CRASH, inputs=("mask.0", "mask.1"))
    said = advice(job, inputs, crash)
    assert said.startswith('see whether forward takes --input "mask: tuple(B D, B D)"; if so, fix')
    assert advice(job, inputs, replace(crash, call=2)).startswith("fix net.py:4, then")


def test_what_further_calls_are_fed_with_is_not_missed(job):
    """The first call leaves a cache for the next one, under its usual name or the one given."""
    calls = replace(job(), options=TraceOptions(calls=2, feed="scale"))
    assert omitted_inputs(calls) == ["mask: B S S bool forbids"]


def test_a_line_of_python_that_raises_at_once_doubts_every_input(job):
    """Before the first operation nothing says which of them it was."""
    said = advice(job, ["x: B D"], replace(CRASH, op=""))
    assert said.startswith('see whether forward takes --input "x: B D"; if so, fix net.py:4, then')


@pytest.mark.parametrize("line", [0, 7])
def test_installed_code_is_not_to_be_edited(job, line):
    """What it is given can be changed, its file cannot."""
    file = str(Path("/venv/lib/site-packages/torch/nn/functional.py"))
    at = {"rule": "r", "file": file, "line": line, "op": "bmm", "message": ""}
    found = Finding(severity="warning", **at)
    said = advice(job, ["x: B S D"], None, findings=(found,))
    assert said == (
        "that code is installed: change --init or --input, not its file: "
        'attnlab trace net.py --input "x: B S D"'
    )
