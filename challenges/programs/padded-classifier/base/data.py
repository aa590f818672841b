"""Short reviews, judged by the last word that judges. Nothing here is wrong; not edited."""

import random

import torch

CLASSES = ("neutral", "praise", "complaint")
FILLERS = "the a room soup waiter was looked and came table but with our evening bill".split()
GOOD = "lovely fresh kind superb".split()
BAD = "awful stale rude cold".split()
VOCABULARY = ["<s>", "<pad>", *FILLERS, *GOOD, *BAD]
START, PAD = 0, 1
NUMBER = {word: number for number, word in enumerate(VOCABULARY)}
LONGEST = 14  # words of a review, <s> among them

Review = tuple[list[int], int]  # the ids of its words, <s> first, and its class


def encode(text: str) -> list[int]:
    return [START, *(NUMBER[word] for word in text.split())]


def decode(ids: list[int]) -> str:
    return " ".join(VOCABULARY[number] for number in ids if number not in (START, PAD))


def _review(dice: random.Random) -> Review:
    words = dice.choices(FILLERS, k=dice.randint(1, 9))
    kind = dice.choice((0, 0, 0, 0, 0, 0, 1, 1, 1, 2))
    if kind:  # the last judgement decides; others may stand before it
        judgements = [dice.randrange(2) for _ in range(dice.randrange(3))] + [kind - 1]
        places = sorted(dice.randint(0, len(words)) for _ in judgements)
        for place, bad in reversed(list(zip(places, judgements))):
            words.insert(place, dice.choice((GOOD, BAD)[bad]))
    return encode(" ".join(words)), kind


def _reviews(count: int, seed: int) -> list[Review]:
    dice = random.Random(seed)
    return [_review(dice) for _ in range(count)]


TRAINING = _reviews(1500, 21)
HELD_OUT = _reviews(150, 22)


def draw(step: int, count: int) -> list[Review]:
    """The `count` training reviews of a step; always the same for the same step."""
    generator = torch.Generator().manual_seed(9000 + step)
    chosen = torch.randint(len(TRAINING), (count,), generator=generator)
    return [TRAINING[number] for number in chosen.tolist()]
