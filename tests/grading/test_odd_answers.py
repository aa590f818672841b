"""Answers that are no answer: each gets a sentence of its own, and never a pass."""

from __future__ import annotations

import pytest
from modules import HEAD, PLAIN, inspected, module

from attnlab.records import CheckResult

SUB = f"{HEAD}class Sub(torch.Tensor):\n    pass\n\n"


def first(text: str) -> CheckResult:
    """What to look at first; some check must have failed."""
    found = inspected(text, PLAIN, stages=("check",)).checks[0]
    assert found.outcome == "failed", found
    return found


@pytest.mark.parametrize(
    ("returned", "check", "said"),
    [
        (
            "[x * 2]",
            "output-shape",
            "returned a list with a float32 tensor of shape (2, 4, 8), not",
        ),
        (
            "(x * 2, None)",
            "output-shape",
            "returned a tuple with a float32 tensor of shape (2, 4, 8) and None",
        ),
        ("{'out': x}", "output-shape", "forward returned a dict with 'out', not"),
        ("None", "output-shape", "forward returned None, not one plain tensor"),
        ("x.sum().item()", "output-shape", "forward returned a float, not one plain tensor"),
        ("(x * 2).to_sparse()", "output-shape", "forward returned a float32 sparse_coo"),
        ("(x * 2).to('meta')", "output-shape", "on the meta device"),
        ("torch.complex(x, x)", "output-shape", "forward returned a complex64"),
        ("(x * 2).double()", "output-shape", "torch.float64, expected torch.float32"),
        ("(x * 2).half()", "output-shape", "torch.float16, expected torch.float32"),
        ("x > 0", "output-shape", "torch.bool, expected floating point"),
        ("(x * 2)[:1]", "output-shape", "expected (B, S, D) = "),
        ("(x * 2)[..., :1]", "output-shape", "expected (B, S, D) = "),
        ("x.new_zeros(())", "output-shape", "the output is () at"),
        ("x[:0]", "output-shape", "the output is (0, 4, 8) at"),
        ("x * torch.nan", "finite", "NaN or infinite"),
        ("x", "input-unchanged", "the output is a view of the argument x"),
        ("x.transpose(0, 1).transpose(0, 1)", "input-unchanged", "a view of the argument x"),
        ("x + torch.rand_like(x)", "no-hidden-state", "it is random"),
    ],
)
def test_an_odd_output_has_its_own_sentence(returned: str, check: str, said: str) -> None:
    """Lists, other types and shapes, NaN, views and random values are told by what they are."""
    found = first(module(f"return {returned}"))
    assert (found.id, said in found.message) == (check, True), found.message
    assert found.advice


def test_a_subclass_is_named() -> None:
    """A Tensor that brings code of its own is not compared by its values."""
    text = module("return x.as_subclass(Sub)").replace(HEAD, SUB)
    assert first(text).message == (
        "forward returned a Sub, a subclass of Tensor, not one plain tensor"
    )


def test_state_is_told_from_chance() -> None:
    """The same input gives the same again, until another one came between."""
    text = module("before, self.kept = self.kept, x.mean()\nreturn x + before", "self.kept = 0.0")
    found = first(text)
    assert found.id == "no-hidden-state"
    assert "the second time" in found.message


def test_a_constructor_with_other_names_says_what_it_takes() -> None:
    """Both sides of the misfit stand in one line."""
    found = first(module("return x * 2", takes="size, depth=1"))
    assert "unexpected keyword argument 'width'; it takes (size, depth) and is given (width)" in (
        found.message
    )
    assert found.reason == "crashed"


@pytest.mark.parametrize("head", ["self, x, mask", "self", "self, *, other"])
def test_a_forward_that_needs_other_arguments_says_which(head: str) -> None:
    """One too many, none, or another one by name."""
    found = first(module("return x * 2", head=head))
    takes = head.removeprefix("self").removeprefix(", ").replace("*, ", "")
    assert f"; it takes ({takes}) and is given (x)" in found.message
    assert found.line  # of the candidate's own forward
    assert found.file == "net.py"


def test_a_misfit_inside_is_not_dressed_up() -> None:
    """What a candidate calls wrongly itself is reported as Python says it."""
    found = first(module("return F.relu()"))
    assert "; it takes" not in found.message


def test_a_reference_that_gives_nan_is_no_failure_of_the_candidate() -> None:
    """Nor is it a pass: what cannot be compared is said to be so."""
    from attnlab.records import Code

    solution = Code(file="solution.py", text=module("return x / (x - x)"), name="Net")
    found = {
        c.id: c
        for c in inspected(module("return x * 2"), stages=("check",), reference=solution).checks
    }["matches-reference"]
    assert (found.outcome, found.reason) == ("error", "reference")
    assert "the reference itself gives NaN" in found.message
