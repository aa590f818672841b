"""Findings about sublayers that are not added to what they were given."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import Rows, show
from attnlab.tracer.raw_trace import finding_at, line_of
from attnlab.tracer.views.attention_sites import VIEWS, find_sites

ACTIVATIONS = {"relu", "gelu", "silu", "tanh", "elu", "leaky_relu", "relu6", "sigmoid", "glu"}
SUMS = {"add", "add_", "iadd", "radd"}
# On the way from a sublayer to its sum: what keeps a token's vector where it is.
PASSED = VIEWS | {"dropout", "contiguous", "to", "type_as", "float", "layer_norm", "rms_norm"}
PASSED |= {"mul", "div", "mul_", "pow", "rsqrt", "mean", "sub", "truediv", "clone", "cat", "sum"}
PASSED |= {"roll", "pad", "split", "chunk", "movedim", "einsum"}
PASSED |= {"scatter_add", "scatter_add_", "index_add", "index_add_"}  # of experts' tokens
# What the other term of a sum may be: a residual that is moved, scaled or gated.
TERMS = SUMS | {"dropout", "to", "clone", "contiguous", "type_as", "float", "mul", "mul_", "rmul"}
TURNED = {"transpose", "permute", "mT", "swapaxes", "movedim"}
GATES = {"gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"}
JOINS = {"cat", "concat", "concatenate", "hstack"}
NORMED = {"layer_norm", "rms_norm"}
NEAR = 24  # steps


@dataclass(frozen=True)
class Sublayer:
    """An attention or a feed-forward network in a block."""

    kind: str
    exit: int  # its last row
    entry: int  # the row, or input, that its first projection took
    added: bool = False


def missing_residuals(rows: Rows) -> Iterator[Finding]:
    """Sublayers without a sum, where others of the same run have one."""
    if rows.raw.crash is not None:
        return
    found = list(_sublayers(rows))
    streams = [s for s in found if _is_stream(rows, s)]
    added = [s for s in found if s.added]  # in PyTorch's own layer also of another shape
    bare = [s for s in streams if not s.added]
    attentions = sum(s.kind == "attention" for s in streams)
    if not bare or not (added or (attentions > 1 and len(streams) > attentions)):
        return
    told: set[tuple[str, int]] = set()
    for sublayer in bare:
        op = rows.raw.ops[sublayer.exit]
        file, line, name = _call_of(rows, op)
        if (file, line) in told:
            continue
        told.add((file, line))
        others = (
            f"{len(added)} other sublayers of this run are"
            if added
            else "no sublayer of this run is"
        )
        message = (
            f"the output of {name or sublayer.kind} {show(rows.axes[op.index])} is not added to "
            f"what it was given, and {others}: x = x + {name.rpartition('.')[2] or 'f'}(...)"
        )
        yield replace(finding_at(op, "residual-missing", message), file=file, line=line)


def doubled_sums(rows: Rows) -> Iterator[Finding]:
    """`x = f(x); x = x + x`: what was to be added is written over."""
    for op in rows.raw.ops:
        twice = op.op in SUMS and len(op.parents) == 2 and len({*op.parents}) == 1
        if twice and op.parents[0] in rows.data and len(op.shape) > 2:
            message = (
                f"this adds {show(rows.axes[op.index])} to itself: what the sublayer was given is "
                "written over before it is added. Keep it: x = x + f(x)"
            )
            yield finding_at(op, "residual-missing", message)


def skipped_sums(rows: Rows) -> Iterator[Finding]:
    """`x + f(norm(x + attention(x)))`: the attention's own sum ends in the next sublayer."""
    ops = rows.raw.ops
    readers: dict[int, set[int]] = defaultdict(set)
    for op in ops:
        for parent in op.parents:
            readers[parent].add(op.index)
    for sublayer in _sublayers(rows):
        if sublayer.kind != "feed-forward" or sublayer.entry < 0:
            continue
        normed = ops[sublayer.entry]
        first = ops[normed.parents[0]] if normed.op in NORMED and normed.parents[0] >= 0 else normed
        end = _sum_behind(rows, readers, sublayer.exit)
        if end is None or first.op not in SUMS or len(first.parents) != 2:
            continue
        kept = set(first.parents) & set(end.parents)
        inside = {normed.index, first.index}
        other = readers[first.index] | readers[normed.index]
        within = {o for o in other if o in inside or ops[o].op == "linear"}
        added = set(first.parents) - kept  # of a step in time or a class: no sublayer's output
        follows = added and all(r >= 0 and kept & _ancestors(rows, r) for r in added)
        if kept and other == within and follows:
            yield finding_at(
                end,
                "residual-missing",
                f"this sum adds the feed-forward network to what {line_of(first, end.file)} added "
                f"another sublayer to, not to the sum {show(rows.axes[first.index])} of that "
                "line: it passes that sublayer by",
            )
            return


def _sum_behind(rows: Rows, readers: Mapping[int, set[int]], row: int) -> Op | None:
    """The sum that a sublayer's output goes into, through what drops some of it."""
    for _ in range(4):
        if len(readers[row]) != 1:
            return None
        op = rows.raw.ops[next(iter(readers[row]))]
        if op.op in SUMS:
            return op if len(op.parents) == 2 else None
        if op.op not in ("dropout", "to", "contiguous"):
            return None
        row = op.index
    return None


def missing_activations(rows: Rows) -> Iterator[Finding]:
    """Two linear layers in a row of which the first widens: without a bend between they are one.

    What the first makes must go nowhere else: an embedding that is projected to a wider stream is
    read by queries, keys, values and a sum, and is no middle.
    """
    readers = Counter(parent for op in rows.raw.ops for parent in set(op.parents))
    for op in rows.raw.ops:
        above = (
            rows.raw.ops[op.parents[0]] if op.op == "linear" and op.parents[:1] > (-1,) else None
        )
        alone = above is None or readers[above.index] == 1
        while above is not None and above.op in ("dropout", "contiguous", "to") and above.parents:
            above = rows.raw.ops[above.parents[0]] if above.parents[0] >= 0 else None
            alone &= above is None or readers[above.index] == 1
        if above is None or above.op != "linear" or not above.parents or not alone:
            continue
        before, middle = rows.shape(above.parents[0])[-1:], above.shape[-1:]
        if before and middle and middle > before and middle > op.shape[-1:]:
            yield finding_at(
                op,
                "activation-missing",
                f"this linear layer takes the output {show(rows.axes[above.index])} of the linear "
                f"layer of {line_of(above, op.file)} as it is: without an activation "
                "between them the two are one linear map, and the wider middle adds nothing",
            )


def _sublayers(rows: Rows) -> Iterator[Sublayer]:
    ops = rows.raw.ops
    children: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        for parent in op.parents:
            children[parent].append(op.index)
    for site in find_sites(ops):
        entry = _projected(
            rows, site.soft if site.fused else (site.chain[-1] if site.chain else -1)
        )
        if entry is not None:
            yield _followed(rows, children, Sublayer("attention", site.context, entry))
    for op in ops:
        if op.op == "linear" and (entry := _widened(rows, op)) is not None:
            if entry >= 0 and ops[entry].op in TURNED:  # it mixes tokens, to as many or to others
                continue
            yield _followed(rows, children, Sublayer("feed-forward", op.index, entry))


def _projected(rows: Rows, product: int) -> int | None:
    """What the projection of the queries took."""
    row = product
    for _ in range(NEAR):
        if row < 0 or not rows.raw.ops[row].parents:
            return None
        op = rows.raw.ops[row]
        if op.op == "linear":
            return op.parents[0]
        row = op.parents[op.op == "baddbmm" and len(op.parents) > 2]  # what it adds comes first
    return None


def _widened(rows: Rows, last: Op) -> int | None:
    """What the first layer of a feed-forward network took, of which this is the last layer."""
    ops, row, active = rows.raw.ops, last.parents[0] if last.parents else -1, False
    for _ in range(6):
        if row < 0:
            return None
        op = ops[row]
        active |= op.op in ACTIVATIONS
        if op.op == "linear":
            wide = active and op.shape[-1] > last.shape[-1] and op.parents
            return op.parents[0] if wide else None
        if op.op not in ACTIVATIONS | {"dropout", "mul", "to", "layer_norm"} or not op.parents:
            return None
        row = op.parents[0]
    return None


def _followed(rows: Rows, children: dict[int, list[int]], sublayer: Sublayer) -> Sublayer:
    """The sublayer, with whether its output meets, in a sum, something that it was made of."""
    ops = rows.raw.ops
    above = _ancestors(rows, sublayer.exit)
    todo, seen, last = [(sublayer.exit, sublayer.kind == "attention", 0)], set(), sublayer.exit
    while todo:
        row, projects, steps = todo.pop()
        if row in seen or steps > NEAR:
            continue
        seen.add(row)
        for child in children[row]:
            op = ops[child]
            others = [p for p in op.parents if p not in seen]
            gated = op.op in GATES  # a cell takes up what it is given
            gated |= op.op in JOINS and bool(above & set(others))  # as do layers of both, joined
            if gated or (op.op in SUMS and _meets(rows, others, above, sublayer.exit)):
                return replace(sublayer, exit=last, added=True)
            if op.op == "linear" and projects:
                last = child
                todo.append((child, False, steps + 1))
            elif op.op in PASSED | SUMS:
                todo.append((child, projects, steps + 1))
    return replace(sublayer, exit=last)


def _meets(rows: Rows, others: Sequence[int], above: set[int], output: int) -> bool:
    """Whether the other term is what the sublayer was made of, or is made of the same: a mixture of
    several streams."""
    if any(p in above for p in _terms(rows, others)):
        return True
    made_of = [(p, _ancestors(rows, p)) for p in others if p >= 0]
    return any(output not in found and found & above for _, found in made_of)


def _terms(rows: Rows, parents: Sequence[int]) -> set[int]:
    """The operands, and those of the sums among them: blocks in parallel add all at once."""
    todo, found = list(parents), set(parents)
    while todo:
        row = todo.pop()
        if row >= 0 and rows.raw.ops[row].op in TERMS:
            fresh = set(rows.raw.ops[row].parents) - found
            found |= fresh
            todo += fresh
    return found


def _ancestors(rows: Rows, row: int) -> set[int]:
    todo, found = [row], set()
    while todo:
        for parent in rows.raw.ops[todo.pop()].parents:
            if parent not in found:
                found.add(parent)
                if parent >= 0:
                    todo.append(parent)
    return found


def _is_stream(rows: Rows, sublayer: Sublayer) -> bool:
    """Its output has the shape of what it took, which descends from an input: it could be added."""
    shape = rows.raw.ops[sublayer.exit].shape
    fits = len(shape) > 2 and rows.shape(sublayer.entry) == shape
    given = sublayer.entry < 0 or any(p < 0 for p in _ancestors(rows, sublayer.entry))
    return fits and given


def _call_of(rows: Rows, op: Op) -> tuple[str, int, str]:
    """File and line of the statement that calls the sublayer's module, and its path."""
    calls = {path: (file, line) for path, file, line in rows.raw.flow.calls}
    path = op.module
    while path:
        # A plain layer, such as the linear one that ends the sublayer, calls nothing.
        if path in calls and any(other.startswith(f"{path}.") for other in calls):
            return (*calls[path], path)
        path = path.rpartition(".")[0]
    return op.file, op.line, ""
