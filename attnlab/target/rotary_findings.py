"""What the text of a file says of rotary positions: tables that pair features as the rotation does
not, positions that stop where a cache is full, and those that half precision cannot tell apart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import (
    Function,
    Told,
    argument,
    arguments,
    called,
    line_of,
    names_in,
    pairs_of,
    scopes,
)

ANGLES = re.compile(r"freq|ang|theta|emb|cos|sin|phase|outer|rot|inv_|sinusoid", re.IGNORECASE)
JOINS = {"cat", "concat", "concatenate"}
PAIRS = {
    "neighbours": "features 2i and 2i + 1",
    "halves": "feature i with the one half a head further",
}


def crossed_pairs(tree: ast.Module) -> Iterator[Told]:
    """Angles doubled for neighbouring features, and a rotation that pairs halves, or the
    reverse."""
    tables: dict[str, ast.AST] = {}
    turns: dict[str, ast.AST] = {}
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function):
            continue
        text = ast.unparse(scope)
        waves = re.search(r"cos", text) and re.search(r"sin", text)
        for node in nodes:
            if waves and (kind := _doubled(node)):
                tables.setdefault(kind, node)
            if kind := _turned(node, nodes):
                turns.setdefault(kind, node)
    if len(tables) != 1 or len(turns) != 1 or tables.keys() == turns.keys():
        return
    ((table, made),) = tables.items()
    ((turn, turned),) = turns.items()
    other = "cat((f, f), dim=-1)" if turn == "halves" else "repeat_interleave(f, 2, dim=-1)"
    yield Told(
        line_of(made),
        "rotary-pairs",
        f"{ast.unparse(made)[:60]} gives one angle to {PAIRS[table]}, and line {line_of(turned)} "
        f"rotates {PAIRS[turn]}: the two of a pair are turned by different angles, and scores "
        f"depend on more than the distance. Double the angles with {other}",
    )


def _doubled(node: ast.AST) -> str:
    """How each angle is put into two features."""
    given = arguments(node)
    first = ast.unparse(given[0]) if given else ""
    name = called(node)
    if name in (*JOINS, "stack") and isinstance(given[0] if given else None, ast.Tuple | ast.List):
        parts = [ast.unparse(e) for e in getattr(given[0], "elts", ())]
        axis = argument(node, 1, "dim", "axis")
        last = axis is not None and ast.unparse(axis) == "-1"
        if len(parts) == 2 and parts[0] == parts[1] and ANGLES.search(parts[0]) and last:
            return "halves" if name in JOINS else "neighbours"
    if not ANGLES.search(first):
        return ""
    if name == "repeat_interleave":
        times = argument(node, 1, "repeats")
        return "neighbours" if times is not None and ast.unparse(times) == "2" else ""
    if name == "repeat" and len(given) > 1:
        asked = [ast.unparse(a) for a in given[1:]]
        if packed := re.search(r"-> [^']*\((\w+) (\w+)\)'", asked[0]):
            sizes = [k.arg for k in getattr(node, "keywords", ())]
            return "halves" if packed[1] in sizes else "neighbours" if packed[2] in sizes else ""
        return "halves" if asked[-1] == "2" and set(asked[:-1]) == {"1"} else ""
    return ""


def _turned(node: ast.AST, nodes: list[ast.AST]) -> str:
    """Which features are the two of a pair in `cat((-b, a))`, or in a stack of them."""
    given = arguments(node)
    parts: list[ast.expr] = getattr(given[0], "elts", []) if given else []
    joins = called(node) in (*JOINS, "stack") and len(parts) == 2
    if not joins or not isinstance(parts[0], ast.UnaryOp) or not isinstance(parts[0].op, ast.USub):
        return ""
    cut = ast.unparse(parts[0].operand)
    for other in nodes:
        if isinstance(other, ast.Assign) and line_of(other) <= line_of(node):
            for target in other.targets:
                names = [ast.unparse(e) for e in getattr(target, "elts", (target,))]
                at = names.index(cut) if cut in names else -1
                values = getattr(other.value, "elts", ())
                if at >= 0:
                    cut = ast.unparse(values[at] if values else other.value)
                    break
    if re.search(r"::\s?2|\[\.\.\., [01]\]|unbind\((dim=)?-1\)", cut):
        kind = "neighbours"
    elif re.search(r"chunk\(|split\(|unbind\(|\[\.\.\., [^\]]*:[^\]:]*\]", cut):
        kind = "halves"
    else:
        return ""
    return kind if (kind == "halves") == (called(node) in JOINS) else ""


TRIMMED = re.compile(  # what a cache keeps: its last entries
    r"\b(?P<kept>[\w.]+) = (\w+\.)*(k|v|keys?|val(ue)?s?|kv|\w*cache\w*|mem\w*|past\w*)"
    r"\[[^\]\n]*-[a-z_][\w.]*:(?!\s*-)"
)
TURNS = re.compile(r"rope|rotary|rot_?emb|apply_rot|pos_?(emb|enc)|position|wpe", re.IGNORECASE)


def positions_of_full_caches(tree: ast.Module) -> Iterator[Told]:
    """`start = cache.k.size(2)` where the cache keeps its last entries alone: it stops growing."""
    trims = {m["kept"].rpartition(".")[2]: m[0] for m in TRIMMED.finditer(ast.unparse(tree))}
    if not trims:
        return
    sized = rf"\.({'|'.join(trims)})(\[[^\]]*\])?\.(size\(|shape\b)"
    counts = [n.name for n in ast.walk(tree) if isinstance(n, Function) and _is_size(n, sized)]
    sized += "".join(rf"|\.{name}\b" for name in counts)
    sized += r"|^len\(" * ("__len__" in counts)
    for _, nodes in scopes(tree):
        made = [n for n in nodes if isinstance(n, ast.Assign)]
        for start in made:
            name = ast.unparse(start.targets[0])
            counted = rf"arange\({name}, |\b{name} \+ .*arange|arange.*\+ {name}\b"
            if not re.search(sized, ast.unparse(start.value)):
                continue
            places = {
                ast.unparse(n.targets[0]) for n in made if re.search(counted, ast.unparse(n.value))
            }
            turned = _turned_by(nodes, places)
            if len(turned) > 1 or (turned and not any("q" in n for n in turned)):
                yield Told(
                    start.lineno,
                    "positions-of-full-cache",
                    f"{ast.unparse(start)} counts what the cache holds, and `"
                    f"{next(iter(trims.values()))[:50]}]` keeps its last entries alone: once it is "
                    "full, all new tokens get the same positions. Count the tokens that were seen",
                )


def _is_size(function: Function, sized: str) -> bool:
    """Whether a method returns how much a cache holds."""
    last = function.body[-1]
    return isinstance(last, ast.Return) and bool(re.search(sized, ast.unparse(last)))


def _turned_by(nodes: list[ast.AST], places: set[str]) -> set[str]:
    """What is turned by these positions before a cache is joined to it."""
    joined: set[str] = set()
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and re.search(
            r"\bcat\(|append\(|update\(", ast.unparse(node.value)
        ):
            joined |= names_in(node.targets[0])
        if isinstance(node, ast.Call) and TURNS.search(ast.unparse(node.func)):
            given = {name for a in node.args for name in names_in(a)}
            if given & places and not given & joined:
                found |= given - places - {"self"}
                found |= {"itself"} if given <= places else set()
    return found


HALF = re.compile(r"(torch\.)?(?P<name>bfloat16|float16|half)")
EXACT = {"bfloat16": 256, "float16": 2048, "half": 2048}  # where whole numbers begin to be missing
LENGTHS = re.compile(r"seq|len|pos|token|(^|[._])(t|s|l|n_ctx|context\w*)$", re.IGNORECASE)


def halved_positions(tree: ast.Module) -> Iterator[Told]:
    """`arange(length).type_as(self.inv_freq)` where that buffer is made in half precision."""
    text = ast.unparse(tree)
    if not re.search(r"bfloat16|float16|half", text) or "arange" not in text:
        return
    kept = {ast.unparse(t): v for node in tree.body for t, v in pairs_of(node)}
    dtypes = _half_defaults(tree) | {n: d for n, v in kept.items() if (d := _half(v, {}))}
    buffers = _half_buffers(tree, dtypes)
    for _, nodes in scopes(tree):
        counts: dict[str, ast.expr] = {}
        for node in nodes:
            made = node if called(node) == "arange" else next(iter(arguments(node)), node)
            made = counts.get(ast.unparse(made), made) if isinstance(made, ast.Name) else made
            kind = _cast(node, dtypes, buffers)
            if kind and called(made) == "arange" and _is_long(made, kept, EXACT[kind]):
                yield Told(
                    line_of(node),
                    "dtype-narrowed",
                    f"{ast.unparse(node)[:70]} makes positions {kind}, which holds each whole "
                    f"number up to {EXACT[kind]} only: behind that, neighbours get one position. "
                    "Multiply in float32, and cast the cosines and sines",
                )
            for target, value in pairs_of(node):
                if called(value) == "arange":
                    counts[ast.unparse(target)] = value
                elif ast.unparse(target) not in names_in(value):
                    counts.pop(ast.unparse(target), None)


def _half(node: ast.AST | None, dtypes: dict[str, str]) -> str:
    """The 16 bits that an expression names; "" for others."""
    text = ast.unparse(node) if node is not None else ""
    found = HALF.fullmatch(text)
    return found["name"] if found else dtypes.get(text, "")


def _half_defaults(tree: ast.Module) -> dict[str, str]:
    """Parameters that are a half dtype wherever they have a default."""
    found: dict[str, set[str]] = {}
    for asked in (n for n in ast.walk(tree) if isinstance(n, ast.arguments)):
        pairs = [*zip(asked.args[::-1], asked.defaults[::-1], strict=False)]
        for name, default in (*pairs, *zip(asked.kwonlyargs, asked.kw_defaults, strict=True)):
            if default is not None:
                found.setdefault(name.arg, set()).add(_half(default, {}))
    return {n: k for n, kinds in found.items() if len(kinds) == 1 and (k := kinds.pop())}


def _half_buffers(tree: ast.Module, dtypes: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if called(node) == "register_buffer" and len(arguments(node)) > 2:
            name, value = arguments(node)[1:3]
            found[f"self.{getattr(name, 'value', '')}"] = _cast(value, dtypes, {})
        for target, value in pairs_of(node):
            found.setdefault(ast.unparse(target), _cast(value, dtypes, {}))
    return {name: kind for name, kind in found.items() if kind and name.startswith("self.")}


def _cast(node: ast.AST, dtypes: dict[str, str], buffers: dict[str, str]) -> str:
    """To which 16 bits a call casts, or in which it makes something."""
    if called(node) in ("half", "bfloat16"):
        return called(node)
    asked = [k.value for k in getattr(node, "keywords", ()) if k.arg == "dtype"]
    if called(node) in ("to", "type", "type_as"):
        asked += arguments(node)[1:]
    for value in asked:
        if called(node) != "type_as" and (kind := _half(value, dtypes)):
            return kind
        text = ast.unparse(value)
        if kind := buffers.get(text.removesuffix(".dtype"), ""):
            return kind
    return ""


def _is_long(made: ast.AST, known: dict[str, ast.expr], last: int) -> bool:
    """Whether an arange counts positions, and may count beyond what is exact."""
    given = arguments(made)
    if not given or len(given) > 2:
        return False
    bound = given[-1]
    if isinstance(bound, ast.Name):
        bound = known.get(bound.id, bound)
    if isinstance(bound, ast.Constant):
        return isinstance(bound.value, int) and bound.value > last + 1
    text = ast.unparse(bound)
    return bool(LENGTHS.search(text)) and not re.search(r"dim|head|hidden|freq|propos", text)


RULES = (crossed_pairs, positions_of_full_caches, halved_positions)
