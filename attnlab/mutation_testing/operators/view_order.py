"""Two sizes of a view are swapped, so the heads are split at wrong places.

Right: `q = q.view(B, S, H, hd)`
Wrong: `q = q.view(B, S, hd, H)`
"""

import ast
from itertools import pairwise

from attnlab.mutation_testing.operators.base import Edits, Source, called_name


def edits(source: Source) -> Edits:
    for call in source.calls("view", "reshape", "unflatten", "zeros", "ones", "empty", "expand"):
        sizes = call.args[1:] if called_name(call) == "unflatten" else call.args
        for pack in sizes:
            if isinstance(pack, ast.Tuple | ast.List):
                sizes = pack.elts
        for one, other in pairwise(sizes):
            yield source.swap(one, other)
