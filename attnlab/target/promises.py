"""The names that --promise and --not take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attnlab.catalogue.property_findings import PROPERTY_FINDINGS
from attnlab.errors import Refused
from attnlab.suggest import did_you_mean

PROMISES = ("causal", "ordered")  # what a module may promise or not


def parse_names(
    promised: Iterable[str], denied: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The promises that a user adds, and the promises and properties that the user takes away;
    raises `Refused` where a name is not known."""
    return (
        tuple(_known("--promise", name, PROMISES) for name in promised),
        tuple(_known("--not", name, (*PROMISES, *PROPERTY_FINDINGS)) for name in denied),
    )


def _known(flag: str, name: str, known: Sequence[str]) -> str:
    if name in known:
        return name
    hint = did_you_mean(name, known) or f"Names are {', '.join(known)}."
    raise Refused(f"{flag} {name}: no such promise or property", hint, flag)
