"""What became of what a run was given, held and made: facts for the rules of unused values."""

from collections import defaultdict
from collections.abc import Iterator
from types import CodeType
from typing import Any, Literal

from torch import Tensor, nn

from attnlab.records.base import record
from attnlab.records.trace import Finding
from attnlab.tracer.class_source import call_places, never_named
from attnlab.tracer.recorder import Recorder, storage_of
from attnlab.tracer.rows import Replay, Row, plain_sizes
from attnlab.tracer.source_statements import statements
from attnlab.tracer.structure import odd_structure

# Operations whose plain numbers say what they do.
NUMBERED = {
    *("masked_fill", "masked_fill_", "where", "clamp", "clamp_", "softmax", "log_softmax"),
    *("dropout", "mul", "mul_", "rmul", "imul", "div", "div_", "truediv", "rtruediv", "itruediv"),
    *("true_divide", "divide", "multiply", "full", "full_like", "new_full", "fill_", "tril"),
    *("triu", "add", "sub", "rsub", "radd", "iadd", "scaled_dot_product_attention", "mean"),
    *("var", "std", "_softmax", "sum", "normalize"),
}
# Bare calls of these are made for what they do and not for what they return.
DOING = {"backward", "item", "print", "append", "extend", "update", "copy_", "setdefault"}
MOST = 1 << 22  # elements of a buffer that are looked at
Numbers = tuple[tuple[str, float], ...]


@record
class HeldTensor:
    """A parameter, buffer or plain tensor of the module, and the rows that took it."""

    name: str
    kind: Literal["parameter", "buffer", "attribute"]
    shape: tuple[int, ...]
    rows: tuple[int, ...]
    binary: bool = False  # of zeros and ones


@record
class Flow:
    """Of one run. A row is known by the index of its first output."""

    outputs: tuple[int, ...] = ()  # what was returned, or what a backward pass began at
    graded: tuple[int, ...] = ()  # single numbers that a backward pass comes back to
    read: tuple[int, ...] = ()  # whose values the program read, and may have decided by
    fed: tuple[int, ...] = ()  # the row that made each input, or -1 - i where none did
    whole: bool = False  # where every tensor came from is known: what has no way out has none
    training: bool = False  # the module's mode
    partial: bool = False  # arguments of forward were left out
    held: tuple[HeldTensor, ...] = ()
    numbers: tuple[tuple[int, Numbers], ...] = ()  # among a row's arguments: ("1", -1e9)
    dropped: tuple[int, ...] = ()  # rows of statements that throw their value away
    unread: tuple[tuple[int, str], ...] = ()  # rows whose value a variable takes that none reads
    calls: tuple[tuple[str, str, int], ...] = ()  # of submodules: path, file and line of the call
    unnamed: tuple[tuple[str, str, int], ...] = ()  # what no method names: path, file, line
    structure: tuple[Finding, ...] = ()  # what is odd about the module, run or not


def read_flow(recorder: Recorder, seen: Replay, partial: bool = False) -> Flow:
    """The facts of a finished run."""
    rows = list(_numbered(seen.rows))
    held, whole = _held(recorder, rows)
    dropped, unread = _thrown_away(rows, recorder)
    return Flow(
        outputs=seen.outputs,
        graded=tuple(sorted(recorder.graded)),
        read=seen.read,
        fed=seen.fed,
        whole=whole and bool(seen.outputs),
        training=recorder.root is not None and (recorder.training or recorder.root.training),
        partial=partial,
        held=held,
        numbers=tuple(_numbers(rows)),
        dropped=dropped,
        unread=unread,
        calls=call_places(recorder.root) if recorder.root is not None else (),
        unnamed=never_named(recorder.root) if recorder.root is not None else (),
        structure=odd_structure(recorder.root) if recorder.root is not None else (),
    )


def _numbered(rows: list[Row]) -> Iterator[tuple[int, Row]]:
    """The rows with the index of their first output."""
    index = 0
    for row in rows:
        yield index, row
        index += len(row.outs)


def plain_tensors(root: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Tensors that modules hold as plain attributes: no state dict and no device move sees them."""
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                yield f"{path}.{name}".lstrip("."), value


def _held(recorder: Recorder, rows: list[tuple[int, Row]]) -> tuple[tuple[HeldTensor, ...], bool]:
    """What the module holds with the rows that took it, and whether every operand is known."""
    root = recorder.root
    if root is None:
        return (), False
    tensors: dict[str, tuple[str, Tensor]] = {
        n: ("parameter", p) for n, p in root.named_parameters()
    }
    tensors |= {n: ("buffer", b) for n, b in root.named_buffers()}
    tensors |= {n: ("attribute", t) for n, t in plain_tensors(root)}
    by_storage = {storage_of(t): name for name, (_, t) in tensors.items()}
    taken: dict[str, list[int]] = defaultdict(list)
    whole = True
    for (index, row), entry in zip(rows, recorder.log, strict=True):
        if "pack_padded" in row.op:  # its tensors stand in an object of their own
            whole = False
        for source, (_, storage, shape) in zip(row.sources, entry[4], strict=True):
            if isinstance(source, int):
                continue
            name = source if isinstance(source, str) and source in tensors else None
            name = name or by_storage.get(storage)
            if name is not None:
                taken[name].append(index)
            elif len(shape) > 1:
                whole = False
    kinds: Any = tensors
    found = (
        HeldTensor(
            name=name.replace("_orig_mod.", ""),
            kind=kinds[name][0],
            shape=plain_sizes(kinds[name][1].shape),
            rows=tuple(dict.fromkeys(taken[name])),
            binary=kinds[name][0] != "parameter" and _is_binary(kinds[name][1]),
        )
        for name in tensors
    )
    return tuple(found), whole


def _is_binary(tensor: Tensor) -> bool:
    """Whether it has both zeros and ones, and nothing else."""
    if tensor.is_meta or tensor.dim() < 2 or tensor.numel() > MOST:
        return False
    ones, zeros = tensor == 1, tensor == 0
    return bool((ones | zeros).all() and ones.any() and zeros.any())


def _numbers(rows: list[tuple[int, Row]]) -> Iterator[tuple[int, Numbers]]:
    for index, row in rows:
        if row.op.strip("_") not in NUMBERED and row.op not in NUMBERED:
            continue
        args, named = row.template
        pairs = [(str(i), a) for i, a in enumerate(args)] + list((named or {}).items())
        found = tuple((k, float(v)) for k, v in pairs if type(v) in (int, float, bool))
        if found:
            yield index, found


def _thrown_away(
    rows: list[tuple[int, Row]], recorder: Recorder
) -> tuple[tuple[int, ...], tuple[tuple[int, str], ...]]:
    """The last rows of statements whose value nothing takes, and of those that fill a variable
    which nothing reads."""
    root = recorder.root
    submodules = (
        {n.rpartition(".")[2] for n, _ in root.named_modules()} if root is not None else set()
    )
    read = {parent for _, row in rows for parent in row.parents}
    last: dict[tuple[CodeType, int], tuple[int, Row]] = {}
    for index, row in rows:
        if row.code is not None and row.code is not recorder.caller:
            last[row.code, row.line] = (index, row)
    dropped, unread = [], []
    for (code, line), (index, row) in last.items():
        if read.intersection(range(index, index + len(row.outs))) or writes_in_place(row):
            continue
        found = statements(code.co_filename).get(line)
        if found is None:
            continue
        name = found.called
        meant = name == row.op.strip("_") or (found.of_self and name in submodules)
        if meant and name not in DOING and not name.endswith("_"):
            dropped.append(index)
        elif variable := found.unread_name:
            unread.append((index, variable))
    return tuple(dropped), tuple(unread)


def writes_in_place(row: Row) -> bool:
    named = row.template[1] or {}
    inplace = row.op.endswith("_") and not row.op.endswith("__")
    return (
        inplace
        or row.op in ("__setitem__", *_AUGMENTED)
        or "out" in named
        or bool(named.get("inplace"))
    )


_AUGMENTED = tuple(
    f"__i{op}__" for op in ("add", "sub", "mul", "truediv", "matmul", "pow", "and", "or")
)
