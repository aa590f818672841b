"""Pieces that a loop computes are the value that others compute at once."""

import torch

from attnlab.candidate.value_recorder import Value
from attnlab.diagnosis.loops import inner_loops, join, loops


def step(op, line, *numbers):
    return Value(op, "mine.py", line, "", 0, 0, [], torch.tensor(numbers))


def test_equal_pieces_stand_along_a_new_axis():
    """Of four heads, say: (4, S, hd)."""
    whole = torch.randn(4, 3, 2, dtype=torch.float64)
    assert [w.tolist() for w in join(list(whole))] == [whole.tolist()]


def test_short_scores_are_filled_up_with_what_is_masked():
    """As of a query that has seen two keys out of three; and end to end, as of packed texts."""
    scores = [torch.tensor([-1.0]), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])]
    ends, whole = join(scores)
    assert ends.tolist() == [-1, 1, 2, 3, 4, 5]
    assert whole[0].tolist() == [-1, -torch.inf, -torch.inf]
    assert list(join([scores[0], torch.ones(2, 2)])) == []


def test_two_products_of_a_line_are_two_steps():
    """Of one turn of a loop, which has scores and then what they mix."""
    turn = [step("matmul", 3, 1.0), step("softmax", 3, 1.0), step("matmul", 3, 1.0)]
    assert list(loops([*turn, *turn])) == [[0, 3], [1, 4], [2, 5]]
    assert list(loops(turn)) == []


def test_a_loop_inside_of_another_one_has_pieces_of_its_own():
    """Two layers with two heads each: what the layer does after its heads runs further out."""
    head = Value("mul", "mine.py", 9, "", 0, 0, [], torch.ones(2), callers=[20, 30])
    after = Value("add", "mine.py", 21, "", 0, 0, [], torch.ones(2), callers=[30])
    values = [head, head, after, head, head, after]
    assert [0, 1, 3, 4] in list(loops(values))
    assert list(inner_loops(values)) == [[0, 1], [3, 4]]
    assert list(inner_loops([head, head, head, head])) == []
