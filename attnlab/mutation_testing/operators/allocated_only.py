"""A tensor is allocated but never filled.

Right: `table = torch.zeros(x.shape)`
Wrong: `table = torch.empty(x.shape)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

WRITTEN = ("zeros", "ones")
CALLS = tuple(
    f"{new}{kind}{like}" for kind in WRITTEN for new in ("", "new_") for like in ("", "_like")
)


def edits(source: Source) -> Edits:
    for call in source.calls(*CALLS):
        name = called_name(call).replace("zeros", "empty").replace("ones", "empty")
        yield source.rename(call.func, name)
