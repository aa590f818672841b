"""Formulas that are solved from numbers at several sizes."""

import random
from math import prod

import pytest

from attnlab.tracer.formulas import Solver, evaluate, format_formula

FIRST = {"B": 2, "S": 2, "T": 2, "H": 2, "hd": 2, "D": 4}  # all the same: no size tells an axis


def at(**changes: int) -> dict[str, int]:
    sizes = {**FIRST, **changes}
    return {**sizes, "D": sizes["H"] * sizes["hd"]}


SIZES = [at(), *(at(**{s: n}) for s, n in (("B", 3), ("S", 5), ("T", 7), ("H", 4), ("hd", 6)))]
SIZES.append(at(B=5, S=9, T=11, H=6, hd=10))
ELSEWHERE = at(B=11, S=13, T=17, H=19, hd=22)


@pytest.mark.parametrize("seed", range(20))
def test_products_of_axes_are_found(seed):
    """Each axis is a power of symbols or a sum of them; the product holds at any other sizes."""
    draw = random.Random(seed)
    axes = ["B", "H", "hd", "S", "D", "3*D", "(S + T)", "B*(T + 1)", "S*(S + 2*T)", "D//2", "7"]
    chosen = draw.choices(axes, k=draw.randint(1, 5))
    runs = [tuple(eval(axis, {}, sizes) for axis in chosen) for sizes in SIZES]
    formula = Solver(SIZES).product(runs)
    assert formula is not None
    assert evaluate(formula, ELSEWHERE) == prod(eval(axis, {}, ELSEWHERE) for axis in chosen)


@pytest.mark.parametrize("axis", ["2**S", "S % 3 + 1", "max(S, 3) * T + B"])
def test_what_is_no_formula_is_none(axis):
    """A number is shown without one, rather than with one that is wrong elsewhere."""
    assert Solver(SIZES).solve([eval(axis, {}, sizes) for sizes in SIZES]) is None


def test_formulas_are_written_as_people_write_them():
    """Heads by their width are D; terms with the most factors come first."""
    numbers = [3 * z["B"] * z["H"] * z["hd"] * (z["S"] + 2 * z["T"]) for z in SIZES]
    formula = Solver(SIZES).solve(numbers)
    assert formula is not None
    assert format_formula(formula) == "6*B*T*D + 3*B*S*D"
    assert format_formula({("D",): 1, (): -4}) == "D - 4"
