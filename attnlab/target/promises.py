"""The names that --promise and --not take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attnlab.catalogue.finding_rules import PROPERTY_FINDINGS
from attnlab.errors import Refused
from attnlab.suggest import did_you_mean

BATCH_FIRST, SEQUENCE_FIRST = "batch-first", "sequence-first"  # how inputs are to be read
PROMISES = ("causal", "ordered", "unordered", BATCH_FIRST, SEQUENCE_FIRST)


def parse_names(
    promised: Iterable[str], denied: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The promises that a user adds, and the promises and properties that the user takes away;
    raises `Refused` where a name is not known."""
    return (
        tuple(_known("--promise", name, PROMISES) for name in promised),
        tuple(_known("--not", name, (*PROMISES, *PROPERTY_FINDINGS)) for name in denied),
    )


def layout_promises(inputs: Iterable[str]) -> tuple[str, ...]:
    """What the axes that a user gives to inputs promise: `x: B S D`."""
    axes = [text.partition(":")[2].split()[:2] for text in inputs]
    named = {BATCH_FIRST: ["B", "S"], SEQUENCE_FIRST: ["S", "B"]}
    return tuple(name for name, order in named.items() if order in axes)


def _known(flag: str, name: str, known: Sequence[str]) -> str:
    if name in known:
        return name
    hint = did_you_mean(name, known) or f"Names are {', '.join(known)}."
    raise Refused(f"{flag} {name}: no such promise or property", hint, flag)
