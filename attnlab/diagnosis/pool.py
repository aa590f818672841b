"""One diagnosis out of several, each beside another right file.

A file that is written otherwise than one reference may be written as another: what they agree on is
likelier than what one alone says.
"""

from collections.abc import Sequence

from attnlab.records.diagnosis import Diagnosis

NEAR = 1  # lines
VAGUE = ("other", "other-step", "arguments")  # relations that say nothing
Named = tuple[Diagnosis, ...]


def agreed(found: Sequence[Named]) -> Named:
    """What is confirmed, or what most of them say; of as good ones the first."""
    named = [each for each in found if each]
    return max(named, key=lambda each: _weight(each, named), default=())


def _weight(each: Named, named: Sequence[Named]) -> tuple[bool, float, int]:
    """Whether all lines are confirmed, how well they are founded, and few lines first."""
    scores = [_founded(found) + sum(_vote(found, other) for other in named) for found in each]
    return all(d.confirmed for d in each), sum(scores) / len(scores), -len(each)


def _founded(found: Diagnosis) -> float:
    """Less for what does not say how a line is wrong, and for a changed value of mine that the
    reference has nowhere."""
    guessed = not found.their_line and not found.fix
    return -0.75 * (found.relation in VAGUE) - 0.25 * guessed


def _vote(found: Diagnosis, other: Named) -> float:
    """How much another one speaks for a line: less where it does not know how it is wrong."""
    near = (
        d
        for d in other
        if d.file == found.file and d.line - NEAR <= found.line <= max(d.line, d.end_line) + NEAR
    )
    return max((0.5 if d.relation in VAGUE else 1.0 for d in near), default=0.0)
