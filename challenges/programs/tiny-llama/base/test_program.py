"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import math

import torch

import data
import train


def test_logits_have_one_row_for_each_symbol() -> None:
    model = train.make_model()
    assert model(torch.ones(2, 7, dtype=torch.long)).shape == (2, 7, len(data.SYMBOLS))


def test_the_first_loss_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    losses = train.train(model, train.make_optimizer(model), 1)
    assert abs(losses[0] - math.log(len(data.SYMBOLS))) < 0.4


def test_training_learns_to_put_digits_in_order() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    assert train.evaluate(model) > 0.85
