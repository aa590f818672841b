"""Properties of positions: the future does not leak, and order matters where it should."""

from functools import partial

import torch
from torch import Tensor

from attnlab.candidate.live.batch import CannotTry, Leaf
from attnlab.candidate.live.bench import (
    SOME,
    Bench,
    Broken,
    NotApplicable,
    largest_gap,
    like,
    numbered,
)
from attnlab.candidate.live.masks import padding_mask
from attnlab.candidate.live.watching import FUSED, Masks

ATTENDS = {*FUSED, "matmul", "__matmul__", "bmm", "einsum"}  # that a wrong mask shows at
ATTENDS |= {"flatten", "reshape", "view", "transpose", "permute"}  # of heads as wide as inputs are


def causality(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    why = bench.promised(
        "causal",
        "nothing says that it is causal: no triangular mask, no targets that are the next inputs",
    )
    rows = layout.by_position(before)
    if rows is None or layout.length < SOME:
        raise NotApplicable("no output has an entry for each of several positions")
    leaves = _decoded(bench, rows) or layout.targets
    groups = [[leaf] for leaf in leaves] if len(leaves) > 1 else [leaves]
    failures = []
    for group in [leaves, *groups] if len(groups) > 1 else groups:
        failure = _leak(bench, group, rows, why)
        if failure is None:
            return
        failures.append(failure)
    raise failures[0]


def _decoded(bench: Bench, rows: Tensor) -> list[Leaf]:
    """The targets of which a decoder makes its inputs: the outputs' positions run along them, and
    what else comes in is a source. A loss for each position is no such output."""
    layout, found = bench.layout, []
    for given in (leaf for leaf in bench.live.leaves if leaf.role == "targets" and rows.dim() > 2):
        leaf = given._replace(role="ids")
        if leaf.value.shape == rows.shape[:2] and not leaf.value.is_floating_point():
            changes = layout.change_positions([leaf], 0, layout.length)
            after = layout.by_position(bench.live.call(changes).main)
            found += [leaf] * bool(bench.moved(rows, like(rows, after)).any())
    return found


def _leak(bench: Bench, leaves: list[Leaf], rows: Tensor, why: str) -> Broken | None:
    layout, length = bench.layout, bench.layout.length
    for start in sorted({length - 1, length // 2, 1}, reverse=True):
        changes = layout.change_positions(leaves, start, length)
        after = layout.by_position(bench.live.call(changes).main)
        gone = bench.moved(rows, like(rows, after))[:, :start]
        if not gone.any() or not (gone := _without_hidden(bench, gone)).any():
            continue
        seen = sorted({i[1] for i in gone.nonzero().tolist()})
        gap = largest_gap(rows[:, :start][gone], like(rows, after)[:, :start][gone])
        bench.live.call({}, watch=(masks := Masks(length)))
        place = bench.blame(changes, partial(_early_rows, bench, start), ATTENDS, masks.wrong)
        what = " and ".join(leaf.name for leaf in leaves)
        return Broken(
            f"{what} changed from position {start} on, and the output at "
            f"{numbered('position', seen)} changed too, by up to {gap:.2g} (causal: {why})",
            place,
        )
    return None


def _without_hidden(bench: Bench, gone: Tensor) -> Tensor:
    """What moved, without the positions that the given mask hides: a row of padding in front sees
    no key of its own past, and nobody reads its output."""
    known = padding_mask(bench)
    if known is None or known.leaf not in bench.live.leaves:
        return gone
    kept = (known.leaf.value != known.form.hidden)[:, : gone.shape[1]]
    return gone & kept.reshape(*kept.shape, *[1] * (gone.dim() - 2))


def _early_rows(bench: Bench, start: int, a: Tensor, b: Tensor) -> bool:
    """Whether a value with one axis of positions moved before `start`."""
    axes = [i for i, n in enumerate(a.shape) if n == bench.layout.length]
    if len(axes) != 1 or a.dim() < 2:
        return False
    return bool(bench.moved(a, b).movedim(axes[0], 0)[:start].any())


def position_sensitivity(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    bench.promised("ordered", "nothing says that the order of positions matters")
    length, leaves = layout.length, layout.targets
    if length < SOME + 1 or not leaves:
        raise NotApplicable("no input has several positions")
    if "positions-read" in bench.broken:
        raise CannotTry("its output hears of a single position")
    outs = bench.before.tensors
    name = next(n for n, out in outs.items() if out is before)
    if "." in name.strip(".") and not next(iter(outs.values())).dim():
        raise CannotTry("what it returns behind its loss may be memories of what came in")
    one, other = length - 3, length - 2
    changes = layout.swap_positions(leaves, one, other)
    if all(torch.equal(leaf.value, changes.get(leaf.key, leaf.value)) for leaf in leaves):
        raise CannotTry(f"positions {one} and {other} hold the same, as padding does")
    after = bench.live.call(changes).main
    rows, new = layout.by_position(before), layout.by_position(after)
    if rows is None or new is None:
        same = (
            layout.by_sample(before) is not None
            and not bench.moved(before, like(before, after)).any()
        )
        where = "the output"
    else:
        order = torch.arange(length)
        order[one], order[other] = other, one
        turned = not bench.moved(rows.index_select(1, order), new).any()
        late = not bench.moved(rows[:, -1], new[:, -1]).any()
        same = turned or (late and "causal" in bench.promises)
        where = f"the output at position {length - 1}"
    if same:
        raise Broken(
            f"positions {one} and {other} were swapped, and {where} stayed the same: the "
            f"order of positions makes no difference ({bench.promises['ordered']})"
        )


def positions_read(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    leaves, length = layout.targets, layout.length
    if length < SOME + 1 or not leaves:
        raise NotApplicable("no input has several positions")
    if layout.by_position(before) is not None or layout.by_sample(before) is None:
        raise NotApplicable("its output has no single result for each sample")
    if bench.broken & {"padding-invariance", "mask-effect"}:
        raise CannotTry("its masks hide the wrong positions")
    for kept, first, end in ((0, 1, length), (length - 1, 0, length - 1)):
        others = layout.change_positions(leaves, first, end)
        if all(torch.equal(leaf.value, others[leaf.key]) for leaf in leaves):
            raise CannotTry("other data for its positions are not known")
        if bench.moved(before, like(before, bench.live.call(others).main)).any():
            continue
        own = layout.change_positions(leaves, kept, kept + 1)
        if not bench.moved(before, like(before, bench.live.call(own).main)).any():
            return  # nothing reaches it, which is another fault
        told = list(bench.compare(others))
        last = max(
            (i for i, p in enumerate(told) if bench.moved(p.before, p.after).any()), default=-1
        )
        place = next((p.place for p in told[last + 1 :] if p.place.line), None)
        names = " and ".join(leaf.name for leaf in leaves)
        unseen = (
            "it has seen no other, as a causal mask wants it" if kept == 0 else "no other counts"
        )
        raise Broken(
            f"all positions of {names} but {numbered('position', [kept])} were changed, and the "
            f"output stayed the same: what is taken from the sequence is position {kept}, and "
            f"{unseen if 'causal' in bench.promises else 'no other counts'}",
            place,
        )


def permutation_equivariance(bench: Bench) -> None:
    layout, before = bench.layout, bench.main()
    why = bench.promised(
        "unordered", "nothing says that the order of positions makes no difference"
    )
    if layout.length < SOME + 2:
        raise NotApplicable("no input has several positions")
    one, other = layout.length // 2, layout.length - 2  # the first and last one may be special
    changes = layout.swap_positions(layout.sequences, one, other)
    after = bench.live.call(changes).main
    rows, new = layout.by_position(before), layout.by_position(after)
    if rows is not None and new is not None:
        order = torch.arange(layout.length)
        order[one], order[other] = other, one
        before, after = rows.index_select(1, order), new
    elif before.dim() > 2 or layout.by_sample(before) is None:
        raise CannotTry("the axes of the output are not known")
    rows, new = before, like(before, after)
    if bench.moved(rows, new).any():
        raise Broken(
            f"positions {one} and {other} were swapped, and more than their outputs changed, by up "
            f"to {largest_gap(rows, new):.2g} ({why})"
        )
