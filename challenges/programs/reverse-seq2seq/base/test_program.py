"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import math

import torch

import data
import train


def test_every_place_of_the_answer_gets_logits() -> None:
    source, written, targets = train.collate(["pale", "silk", "ra"])
    logits = train.make_model()(source, written)
    assert logits.shape == (*targets.shape, data.VOCABULARY)


def test_the_first_loss_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    losses = train.train(model, train.make_optimizer(model), 1)
    assert abs(losses[0] - math.log(data.VOCABULARY)) < 0.3


def test_words_that_it_never_saw_are_written_backwards() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    answers = train.generate(model, train.collate(data.HELD_OUT)[0], 6)
    right = [data.decode(a) == word[::-1] for a, word in zip(answers, data.HELD_OUT, strict=True)]
    assert sum(right) > 35
