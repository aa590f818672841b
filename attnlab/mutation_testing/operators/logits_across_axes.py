"""Logits are laid out for the loss across their axes, so that rows mix classes and positions.

Right: `loss = F.cross_entropy(logits.reshape(-1, classes), targets)`
Wrong: `loss = F.cross_entropy(logits.mT.reshape(-1, classes), targets)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, called_name, subject


def edits(source: Source) -> Edits:
    for call in source.calls("cross_entropy"):
        for value in call.args[:2]:
            if isinstance(value, ast.Call) and called_name(value) in ("reshape", "view", "flatten"):
                inner = subject(value)
                if inner is not None:
                    for text in (f"{source.atom(inner)}.mT", f"{source.atom(inner)}.flip(0)"):
                        yield source.put(inner, text)
