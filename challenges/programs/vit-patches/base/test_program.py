"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import math

import torch

import data
import train


def test_every_picture_gets_logits() -> None:
    pictures = data.HELD_OUT[0][:5]
    assert train.make_model()(train.normalise(pictures)).shape == (5, len(data.CLASSES))


def test_the_first_loss_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    losses = train.train(model, train.make_optimizer(model), 1)
    assert abs(losses[0] - math.log(len(data.CLASSES))) < 0.3


def test_pictures_that_it_never_saw_are_told_apart() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    assert train.evaluate(model) < 0.08
