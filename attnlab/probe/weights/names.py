"""What the words and numbers in names of parameters say beside those of other names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
NUMBER = re.compile(r"(\d+)")
STEM = 3  # letters by which words are compared


def number_ranks(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each name the places of its numbers among those of names that are else the same, so that
    `norm1` and `norms.0` are both the first."""
    parts = {name: NUMBER.split(name) for name in names}
    series: dict[tuple[object, ...], set[int]] = {}
    for words in parts.values():
        for at in range(1, len(words), 2):
            series.setdefault((at, *words[:at], *words[at + 1 :]), set()).add(int(words[at]))
    found = dict[str, tuple[str, ...]]()
    for name, words in parts.items():
        ordered = (
            (sorted(series[at, *words[:at], *words[at + 1 :]]), int(words[at]))
            for at in range(1, len(words), 2)
        )
        found[name] = tuple(str(all_there.index(n)) for all_there, n in ordered)
    return found


@lru_cache(maxsize=4096)
def word_stems(name: str) -> frozenset[str]:
    """The beginnings of its words: `dec` of `decoder`."""
    return frozenset(w[:STEM].lower() for w in WORD.findall(name) if not w.isdecimal())


def word_weights(
    name: str, often: Mapping[str, int], silent: Collection[str]
) -> tuple[tuple[str, float], ...]:
    """How much each word of a name says: the more, the fewer names have it, and nothing if it is
    `silent`; 1 together."""
    says = {w: 1 / often[w] for w in sorted(word_stems(name)) if w not in silent}
    return tuple((word, weight / sum(says.values())) for word, weight in says.items())
