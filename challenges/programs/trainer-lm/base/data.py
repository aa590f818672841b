"""The text to learn, a tale told again and again. Given: nothing here is wrong; not edited."""

import torch
from torch import Tensor

CHAIN = (  # who did what to the one before
    ("house", "jack built"),
    ("malt", "lay in"),
    ("rat", "ate"),
    ("cat", "killed"),
    ("dog", "worried"),
    ("cow", "tossed"),
    ("maid", "milked"),
    ("man", "kissed"),
)


def tell(last: int) -> list[str]:
    """The words of the verse that begins with link `last` of the chain."""
    words = ["this", "is"]
    for noun, deed in reversed(CHAIN[: last + 1]):
        words += ["the", noun, "that", *deed.split()]
    return [*words, "."]


WORDS = sorted({word for last in range(len(CHAIN)) for word in tell(last)})
NUMBER = {word: number for number, word in enumerate(WORDS)}


def encode(text: str) -> Tensor:
    """The ids of the words of a text, (length,)."""
    return torch.tensor([NUMBER[word] for word in text.split()])


def decode(ids: Tensor) -> str:
    return " ".join(WORDS[number] for number in ids.tolist())


def _tale(verses: int) -> str:
    generator = torch.Generator().manual_seed(7)
    lasts = torch.randint(len(CHAIN), (verses,), generator=generator).tolist()
    return " ".join(word for last in lasts for word in tell(last))


IDS = encode(_tale(80))  # the whole text, (length,)


def draw(step: int, count: int, choices: int) -> list[int]:
    """`count` numbers from 0 to `choices` - 1; always the same for the same step."""
    generator = torch.Generator().manual_seed(500 + step)
    return torch.randint(choices, (count,), generator=generator).tolist()
