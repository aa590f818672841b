"""What attention weights tell, head by head."""

import math

import pytest
import torch
from shots import CAUSAL, x

from attnlab.tracer.views.attention_heads import MOST, describe_heads, number_ranges

NONE = torch.zeros(4, 4, dtype=torch.bool)


def told(scores, barred=NONE):
    return describe_heads(scores.masked_fill(barred, -math.inf).softmax(-1), ~barred, "softmax", 3)


def test_a_head_has_a_map_an_entropy_and_its_largest_weight():
    """Even weights over four keys: log 4 nats, and a quarter each."""
    (head,) = told(torch.zeros(1, 4, 4)).heads
    assert head.entropy == pytest.approx(math.log(4))
    assert (head.largest, head.number) == (0.25, 0)
    assert (head.weights.title, head.weights.index) == ("head 0 of softmax", 3)


def test_causal_and_coverage():
    """No weight on a later key, and ten of sixteen pairs."""
    got = told(x(2, 4, 4), CAUSAL)
    assert (got.causal, got.coverage) == (True, 0.625)
    assert told(x(2, 4, 4)).causal is False


def test_one_query_is_neither_causal_nor_not():
    """A decoding step sees all that there is."""
    assert describe_heads(x(2, 1, 4).softmax(-1), None, "softmax", 0).causal is None


def test_a_longer_memory_of_keys_counts_from_its_end():
    """With a cache, the last query belongs to the last key."""
    barred = torch.ones(2, 5, dtype=torch.bool).triu(4)
    assert (
        describe_heads(x(1, 2, 5).masked_fill(barred, -math.inf).softmax(-1), None, "", 0).causal
        is True
    )


def peaked(head, key):
    scores = x(3, 4, 4)
    scores[head, :, key] += 40
    return scores


@pytest.mark.parametrize(
    ("scores", "barred", "message"),
    [
        (peaked(2, 1), NONE, "head 2 looks at one key only, key 1"),
        (torch.zeros(2, 4, 4), NONE, "every head is uniform: each query weighs the keys that it "),
        (torch.zeros(2, 4, 4), CAUSAL, "every head is uniform"),
        (x(1, 4, 4).expand(3, 4, 4) * 3, NONE, "all 3 heads have the same weights"),
        (x(2, 4, 4), NONE.index_fill(0, torch.tensor([0, 1, 2]), True), "queries 0-2 may attend"),
        (x(2, 4, 4), NONE.index_fill(0, torch.tensor(1), True), "query 1 may attend to nothing"),
        (x(2, 4, 4).index_fill(1, torch.tensor(2), math.nan), NONE, "the weights of query 2 in "),
        (x(2, 4, 4) * 3, NONE, "a query spreads over about "),
    ],
)
def test_the_most_striking_is_said(scores, barred, message):
    """One sentence, and what is wrong comes before what is merely odd."""
    assert told(scores, barred).message.startswith(message)


def test_some_heads_are_named():
    """Uniform heads among others."""
    scores = x(3, 4, 4) * 5
    scores[1] = 0
    assert told(scores).message.startswith("head 1 is uniform")


def test_a_softmax_over_the_queries_shows_in_the_sums():
    """Each column adds up to 1, the rows do not."""
    message = describe_heads(x(2, 4, 4).softmax(-2), None, "softmax", 0).message
    assert "not 1, but those of each key over the queries do" in message


def test_a_row_that_sees_nothing_has_no_share_in_the_mean():
    """Entropy is that of the queries that may see a key."""
    barred = NONE.index_fill(0, torch.tensor(0), True)
    (head,) = told(torch.zeros(1, 4, 4), barred).heads
    assert head.entropy == pytest.approx(math.log(4))


def test_many_heads_are_not_all_drawn():
    """The first ones are enough for a page."""
    assert len(told(x(MOST + 3, 4, 4)).heads) == MOST


def test_numbers_as_people_say_them():
    """Ranges where they are, lists else."""
    assert number_ranges([3], "row", "rows") == "row 3"
    assert number_ranges([0, 1, 2], "row", "rows") == "rows 0-2"
    assert number_ranges([0, 2, 5], "row", "rows") == "rows 0, 2 and 5"
    assert number_ranges([*range(0, 20, 2)], "row", "rows") == "rows 0, 2, 4, 6, 8, 10, ... and 18"
