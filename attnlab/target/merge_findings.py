"""What a view or reshape asks of memory: merged axes that do not stand side by side, and whole axes
that are looked for in another place."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from attnlab.target.memory_axes import (
    Size,
    View,
    is_skew,
    misplaced,
    one_way,
    parted,
    primes,
    product,
    quotient,
)
from attnlab.target.source_walk import (
    Function,
    Told,
    argument,
    arguments,
    called,
    line_of,
    scopes,
)

KEPT = {"contiguous", "clone", "detach", "float", "half", "bfloat16", "double", "to", "type_as"}
KEPT |= {"relu", "gelu", "silu", "tanh", "sigmoid", "softmax", "dropout", "exp", "abs", "type"}
KEEPING = re.compile(r"Dropout|ReLU|GELU|SiLU|Identity|LayerNorm|RMSNorm|BatchNorm|Tanh|Sigmoid")
MOVING = re.compile(
    r"transpose|permute|view|shape\b|unfold|flatten|stack|cat\(|einsum|rearrange|Linear|Conv|Pool|"
    r"\.m?T\b|squeeze|Sequential|List|Embedding|\[[^\]]*(None|:)|(mean|sum|std|var|norm)"
    r"\((?![^()]*keepdim=True)"
)
REDUCED = {"mean", "std", "var", "sum", "amax", "amin", "median"}
INNER = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda)
SKEWS = re.compile(r"skew|shift|rel_?pos|relative", re.IGNORECASE)


def parted_merges(tree: ast.Module) -> Iterator[Told]:
    """`x.view(b, h // p, w // p, p, p, c).reshape(b, h, w, c)`, `x.reshape(b * c, l)` of (b, l,
    c): what is merged stands apart in memory."""
    layers = _layers(tree)
    for scope, _ in scopes(tree):
        if not isinstance(scope, Function) or SKEWS.search(scope.name):
            continue  # a skew is meant
        reader = Reader(layers)
        reader.block(scope.body)
        yield from reader.told


def _layers(tree: ast.Module) -> dict[str, str]:
    """The attributes whose call keeps all axes, and the linear ones, which change the last."""
    own = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            kind = called(node.value)
            still = not MOVING.search(ast.unparse(own[kind])) if kind in own else None
            kept = KEEPING.search(kind) if still is None else still
            what = "kept" if kept else "linear" if kind == "Linear" else ""
            found.setdefault(ast.unparse(node.targets[0]), set()).add(what)
    return {
        name: what for name, kinds in found.items() if len(kinds) == 1 and (what := kinds.pop())
    }


@dataclass
class Reader:
    """Reads the statements of a function in their order."""

    layers: Mapping[str, str]
    views: dict[str, View] = field(default_factory=dict)  # by variable
    sizes: dict[str, Size] = field(default_factory=dict)  # of variables that are sizes
    told: list[Told] = field(default_factory=list)
    fresh: Iterator[int] = field(default_factory=count)

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            inner = [
                part
                for name in ("body", "orelse", "finalbody")
                if (part := getattr(statement, name, None))
            ]
            inner += [h.body for h in getattr(statement, "handlers", ())]
            if isinstance(statement, (*Function.__args__, ast.ClassDef)):
                continue
            if isinstance(statement, ast.With):
                self.block(statement.body)
            elif inner:  # may run or not, once or more often
                if isinstance(statement, ast.For | ast.While):
                    self._forget(statement)
                for part in inner:
                    views, sizes = dict(self.views), dict(self.sizes)
                    self.block(part)
                    self.views, self.sizes = views, sizes
                self._forget(statement)
            else:
                self._statement(statement)

    def _forget(self, statement: ast.AST) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._drop(node.id)

    def _drop(self, name: str) -> None:
        self.views.pop(name, None)
        self.sizes[name] = self._unknown()

    def _unknown(self) -> Size:
        return Counter({f"?{next(self.fresh)}": 1})

    def _statement(self, node: ast.stmt) -> None:
        value = getattr(node, "value", None)
        if not isinstance(node, ast.Assign):
            for inner in _outermost(value) if value is not None else ():
                self._axes(inner)
            self._forget(node)
            return
        target = node.targets[0]
        if len(node.targets) > 1:
            self._forget(node)
        elif isinstance(target, ast.Name):
            view, size = self._axes(node.value), self._size(node.value)
            self._drop(target.id)
            self.sizes[target.id] = size
            if view is not None:
                self.views[target.id] = view
        elif isinstance(target, ast.Tuple):
            self._tuple(target, node.value)
        else:
            self._read(node.value)

    def _tuple(self, target: ast.Tuple, value: ast.expr) -> None:
        names = [e.id if isinstance(e, ast.Name) else "" for e in target.elts]
        values = getattr(value, "elts", ())
        if len(values) == len(names):
            views, sizes = [self._axes(v) for v in values], [self._size(v) for v in values]
            for name, view, size in zip(names, views, sizes, strict=True):
                self._drop(name)
                self.sizes[name] = size
                self.views |= {name: view} if view is not None else {}
            return
        shaped = re.fullmatch(r"(\w+)\.(shape|size\(\))", ast.unparse(value))
        known = self.views.get(shaped[1]) if shaped else None
        parts = self._axes(value) if called(value) in ("chunk", "split", "tensor_split") else None
        function = ast.unparse(getattr(value, "func", value))
        first = self._axes(value) if function in self.layers else None
        for name in names:
            self._drop(name)
        if shaped and all(names):
            sizes = [self._unknown() if name == "_" else Counter({name: 1}) for name in names]
            if len({*names} - {"_"}) + names.count("_") < len(names):
                return
            if known is not None and len(known.sizes) == len(names):
                sizes = list(known.sizes)
            named = zip(names, sizes, strict=True)
            self.sizes |= {name: size for name, size in named if name != "_"}
            self.views[shaped[1]] = View(tuple(sizes), tuple(names))
        elif parts is not None:
            self.views |= dict.fromkeys(names, parts)
        elif first is not None:  # y, statistics = norm(x)
            self.views[names[0]] = first

    # ------------------------------------------------------------ sizes

    def _size(self, node: ast.expr) -> Size:  # noqa: PLR0911
        match node:
            case ast.Constant(value=int(n)) if 0 < n < 1 << 20:
                return primes(n)
            case ast.Name(id=name):
                return self.sizes.get(name, Counter({name: 1}))
            case ast.Attribute():
                return Counter({ast.unparse(node): 1})
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return product((self._size(left), self._size(right)))
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Div(), right=right):
                return quotient(self._size(left), self._size(right))
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(n))) if n > 0:
                return product((self._size(left),) * n)
            case ast.Call(func=ast.Name(id="int"), args=[inner]):
                return self._size(inner)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=at
            ) if name in self.views:
                place = _number(at)
                sizes = self.views[name].sizes
                if place is not None and -len(sizes) <= place < len(sizes):
                    return sizes[place]
        return self._unknown()

    # ------------------------------------------------------------ axes

    def _read(self, node: ast.AST) -> None:
        for inner in _outermost(node):
            self._axes(inner)

    def _axes(self, node: ast.expr) -> View | None:
        """The axes of a value; views on the way are judged."""
        if isinstance(node, ast.Name):
            return self.views.get(node.id)
        if isinstance(node, ast.BinOp):
            return self._of_two(node)
        if isinstance(node, INNER):
            return None  # its names may be others
        if not isinstance(node, ast.Call):
            for inner in ast.iter_child_nodes(node):
                self._read(inner)
            return None
        return self._of_call(node)

    def _of_call(self, node: ast.Call) -> View | None:
        name, given = called(node), arguments(node)
        if name == "einsum" and len(node.args) > 1 and isinstance(node.func, ast.Attribute):
            of_one, order = self._axes(node.args[1]), _einsum(node)
            if of_one is None or order is None or len(order) != len(of_one.sizes):
                return None
            return of_one.ordered(order)
        kind = self.layers.get(ast.unparse(node.func))
        given = list(node.args) if kind else given
        for more in given[1:]:
            self._read(more)
        first = self._axes(given[0]) if given else None
        if not given and isinstance(node.func, ast.Attribute):
            self._read(node.func.value)
        if name in ("view", "reshape"):
            return self._viewed(node, first)
        if first is None:
            return None
        if kind or name in KEPT:
            return first if kind != "linear" else self._with_new(first, -1)
        return self._moved(node, name, first)

    def _of_two(self, node: ast.BinOp) -> View | None:
        sides = [self._axes(node.left), self._axes(node.right)]
        known = [s for s in sides if s is not None]
        if len(known) == 2:
            return _broadcast(*known)
        other = node.right if sides[1] is None else node.left
        plain = isinstance(other, ast.Constant) or "scale" in ast.unparse(other)
        return known[0] if known and plain else None

    def _with_new(self, view: View, axis: int, size: Size | None = None) -> View | None:
        sizes, texts = list(view.sizes), list(view.texts)
        if not -len(sizes) <= axis < len(sizes):
            return None
        sizes[axis], texts[axis] = self._unknown() if size is None else size, "_"
        return View(tuple(sizes), tuple(texts))

    def _moved(  # noqa: PLR0911
        self, node: ast.Call, name: str, view: View
    ) -> View | None:
        """What a call makes of axes that it moves, adds or merges; None for what is not known."""
        n = len(view.sizes)
        given = arguments(node)[1:]
        if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
            given = given[0].elts
        at = [_number(g) for g in given]
        if name in ("chunk", "split", "tensor_split"):
            axis = argument(node, 2, "dim")
            place = 0 if axis is None else _number(axis)
            return None if place is None else self._with_new(view, place)
        if name in REDUCED and ast.unparse(node).endswith("keepdim=True)"):
            axis = argument(node, 1, "dim")
            place = None if axis is None else _number(axis)
            return None if place is None else self._with_new(view, place, Counter())
        if None in at or node.keywords or any(not -n - 1 <= i <= n for i in at if i is not None):
            return None
        places = [i for i in at if i is not None]
        order = list(range(n))
        if name == "permute" and len(places) == n:
            order = [order[i] for i in places]
        elif name in ("transpose", "swapaxes", "swapdims") and len(places) == 2:
            i, j = places
            order[i], order[j] = order[j], order[i]
        elif name in ("movedim", "moveaxis") and len(places) == 2:
            order.insert(places[1] % n, order.pop(places[0]))
        elif name == "flatten":
            first, last = [*places, 0, -1][:2] if len(places) != 1 else (places[0], -1)
            i, j = first % n, last % n + 1
            merged = product(view.sizes[i:j])
            text = " * ".join(view.texts[i:j])
            return View(
                (*view.sizes[:i], merged, *view.sizes[j:]), (*view.texts[:i], text, *view.texts[j:])
            )
        elif name == "unsqueeze" and len(places) == 1:
            i = places[0] % (n + 1)
            return View(
                (*view.sizes[:i], Counter(), *view.sizes[i:]),
                (*view.texts[:i], "1", *view.texts[i:]),
            )
        else:
            return None
        return view.ordered(order)

    def _viewed(self, node: ast.Call, before: View | None) -> View | None:
        asked = arguments(node)[1:]
        if len(asked) == 1 and isinstance(asked[0], ast.Tuple | ast.List):
            asked = asked[0].elts
        elif len(asked) == 1:
            return None
        odd = any(isinstance(a, ast.Starred) or "dtype" in ast.unparse(a) for a in asked)
        if odd or not asked:
            return None
        holes = [i for i, a in enumerate(asked) if ast.unparse(a) == "-1"]
        sizes = [Counter() if i in holes else self._size(a) for i, a in enumerate(asked)]
        rest = self._unknown()
        if before is not None and len(holes) == 1:
            rest = quotient(product(before.sizes), product(sizes))
            rest = rest if all(n > 0 for n in rest.values()) else self._unknown()
        for i in holes:
            sizes[i] = rest
        after = View(tuple(sizes), tuple(ast.unparse(a) for a in asked))
        if before is not None:
            self._judge(node, before, after)
        return after

    def _judge(self, node: ast.Call, before: View, after: View) -> None:
        if is_skew(before, after) or one_way(quotient(product(after.sizes), product(before.sizes))):
            return  # meant, or one of the sizes is not what its name says
        memory = ", ".join(before.texts)
        fault = parted(before, after)
        if fault is not None:
            text, parts = fault
            merged = " * ".join(parts)
            merged = merged if merged == text else f"{text} = {merged}"
            why = f"{merged} merges axes that do not stand side by side in ({memory})"
        elif (fault := parted(after, before)) is not None and "*" in fault[0]:
            why = f"memory holds ({memory}), and the parts of {fault[0]} are taken apart elsewhere"
        elif (moved := misplaced(before, after)) is not None:
            why = f"memory holds ({memory}), and {moved} is looked for in another place"
        else:
            return
        self.told.append(
            Told(
                line_of(node),
                "reshape-moves-axes",
                f"{_shown(node)}: {why}. {called(node)} moves no axis, it deals the numbers out "
                "anew, so that entries of different places are mixed. Permute or transpose first",
            )
        )


def _broadcast(one: View, other: View) -> View | None:
    """The axes of a sum of two; None where they do not go together."""
    if len(one.sizes) != len(other.sizes):
        return None
    pairs = list(zip(one.sizes, other.sizes, strict=True))
    if any(a != b and a and b for a, b in pairs):
        return None
    texts = [a if one else b for one, a, b in zip(one.sizes, one.texts, other.texts, strict=True)]
    return View(tuple(a or b for a, b in pairs), tuple(texts))


def _einsum(node: ast.Call) -> list[int] | None:
    """The order of axes of an einsum of one tensor that moves axes and sums none."""
    words = re.fullmatch(r"'\s*([a-zA-Z]+)\s*->\s*([a-zA-Z]+)\s*'", ast.unparse(node.args[0]))
    if len(node.args) != 2 or not words or sorted(words[1]) != sorted(set(words[2])):
        return None
    return [words[1].index(letter) for letter in words[2]]


def _shown(node: ast.Call) -> str:
    owner = getattr(node.func, "value", None)
    text = ast.unparse(node)
    return text if len(text) <= 70 or owner is None else f"...{text[len(ast.unparse(owner)) :]}"


def _outermost(node: ast.AST | None) -> Iterator[ast.expr]:
    """The expressions of a statement that none of the others holds."""
    if isinstance(node, ast.expr):
        yield node
    else:
        for inner in ast.iter_child_nodes(node) if node is not None else ():
            yield from _outermost(inner)


def _number(node: ast.AST) -> int | None:
    text = ast.unparse(node)
    return int(text) if re.fullmatch(r"-?\d+", text) else None


RULES = (parted_merges,)
