"""Suggest the name that was probably meant."""

from collections.abc import Iterable

LONGEST = 200  # longer words are no typing slips, and matching takes quadratic time


def closest_names(word: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """The `names` most like `word`, best first; case does not count."""
    from difflib import get_close_matches

    lower: dict[str, str] = {}
    for name in names:
        lower.setdefault(name.lower(), name)
    found = get_close_matches(word[:LONGEST].lower(), lower, n=limit, cutoff=0.6)
    return [lower[name] for name in found]


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`Did you mean D or H?`, or nothing."""
    found = closest_names(word, names)
    return f"Did you mean {either(found)}?" if found else ""


def either(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = list(names) or [""]
    return f"{', '.join(most)} or {last}" if most else last
