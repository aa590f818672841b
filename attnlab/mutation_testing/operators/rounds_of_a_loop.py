"""A loop runs one round too few or too many, or skips the first.

Right: `for step in range(steps): draw(step)`
Wrong: `for step in range(steps - 1): draw(step)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("range"):
        if len(call.args) == 1:
            text = source.text_of(call.args[0])
            forms = (f"{text} - 1", f"{text} + 1", f"1, {text}", f"0, {text}, 2")
            yield from source.put_each(call.args[0], forms)
