"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import torch

import data
import train


def test_logits_have_one_row_for_each_character() -> None:
    model = train.make_model()
    assert model(torch.zeros(2, 7, dtype=torch.long)).shape == (2, 7, len(data.CHARACTERS))


def test_the_first_loss_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    losses = train.train(model, train.make_optimizer(model), 1)
    assert abs(losses[0] - torch.tensor(float(len(data.CHARACTERS))).log().item()) < 0.3


def test_training_learns_the_lines() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    assert train.evaluate(model) < 0.1
