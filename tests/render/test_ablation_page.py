"""The page of attnlab ablate: findings first, then a row for each part."""

import pytest

from attnlab.records.ablation import Ablation, AblationReport
from attnlab.render.ablation import AblationPage


def part(kind, what, line, change, **more) -> Ablation:
    return Ablation(kind=kind, what=what, file="gpt.py", line=line, change=change, **more)


PAGE = AblationPage(
    target="gpt.py:GPT",
    built="GPT(dim=32)",
    outcome="found",
    report=AblationReport(
        parts=(
            part("residual", "residual", 46, 1.42, times=3, loss=4.19),
            part("mask", "mask", 34, 0.252, times=3, loss=3.903, broke=("causality",)),
            part("head", "head 2 of transformer.blocks.11.attn", 35, 0.0644, loss=3.924),
            part(
                "norm",
                "layer_norm",
                61,
                0.0,
                loss=3.947,
                message="switching it off changes nothing",
                is_finding=True,
            ),
            part("block", "blocks.1", 45, None, message="RuntimeError: shapes do not fit"),
        ),
        causal=True,
        ordered=True,
        loss=3.947,
        notes=("4 more parts were not switched off",),
    ),
    next="look at gpt.py:61",
)


@pytest.mark.parametrize("width", [80, 120])
def test_page(width, shown, golden):
    """What changes nothing is said before the table, and stands out in it."""
    golden(f"ablation-{width}", shown(PAGE, width))


def test_a_puzzle_is_not_spoiled():
    """Findings are counted, and neither marked nor put into the document."""
    page = PAGE.without_findings()
    assert page.hidden == 1
    norm = next(p for p in page.report.parts if p.kind == "norm")
    assert not norm.is_finding
    assert not norm.message
