"""Where attention is, from the rows alone."""

from attnlab.records.trace import Op
from attnlab.tracer.views.attention_sites import FAR, find_sites


def rows(*steps):
    """Rows from (name, *parents), all of one shape."""
    return [row(i, *step) for i, step in enumerate(steps)]


def row(index, op, *parents):
    return Op(
        index=index,
        op=op,
        line=index,
        file="net.py",
        source="",
        shape=(2, 4, 4),
        axes=("2", "4", "4"),
        dtype="float32",
        stride=(16, 4, 1),
        view=False,
        parents=parents,
    )


def found(*steps):
    return [(s.soft, s.weights, s.context, s.entry) for s in find_sites(rows(*steps))]


def test_a_softmax_that_meets_a_product():
    """Scores, weights, context."""
    assert found(("matmul", -1), ("softmax", 0), ("matmul", 1, -1)) == [(1, 1, 2, 0)]


def test_what_stands_between_weights_and_values():
    """Dropout makes the weights that count, a view leaves them what they are."""
    steps = (("matmul", -1), ("softmax", 0), ("dropout", 1), ("view", 2), ("bmm", 3, -1))
    assert found(*steps) == [(1, 2, 4, 0)]


def test_a_softmax_of_an_input():
    """What goes in was made by nobody."""
    assert found(("softmax", -1), ("matmul", 0, -1)) == [(0, 0, 1, None)]


def test_a_softmax_without_a_product_is_none():
    """A classifier, a router that picks the largest."""
    assert found(("linear", -1), ("softmax", 0), ("topk", 1), ("matmul", 2, -1)) == []


def test_a_quotient_that_is_no_softmax():
    """Only an exponential over the sum of itself is one."""
    exp = ("exp", -1)
    assert found(exp, ("sum", 0), ("div", 0, 1), ("matmul", 2, -1)) == [(2, 2, 3, None)]
    assert found(exp, ("sum", -1), ("div", 0, 1), ("matmul", 2, -1)) == []
    assert found(("matmul", -1), ("sum", 0), ("div", 0, 1), ("matmul", 2, -1)) == []


def test_the_largest_one_is_taken_off_the_scores():
    """exp(s - max(s)): the scores are s."""
    steps = (("matmul", -1), ("amax", 0), ("sub", 0, 1), ("exp", 2), ("sum", 3), ("div", 3, 4))
    assert found(*steps, ("matmul", 5, -1)) == [(5, 5, 6, 0)]


def test_the_chain_leads_to_the_product():
    """Of the two operands of a sum, the one that a product made; it ends there."""
    (site,) = find_sites(
        rows(
            ("matmul", -1), ("zeros",), ("div", 0), ("add", 1, 2), ("softmax", 3), ("matmul", 4, -1)
        )
    )
    assert site.chain == (3, 2, 0)


def test_a_fused_attention_is_its_own_context():
    """One row plays all the parts."""
    (site,) = find_sites(rows(("scaled_dot_product_attention", -1)))
    assert (site.fused, site.context) == (True, 0)


def test_a_long_way_is_not_followed_forever():
    """A product far below has nothing to do with the softmax."""
    steps = [("softmax", -1), *(("mul", i) for i in range(FAR)), ("matmul", FAR, -1)]
    assert found(*steps[: FAR - 1], ("matmul", FAR - 2, -1)) != []
    assert found(*steps) == []
