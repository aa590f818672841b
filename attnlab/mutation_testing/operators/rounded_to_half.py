"""A value passes through half precision and loses digits or range.

Right: `scores = q @ k.mT`
Wrong: `scores = (q @ k.mT).half().float()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source

KINDS = ("half", "bfloat16")


def edits(source: Source) -> Edits:
    for node in source.assignments():
        for kind in KINDS:
            yield source.put(node.value, f"{source.atom(node.value)}.{kind}().float()")
