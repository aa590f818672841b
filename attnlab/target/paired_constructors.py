"""Arguments of two constructors that mean the same under other names: by their sizes and places."""

from __future__ import annotations

import re
from typing import NamedTuple

from attnlab.catalogue.literals import Scalar
from attnlab.errors import Refused, Unreadable
from attnlab.target.command_line import TraceCommand
from attnlab.target.find_target import find_target
from attnlab.target.fitted import guessed_job
from attnlab.target.infer import WIDTHS, Unbuilt

SIZE = r"[A-Z]\w{0,2}|hd"  # the symbol of one
UNKNOWN = 3  # an argument of which neither side says anything


class Constructor(NamedTuple):
    """What a constructor has to be given, in its order; and what is known of it: sizes by their
    symbols, numbers, and what the user says."""

    required: list[str]
    known: dict[str, Scalar]

    def symbols(self) -> dict[str, str]:
        """Arguments by the symbol of their size, where no two have it."""
        said = [v for v in self.known.values() if isinstance(v, str)]
        return {v: n for n, v in self.known.items() if isinstance(v, str) and said.count(v) == 1}


class PairedConstructors(NamedTuple):
    """Arguments of the reference by mine, and what both are given in words of `--init`, where names
    say nothing of it or say two things."""

    names: dict[str, str]
    mine: str
    theirs: str


def constructor_of(typed: TraceCommand) -> Constructor | None:
    """The constructor of a command's class; None where it is not known."""
    try:
        build = seen.build if (seen := find_target(typed.target, typed.verb).seen) else None
        contract = guessed_job(typed).contract
        known = dict(contract.init) if contract else None
    except Unbuilt as error:
        known = dict(error.found)
    except (Refused, Unreadable):
        return None
    if build is None or known is None:
        return None
    return Constructor([p.name for p in build.parameters if p.required], known)


def pair_constructors(
    typed: TraceCommand, reference: str, by_place: bool = False
) -> PairedConstructors | None:
    """The arguments of both in pairs: those of one size, of one name, and, where as many are left
    that both must have, those at one place; or all `by_place`, with what the reference's names say.
    None where that is not known."""
    mine = constructor_of(typed)
    theirs = constructor_of(TraceCommand(target=reference, verb=typed.verb, sizes=typed.sizes))
    if mine is None or theirs is None:
        return None
    by_symbol = theirs.symbols()
    names = {
        n: by_symbol[symbol]
        for symbol, n in mine.symbols().items()
        if symbol in by_symbol and n not in theirs.known and not by_place
    }
    taken = {*names, *names.values()}
    left, right = (
        [n for n in one.required if by_place or n not in {*other.required, *taken}]
        for one, other in ((mine, theirs), (theirs, mine))
    )
    if len(left) != len(right):
        return PairedConstructors(names, "", "") if names else None
    places = dict(zip(left, right, strict=True))
    places |= {} if by_place else {n: n for n in mine.required if n in theirs.required}
    ours, others = [], []
    for own, other in places.items():
        one, two = mine.known.get(own), theirs.known.get(other)
        value = two if by_place and two is not None else _likelier(one, two)
        said = value if re.fullmatch(SIZE, str(value)) else repr(value)
        ours += [f"{own}={said}"] if one != value else []
        others += [f"{other}={said}"] if two != value else []
    return PairedConstructors(names | places, ", ".join(ours), ", ".join(others))


def _likelier(one: Scalar | None, two: Scalar | None) -> Scalar:
    """What an argument of both is, by what is known of either: a width rather than another size, a
    size rather than a number."""
    known = [value for value in (one, two) if value is not None]
    widths = [value for value in known if value in WIDTHS]
    sizes = [value for value in known if isinstance(value, str)]
    return next(iter([*widths, *sizes, *reversed(known)]), UNKNOWN)
