"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import math

import torch

import data
import train


def test_every_token_gets_logits() -> None:
    model = train.make_model()
    assert model(torch.ones(2, 6, dtype=torch.long)).shape == (2, 6, len(data.TOKENS))


def test_the_first_loss_is_that_of_guessing() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    losses = train.train(model, train.make_optimizer(model), 1)
    assert abs(losses[0] - math.log(len(data.TOKENS))) < 0.3


def test_walks_that_it_never_saw_are_written_to_their_end() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    questions = torch.stack([data.encode(walk)[: data.QUESTION] for walk in data.HELD_OUT])
    answers = train.generate(model, questions, 8)
    found = [data.decode(answer).rstrip(" _") for answer in answers]
    assert sum(map(str.__eq__, found, data.HELD_OUT)) > 24
