"""Values are right and gradients are not: the line that cuts or changes them."""

from pathlib import Path

import pytest

from attnlab.candidate.host import LocalHost
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import solution_text
from attnlab.grading.pipeline import run_job
from attnlab.records import Code, Job

PADDED = next(c for c in load().challenges if c.name == "tomorrow-is-known")
RIGHT = solution_text(PADDED)
FUSED = next(Path(p).read_text("utf-8") for p in PADDED.alternatives if "fused" in p)
DOUBLED = """
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Causal"""


def diff(mine, theirs=RIGHT):
    job = Job(
        candidate=Code(file="mine.py", text=mine, name=PADDED.class_name),
        contract=PADDED.contract,
        reference=Code(file="right.py", text=theirs, name=PADDED.class_name),
        stages=("diff",),
        seed=1,
    )
    report = run_job(job, lambda *_: LocalHost())
    assert report.diff is not None, report.message
    return report.diff


def line_of(text, part):
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


CHANGES = [
    # what stands in the file, what is put there, the line to name, how it is wrong
    ("k.transpose(-2, -1)", "k.detach().transpose(-2, -1)", "k.detach()", "gradient-cut"),
    ("return self.proj(mixed)", "return self.proj(mixed.data)", "mixed.data", "gradient-cut"),
    (
        "weights = scores.softmax(dim=-1) * allowed",
        "with torch.no_grad(): weights = scores.softmax(dim=-1) * allowed",
        "no_grad",
        "gradient-cut",
    ),
    (
        "        allowed = self",
        "        with torch.no_grad(): scores.mul_(2)\n        scores /= 2; allowed = self",
        "no_grad",
        "gradient-cut",
    ),
    (
        "return self.proj(mixed)",
        "return self.proj(torch.tensor(mixed.tolist(), dtype=mixed.dtype))",
        "torch.tensor",
        "gradient-cut",
    ),
    (
        "return self.proj(mixed)",
        "mixed.requires_grad and mixed.register_hook(lambda g: 3 * g); return self.proj(mixed)",
        "register_hook",
        "gradient-hook",
    ),
    ("weights @ v", "weights @ (v + v.detach() - v.detach())", "", ""),
]


@pytest.mark.parametrize(("old", "new", "named", "relation"), CHANGES)
@pytest.mark.parametrize("theirs", [RIGHT, FUSED], ids=["itself", "fused"])
def test_the_line_that_cuts_a_gradient_is_named(old, new, named, relation, theirs):
    """Beside the file that it was made of, and beside the fused kernel; right ones stay quiet."""
    mine = RIGHT.replace(old, new)
    assert mine != RIGHT
    found = diff(mine, theirs)
    if not relation:
        assert (found.outcome, found.diagnosis) == ("same", ())
        return
    assert (found.outcome, found.part) == ("different", "gradient")
    (wrong,) = found.diagnosis
    assert (wrong.line, wrong.relation) == (line_of(mine, named), relation)
    assert wrong.confirmed


def test_a_wrong_backward_is_named_with_its_factor():
    """At the function that the user wrote."""
    mine = RIGHT.replace("class Causal", DOUBLED.lstrip(), 1)
    mine = mine.replace("(weights @ v)", "Doubled.apply(weights @ v)")
    (wrong,) = diff(mine).diagnosis
    assert wrong.relation == "gradient-backward"
    first = line_of(mine, "def backward")
    assert (wrong.line, wrong.end_line) == (first, first + 1)
    assert "2 times too large" in wrong.message


def test_a_frozen_weight_is_no_wrong_step():
    """It is told with its name."""
    old = "        self.proj = nn.Linear(dim, dim)"
    mine = RIGHT.replace(old, f"{old}\n        self.proj.weight.requires_grad_(False)")
    found = diff(mine)
    assert found.message == "outputs are equal; the gradient of proj.weight is wrong"
    (wrong,) = found.diagnosis
    assert (wrong.line, wrong.relation) == (line_of(mine, "requires_grad_"), "gradient-frozen")


def test_two_cuts_are_both_named():
    """Neither alone makes all gradients right."""
    mine = RIGHT.replace("k.transpose(-2, -1)", "k.detach().transpose(-2, -1)")
    mine = mine.replace("weights @ v", "weights @ v.detach()")
    found = diff(mine)
    assert {d.line for d in found.diagnosis} == {
        line_of(mine, "k.detach"),
        line_of(mine, "v.detach"),
    }
    assert all(d.confirmed for d in found.diagnosis)


def test_a_reference_that_cuts_more_is_told():
    """Then mine sends back what it should not."""
    theirs = RIGHT.replace("weights @ v", "weights.detach() @ v")
    found = diff(RIGHT, theirs)
    assert found.part == "gradient"
    (wrong,) = found.diagnosis
    assert (wrong.line, wrong.relation) == (line_of(RIGHT, "weights @ v"), "gradient-extra")


def test_a_maximum_that_is_detached_is_right():
    """Softmax by hand takes the largest score off: nothing needs to learn from that."""
    mine = RIGHT.replace(
        "weights = scores.softmax(dim=-1)",
        "powers = (scores - scores.amax(-1, keepdim=True).detach()).exp()\n"
        "        weights = powers / powers.sum(-1, keepdim=True)",
    )
    assert diff(mine).outcome == "same"
    cut = mine.replace("* allowed", "* allowed\n        weights = weights.detach()")
    (wrong,) = diff(cut).diagnosis
    assert wrong.line == line_of(cut, "weights.detach()")


def test_what_backward_needs_is_not_written_over():
    """Autograd raises, and says whose output it was."""
    old = "        mixed = (weights @ v)"
    mine = RIGHT.replace("* allowed", "").replace(old, f"        weights.mul_(1.0)\n{old}")
    found = diff(mine)
    assert "modified by an inplace operation" in found.message
    (wrong,) = found.diagnosis
    assert (wrong.line, wrong.relation) == (line_of(mine, "mul_"), "gradient-overwritten")
    peak = "peak = torch.zeros_like(v)\n        peak.copy_(v)\n        v = peak * peak"
    twice = mine.replace("        weights.mul_(1.0)\n", f"        {peak}\n        peak.copy_(v)\n")
    theirs = mine.replace("        weights.mul_(1.0)\n", "        v = v * v\n")
    (wrong,) = diff(twice, theirs).diagnosis
    assert wrong.relation == "gradient-overwritten"
    assert "copy_" in twice.splitlines()[wrong.line - 1]
    first = RIGHT.index("        mixed = ")
    emptied = RIGHT[:first] + "        x.zero_()\n" + RIGHT[first:]
    (wrong,) = diff(emptied).diagnosis
    assert wrong.line == line_of(emptied, "x.zero_()")
