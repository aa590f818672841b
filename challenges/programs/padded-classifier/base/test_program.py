"""Quick checks of the program: python -m pytest. They pass once it is right; they are not all."""

import torch

import data
import train


def test_every_review_gets_logits() -> None:
    ids, mask, _ = train.collate(data.HELD_OUT[:5])
    assert train.make_model()(ids, mask).shape == (5, len(data.CLASSES))


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    model = train.make_model().eval()
    short, long = (data.encode(text) for text in ("the soup", "the soup came with our bill"))
    alone, (ids, mask, labels) = (train.collate([(short, 0), (long, 1)][:n]) for n in (1, 2))
    row = labels.tolist().index(0)  # collate may order the rows
    assert torch.allclose(model(*alone[:2])[0], model(ids, mask)[row], atol=1e-5)


def test_rare_classes_are_found_too() -> None:
    torch.manual_seed(0)
    model = train.make_model()
    train.train(model, train.make_optimizer(model), train.STEPS)
    assert train.evaluate(model) > 0.85
