"""The page of attnlab cost: the totals with their formulas, then the modules."""

import pytest

from attnlab.records.cost import Cost, CostReport, ModuleCost
from attnlab.render.cost import CostPage


def module(
    name: str, count: int, parameters: int, flops: int, formula: str, tied: str = ""
) -> ModuleCost:
    return ModuleCost(
        name=name,
        count=count,
        parameters=parameters,
        bytes=4 * parameters,
        flops=flops,
        formula=formula,
        tied=tied,
    )


PAGE = CostPage(
    target="gpt.py:GPT",
    built="GPT(d_model=768)",
    outcome="ok",
    cost=CostReport(
        sizes={"B": 8, "S": 1024, "D": 768},
        how="counted at S=1024 B=8, with tensors without data",
        costs=(
            Cost(id="parameters", title="parameters", value=124_439_808, formula="12*D**2 + V*D"),
            Cost(id="flops", title="FLOPs", value=2_333_000_000_000, formula="288*B*S*D**2"),
            Cost(
                id="pairs",
                title="S x S",
                value=19_400_000_000,
                unit="bytes",
                formula="192*B*S**2*H + 24*S**2",
                note="in 72 tensors, not all alive at once",
            ),
            Cost(id="buffers", title="buffers", value=None, unit="bytes", note="not known"),
            Cost(id="cache", title="KV cache", value=0, unit="bytes", note="no attention was seen"),
        ),
        modules=(
            module("blocks.*.attn.qkv", 12, 21_261_312, 347_892_350_976, "B*S*D"),
            module("head", 1, 0, 2_000_000_000_000, "2*B*S*V*D + " * 8 + "4*B*S*D", "tok"),
            module("encoder.blocks.*.attention.projection_out", 12, 40_960_000, 10**25, "B*S*D"),
            module("", 1, 18_432, 0, ""),
        ),
        checks=("the formulas also give what was counted at B=2 S=5",),
    ),
    notes=("at most 32.8 kB of outputs were alive at once",),
)


@pytest.mark.parametrize("width", [80, 120])
def test_page(width, shown, golden):
    """A formula that is too long for the table ends in dots, a name begins with them."""
    golden(f"cost-{width}", shown(PAGE, width))


def test_numbers_are_never_cut(shown):
    """However long names and formulas are, and however narrow the screen is."""
    said = shown(PAGE, 60)
    for number in ("21,261,312", "347.9 G", "10 Y", "40,960,000", "164 MB"):
        assert number in said
