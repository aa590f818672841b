"""Symbols and sizes: what an axis measures, and at which sizes a candidate is tried."""

import random
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.probe.inputs.sizes import MOST, naming, rounds
from attnlab.records import Contract, Input
from attnlab.sizes import UnknownSize, constructor_arguments, measure, with_head_dim

SIZES = {"B": 2, "S": 4, "D": 8, "H": 2}


@pytest.mark.parametrize(
    ("text", "size"),
    [("4", 4), ("D", 8), ("3*D", 24), ("D/2", 4), ("D//H", 4), ("2*S+1", 9), ("B*S-1", 7)],
)
def test_measure(text, size):
    """Numbers, symbols and their products, quotients and sums."""
    assert measure(text, SIZES) == size
    assert measure(f" {text} ", SIZES) == size


@pytest.mark.parametrize(
    "text",
    ["", "Z", "D D", "D**2", "f(D)", "D.x", "D[0]", "'D'", "1.5", "True", "-D", "D/0", "(", "\0"],
)
def test_measure_refuses_what_is_no_size(text):
    """Unknown symbols and anything but arithmetic on them."""
    with pytest.raises(UnknownSize):
        measure(text, SIZES)


def test_built_replaces_symbols_and_keeps_other_values():
    """A symbol becomes its size; words, numbers and flags stay what they are."""
    init = {"width": "D", "wide": "3*D", "kind": "gelu", "norm": "pre-norm", "p": 0.1, "bias": True}
    assert constructor_arguments(init, SIZES) == {
        **init,
        "width": 8,
        "wide": 24,
    }
    assert constructor_arguments({"bias": "True"}, SIZES) == {"bias": "True"}


@pytest.mark.parametrize(
    ("sizes", "hd"),
    [
        ({"D": 8, "H": 2}, 4),
        ({"D": 8, "H": 2, "hd": 3}, 4),
        ({"H": 2, "hd": 3}, 3),
        ({"D": 8, "H": 3}, None),
        ({"H": 2}, None),
        ({"D": 8}, None),
        ({}, None),
    ],
)
def test_hd_is_the_width_of_a_head(sizes, hd):
    """D / H where both are known and fit; else what was said, or nothing."""
    assert with_head_dim(sizes).get("hd") == hd


# ---------------------------------------------------------------- rounds


@st.composite
def contracts(draw):
    """Contracts of attention-like modules: some sizes fixed, some free."""
    sizes = {"B": draw(st.integers(1, 12)), "S": draw(st.integers(1, 13))}
    kind = draw(st.sampled_from(["heads", "grouped", "width", "loose"]))
    if kind == "grouped":
        sizes["Hkv"] = draw(st.integers(1, 4))
        sizes["H"] = sizes["Hkv"] * draw(st.integers(1, 4))
    elif kind != "width":
        sizes["H"] = draw(st.integers(1, 8))
    if kind == "loose":
        sizes["hd"] = 2 * draw(st.integers(1, 6))
    else:
        sizes["D"] = sizes.get("H", 2) * draw(st.integers(1, 8))
    vary = draw(st.sets(st.sampled_from(sorted(sizes))))
    return Contract(sizes=sizes, vary=tuple(sorted(vary)))


@settings(max_examples=200, deadline=None)
@given(contracts(), st.integers(0, 9))
def test_drawn_sizes_are_pairwise_different(contract, seed):
    """What is drawn differs from all else: only two sizes that are both fixed may be equal."""
    example = with_head_dim(contract.sizes)
    drawn = rounds(contract, random.Random(seed))[1:3] if contract.vary else []
    free = "D" in contract.vary or ("D" not in example and "hd" in contract.vary)
    symbols = [s for s in ("B", "S", "H") if s in example] + ["hd"] * (free and "hd" in example)
    for sizes in drawn:
        ones = [s for s in ("B", "S", "H", "Hkv") if s in contract.vary and s in example]
        if all(sizes[s] == (1 if s in ones else n) for s, n in contract.sizes.items() if s != "hd"):
            continue  # the edge: drawn sizes were the example's
        for a, b in combinations(symbols, 2):
            fixed = sizes[a] == example[a] and sizes[b] == example[b]
            assert sizes[a] != sizes[b] or fixed, sizes


@settings(max_examples=200, deadline=None)
@given(contracts(), st.integers(0, 9))
def test_every_round_is_one_that_a_right_module_accepts(contract, seed):
    """Fixed symbols keep their sizes, D is a multiple of H, H of Hkv, and nothing is below 1."""
    all_sizes = [*rounds(contract, random.Random(seed)), naming(contract) or {}]
    for sizes in filter(None, all_sizes):
        assert set(sizes) - {"hd"} == set(contract.sizes) - {"hd"}
        assert min(sizes.values()) >= 1
        assert sizes.get("D", 0) % sizes.get("H", 1) == 0
        assert sizes.get("H", 0) % sizes.get("Hkv", 1) == 0
        if "D" in sizes and "H" in sizes:
            assert sizes["hd"] == sizes["D"] // sizes["H"]
        for symbol, size in contract.sizes.items():
            assert symbol in contract.vary or symbol == "hd" or sizes[symbol] == size


@settings(max_examples=200, deadline=None)
@given(contracts(), st.integers(0, 9), st.integers(2, 6), st.sampled_from(("hd", "D", "H")))
def test_widths_are_the_multiples_that_the_contract_names(contract, seed, times, symbol):
    """In every round, whatever else is free: rotary heads need an even width."""
    example = with_head_dim({s: n * times if s == symbol else n for s, n in contract.sizes.items()})
    if example.get(symbol, 1) % times or example.get("D", 0) % example.get("H", 1):
        return  # not a challenge that can be written
    held = replace(contract, sizes=example, multiples={symbol: times})
    for sizes in rounds(held, random.Random(seed), numbers=(20, 300)):
        assert sizes.get(symbol, 0) % times == 0, sizes
        assert sizes.get("D", 0) % sizes.get("H", 1) == 0, sizes


@given(st.integers(0, 99))
def test_all_free_sizes_are_telling(seed):
    """With everything free, no two of B, S, H, hd, D are equal, but where all are; batches and
    lengths are long."""
    contract = Contract(sizes=SIZES)
    example, *drawn, alike, edge = rounds(contract, random.Random(seed))
    assert alike == {"B": 4, "S": 4, "D": 16, "H": 4, "hd": 4}
    assert example == with_head_dim(SIZES)
    for sizes in drawn:
        alone = sizes["H"] == 1  # one head is as wide as all
        assert len(set(sizes.values())) == len(sizes) - alone == 5 - alone
        assert (sizes["H"] >= 3 or alone, sizes["S"] >= 5) == (True, True)
    assert any(s["H"] == 1 and s["hd"] > 16 and s["B"] > 9 for s in drawn)
    assert (max(s["B"] for s in drawn) >= 3, max(s["S"] for s in drawn) > 16) == (True, True)
    assert (edge["B"], edge["S"], edge["D"]) == (1, 1, 8)


def test_symbols_of_a_challenge_s_own_vary_where_they_may():
    """Rows and columns of a grid are told apart and change places, a window is now and then shorter
    than the sequence; what is not to vary does not."""
    grid = Contract(sizes={"B": 2, "R": 3, "C": 5, "D": 8}, vary=("B", "R", "C", "D"))
    drawn = rounds(grid, random.Random(1))
    assert {s["R"] < s["C"] for s in drawn} == {True, False}
    assert any(s["R"] == s["C"] for s in drawn)
    beyond = [s for s in rounds(grid, random.Random(1), (40,)) if min(s["R"], s["C"]) > 40]
    assert beyond
    assert {s["R"] for s in rounds(replace(grid, vary=("B", "D")), random.Random(1))} == {3}
    window = Contract(sizes={"S": 6, "W": 3}, vary=("S", "W"))
    assert len({s["W"] for s in rounds(window, random.Random(1)) if s["W"] < s["S"]}) > 2


def test_there_may_be_as_many_queries_as_keys():
    """What is causal in a square alone is wrong in one of the rounds."""
    across = Contract(sizes={"Sq": 3, "Sk": 5, "D": 8}, vary=("Sq", "Sk", "D"))
    assert any(s["Sq"] == s["Sk"] for s in rounds(across, random.Random(1)))


def test_sizes_go_beyond_the_numbers_that_a_source_names():
    """`if S > 64`, chunks of 13, a buffer of 300 rows: what is larger is drawn, within reason."""
    contract = Contract(sizes=SIZES)
    usual = rounds(contract, random.Random(3))
    found = rounds(contract, random.Random(3), (13, 64, 300))
    some, sixty, hundreds, heads, batch, width, blocks = (s for s in found if s not in usual)
    assert (batch["B"] > 302, batch["S"] < 7) == (True, True)
    assert (width["hd"], width["S"] < 9, blocks["S"]) == (64, True, 128)
    assert heads["H"] > 64 > heads["D"] / heads["H"]  # so many that they are narrow
    assert min(some[n] for n in ("B", "S", "H", "hd")) > 13
    assert min(sixty[n] for n in ("B", "S", "hd")) > 64
    assert (hundreds["S"] > 300, hundreds["B"], hundreds["hd"] < 10) == (True, 2, True)


def test_large_numbers_take_few_sequences_and_heads():
    """2048 squared is as much as there is time for; of blocks the last one is not all but empty."""
    usual = rounds(Contract(sizes=SIZES), random.Random(3))
    found = rounds(Contract(sizes=SIZES), random.Random(3), (512, 2048))
    some, most, _ = (s for s in found if s not in usual)
    assert (some["B"], some["S"] > 512 + 50) == (2, True)
    assert (most["B"] * most["H"] <= 2, most["S"]) == (True, 2049)


def test_heads_of_width_one():
    """Only where values can be compared: right code may lose more than float32 has there."""
    found = rounds(Contract(sizes=SIZES), random.Random(3), narrow=True)
    assert any(s["hd"] == 1 and s["H"] > 1 and s["S"] > 16 for s in found)
    assert all(s["hd"] > 1 for s in rounds(Contract(sizes=SIZES), random.Random(3)))


def test_a_table_of_numbers_makes_no_job_of_rounds_without_end():
    """And a number that the usual sizes go beyond takes none of its own."""
    usual = rounds(Contract(sizes=SIZES), random.Random(5))
    many = rounds(Contract(sizes=SIZES), random.Random(5), tuple(range(4, 999)))
    own = [sizes for sizes in many if sizes not in usual]
    assert len(own) == MOST
    assert own[0]["hd"] > max(sizes["hd"] for sizes in usual if sizes["H"] > 1)
    few = Contract(sizes=SIZES, vary=("S",))
    assert rounds(few, random.Random(5), (4, 15)) == rounds(few, random.Random(5))
    assert max(sizes["S"] for sizes in rounds(few, random.Random(5), (37,))) > 37


def test_rounds_are_the_same_for_the_same_seed():
    """A grade can be had again."""
    contract = Contract(sizes=SIZES)
    assert rounds(contract, random.Random(3)) == rounds(contract, random.Random(3))


def test_a_width_without_heads_is_even():
    """Sinusoids refuse an odd width: no right module may fail for that."""
    contract = Contract(sizes={"B": 2, "S": 4, "D": 8})
    assert {sizes["D"] % 2 for sizes in rounds(contract, random.Random(0))} == {0}
    loose = Contract(sizes={"B": 2, "S": 4, "H": 3, "hd": 4}, vary=("B", "S", "H", "hd"))
    assert {sizes["hd"] % 2 for sizes in rounds(loose, random.Random(0))} == {0}


def test_grouped_heads_are_drawn_in_groups():
    """H moves in steps of Hkv, and Hkv stays where H does: GQA accepts no others."""
    sizes = {"B": 2, "S": 4, "D": 24, "H": 12, "Hkv": 4}
    free = rounds(Contract(sizes=sizes, vary=("D", "H")), random.Random(0))[1:3]
    assert [(s["H"] % 4, s["H"] != 12) for s in free] == [(0, True)] * 2
    bound = Contract(sizes={"B": 1, "S": 1, "D": 7, "H": 1, "Hkv": 1}, vary=("D", "Hkv", "S"))
    for drawn in rounds(bound, random.Random(1))[1:3]:
        assert drawn["S"] != drawn["hd"] != 7


def test_no_round_is_longer_than_the_longest_sequence():
    """M is the limit that the module states: no right module takes more positions."""
    sizes = {"B": 2, "S": 4, "Sk": 5, "D": 8, "M": 9}
    contract = Contract(sizes=sizes, vary=("B", "S", "Sk", "D"))
    drawn = rounds(contract, random.Random(0))
    assert [max(sizes[s] for sizes in drawn) for s in ("S", "Sk")] == [9, 9]


def test_extra_sizes_stand_over_the_example():
    """A probe changes what it names; hd follows; the same sizes are tried once."""
    contract = Contract(sizes=SIZES, vary=(), extra_sizes=({"S": 1}, {"D": 12}, {"S": 1}))
    assert rounds(contract, random.Random(0)) == [
        {**SIZES, "hd": 4},
        {**SIZES, "S": 1, "hd": 4},
        {**SIZES, "D": 12, "hd": 6},
    ]


def test_lengths_of_other_names_are_drawn_too():
    """Sq, Sk, T and L vary where the contract lets them."""
    contract = Contract(sizes={"B": 2, "Sq": 4, "Sk": 4}, vary=("B", "Sq", "Sk"))
    for sizes in (*rounds(contract, random.Random(0))[1:3], naming(contract)):
        assert len(set(sizes.values())) == 3


# ---------------------------------------------------------------- naming


def test_naming_sizes_tell_every_axis():
    """Pairwise different, and none a product of others, but for D = H * hd."""
    sizes = naming(Contract(sizes=SIZES))
    assert len(set(sizes.values())) == len(sizes)
    assert sizes["D"] == sizes["H"] * sizes["hd"]


@pytest.mark.parametrize(("vary", "sizes"), [((), SIZES), (("B", "S"), {"M": 5}), (("B",), {})])
def test_naming_needs_something_to_vary(vary, sizes):
    """With every size fixed there is no second look."""
    assert naming(Contract(sizes=sizes, vary=vary)) is None


def test_masks_of_thousands_are_drawn_too():
    """A chunk of 2048 queries goes wrong at the 2049th, with a mask or without."""
    mask = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask")
    for inputs in ((), (mask,)):
        contract = Contract(sizes=SIZES, inputs=inputs)
        found = rounds(contract, random.Random(3), (2048,))
        assert any(s["S"] > 2048 for s in found)
