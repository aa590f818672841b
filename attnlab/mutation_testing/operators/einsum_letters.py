"""Two letters of an einsum stand in each other's place.

Right: `scores = torch.einsum("bqhd,bkhd->bhqk", q, k)`
Wrong: `scores = torch.einsum("bqhd,bkhd->bhkq", q, k)`
"""

import ast
import re
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("einsum"):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            start = 0
            for term in re.split(r"(,|->)", first.value):
                for changed in _changed(term):
                    text = first.value[:start] + changed + first.value[start + len(term) :]
                    yield source.put(first, f'"{text}"')
                start += len(term)


def _changed(term: str) -> Iterator[str]:
    """Neighbouring letters exchanged."""
    for i in range(len(term) - 1):
        if term[i : i + 2].isalpha():
            yield term[:i] + term[i + 1] + term[i] + term[i + 2 :]
