"""The output has another dtype than the input.

Right: `return self.out(h)`
Wrong: `return self.out(h).double()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for value in source.returned_values():
        for kind in ("double", "float", "half"):
            yield source.put(value, f"{source.atom(value)}.{kind}()")
