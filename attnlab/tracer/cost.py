"""What a traced call costs, by module and in all, with formulas in the names of its axes."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import prod

from attnlab.records import Op, Trace, Weight
from attnlab.records.cost import Cost, CostReport, ModuleCost
from attnlab.sizes import Sizes, UnknownSize, measure, with_head_dim
from attnlab.tracer.views.attention_sites import PRODUCTS, SAME, VIEWS, Site, find_sites

LENGTHS = ("S", "T", "L", "Sq", "Sk")
SHORT = {"B", *LENGTHS}  # what no weight has an axis of
ITEM = {"float64": 8, "int64": 8, "complex64": 8, "bfloat16": 2, "float16": 2, "int16": 2}
ITEM |= {"bool": 1, "uint8": 1, "int8": 1, "complex128": 16}  # bytes of an element; else 4
ADDS = {"add", "add_", "iadd"}
REPEATS = {"repeat_interleave", "repeat", "expand", "tile"}
KEPT = {*SAME, *VIEWS, *REPEATS, "cat", "stack", "neg", "chunk", "split", "unbind"}
Formula = Counter[tuple[str, ...]]  # factors, in order, by what they are multiplied by


def cost_of(trace: Trace, at: Sizes | None = None) -> CostReport:
    """The costs of a run as they were counted; or what its formulas give at other sizes."""
    return CostReport(
        sizes=trace.sizes if at is None else at,
        costs=tuple(_costs(trace, at)),
        modules=tuple(_by_module(trace, at)),
    )


def _costs(trace: Trace, at: Sizes | None) -> Iterator[Cost]:
    def cost(
        id_: str, title: str, value: int, formula: Formula, unit: str = "", note: str = ""
    ) -> Cost:
        text = format_formula(formula) if value else ""
        value = value if at is None else evaluate(formula, at)
        return Cost(id=id_, title=title, value=value, unit=unit, formula=text, note=note)

    names, ops = _Names(trace), trace.ops
    learned = [w for w in trace.weights if w.learned]
    buffers = [w for w in trace.weights if not w.learned]
    count = sum(prod(w.shape) for w in learned)
    yield cost("parameters", "parameters", count, _total(map(names.elements, learned)))
    for id_, some in (("weights", learned), ("buffers", buffers)):
        yield cost(id_, id_, sum(w.bytes for w in some), _total(map(names.bytes, some)), "bytes")
    flops = sum(op.flops or 0 for op in ops)
    yield cost("flops", "FLOPs", flops, _total(map(names.products, ops)))
    sites = list(find_sites(ops))
    square = [op for op in ops if op.bytes and _is_square(op)]
    fused = sum(site.fused for site in sites)
    note = f"in {len(square)} tensors, not all alive at once" if square else ""
    note = f"{fused} fused attentions keep none" if fused and not square else note
    size = sum(op.bytes or 0 for op in square)
    yield cost("pairs", "S x S", size, _total(map(names.output, square)), "bytes", note)
    kept = [op for site in sites for op in _keys_and_values(ops, site)]
    size = sum(prod(op.shape) * _item(op) for op in kept)
    note = _by_token(kept, size, len(sites))
    yield cost("cache", "KV cache", size, _total(map(names.output, kept)), "bytes", note)
    read = [(op, table) for op in ops for table in _tables_added(op, trace)]
    size = sum((2 * prod(op.shape) + prod(table)) * _item(op) for op, table in read)
    note = "reads x and the table, writes the sum" if read else "no table is added to x"
    formula = _total(names.traffic(*pair) for pair in read)
    yield cost("positions", "positions", size, formula, "bytes", note)


def _by_token(kept: Sequence[Op], size: int, sites: int) -> str:
    """What one more position of one sample takes, where every part grows with positions."""
    tokens = {_tokens(op) for op in kept}
    if len(tokens) != 1 or not (count := tokens.pop()):
        return "" if kept else "no attention was seen"
    return f"{size // count:,} bytes a token, in {sites} attention{'s'[: sites != 1]}"


def _tokens(op: Op) -> int:
    """Samples by positions; 0 where no axis is one of positions."""
    known = {axis.strip("'"): n for axis, n in zip(op.axes, op.shape, strict=True)}
    lengths = [n for axis, n in known.items() if axis in LENGTHS]
    return known.get("B", 1) * lengths[0] if lengths else 0


def _by_module(trace: Trace, at: Sizes | None) -> Iterator[ModuleCost]:
    """Modules that have weights or FLOPs; those alike but for a number in one."""
    names = _Names(trace)
    costly = [(op.module, op) for op in trace.ops if op.flops]
    held = [(weight.name.rpartition(".")[0], weight) for weight in trace.weights]
    modules: dict[str, set[str]] = defaultdict(set)
    for module, _ in (*costly, *held):
        modules[_group(module)].add(module)
    for name, alike in modules.items():
        ops = [op for module, op in costly if _group(module) == name]
        weights = [weight for module, weight in held if _group(module) == name]
        learned = [w for w in weights if w.learned]
        flops = _total(map(names.products, ops))
        counted = (
            (sum(prod(w.shape) for w in learned), _total(map(names.elements, learned))),
            (sum(w.bytes for w in weights), _total(map(names.bytes, weights))),
            (sum(op.flops or 0 for op in ops), flops),
        )
        values = [n if at is None else evaluate(formula, at) for n, formula in counted]
        yield ModuleCost(
            name=name,
            count=len(alike),
            parameters=values[0],
            bytes=values[1],
            flops=values[2],
            formula=format_formula(flops),
        )


def _group(module: str) -> str:
    """`h.*.attn` of `h.3.attn`: a layer that has parts of its own without its number."""
    return re.sub(r"(^|\.)\d+(?=\.)", r"\1*", module)


# ---------------------------------------------------------------- formulas


def evaluate(formula: Formula, sizes: Sizes) -> int:
    """The value of a formula at sizes for all of its symbols."""
    return sum(n * prod(measure(factor, sizes) for factor in key) for key, n in formula.items())


def format_formula(formula: Formula) -> str:
    """`24*B*S*D**2 + 4*B*S**2*D`: the terms with the most factors first."""
    terms = sorted(formula.items(), key=lambda term: (-len(term[0]), -term[1], term[0]))
    return " + ".join(_term(key, n) for key, n in terms if n)


def _term(key: tuple[str, ...], n: int) -> str:
    powers = [f"{s}**{k}" if k > 1 else s for s, k in Counter(key).items()]
    return "*".join(([str(n)] if n != 1 or not powers else []) + powers)


def _total(formulas: Iterable[Formula]) -> Formula:
    found: Formula = Counter()
    for formula in formulas:
        found.update(formula)
    return found


class _Names:
    """Sizes of rows and weights as formulas; a length without a name stays a number."""

    def __init__(self, trace: Trace) -> None:
        self.sizes = with_head_dim(trace.sizes)
        self.rows = {op.index: op for op in trace.ops}
        self.near = self._axes_by_module(trace.ops)
        self.long = {n: s for s, n in reversed(self.sizes.items()) if s not in SHORT and n > 1}
        self.order = {s: i for i, s in enumerate(dict.fromkeys(("B", *LENGTHS, *self.sizes)))}

    def output(self, op: Op) -> Formula:
        """Bytes of the output of an operation."""
        return self._product(_pairs(op), _item(op))

    def traffic(self, op: Op, table: tuple[int, ...]) -> Formula:
        """Bytes of two tensors of the sum's axes, and of the table, whose axes are the last."""
        last = _pairs(op)[-len(table) :]
        return _total((self._product(_pairs(op), 2 * _item(op)), self._product(last, _item(op))))

    def elements(self, weight: Weight, size: int = 1) -> Formula:
        near = self.near.get(weight.name.rpartition(".")[0], {})
        axes = [(near.get(n) or self.long.get(n) or str(n), n) for n in weight.shape]
        return self._product(axes, size)

    def bytes(self, weight: Weight) -> Formula:
        return self.elements(weight, weight.bytes // max(prod(weight.shape), 1))

    def products(self, op: Op) -> Formula:
        """The FLOPs of an operation: 2 (4 where scores and context are one) for each element of
        its output and each of the axis that is summed over."""
        flops, size = op.flops or 0, prod(op.shape)
        if not flops or not size or flops % size:
            return Counter({(): flops}) if flops else Counter()
        for times in (2, 4):
            length = flops // (times * size)
            summed = "" if flops % (times * size) else self._axis_of_size(op, length)
            if summed:
                return self._product([*_pairs(op), (summed, length)], times)
        return self._product(_pairs(op), flops // size)

    def _axis_of_size(self, op: Op, size: int) -> str:
        """The axis of an operand that is so long: its last one, or one that the output lacks."""
        parents = [_pairs(self.rows[p]) for p in op.parents if p in self.rows]
        lost = [pair for p in parents for pair in p if pair[0] not in op.axes]
        axes = [*(p[-1] for p in parents[:1] if p), *lost, *(pair for p in parents for pair in p)]
        named = (a for a, n in axes if n == size and self._known(a) == n)
        return next(named, self.long.get(size, ""))  # of an input no row tells the axes

    def _known(self, axis: str) -> int | None:
        try:
            return measure(axis.replace("'", ""), self.sizes)
        except UnknownSize:
            return None

    def _product(self, axes: Iterable[tuple[str, int]], times: int) -> Formula:
        """The product of axes: `B`, `3*D` and `hd` of heads, which are D together."""
        factors: list[str] = []
        for axis, n in axes:
            plain = axis.replace("'", "")
            known = self._known(axis) == n
            parts = plain.split("*") if re.fullmatch(r"[\w*]+", plain) else [f"({plain})"]
            factors += [part for part in parts if known and not part.isdigit()]
            times *= prod(int(p) for p in parts if p.isdigit()) if known else n
        sizes = self.sizes
        while {"H", "hd"} <= {*factors} and sizes.get("D") == sizes["H"] * sizes["hd"]:
            factors.remove("H")
            factors.remove("hd")
            factors.append("D")
        return Counter({tuple(sorted(factors, key=lambda f: (self.order.get(f, 99), f))): times})

    def _axes_by_module(self, ops: Sequence[Op]) -> dict[str, dict[int, str]]:
        """What axes of each length are called in a module, the last ones first."""
        found: dict[str, dict[int, str]] = defaultdict(dict)
        for op in ops:
            for seen in (op, *(self.rows[p] for p in op.parents if p in self.rows)):
                for axis, n in reversed(_pairs(seen)):
                    if not axis.isdigit() and axis.rstrip("'") not in SHORT:
                        found[op.module].setdefault(n, axis)
        return found


def _pairs(op: Op) -> list[tuple[str, int]]:
    return list(zip(op.axes, op.shape, strict=True))


def _item(op: Op) -> int:
    return ITEM.get(op.dtype, 4)


def _is_square(op: Op) -> bool:
    """Whether it has an element for each pair of positions."""
    return sum(axis.rstrip("'") in LENGTHS for axis in op.axes) > 1


# ---------------------------------------------------------------- attention and positions


def _keys_and_values(ops: Sequence[Op], site: Site) -> Iterator[Op]:
    """The rows that a cache would keep: keys and values before they are repeated for heads."""
    if site.fused:
        found = list(ops[site.context].parents[1:3])
    else:
        product = next((r for r in reversed(site.chain) if ops[r].op in PRODUCTS), None)
        found = list(ops[product].parents[-1:]) if product is not None else []
        found += ops[site.context].parents[-1:]
    for row in found:
        if row >= 0:
            yield ops[_before_repeats(ops, row)]


def _before_repeats(ops: Sequence[Op], row: int) -> int:
    """The row above what repeats it, as one head is for several queries."""
    at = found = row
    while ops[at].op in KEPT and ops[at].parents and ops[at].parents[0] >= 0:
        above = ops[at].parents[0]
        found = above if ops[at].op in REPEATS else found
        at = above
    return found


def _tables_added(op: Op, trace: Trace) -> Iterator[tuple[int, ...]]:
    """The shape of a table of positions that this operation adds to x."""
    names = [axis.rstrip("'") for axis in op.axes]
    place = next((i for i, name in enumerate(names) if name in LENGTHS), None)
    if op.op not in ADDS or place is None or len(names) - place != 2 or _is_square(op):
        return
    full = op.shape[place:]
    shapes = [trace.ops[p].shape for p in op.parents if p >= 0]
    if len(op.parents) == 1:  # the other operand is no row: a parameter or a buffer as it is
        shapes += [w.shape for w in trace.weights]
    if any(prod(shape) == prod(full) and shape[-2:] == full for shape in shapes):
        yield full
