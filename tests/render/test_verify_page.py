"""The page of attnlab verify: promises first, what is broken in full, the rest in a line each."""

import pytest

from attnlab.records import CheckResult, Promise
from attnlab.render.verify import VerifyPage

PAGE = VerifyPage(
    target="net.py",
    built="Net(dim=12)",
    outcome="failed",
    promises=(
        Promise(name="causal", reason="net.py:17 masks with a triangle"),
        Promise(name="ordered", reason="it has wpe.weight"),
    ),
    checks=(
        CheckResult(id="finite", title="Outputs are finite", outcome="passed"),
        CheckResult(
            id="causality",
            title="The future does not leak",
            outcome="failed",
            message="x changed from position 4 on, and the output at positions 0 to 3 changed too, "
            "by up to 0.28 (causal: net.py:17 masks with a triangle)",
            file="net.py",
            line=17,
        ),
        CheckResult(
            id="mask-effect",
            title="Masked keys change nothing",
            outcome="skipped",
            message="no argument of forward is a mask over keys",
        ),
        CheckResult(
            id="edge-shapes",
            title="A sample alone gives what it gives in a batch",
            outcome="error",
            message="with changed inputs the model raised RuntimeError: shape '[5, 11]' is invalid",
        ),
    ),
    next="look at net.py:17, then attnlab verify net.py",
)


@pytest.mark.parametrize("width", [80, 120])
def test_page(width, shown, golden):
    """What was broken comes with its place, its meaning and the experiment that settles it."""
    golden(f"verify-{width}", shown(PAGE, width))


def test_a_crash_is_all_there_is_to_say(shown):
    """No counts of properties stand below it."""
    page = VerifyPage(target="net.py", built="", outcome="crashed", message="net.py:3: TypeError")
    said = shown(page)
    assert "crashed  net.py:3: TypeError" in said
    assert "reference" not in said
