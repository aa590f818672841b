"""Properties of samples: they do not mix, and what they hold reaches the output."""

from functools import partial

import torch
from torch import Tensor

from attnlab.candidate.live.batch import CannotTry
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable, largest_gap, like, numbered
from attnlab.candidate.live.layout import Layout
from attnlab.candidate.live.watching import Values
from attnlab.tracer.findings.positions import POSITION

FAINT = 1e-9  # of a value: what is left of an input that dies out on the way


def batch_independence(bench: Bench) -> None:
    layout, before = bench.layout, bench.before
    outs = {n: layout.by_sample(o) for n, o in before.tensors.items()}
    rows = {n: o for n, o in outs.items() if o is not None and not _pairwise(o, layout)}
    if layout.samples < 2 or not layout.data:
        raise NotApplicable("no input has samples that could be changed")
    pairs = (layout.samples, layout.samples)
    edges = {"edge_index", "edges", "edge_idx"}
    if graphs := [
        leaf.name
        for leaf in bench.live.leaves
        if tuple(leaf.value.shape) == pairs or leaf.name.rpartition(".")[2] in edges
    ]:
        raise NotApplicable(f"its rows are the nodes of one graph, {graphs[0]}")
    if not rows:
        raise NotApplicable("no output has one entry for each sample")
    for sample in sorted({0, layout.samples - 1}):
        changes = layout.change_samples(sample)
        after = bench.live.call(changes)
        for name, old in rows.items():
            new = layout.by_sample(after.tensors[name]) if name in after.tensors else None
            gone = bench.moved(old, like(old, new))
            gone[sample] = False
            if gone.any():
                others = sorted({i[0] for i in gone.nonzero().tolist()})
                gap = largest_gap(old[others], like(old, new)[others])
                raise Broken(
                    f"only sample {sample} of {layout.samples} was changed, and {name} of "
                    f"{numbered('sample', others)} changed too, by up to {gap:.2g}",
                    bench.blame(changes, partial(_other_rows, bench, sample)),
                )


def _pairwise(out: Tensor, layout: Layout) -> bool:
    """An output that compares samples with each other, as contrastive losses take it."""
    return out.dim() == 2 and out.shape[0] == out.shape[1] == layout.samples != layout.length


def _other_rows(bench: Bench, sample: int, a: Tensor, b: Tensor) -> bool:
    rows, other = bench.layout.by_sample(a), bench.layout.by_sample(b)
    if rows is None or other is None:
        return False
    gone = bench.moved(rows, other)
    gone[sample] = False
    return bool(gone.any())


def alone(bench: Bench) -> None:
    """The last sample by itself gives what it gives in the batch."""
    layout = bench.layout
    whole = layout.by_sample(bench.main())
    if whole is None or layout.samples < 2 or not layout.data or _pairwise(whole, layout):
        raise NotApplicable("no output has one entry for each sample")
    if bench.random:
        raise CannotTry("equal calls differ, as they draw random numbers")
    at = layout.samples - 1
    full, part = Values(), Values()
    out = bench.live.call(layout.only(at), watch=part).main
    one = Layout(layout.live, 1, layout.length, layout.turned).by_sample(out)
    if one is None or one.shape[1:] != whole.shape[1:]:
        raise CannotTry("one sample alone gave an output of another shape")
    if bench.moved(whole[at], one[0]).any():
        gap = largest_gap(whole[at], one[0])
        bench.live.call({}, watch=full)
        raise Broken(
            f"sample {at} alone gave another output than in the batch of "
            f"{layout.samples}, by up to {gap:.2g}",
            bench.first_apart(full, part, at),
        )


def constant(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    if not layout.data or not any(True for _ in bench.live.model.parameters()):
        raise NotApplicable("it has no parameters, or no input that could be changed")
    changes = layout.change_samples(*range(layout.samples))
    after = bench.live.call(changes).main
    if after.shape != before.shape or not torch.equal(before, after):
        return
    if POSITION.search(f".{type(bench.live.model).__name__.lower()}."):
        raise NotApplicable("a table of positions does not depend on its input")
    moved = [p for p in bench.compare(changes) if not torch.equal(p.before, p.after)]
    if (
        moved
        and largest_gap(moved[-1].before, moved[-1].after) < FAINT * moved[-1].before.abs().max()
    ):
        raise CannotTry("the input is too faint to be seen in the output of these weights")
    raise Broken(
        "other inputs in every sample gave exactly the same output",
        moved[-1].place if moved else None,
    )
