"""How long calls may take.

What goes through pairs of positions one by one, in plain Python, is right and slow; a few calls of
hundreds of positions would use up its time.
"""

from __future__ import annotations

from attnlab.sizes import Sizes

PILOT = 32  # positions of the call by which longer ones are judged
QUICK = 0.01  # seconds that such a call takes at most where nothing goes one by one
LENGTHS = ("S", "Sq", "Sk")  # what a longer sequence has more of


def pairs(sizes: Sizes, length: int) -> int:
    """Of positions in one sequence, in all heads."""
    return sizes.get("H", 1) * length**2
