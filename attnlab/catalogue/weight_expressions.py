"""Expressions that say how a parameter is made of the reference's: `cat(q.weight, k.weight)`.

Only what can be read without a tensor is looked at here: names of functions, and brackets.
"""

import re
from functools import cache
from typing import Any

Term = Any  # a name, a number, or (function, terms)
TOKEN = re.compile(r"\s*(?:(\w+(?:\.\w+)*)|([(),#]))")
NAMES = (
    *("cat", "stack", "part", "rows", "t", "split", "permute"),
    *("unsqueeze", "squeeze", "flatten", "interleave", "flip"),
)


class Misfit(Exception):
    """The weights do not go in this way; the message says why."""


@cache
def parse(text: str) -> Term:
    """An expression as nested tuples; raises `Misfit` where it cannot be read."""
    tokens = _tokens(text)
    term, rest = _term(tokens, text)
    if rest:
        raise Misfit(f'"{text}" goes on after its end: {rest[0]}')
    return term


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if not match:
            raise Misfit(f'"{text}" cannot be read from "{text[at:].strip()[:20]}" on')
        found.append(match[1] or match[2])
        at = match.end()
    return found


def _term(tokens: list[str], text: str) -> tuple[Term, list[str]]:
    if not tokens or tokens[0] in "(),":
        raise Misfit(f'"{text}" lacks a name')
    head, rest = tokens[0], tokens[1:]
    if rest[:1] != ["("]:
        return (int(head) if head.isdecimal() else head), rest
    if head not in NAMES:
        raise Misfit(f'"{text}": {head} is none of {", ".join(NAMES)}')
    terms: list[Term] = []
    while rest[0] != ")":
        term, rest = _term(rest[1:], text)
        terms.append(term)
        if rest[:1] not in ([")"], [","]):
            raise Misfit(f'"{text}" lacks a closing bracket')
    return (head, tuple(terms)), rest[1:]
