"""Renamed weights through the real worker: the map is found on the judge's side of the pipe."""

import pytest
from attacks import HONEST, candidate

from attnlab.verdict import EXIT_CODES

NAMES = (("qkv_proj", "c_attn"), ("out_proj", "c_proj"), ("norm", "ln_1"))


def renamed(source):
    for old, new in NAMES:
        source = source.replace(f"self.{old}", f"self.{new}")
    return source


def test_a_right_file_with_other_names_passes(grader):
    """Every check is made, also those that compare values and gradients."""
    verdict = grader.grade(renamed(HONEST))
    assert (verdict.outcome, verdict.score) == ("passed", 1.0), verdict.message
    made = {c.id for c in verdict.checks if c.outcome == "passed"}
    assert {"matches-reference", "gradients-match"} <= made


def test_a_wrong_file_with_other_names_is_no_pass(grader):
    """Nothing is said of its values, and the reason tells what was tried."""
    verdict = grader.grade(renamed(candidate(right=False)))
    assert EXIT_CODES[verdict.outcome] in (1, 3)
    by_value = next(c for c in verdict.checks if c.id == "matches-reference")
    assert (by_value.outcome, by_value.reason) == ("error", "no-weights")
    assert "likely ways to load the weights gave the reference's output" in by_value.message


@pytest.mark.parametrize("lie", ["{'tensors': 3}", "{'w' * 99: torch.zeros((1,) * 40)}", "{}"])
def test_a_file_that_lies_about_its_parameters_is_no_pass(grader, lie):
    """Whatever `named_parameters` gives, the judge goes on and says no pass."""
    top = f"nn.Module.named_parameters = lambda self, *a, **k: list({lie}.items())"
    verdict = grader.grade(renamed(candidate(top=top, right=False)))
    assert verdict.outcome != "passed"
    grader.still_serves()
