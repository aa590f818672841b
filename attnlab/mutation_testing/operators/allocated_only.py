"""A tensor is allocated, and its values are never written.

Right: `table = torch.zeros(x.shape)`
Wrong: `table = torch.empty(x.shape)`
"""

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, called

WRITTEN = ("zeros", "ones")
CALLS = tuple(
    f"{new}{kind}{like}" for kind in WRITTEN for new in ("", "new_") for like in ("", "_like")
)


def edits(source: Source) -> Edits:
    for call in source.calls(*CALLS):
        name, end = called(call), source.span(call.func)[1]
        other = name.replace("zeros", "empty").replace("ones", "empty")
        yield Edit(splices=((end - len(name), end, other),))
