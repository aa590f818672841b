"""What is read off the answers of a training half."""

import torch

from attnlab.grading.observations import COMPARISONS, Extent, compare_runs, constant_answers


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


def test_generation_shows_the_row_that_differs_and_its_prompt():
    """The first row may well be right, the prompt be written over, or generation end early."""

    def told(ids):
        given = {"prompts": [torch.tensor([[1, 2], [7, 6]])], "dropout": False}
        mine, right = (given | {"ids": [each]} for each in (ids, right_ids))
        return COMPARISONS["generation"](mine, right, None)

    right_ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1]])
    other, prompt = right_ids.clone(), right_ids.clone()
    other[1, -1], prompt[1, 0] = 9, 9
    assert told(right_ids.clone()) == ""
    went = "for [7, 6] generate went on with"
    assert told(other) == f"{went} [5, 4, 3, 2, 9], the right program with [5, 4, 3, 2, 1]"
    assert f"{went} [9, 6, 5, 4, 3, 2, 1], the right" in told(prompt)
    assert told(right_ids[:, :4]).endswith("with [3, 4], the right program with [3, 4, 5, 6, 7]")
