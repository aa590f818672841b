"""Whether inputs are (S, B, ...), as PyTorch's own layers read them unless told otherwise."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress

from attnlab.candidate.live import properties
from attnlab.candidate.live.layout import Layout
from attnlab.candidate.live.properties import Bench, Broken, NotApplicable

UNPACKED = re.compile(r"(\w+)\s*,\s*(\w+)\s*(?:,\s*\w+\s*)?=\s*\w+\.(?:shape|size\(\))")
TURNED = {"sequence-first": "only if inputs are read as (S, B, ...) are samples independent"}
UNSURE = (
    "samples mix along the first axis of the inputs, and not along the second: right for (S, B, "
    "...), wrong for (B, S, ...)"
)


def read_turned(bench: Bench) -> dict[str, str]:
    """Read the batch as (S, B, ...) where samples mix otherwise: the promise, or none."""
    layout = bench.layout
    floats = [leaf for leaf in layout.sequences if leaf.sequence_axis == 1]
    if not floats or layout.samples < 2 or len(floats) != len(layout.sequences):
        return {}
    if layout.by_position(bench.before.main) is None or _independent(bench):
        return {}
    bench.layout = turned = Layout(
        bench.live, layout.length, layout.samples, turned=True, pads=layout.pads
    )
    if turned.samples > 1 and _independent(bench):
        along, across = _counts_along(bench, layout)
        first = _first_axis(bench)
        if first == "S" or (across and not along):
            return TURNED
        if not along and first != "B":
            bench.doubt = UNSURE
            return {}
    bench.layout = layout
    return {}


def _first_axis(bench: Bench) -> str:
    """B or S, as the code itself names what it unpacks: `B, T, C = x.shape`; "" where it does not.

    PyTorch's own layers read the sequence first.
    """
    for module in bench.live.model.modules():
        if type(module).__module__.startswith("torch.nn"):
            if module is bench.live.model:
                return "S"
            continue
        with suppress(OSError, TypeError):
            if found := UNPACKED.search(inspect.getsource(type(module).forward)):
                names = found[1].lower(), found[2].lower()
                batch = [name[0] in "bn" for name in names]
                if batch[0] is not batch[1]:
                    return "B" if batch[0] else "S"
    return ""


def _independent(bench: Bench) -> bool:
    try:
        properties.batch_independence(bench)
    except (NotApplicable, Broken):
        return False
    return True


def _counts_along(bench: Bench, layout: Layout) -> tuple[bool, bool]:
    """Whether positions are told apart along the second axis, and along the first one."""
    same = {leaf.key: leaf.value[:1, :1].expand_as(leaf.value).clone() for leaf in layout.sequences}
    out = layout.by_position(bench.live.call(same).main)
    if out is None:
        return False, False
    along = bench.moved(out[:, :1].expand_as(out), out).any()
    across = bench.moved(out[:1].expand_as(out), out).any()
    return bool(along), bool(across)
