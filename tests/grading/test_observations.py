"""What is read off the answers of a training half."""

import torch

from attnlab.grading.observations import Extent, constant_answers


def generated(*tails):
    rows = [torch.tensor([[7, 8, *tail]]) for tail in tails]
    return {"generation": {"ids": rows}}


def test_answers_that_are_always_the_same_are_told():
    """Of what a program adds to its prompts, and of the classes that it predicts."""
    same, other = [1] * Extent.new_ids, [2] * Extent.new_ids
    assert list(constant_answers(generated(same, other))) == []
    assert "the same ids to all prompts" in next(constant_answers(generated(same, same)))
    classes = torch.tensor([3, 3, 3])
    predicted = {"prediction": {"classes": [classes, torch.tensor(3)]}}
    assert "one class for all items" in next(constant_answers(predicted))
    assert list(constant_answers({"prediction": {"classes": [classes, classes - 1]}})) == []
