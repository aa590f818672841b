"""Which equality of sizes a run hangs on, found by putting one at a time back."""

import pytest
from modules import SIZES, X, module, traced
from right_modules import HEADS, JOIN, SPLIT

from attnlab.records import Contract
from attnlab.tracer.size_coincidence import Relation, find_relation, variable_symbols, with_size

BODY = HEADS.replace("2\n", "heads\n", 1)


def net(forward, head="self, x"):
    return module(forward, BODY, head=head, takes="width, heads")


def contract(sizes=SIZES, inputs=(X,), **more):
    init = {"width": "D", **({"heads": "H"} if "H" in sizes else {})}
    return Contract(sizes=sizes, init=init, inputs=inputs, **more)


def chance(text, asked):
    """What the run is said to hang on; "" where it is said to hang on nothing."""
    trace = traced(text, asked)
    assert trace.crash is None, trace.crash
    said = [f for f in trace.findings if f.rule == "size-coincidence"]
    assert all(trace.ops[f.index].line == f.line for f in said)
    return said[0].message.partition(":")[0] if said else ""


# ---------------------------------------------------------------- found, by name


@pytest.mark.parametrize(
    ("forward", "sizes", "said"),
    [
        (SPLIT + "y = (q @ k).softmax(-1) @ v" + JOIN, SIZES, "S == hd (= 4)"),
        ("return x * torch.ones(self.h)[:, None, None]", SIZES, "B == H (= 2)"),
        ("return self.out(x.mT)", {"B": 2, "S": 8, "D": 8, "H": 2}, "S == D (= 8)"),
        ("return x + x.transpose(0, 1)", {"B": 3, "S": 3, "D": 8, "H": 2}, "B == S (= 3)"),
        ("return x.view(*x.shape[1:])", {"B": 1, "S": 3, "D": 8, "H": 2}, "B == 1"),
        (
            "B, S, D = x.shape\nreturn x.view(B, self.h, S // self.h, D).flatten(1, 2)",
            SIZES,
            "S (= 4) is a multiple of H (= 2)",
        ),
        (
            "y = x.unflatten(-1, (self.h, -1))\nreturn (y @ torch.ones(self.h, self.h)).flatten(2)",
            {"B": 3, "S": 5, "D": 4, "H": 2},
            "hd == H (= 2)",
        ),
    ],
)
def test_the_equality_is_named(forward, sizes, said):
    """With the size at which it holds in the example."""
    assert chance(net(forward), contract(sizes)) == f"runs only because {said}"


def test_groups_that_are_as_many_as_key_heads():
    """H / Hkv == Hkv hides heads that are grouped the wrong way round."""
    text = module(
        "q = self.q(x).unflatten(-1, (self.h, -1)).transpose(1, 2)\n"
        "k = self.k(x).unflatten(-1, (self.kv, -1)).transpose(1, 2)\n"
        "return q.unflatten(1, (-1, self.h // self.kv)) @ k.unsqueeze(1).mT",
        "self.h, self.kv = heads, kv\nself.q = nn.Linear(width, width)\n"
        "self.k = nn.Linear(width, width // heads * kv)",
        takes="width, heads, kv",
    )
    sizes = {"B": 3, "S": 5, "D": 12, "H": 4, "Hkv": 2}
    init = {"width": "D", "heads": "H", "kv": "Hkv"}
    asked = Contract(sizes=sizes, init=init, inputs=(X,), vary=tuple(sizes))
    assert chance(text, asked) == "runs only because Hkv == H/Hkv (= 2)"


def test_two_equalities_at_one_time_are_told_without_names():
    """No single one mends the run: it is said that sizes coincide, and no more."""
    forward = "return x + x.transpose(0, 1) + x.transpose(0, 2)"
    sizes = {"B": 4, "S": 4, "D": 4, "H": 2}
    assert chance(net(forward), contract(sizes)).startswith("runs only because")


# ---------------------------------------------------------------- no accidents


@pytest.mark.parametrize(
    ("forward", "sizes"),
    [
        ("B, S, D = x.shape\nn = int(S**0.5)\nreturn x.view(B, n, n, D).flatten(1, 2)", SIZES),
        ("return x + torch.ones(9, x.shape[-1])[: x.shape[1]]", {**SIZES, "S": 9}),
        ("return x + torch.ones(4, x.shape[-1])[: x.shape[1]]", SIZES),
        ("B, S, D = x.shape\nreturn x.view(B, S // 4, 4, D).flatten(1, 2)", SIZES),
        ("B, S, D = x.shape\nreturn x.view(B, 2, 2, D).flatten(1, 2)", SIZES),
        ("S = x.shape[1]\nassert S & (S - 1) == 0\nreturn x", SIZES),
        ("if x.shape[1] > 4: raise ValueError('too long')\nreturn x", SIZES),
    ],
)
def test_what_is_so_by_design_is_not_blamed(forward, sizes):
    """Square grids, tables that end, windows, literal sizes, powers of two, refusals."""
    assert chance(net(forward), contract(sizes)) == ""


# ---------------------------------------------------------------- the search by itself


def test_the_search_stops_where_nothing_can_be_said():
    """Runs that cannot be made count neither for nor against."""
    telling = {"B": 11, "S": 13, "D": 140, "H": 7, "hd": 20}
    assert find_relation(contract(), telling, lambda sizes: None) == ""
    assert find_relation(contract(), telling, lambda sizes: True) == ""


def test_a_relation_that_any_size_satisfies_is_none():
    """It mends the run, but so does every other value."""
    telling = {"B": 11, "S": 13, "D": 140, "H": 7, "hd": 20}
    assert find_relation(contract(), telling, lambda sizes: sizes["S"] == 13) == ""


@pytest.mark.parametrize(
    ("symbol", "size", "expected"),
    [
        ("S", 5, {"S": 5, "D": 8, "H": 2, "hd": 4}),
        ("hd", 6, {"S": 4, "D": 12, "H": 2, "hd": 6}),
        ("H", 3, {"S": 4, "D": 12, "H": 3, "hd": 4}),
        ("D", 6, {"S": 4, "D": 6, "H": 2, "hd": 3}),
        ("D", 7, None),
        ("S", 0, None),
    ],
)
def test_what_hangs_on_a_size_moves_with_it(symbol, size, expected):
    """D = H * hd stays true; what cannot be is not tried."""
    assert with_size({"S": 4, "D": 8, "H": 2, "hd": 4}, symbol, size) == expected


def test_key_heads_take_the_query_heads_with_them():
    """H stays a multiple of Hkv, and the groups keep their size."""
    sizes = {"D": 24, "H": 6, "hd": 4, "Hkv": 2}
    assert with_size(sizes, "Hkv", 3) == {"D": 36, "H": 9, "hd": 4, "Hkv": 3}
    assert with_size(sizes, "H", 5) is None
    assert with_size(sizes, "H/Hkv", 2) == {"D": 16, "H": 4, "hd": 4, "Hkv": 2}


def test_limits_and_fixed_symbols_do_not_move():
    """M is the length of a table, V of a vocabulary; what the contract fixes stays."""
    asked = contract({**SIZES, "M": 9, "V": 7, "T": 3}, vary=("S", "D", "M", "V"))
    assert variable_symbols(asked) == ["S", "hd", "D"]


def test_a_relation_reads_as_it_holds():
    """Also where one side is a quotient."""
    sizes = {"S": 4, "H": 2, "Hkv": 1}
    assert Relation("S", "1").shown(sizes) == "S == 1"
    assert Relation("H", "H/Hkv").shown(sizes) == "H == H/Hkv (= 2)"
