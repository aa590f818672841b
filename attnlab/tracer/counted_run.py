"""What is counted in one traced call: parameters, FLOPs, tensors of pairs, keys and values."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod

import torch

from attnlab.records import Op, Trace
from attnlab.sizes import Sizes, with_head_dim
from attnlab.tracer.formulas import LENGTHS, Item, Key
from attnlab.tracer.views.attention_sites import PRODUCTS, SAME, VIEWS, Site, find_sites

ADDS = {"add", "add_", "iadd"}
REPEATS = {"repeat_interleave", "repeat", "expand", "tile"}
KEPT = {*SAME, *VIEWS, *REPEATS, "cat", "stack", "neg", "chunk", "split", "unbind"}
Shape = tuple[int, ...]
Counted = tuple[str, Key, tuple[int | Fraction, ...]]  # its module, its key, its factors
Chosen = set[tuple[Key, int | None]]


class Run:
    """What was counted in one run: for each kind of cost its items, each as a product."""

    def __init__(self, trace: Trace, sizes: Sizes, inputs: Sequence[Shape] = ()) -> None:
        self.trace, self.sizes, self.inputs = trace, with_head_dim(sizes), inputs
        self.sites = list(find_sites(trace.ops))

    @cached_property
    def items(self) -> dict[str, list[Counted]]:
        """By kind of cost."""
        held = [
            (self._key(w.name), w, w.bytes // max(prod(w.shape), 1)) for w in self.trace.weights
        ]
        ops = [(self._key(op.module, op.file, op.line, op.op), op) for op in self.trace.ops]
        tables = [(key, op, table) for key, op in ops for table in self._tables_added(op)]
        return {
            "parameters": [(*key, w.shape) for key, w, _ in held if w.learned],
            "weights": [(*key, (*w.shape, size)) for key, w, size in held if w.learned],
            "buffers": [(*key, (*w.shape, size)) for key, w, size in held if not w.learned],
            "flops": [
                (*key, (*op.shape, Fraction(op.flops, prod(op.shape) or 1)))
                for key, op in ops
                if op.flops
            ],
            "pairs": [(*self._key_of_pairs(op), _elements(op)) for _, op in ops if op.bytes],
            "cache": [("", ("",), (*shape, size)) for shape, size in self._keys_and_values()],
            "positions": [
                (*key, factors)
                for key, op, table in tables
                for factors in ((2, *_elements(op)), (*table, item_size(op)))
            ],
        }

    def _key(self, module: str, *rest: str | int) -> tuple[str, Key]:
        """A module without the numbers of its layers; what is counted, without any numbers."""
        owner = module if rest else module.rpartition(".")[0]
        return self.group(owner), (re.sub(r"\d+", "*", module), *rest)

    def _key_of_pairs(self, op: Op) -> tuple[str, Key]:
        contexts = {site.context for site in self.sites}
        return self._key(op.module, op.file, op.line, op.op, op.index in contexts)

    def group(self, module: str) -> str:
        """`h.*.attn` of `h.3.attn`: a layer that has parts of its own without its number."""
        parts = module.split(".")
        starts = (".".join(parts[: i + 1]) for i in range(len(parts)))
        pairs = zip(parts, starts, strict=True)
        return ".".join("*" if p.isdigit() and s in self._layers else p for p, s in pairs)

    @cached_property
    def _layers(self) -> set[str]:
        """The modules that have parts of their own."""
        names = {op.module for op in self.trace.ops}
        names |= {w.name.rpartition(".")[0] for w in self.trace.weights}
        return {name[: dot.start()] for name in names for dot in re.finditer(r"\.", name)}

    def among(self, chosen: Chosen) -> None:
        """Leave those tensors that are chosen as pairs of positions, by their keys and places."""
        seen: Counter[Key] = Counter()
        kept = []
        for module, key, factors in self.items["pairs"]:
            if {(key, seen[key]), (key, None)} & chosen:
                kept.append((module, key, factors))
            seen[key] += 1
        self.items["pairs"] = kept

    def of_module(self, kind: str, module: str | None) -> list[Item]:
        """What is counted in one group of modules, or in all."""
        return [(key, f) for owner, key, f in self.items[kind] if module in (None, owner)]

    def count(self, kind: str, module: str | None = None) -> int:
        return int(sum(prod(factors) for _, factors in self.of_module(kind, module)))

    @cached_property
    def modules(self) -> dict[str, set[str]]:
        """The modules that have weights or FLOPs, those alike but for a number in one group."""
        costly = [op.module for op in self.trace.ops if op.flops]
        held = [w.name.rpartition(".")[0] for w in self.trace.weights]
        found: dict[str, set[str]] = defaultdict(set)
        for module in (*costly, *held):
            found[self.group(module)].add(module)
        return found

    def tied(self, name: str) -> Iterator[str]:
        """The modules whose weights a group of modules shares, which count there."""
        for weight in self.trace.weights:
            if name in (self.group(other.rpartition(".")[0]) for other in weight.also):
                yield self.group(weight.name.rpartition(".")[0])

    @cached_property
    def squares(self) -> set[Key]:
        """The keys of tensors that have an element for each pair of positions by the names of their
        axes, or by their place in an attention whose positions have no name."""
        plain = [site for site in self.sites if not site.fused]  # which keeps no matrix
        rows = {row for site in plain for row in (site.soft, site.weights, *site.chain)}
        lengths = {o.index: sum(a.rstrip("'") in LENGTHS for a in o.axes) for o in self.trace.ops}
        return {
            self._key_of_pairs(op)[1]
            for op in self.trace.ops
            if lengths[op.index] > 1
            or (op.index in rows and not lengths[op.index] and "1" not in op.axes[-2:])
        }

    # ------------------------------------------------------------ attention and positions

    def _keys_and_values(self) -> Iterator[tuple[Shape, int]]:
        """Shapes, and bytes of an element, of what a cache would keep: keys and values before they
        are repeated for heads."""
        ops = self.trace.ops
        for site in self.sites:
            product = next((r for r in reversed(site.chain) if ops[r].op in PRODUCTS), None)
            if site.fused:
                rows = ops[site.context].parents[1:3]
            elif product is not None:
                value = self._values(site)
                rows = (self._keys(ops[product].parents[-2:], value), value)
            else:
                rows = (self._values(site),)
            for row in rows:
                yield self._shape(row), item_size(ops[row if row >= 0 else site.context])

    def _shape(self, row: int) -> Shape:
        """The shape of a row, or of an input, before it was repeated for heads."""
        kept = _before_repeats(self.trace.ops, row)
        if kept >= 0:
            return self.trace.ops[kept].shape
        return self.inputs[-1 - kept] if -1 - kept < len(self.inputs) else (0,)

    def _values(self, site: Site) -> int:
        """What the context is a product of, beside the weights."""
        ops = self.trace.ops
        made = ops[site.context]
        above = made.parents[0] if made.op == "sum" and made.parents else -1
        factors = ops[above].parents if above >= 0 else made.parents
        below = {site.soft}
        for op in ops[site.soft : site.context]:
            if below & set(op.parents):
                below.add(op.index)
        return next((p for p in reversed(factors) if p not in below), factors[-1])

    def _keys(self, factors: Sequence[int], value: int) -> int:
        """The factor of the scores with as many elements as the values; else the last one."""
        size = prod(self._shape(value))
        return next((p for p in reversed(factors) if prod(self._shape(p)) == size), factors[-1])

    def _tables_added(self, op: Op) -> Iterator[Shape]:
        """The shape of a table of positions that this operation adds to x: it has no samples, or is
        made of no input."""
        full = op.shape[-2:]
        if op.op not in ADDS or len(op.shape) not in (2, 3) or full[:1] in ((), (1,)):
            return
        ops = self.trace.ops
        rows = [p for p in op.parents if p >= 0]
        free = [p for p in rows if p not in self._fed or prod(ops[p].shape) < prod(op.shape)]
        shapes = [ops[p].shape for p in free]
        if len(op.parents) == 1:  # the other operand is no row: a parameter or a buffer as it is
            shapes += [w.shape for w in self.trace.weights if len(w.shape) > 1]
        scores = any(op.index in site.chain for site in self.sites)
        if not scores and any(s[-2:] == full and prod(s) == prod(full) for s in shapes):
            yield full

    @cached_property
    def _fed(self) -> set[int]:
        """The rows that depend on an input."""
        found: set[int] = set()
        for op in self.trace.ops:
            if any(p < 0 or p in found for p in op.parents):
                found.add(op.index)
        return found


def _elements(op: Op) -> tuple[int, ...]:
    """The factors of an output's bytes."""
    return (*op.shape, item_size(op))


def item_size(op: Op) -> int:
    """Bytes of an element, by the name that its process gave for the dtype."""
    return int(getattr(getattr(torch, op.dtype, None), "itemsize", 4))


def _before_repeats(ops: Sequence[Op], row: int) -> int:
    """The row, or input, above what repeats it, as one head is for several queries."""
    at = found = row
    while at >= 0 and ops[at].op in KEPT and ops[at].parents:
        above = ops[at].parents[0]
        found = above if ops[at].op in REPEATS else found
        at = above
    return found
