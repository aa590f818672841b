"""Words to write backwards, `kelp` to `plek`: given, nothing here is wrong, and not edited."""

import torch
from torch import Tensor

PAD, START, END = 0, 1, 2  # fills short rows; begins what the decoder reads; ends every word
LETTERS = "aeiklprs"
FIRST = 3  # the id of the first letter
VOCABULARY = FIRST + len(LETTERS)


def encode(word: str) -> Tensor:
    """The ids of the letters of a word, and the end: (length + 1,)."""
    return torch.tensor([*(FIRST + LETTERS.index(letter) for letter in word), END])


def decode(ids: Tensor) -> str:
    """The letters in front of the end; ids that are no letters are shown as `_`."""
    found = ids.tolist()
    found = found[: found.index(END)] if END in found else found
    return "".join(LETTERS[n - FIRST] if n >= FIRST else "_" for n in found)


def _words(count: int) -> list[str]:
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(2, 6, (count,), generator=generator).tolist()
    letters = [torch.randperm(len(LETTERS), generator=generator)[:n].tolist() for n in lengths]
    return list(dict.fromkeys("".join(LETTERS[n] for n in word) for word in letters))


_all = _words(1200)
HELD_OUT, TRAINING = _all[:40], _all[40:]  # no word of one is in the other


def draw(step: int, count: int) -> list[str]:
    """The `count` words of a step; always the same for the same step."""
    generator = torch.Generator().manual_seed(900 + step)
    return [TRAINING[n] for n in torch.randint(len(TRAINING), (count,), generator=generator)]
