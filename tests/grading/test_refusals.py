"""What was not said, or is not there: refused with a command, and not shown as a crash."""

from pathlib import Path

import pytest
import torch
from own_target import own_job

from attnlab.candidate.host import LocalHost
from attnlab.grading.pipeline import run_job
from attnlab.records import Code, Contract, Job, TraceOptions


@pytest.fixture
def report(tmp_path, monkeypatch):
    """The report on a file or a module, run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])

    def run(target, text="", options=None, **flags):
        if text:
            Path(target.partition(":")[0]).write_text(text)
        job = own_job(target, **flags)
        if options:
            from dataclasses import replace

            job = replace(job, options=options)
        return run_job(job, lambda *_: LocalHost())

    return run


def test_a_package_that_is_not_installed_is_named(report):
    """With the line that wants it, and how to get it."""
    found = report("m.py", "import no_such_pkg\nclass M:\n    def forward(self, x): ...\n")
    assert found.outcome == "refused"
    assert found.message == "m.py:1: the package no_such_pkg is not installed for this Python"
    assert found.hint.endswith("python -m pip install no_such_pkg")


def test_a_graded_file_that_imports_such_a_package_has_crashed():
    """With the same message; a module of the user's own is not there either."""
    code = Code(file="m.py", text="import torch\nimport no_such_pkg\n", name="M")
    found = run_job(Job(candidate=code, contract=Contract()), lambda *_: LocalHost())
    assert found.outcome == "crashed"
    assert found.message == "m.py:2: the package no_such_pkg is not installed for this Python"
    assert "environment that runs attnlab: python -m pip install no_such_pkg;" in found.hint
    assert "must be copied into the graded file" in found.hint


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("no_such_pkg.mod:Net", "the package no_such_pkg is not installed for this Python", "pip"),
        ("torch.no_such:Net", "there is no module torch.no_such: torch has none", "import torch"),
        ("torch.nn:Liner", "torch.nn has no Liner", "import torch.nn as m"),
        ("torhc.nn:Net", "the package torhc is not installed", "Did you mean torch"),
        ("torch.nnn:Linear", "there is no module torch.nnn", "Did you mean nn?"),
        ("torch.nn:Liner", "torch.nn has no Liner", "Did you mean Linear"),
        (
            "torch.nn:MultiheadAttention",
            "torch.nn:MultiheadAttention cannot be built: nothing says what embed_dim, num_heads",
            '--init "embed_dim=12, num_heads=3"',
        ),
        (
            "torch.nn:Linear",
            "torch.nn:Linear cannot be built: nothing says what in_features, out_features",
            'attnlab trace torch.nn:Linear --init "in_features=12, out_features=12"',
        ),
    ],
)
def test_modules_that_cannot_be_used(report, target, message, hint):
    """Each is refused in one line, with what to do."""
    found = report(target)
    assert found.outcome == "refused"
    assert found.message.startswith(message)
    assert hint in found.hint


def test_a_forward_that_nobody_could_see_asks_for_its_inputs(report):
    """The command that is shown can be pasted, and works."""
    found = report("torch.nn:Linear", init="in_features=12, out_features=5")
    assert found.outcome == "refused"
    assert found.hint.endswith('--input "input: B S D"')
    again = report(
        "torch.nn:Linear", init="in_features=12, out_features=5", inputs=["input: B S D"]
    )
    assert (again.outcome, again.trace.crash) == ("ok", None)


@pytest.mark.parametrize(
    ("more", "axes"),
    [("", "S B D"), (", batch_first=False", "S B D"), (", batch_first=True", "B S D")],
)
def test_axes_are_offered_in_the_order_that_the_class_takes(report, more, axes):
    """Layers of torch have the sequence first, unless batch_first is set."""
    found = report("torch.nn:MultiheadAttention", init=f"embed_dim=12, num_heads=3{more}")
    assert found.hint.endswith(f'--input "key: {axes}" --input "value: {axes}"')


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none(report):
    """One line, before anything runs."""
    text = "raise SystemExit\nclass M:\n    def forward(self, x): ...\n"
    found = report("m.py", text, options=TraceOptions(device="cuda"))
    assert found.outcome == "refused"
    assert found.message.startswith("--device cuda: PyTorch finds no CUDA device here")
    assert found.hint.endswith("attnlab trace m.py:M")


def test_a_missing_import_of_ours_is_our_fault(report):
    """A damaged installation is not blamed on the user's file."""
    text = "import attnlab.no_such\nclass M:\n    def forward(self, x): ...\n"
    assert report("m.py", text).outcome == "crashed"


ARGUED = """
import torch
from dataclasses import dataclass

@dataclass
class Config:
    n_embd: int = 8
    shift: float = 1.0

class M(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layer = torch.nn.Linear(config.n_embd, 3)

    def forward(self, x, offset, how, mask=None):
        assert how == "fast"
        return self.layer(x)[:, offset:] + self.config.shift
"""


def test_configs_and_plain_arguments_reach_the_module(report):
    """An object for the constructor, a number and a text for forward."""
    found = report(
        "m.py:M", ARGUED, init="shift=2.5", inputs=["offset = 2", "how = 'fast'"], sizes="S=6"
    )
    assert found.trace.crash is None
    assert found.target == "M(config=Config(n_embd=8, shift=2.5))"
    assert found.trace.ops[-1].shape == (2, 4, 3)


FUNCTION = """
def attend(q, k, v, scale=1.0):
    return (q @ k.transpose(-1, -2) * scale).softmax(-1) @ v
"""


def test_a_function_is_traced(report):
    """No module is needed."""
    found = report("f.py:attend", FUNCTION, inputs=["scale = 0.5"])
    assert [op.op for op in found.trace.ops] == ["transpose", "matmul", "mul", "softmax", "matmul"]
