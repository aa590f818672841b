"""What two modules are compared at is long, and fits into memory."""

from attnlab.mutation_testing.scenarios import MAX_NUMBERS, make_scenarios
from attnlab.records import Contract, Input, Position

SCORES = ("B", "H", "S", "S")


def lengths(axes):
    contract = Contract(
        sizes={"B": 2, "H": 2, "S": 5, "D": 8},
        inputs=(Input(name="x", axes=axes),),
        output=axes,
        vary=("B", "H", "S", "D"),
        position=Position(kind="alibi", form="bias"),
    )
    found = list(make_scenarios(contract, 0))
    numbers = [max(step.inputs["x"].numel() for step in scenario.steps) for scenario in found]
    assert max(numbers) <= MAX_NUMBERS
    return {scenario.sizes["S"] for scenario in found}


def test_long_sequences_are_looked_at_where_there_is_room():
    """Positions go wrong far out; scores of thousands of them are gigabytes."""
    assert max(lengths(("B", "S", "D"))) > 4000
    assert 600 < max(lengths(SCORES)) < 1000
