"""The laws of atoms: what is split stays whole, what is copied stays kin."""

from hypothesis import given
from hypothesis import strategies as st

from attnlab.tracer.axes.atoms import (
    Atom,
    anonymous,
    collapsed,
    find,
    leaves,
    link_peers,
    part,
    peer,
    primed,
    root,
    size,
    split,
    stem,
)

factors = st.lists(st.integers(2, 5), min_size=1, max_size=4)


def whole(sizes):
    atom = Atom(1, "index", "S")
    for n in sizes:
        atom.size *= n
    return atom


@given(factors)
def test_pieces_make_up_the_whole(sizes):
    """However an axis is cut, its size and, put together, the axis are what they were."""
    atom = whole(sizes)
    split(atom, sizes)
    assert [a.size for a in leaves((atom,))] == sizes
    assert size(leaves((atom,))) == atom.size
    assert collapsed((atom,)) == (atom,)


@given(factors, st.data())
def test_pieces_out_of_order_are_no_whole(sizes, data):
    """(hd, H) is not the D that was split as (H, hd)."""
    atom = whole(sizes)
    kids = split(atom, sizes)
    order = data.draw(st.permutations(kids))
    assert (collapsed(tuple(order)) == (atom,)) == (list(order) == list(kids))


@given(factors)
def test_copies_are_kin_and_not_the_same(sizes):
    """S' is another axis than S, and both count the same positions."""
    atom = whole(sizes)
    (copy,) = primed((atom,))
    assert copy is not atom
    assert stem(copy) is copy
    assert root(copy) is atom


def test_a_slice_has_the_stem_of_what_it_is_of():
    """Scores with a sink column, cut back, run along the keys as before."""
    (keys,) = primed((Atom(7, "index", "S"),))
    longer = Atom(8, "joined", base=keys)
    (cut,) = part((longer,), 7)
    assert stem(cut) is keys


def test_aliases_in_a_circle_end():
    """Two anonymous axes may each have become a copy of the other."""
    a = Atom(3)
    b = Atom(3, base=a)
    a.alias = b
    assert find(a) is b
    assert root(a) is root(b)


def test_a_slice_of_a_merged_axis_is_one_of_its_parts():
    """A chunk of (3, D) is D."""
    three, width = Atom(3), Atom(8, "feature")
    assert part((three, width), 8) == (width,)
    assert part((three, width), 1) == ()


def test_friends_of_friends_are_friends():
    """The heads of q, k and v were lined up pair by pair."""
    q, k, v = (Atom(2, "feature") for _ in range(3))
    link_peers(q, k)
    link_peers(v, k)
    link_peers(q, v)
    assert peer(q) is peer(k) is peer(v)


def test_an_axis_of_one_has_no_atoms():
    """It may go and come without anybody noticing."""
    assert [len(axis) for axis in anonymous((1, 5, 1))] == [0, 1, 0]
