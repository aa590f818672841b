"""What is read off the answers of a training half."""

import torch

from attnlab.grading.observations import Extent, compare_runs, constant_answers


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


def test_two_numbers_that_differ_are_shown_to_differ():
    """With more digits where six are the same."""
    losses = [torch.tensor([each], dtype=torch.float64) for each in (1.39817001, 1.39817402)]
    mine, right = ({"losses": one, "exact": True, "dropout": False, "modes": []} for one in losses)
    message = compare_runs(mine, right, dict)
    assert message == "the loss of step 1 is 1.39817001, the right program's 1.39817402"
