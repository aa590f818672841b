"""Sizes read back as symbols: the right one, or the number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modules import ATTENTION, MASK, X, module, traced

from attnlab.probe.inputs.sizes import naming
from attnlab.records import Contract, Input
from attnlab.sizes import measure, with_head_dim
from attnlab.tracer.axes.render_names import Symbols

SIZES = {"B": 2, "S": 4, "D": 8, "H": 2}
TELLING = naming(Contract(sizes=SIZES))
GROUPED = naming(Contract(sizes={**SIZES, "H": 4, "Hkv": 2}, vary=("B", "S", "D", "H", "Hkv")))
multiples = [f"{k}*{s}" for s in TELLING for k in (2, 3, 4)] + ["D/2", "hd/2"]
products = ["B*S", "B*H", "S*S", "S*hd", "S*D", "B*S*H", "B*S*D", "B*S*hd", "D*D"]


@given(st.lists(st.sampled_from([*TELLING, *multiples, *products]), max_size=6))
def test_a_shape_made_of_symbols_reads_back_as_these(axes):
    """At the naming sizes no size is two things."""
    shape = tuple(measure(axis, TELLING) for axis in axes)
    assert list(map(Symbols(TELLING).fit, shape)) == list(axes)


@given(st.lists(st.sampled_from(["B", "S", "D", "H", "Hkv", "hd", "2*S", "Hkv*hd"]), max_size=5))
def test_grouped_heads_read_back_too(axes):
    """H and Hkv are told apart, and neither is mistaken for a multiple."""
    shape = tuple(measure(axis, GROUPED) for axis in axes)
    assert list(map(Symbols(GROUPED).fit, shape)) == list(axes)


@given(st.dictionaries(st.sampled_from("BSDHT"), st.integers(1, 12)), st.integers(0, 300))
def test_a_name_always_measures_what_it_names(sizes, size):
    """Whatever the sizes are: a name is never wrong, and a size of two symbols has none."""
    name = Symbols(sizes).fit(size)
    assert measure(name, sizes) == size
    same = [s for s, n in sizes.items() if n == size]
    assert len(same) < 2 or name == str(size)


@pytest.mark.parametrize(
    ("size", "name"),
    [(4, "4"), (2, "2"), (8, "D"), (24, "3*D"), (1, "1"), (0, "0"), (-1, "-1"), (97, "97")],
)
def test_what_is_not_unique_is_a_number(size, name):
    """With S = hd = 4 and B = H = 2 these axes cannot be told; 1 and 0 are never a symbol."""
    assert Symbols(with_head_dim(SIZES)).fit(size) == name


def test_a_batch_of_one_is_a_one():
    """An axis of size 1 is as likely one that was put in: it is never called B."""
    assert list(map(Symbols({"B": 1, "S": 4}).fit, (1, 4))) == ["1", "S"]


def test_an_odd_size_has_no_half():
    """S/2 of 5 positions is no size."""
    assert Symbols({"S": 5}).fit(2) == "2"


# ---------------------------------------------------------------- rows of a run


def rows(forward, contract=ATTENTION, init=""):
    head = ", ".join(["self", *(f"{i.name}=None" for i in contract.inputs)])
    text = module(forward, init=init, head=head, takes="embed_dim, num_heads")
    return traced(text, contract)


SPLIT = """\
B, S, D = x.shape
heads = x.reshape(B, S, self.H, D // self.H).transpose(1, 2)
scores = heads @ heads.mT
return scores.flatten(1)"""


def test_rows_are_named_where_the_examples_sizes_coincide():
    """B = H = 2 and S = hd = 4 in the example: a second run at other sizes tells which is which."""
    trace = rows(SPLIT, init="self.H = num_heads")
    assert [op.axes for op in trace.ops] == [
        ("B", "S", "H", "hd"),
        ("B", "H", "S", "hd"),
        ("B", "H", "hd", "S"),
        ("B", "H", "S", "S'"),
        ("B", "H*S*S'"),
    ]
    assert trace.ops[-1].shape == (2, 32)


def test_numbers_in_the_code_stay_numbers():
    """A literal 3, or a 13 that happens to be S in the second run, is nobody's size."""
    trace = rows("return x.new_zeros(3, 13), x.new_ones(5, 7)")
    assert [op.axes for op in trace.ops] == [("3", "13"), ("5", "7")]


def test_rows_behind_a_fork_are_named_from_their_own_sizes():
    """Where the second run takes another way, its shapes say nothing about this one."""
    trace = rows("if x.shape[0] > 2: x = x.sum(0)\nreturn x.sum(-1)")
    assert trace.ops[0].axes == ("B", "S")


def test_operands_of_a_crash_are_named():
    """Both operands, from the same crash at the telling sizes."""
    trace = rows("return x @ x")
    assert [o.axes for o in trace.crash.operands] == [("B", "S", "D"), ("B", "S", "D")]


def test_a_crash_that_is_another_one_elsewhere_is_named_from_here():
    """The second run raised at another line: its operands are not these."""
    trace = rows("if x.shape[0] > 2: x.view(-1, 3)\nreturn x @ x")
    assert [o.axes for o in trace.crash.operands] == [("B", "S", "D")] * 2


def test_fixed_sizes_are_named_from_the_example():
    """A module that is bound to its sizes runs once, and what is unique there has its name."""
    contract = Contract(
        sizes={"B": 3, "S": 5, "D": 8},
        init={"embed_dim": 8, "num_heads": 2},
        inputs=(X, MASK),
        vary=("B", "S"),
    )
    trace = rows("return self.proj(x)", contract, init="self.proj = nn.Linear(8, 24)")
    assert trace.ops[0].axes == ("B", "S", "3*D")


def test_a_number_among_the_inputs_axes_keeps_to_the_example():
    """An input with a fixed axis is not drawn at other sizes."""
    contract = Contract(
        sizes={"B": 3, "S": 5},
        init={"embed_dim": 4, "num_heads": 1},
        inputs=(Input(name="x", axes=("B", "S", "4")),),
    )
    assert rows("return x.mT * 1", contract).ops[0].axes == ("B", "4", "S")
