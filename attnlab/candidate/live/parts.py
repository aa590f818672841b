"""The parts of a model that can be switched off, read off the values of one call.

A mask is where low numbers, or zeros, are put into what depends on the data; positions are tables
that do not depend on it; a residual is a sum with what the other operand was computed from.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from attnlab.candidate.live.watching import STANDARD
from attnlab.candidate.switches import Switch
from attnlab.candidate.value_recorder import Value
from attnlab.records.ablation import PartKind
from attnlab.tracer.recorder import is_library_code

LOW = -1e4  # what is put where nothing may be seen
SUMS = {"add", "__add__", "__radd__", "__iadd__", "add_"}
PRODUCTS = {"mul", "__mul__", "__rmul__", "__imul__", "mul_"}
FILLS = {"masked_fill", "masked_fill_", "where", "__setitem__"}
MIXES = {"matmul", "__matmul__", "linear", "einsum", "bmm", "addmm", "mm", "conv1d", "conv2d"}
NORMS = {"layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm"}
DROPOUTS = {"dropout", "dropout_", "feature_dropout", "alpha_dropout", "dropout1d", "dropout2d"}
SAID: dict[PartKind, str] = {"dropout": "dropout in training"}
MOST_HEADS = 16  # rows of heads; where there are more, those of all layers are one row


@dataclass
class Part:
    """What is switched off together."""

    kind: PartKind
    what: str
    file: str = ""
    line: int = 0
    switches: dict[int, Switch] = field(default_factory=dict)  # by call
    modules: list[str] = field(default_factory=list)  # names of those that pass on their input

    @property
    def times(self) -> int:
        return len(self.switches) + len(self.modules)


class Parts:
    """Finds the parts in the values of one call; `data` are the inputs that hold the sequence."""

    def __init__(self, values: Sequence[Value], data: Sequence[Tensor], samples: int) -> None:
        self.values, self.samples = values, samples
        self.live: list[bool] = []  # whether a value depends on the data
        self.counted: list[bool] = []  # whether it is made of numbers 0, 1, 2, ...
        for value in values:
            from_data = value.call < 0 and any(_same(value.numbers, each) for each in data)
            self.live.append(from_data or any(self.live[i] for i in value.inputs))
            self.counted.append(value.op == "arange" or any(self.counted[i] for i in value.inputs))

    def find(self, model: nn.Module) -> list[Part]:
        found = [*self._by_line(), *self._rotations(), *self._heads()]
        return [*found, *_modules(model, {(p.file, p.line) for p in found if p.kind == "norm"})]

    def _by_line(self) -> list[Part]:
        """Masks, tables of positions, residuals, norms and dropout; what one line does each time
        that it runs is one part."""
        found: dict[tuple[PartKind, str, str, int], Part] = {}
        for index, value in enumerate(self.values):
            if value.call < 0 or not self.live[index]:
                continue
            file, line = _place(value.file, value.line)
            module = "" if line else value.module
            for kind, switch in self._switches(index):
                what = value.op if kind == "norm" else SAID.get(kind, kind)
                what += f" of {module}" if module else ""
                part = Part(kind, what, file, line)
                found.setdefault((kind, what, file, line), part).switches[value.call] = switch
        return list(found.values())

    def _switches(self, index: int) -> Iterator[tuple[PartKind, Switch]]:
        value = self.values[index]
        if value.op in NORMS:
            yield "norm", Switch(passes=0)
        elif value.op in DROPOUTS:
            yield "dropout", Switch(passes=0)
        elif value.op in FILLS:
            kept = self._filled(value)
            if kept is not None:
                yield "mask", Switch(passes=kept)
        elif value.op in PRODUCTS and len(value.inputs) > 1:
            other = self._fixed(value)
            if other is not None and _is_open_or_closed(self.values[value.inputs[other]].numbers):
                yield "mask", Switch(passes=1 - other)
        elif value.op in SUMS and len(value.inputs) > 1:
            yield from self._of_sum(value)

    def _filled(self, value: Value) -> int | None:
        """The operand that goes on where a mask does not put something else."""
        if value.op != "where":
            return 0 if self.live[value.inputs[0]] else None
        for place, source in enumerate(value.inputs):
            numbers = self.values[source].numbers
            if self.live[source] and numbers.dtype is not torch.bool:
                return place
        return None

    def _fixed(self, value: Value) -> int | None:
        """Which of two operands does not depend on the data, where the other does."""
        one, other = (self.live[i] for i in value.inputs[:2])
        return None if one == other else int(one)

    def _of_sum(self, value: Value) -> Iterator[tuple[PartKind, Switch]]:
        other = self._fixed(value)
        if other is not None:
            table = value.inputs[other]
            numbers = self.values[table].numbers
            if (numbers <= LOW).any():
                yield "mask", Switch(passes=1 - other)
            elif _varies_along_positions(numbers, self.counted[table]):
                yield "positions", Switch(passes=1 - other)
            return
        skip = self._skipped(value)
        if skip is not None:
            yield "residual", Switch(passes=1 - skip)
            yield "branch", Switch(passes=skip)

    def _skipped(self, value: Value) -> int | None:
        """The operand that the other one was computed from, by a product with weights."""
        for place, source in enumerate(value.inputs[:2]):
            other = value.inputs[1 - place]
            if source != other and self._mixes_between(source, other):
                return place
        return None

    def _mixes_between(self, start: int, end: int) -> bool:
        """Whether `end` is computed from `start` by way of a product of matrices."""
        todo, seen, reached, mixed = [end], set[int](), False, False
        while todo:
            here = todo.pop()
            if here in seen or here < start:
                continue
            seen.add(here)
            reached = reached or here == start
            if here != start:
                mixed = mixed or self.values[here].op in MIXES
                todo += self.values[here].inputs
        return reached and mixed

    def _rotations(self) -> Iterator[Part]:
        """Vectors that are turned by their position: cosines count as 1, sines as 0."""
        products = [
            (value, other)
            for value in self.values
            if value.call >= 0 and value.op in PRODUCTS and len(value.inputs) > 1
            if (other := self._fixed(value)) is not None
        ]
        tables = {value.inputs[other] for value, other in products}
        numbers = {i: self.values[i].numbers for i in tables}
        cosines = {i for i in tables if any(_is_circle(numbers[i], numbers[j]) for j in tables)}
        sines = {j for j in tables if any(_is_circle(numbers[i], numbers[j]) for i in cosines)}
        part = None
        for value, other in products:
            table = value.inputs[other]
            if table in cosines or _is_turn(numbers[table], value.numbers):
                switch = Switch(passes=1 - other)
            elif table in sines:
                switch = Switch()
            else:
                continue
            part = part or Part("positions", "rotary positions", *_place(value.file, value.line))
            part.switches[value.call] = switch
        if part:
            yield part

    def _heads(self) -> Iterator[Part]:
        """Each head's weights of attention."""
        lines: dict[tuple[str, int], list[Value]] = defaultdict(list)
        for index, value in enumerate(self.values):
            if value.op == "softmax" and self.live[index] and value.numbers.dim() > 2:
                lines[value.file, value.line].append(value)
        rows = [row for found in lines.values() for row in self._of_softmax(found)]
        if len(rows) > MOST_HEADS:
            rows = _over_layers(rows)
        yield from rows

    def _of_softmax(self, made: list[Value]) -> Iterator[Part]:
        for number, value in enumerate(made):
            axis, many, step = self._head_axis(value.numbers)
            place = _place(value.file, value.line)
            where = f" of {value.module}" if value.module and len(made) > 1 else ""
            if axis is None:
                if len(made) > 1:
                    yield Part("head", f"head {number}", *place, {value.call: Switch()})
                continue
            for head in range(many) if many > 1 else ():
                switch = Switch(axis=axis, first=head, step=step)
                yield Part("head", f"head {head}{where}", *place, {value.call: switch})

    def _head_axis(self, numbers: Tensor) -> tuple[int | None, int, int]:
        """The axis of heads, how many there are, and how far apart their slices are."""
        if numbers.dim() == 4:
            turned = numbers.shape[1] == numbers.shape[3] != numbers.shape[2]
            axis = 2 if turned else 1
            return axis, numbers.shape[axis], numbers.shape[axis]
        rows = numbers.shape[0]
        if numbers.dim() == 3 and self.samples and rows > self.samples and not rows % self.samples:
            return 0, rows // self.samples, rows // self.samples
        return None, 1, 1


def _over_layers(rows: list[Part]) -> list[Part]:
    """One part for each number of a head, of all layers."""
    found: dict[str, Part] = {}
    for row in rows:
        name = " ".join(row.what.split()[:2])
        part = found.setdefault(name, Part("head", f"{name} of all layers", row.file, row.line))
        part.switches |= row.switches
    return list(found.values())[:MOST_HEADS]


def _modules(model: nn.Module, known: set[tuple[str, int]]) -> Iterator[Part]:
    """Norms that were written by hand, and the blocks of a stack."""
    norms: dict[type[nn.Module], list[str]] = defaultdict(list)
    for name, module in model.named_modules():
        kind = type(module)
        if "norm" in kind.__name__.lower() and not kind.__module__.startswith("torch.nn"):
            norms[kind].append(name)
    for kind, names in norms.items():
        file, first, last = _lines(kind)
        if not any(file == f and first <= line <= last for f, line in known):
            yield Part("norm", kind.__name__, file, first, modules=names)
    for name, stack in model.named_modules():
        kinds = {type(child) for child in stack.children()}
        many = len(list(stack.children()))
        kind = kinds.pop() if len(kinds) == 1 else nn.Identity
        stacked = isinstance(stack, (nn.ModuleList, nn.Sequential)) and many > 1
        if stacked and any(True for _ in next(stack.children()).children()):
            file, first, _ = _lines(kind)
            for number in range(many):
                told = f"{name}.{number}".lstrip(".")
                yield Part("block", told, file, first, modules=[told])


def _lines(kind: type[nn.Module]) -> tuple[str, int, int]:
    """The file and lines of a class's forward."""
    try:
        lines, start = inspect.getsourcelines(kind.forward)
    except (OSError, TypeError):
        return "", 0, 0
    file, first = _place(kind.forward.__code__.co_filename, start)
    return file, first, start + len(lines)


def _place(file: str, line: int) -> tuple[str, int]:
    """A file and line of the user's; "" and 0 in a library."""
    own = file.startswith(STANDARD) and "site-packages" not in file
    return ("", 0) if not file or own or is_library_code(file) else (file, line)


def _same(numbers: Tensor, other: Tensor) -> bool:
    return numbers.shape == other.shape and torch.equal(numbers.double(), other.double())


def _is_open_or_closed(numbers: Tensor) -> bool:
    """Whether a factor is a mask: ones and zeros, and both."""
    if numbers.numel() < 2 or numbers.is_complex():
        return False
    flat = numbers.double()
    return bool(((flat == 0) | (flat == 1)).all() and flat.any() and not flat.all())


def _varies_along_positions(numbers: Tensor, counted: bool) -> bool:
    """Whether a summand is a table: several rows that are not alike; one row is where it was
    counted."""
    rows = numbers.squeeze()
    if rows.dim() == 1 and counted:
        return rows.numel() > 1 and bool((rows != rows[0]).any())
    return rows.dim() > 1 and not torch.equal(rows, rows[..., :1, :].expand_as(rows))


def _is_circle(cosine: Tensor, sine: Tensor) -> bool:
    """Whether two tables are the cosines and sines of the same angles, which begin with 0."""
    if cosine.shape != sine.shape or cosine.dim() < 2 or sine.dtype is torch.bool:
        return False
    circle = cosine.double() ** 2 + sine.double() ** 2
    starts = (cosine.movedim(axis, 0)[:1] for axis in range(cosine.dim()))
    begins = any(len(row) and bool((row == 1).all()) for row in starts)
    varied = bool((cosine != 1).any())
    return varied and begins and torch.allclose(circle, torch.ones_like(circle), atol=1e-5)


def _is_turn(table: Tensor, product: Tensor) -> bool:
    """Whether a factor is complex numbers of length 1, as the last axis of two numbers."""
    if table.dim() < 2 or table.shape[-1] != 2 or product.shape[-1:] != table.shape[-1:]:
        return False
    length = (table.double() ** 2).sum(-1)
    varied = bool((table[..., 1] != 0).any())
    return varied and torch.allclose(length, torch.ones_like(length), atol=1e-5)
