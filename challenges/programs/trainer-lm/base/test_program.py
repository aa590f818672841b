"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import math

import torch

import data
import train


def test_every_word_gets_logits() -> None:
    model = train.make_model()
    assert model(torch.zeros(3, 5, dtype=torch.long)).shape == (3, 5, len(data.WORDS))


def test_the_first_loss_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    losses = train.train(model, train.make_optimizer(model), 1)
    assert abs(losses[0] - math.log(len(data.WORDS))) < 0.3


def test_the_tale_is_told_to_its_end() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    ids = data.encode("this is the rat").unsqueeze(0)
    told = data.decode(train.generate(model, ids, 13)[0])
    assert told == "this is the rat that ate the malt that lay in the house that jack built ."
