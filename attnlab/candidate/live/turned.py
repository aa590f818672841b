"""Whether inputs are (S, B, ...), as PyTorch's own layers read them unless told otherwise."""

import inspect
import re
from contextlib import suppress

from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.layout import Layout
from attnlab.candidate.live.samples import batch_independence
from attnlab.target.promises import BATCH_FIRST, SEQUENCE_FIRST

# `B, T, C = x.shape` and `# (batch, seq, dim)`
NAMED = re.compile(r"(?:^\s*|[(\[]\s*)(\w+)\s*,\s*(\w+)\b", re.MULTILINE)
BATCH = {"b", "bs", "bsz", "n", "nb", "batch", "batch_size", "bsize"}
LENGTH = {"s", "t", "l", "seq", "seq_len", "seqlen", "seq_length", "length", "time", "tokens"}
OF_NODES = {"edge_index", "edges", "batch", "batch_index", "graph_ids", "cu_seqlens"}
TURNED = {SEQUENCE_FIRST: "only if inputs are read as (S, B, ...) are samples independent"}
UNSURE = (
    "samples mix along the first axis of the inputs, and not along the second: right for (S, B, "
    "...), wrong for (B, S, ...); --promise sequence-first or batch-first says which it is"
)


def doubtful_samples(bench: Bench, alone: set[int]) -> str:
    """Why the first axis of the inputs may be no batch; `alone` are the sizes S of attention scores
    (S, S) without one."""
    rows, data = bench.layout.samples, bench.layout.data
    for leaf in bench.live.leaves:
        if leaf.name.rpartition(".")[2] in OF_NODES and not leaf.value.is_floating_point():
            return f"the rows of its inputs are nodes or packed tokens, as {leaf.name} says"
    if rows in alone and all(leaf.value.dim() == 2 and leaf.role == "floats" for leaf in data):
        return f"its inputs have two axes, and it attends along the first one, of {rows}"
    return ""


def _lengths_say(bench: Bench) -> bool:
    """Whether lengths, one for each sample, are as many as the second axis has entries."""
    layout = bench.layout
    return layout.samples != layout.length and any(
        "len" in leaf.name and leaf.value.shape == (layout.length,) for leaf in bench.live.leaves
    )


def read_turned(bench: Bench, promised: set[str]) -> dict[str, str]:
    """Read the batch as (S, B, ...) where samples mix otherwise: the promise, or none."""
    layout = bench.layout
    floats = [leaf for leaf in layout.sequences if leaf.sequence_axis == 1]
    if (
        BATCH_FIRST in promised
        or not floats
        or len(floats) != len(layout.sequences)
        or layout.samples < 2
    ):
        return {}
    by_lengths = _lengths_say(bench)
    if not by_lengths and layout.by_position(bench.before.main) is None:
        return {}
    usual = _independent(bench)
    bench.layout = turned = Layout(
        bench.live, layout.length, layout.samples, turned=True, pads=layout.pads
    )
    if SEQUENCE_FIRST in promised:
        return {}
    if by_lengths:
        return {SEQUENCE_FIRST: "it is given as many lengths as its second axis has entries"}
    along, across = _counts_along(bench, layout)
    if turned.samples > 1 and _independent(bench):
        first = _first_axis(bench)
        if first != "B" and ((across and not along) or (first == "S" and not usual)):
            return TURNED
        if not (usual or along or first == "B"):
            bench.doubt = UNSURE
    bench.layout = layout
    return {}


def _first_axis(bench: Bench) -> str:
    """B or S, as the code itself names the axes of what it unpacks or of a comment; "" where it
    names none. PyTorch's own layers read the sequence first."""
    if type(bench.live.model).__module__.startswith("torch.nn"):
        return "S"
    for kind in {type(m): None for m in bench.live.model.modules()}:
        if kind.__module__.startswith("torch.nn"):
            continue
        with suppress(OSError, TypeError):
            text = inspect.getsource(kind)
            for one, other in NAMED.findall(text):
                if one.lower() in BATCH and other.lower() in LENGTH:
                    return "B"
                if one.lower() in LENGTH and other.lower() in BATCH:
                    return "S"
    return ""


def _independent(bench: Bench) -> bool:
    try:
        batch_independence(bench)
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
