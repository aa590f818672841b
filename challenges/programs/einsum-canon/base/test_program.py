"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import math

import torch

import data
import model
import train


def test_logits_have_one_row_for_each_note() -> None:
    weights = train.make_model()
    assert model.forward(weights, torch.zeros(2, 7, dtype=torch.long)).shape == (2, 7, 11)


def test_the_surprise_of_a_guess_is_the_logarithm_of_the_choices() -> None:
    logits, targets = torch.zeros(2, 3, 11), torch.ones(2, 3, dtype=torch.long)
    counted = torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    assert abs(train.cross_entropy(logits, targets, counted).item() - 3 * math.log(11)) < 1e-5


def test_training_learns_to_go_on_with_a_canon() -> None:
    torch.manual_seed(0)
    weights = train.make_model()
    train.train(weights, train.make_optimizer(weights), train.STEPS)
    tune = data.HELD_OUT[0]
    begun = tune[: 1 + data.BAR]
    assert torch.equal(train.generate(weights, begun[None], len(tune) - len(begun))[0], tune)
