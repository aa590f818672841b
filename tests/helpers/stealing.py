"""Candidates that are wrong by themselves, and right if they could get at what they are graded
against."""

from __future__ import annotations

from attacks import candidate

IMPORT = "from attnlab.references.attention import MultiHeadSelfAttention as Right"
UNGUARDED = """
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ImportBlocker"]
"""
READ = """
import attnlab
root = os.path.dirname(os.path.dirname(attnlab.__file__))
space = {}
with open(root + "/challenges/attention/too-sharp/solution.py") as file:
    exec(file.read(), space)
Right = space["MultiHeadSelfAttention"]
"""
USE = """
right = Right(x.shape[-1], self.num_heads)
right.load_state_dict(self.state_dict())
result = right(x, mask)
"""


def stolen(how: str) -> str:
    return candidate(right=False, after=how + USE)


STEALING = {
    "the reference imported": stolen(IMPORT),
    "the reference imported past the guard": stolen(UNGUARDED + IMPORT),
    "the solution read": stolen(READ),
}
