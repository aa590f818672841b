"""What the text of a file picks by an index that belongs elsewhere: gates of another slot, weights
normalised over the other ends of edges, states of other beams, key heads of other groups."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import (
    Told,
    argument,
    arguments,
    base,
    called,
    line_of,
    names_in,
    scopes,
)

GATES = re.compile(r"gate|weight|prob|score|top_?k?_?(v|w|p)|routing", re.IGNORECASE)
SUMS = {"index_add", "index_add_", "scatter_add", "scatter_add_", "scatter", "segment_sum"}
SUMS |= {"scatter_sum", "scatter_reduce", "scatter_reduce_", "segment_coo", "unsorted_segment_sum"}
ROUTES = re.compile(r"capsul|routing|slot|transport|sinkhorn|dual", re.IGNORECASE)


def gates_of_one_slot(tree: ast.Module) -> Iterator[Told]:
    """`tok, slot = where(chosen == e)` and then `gates[tok, 0]`: a token may have chosen this
    expert in another slot."""
    text = ast.unparse(tree)
    if not re.search(r"expert", text, re.IGNORECASE) or not _several(tree):
        return
    for _, nodes in scopes(tree):
        rows: dict[str, str] = {}  # by the rows of an expert's tokens, how they were found
        for node in nodes:
            if not isinstance(node, ast.Assign):
                continue
            made = ast.unparse(node.value)
            first = [ast.unparse(e) for e in getattr(node.targets[0], "elts", (node.targets[0],))]
            found = re.search(r"(where|nonzero)\(", made) and len(first) == 2
            if (found or re.search(r"==.*\.any\(", made)) and "[:, " not in made:
                rows |= dict.fromkeys(first, made)
        for node in nodes if rows else ():
            if not isinstance(node, ast.Subscript) or not GATES.search(ast.unparse(node.value)):
                continue
            index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            inner = node.value
            if isinstance(inner, ast.Subscript):  # gates[tok][:, 0]
                index = [inner.slice, *index[1:]]
            asked = [ast.unparse(i) for i in index]
            if asked[0] in rows and len(asked) > 1 and asked[1] in ("0", ":1", "0:1"):
                yield Told(
                    node.lineno,
                    "gate-of-first-slot",
                    f"{ast.unparse(node)} is the gate of the first slot for every token, and some "
                    f"chose this expert in another one ({rows[asked[0]][:50]}): take the gate of "
                    "that slot, gates[token, slot]",
                )


def _several(tree: ast.Module) -> bool:
    """Whether more than one is taken of the best."""
    calls = [n for n in ast.walk(tree) if called(n) == "topk"]
    sizes = [argument(n, 1, "k") for n in calls]
    return any(size is not None and ast.unparse(size) != "1" for size in sizes)


def weights_of_other_ends(tree: ast.Module) -> Iterator[Told]:
    """`alpha = softmax(score, src)` and messages summed at `dst`: what arrives has no sum of 1."""
    for scope, nodes in scopes(tree):
        ends = _ends(nodes)
        if len(ends) < 2 or ROUTES.search(getattr(scope, "name", "")):
            continue
        made: dict[str, tuple[str, int]] = {}  # the end over which one was normalised, and the line
        totals: dict[str, str] = {}  # exponentials, and their sums by the end at which they are
        for node in nodes:
            if not isinstance(node, ast.Assign | ast.Return | ast.Expr) or node.value is None:
                continue
            name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
            inside = names_in(node.value)
            at = next((end for n in ast.walk(node.value) if (end := _summed(n, ends))), "")
            used = next((n for n in made if n in inside), "")
            if at and used and ends[made[used][0]] != ends[at]:
                end, line = made[used]
                yield Told(
                    line,
                    "weights-of-other-end",
                    f"{used} is normalised over the edges of each {end}, and line {node.lineno} "
                    f"sums at {at}: the weights of what arrives at a node do not add up to 1. "
                    f"Normalise by {at}",
                )
                break
            end = _normalised(node.value, ends) or _divided(node.value, ends, totals)
            if at:
                totals |= {name: at} if any(totals.get(n) == "" for n in inside) else {}
            elif end or used:
                made[name] = (end, node.lineno) if end else made[used]
            elif re.search(r"\bexp\(", ast.unparse(node.value)):
                totals[name] = ""


def _ends(nodes: list[ast.AST]) -> dict[str, int]:
    """The two ends of edges, by their names: of `src, dst = edge_index`, or its rows."""
    found: dict[str, int] = {}
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], ast.unparse(node.value)
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            both = re.fullmatch(r"(\w+)\[0\], \1\[1\]|\((\w+)\[0\], \2\[1\]\)", value)
            if both or re.fullmatch(
                r"(self\.)?\w*(edge|adj)\w*(\.t\(\)|\.T|\.unbind\(.*\))?", value
            ):
                found |= {ast.unparse(e): at for at, e in enumerate(target.elts)}
        elif row := re.fullmatch(r"(self\.)?\w*edge\w*\[([01])\]", value):
            found[ast.unparse(target)] = int(row[2])
        elif (name := base(node.value)) in found and isinstance(target, ast.Name):
            found[target.id] = found[name]
    rows = {ast.unparse(n) for n in nodes if isinstance(n, ast.Subscript)}
    return found | {r: int(r[-2]) for r in rows if re.fullmatch(r"\w*edge_index\w*\[[01]\]", r)}


def _end(node: ast.AST | None, ends: dict[str, int]) -> str:
    """The end that an index is."""
    text = ast.unparse(node) if node is not None else ""
    return text if text in ends else (base(node) if base(node) in ends else "")


def _normalised(value: ast.AST, ends: dict[str, int]) -> str:
    """The end over whose edges a call takes a softmax."""
    calls = (n for n in ast.walk(value) if "softmax" in called(n))
    for call in calls:
        given = [*arguments(call)[1:], *(k.value for k in getattr(call, "keywords", ()))]
        found = [end for g in given if (end := _end(g, ends))]
        if len(found) == 1:
            return found[0]
    return ""


def _divided(value: ast.AST, ends: dict[str, int], totals: dict[str, str]) -> str:
    """The end whose sums of exponentials a quotient divides by."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            for inner in ast.walk(node.right):
                if isinstance(inner, ast.Subscript) and totals.get(ast.unparse(inner.value)):
                    return _end(inner.slice, ends)
    return ""


def _summed(node: ast.AST, ends: dict[str, int]) -> str:
    """The end at which messages are summed."""
    if called(node) not in SUMS:
        return ""
    given = [*arguments(node)[1:], *(k.value for k in getattr(node, "keywords", ()))]
    found = [end for g in given if (end := _end(g, ends)) and not isinstance(g, ast.BinOp)]
    return found[0] if found else ""


def states_left_behind(tree: ast.Module) -> Iterator[Told]:
    """Beams that are chosen anew at each step, and a state that goes on in the old order."""
    for _, nodes in scopes(tree):
        for loop in (n for n in nodes if isinstance(n, ast.For | ast.While)):
            parents = _parents(loop)
            if not parents:
                continue
            statements = [
                n
                for n in ast.walk(loop)
                if isinstance(n, ast.Assign | ast.AugAssign | ast.Expr | ast.Return)
            ]
            picks = [n for n in statements if _picks_by(n, parents)]
            for name, line in _states(loop).items():
                with_it = [n for n in statements if {name} & names_in(n) and parents & names_in(n)]
                if picks and not with_it:
                    yield Told(
                        line,
                        "state-not-reordered",
                        f"line {line_of(picks[0])} puts the beams into the order of their parents, "
                        f"and {name} stays in the old one: each beam goes on with the state of "
                        f"another. Pick the rows of {name} by {min(parents)} as well",
                    )


def _parents(loop: ast.AST) -> set[str]:
    """The variables that say which beam each of the best came from: `flat // vocabulary`."""
    found: set[str] = set()
    best = {
        ast.unparse(e)
        for n in ast.walk(loop)
        if isinstance(n, ast.Assign) and called(n.value) in ("topk", "sort", "multinomial", "max")
        for e in getattr(n.targets[0], "elts", n.targets)
    }
    for node in sorted(ast.walk(loop), key=line_of):
        if not isinstance(node, ast.Assign):
            continue
        targets = getattr(node.targets[0], "elts", node.targets)
        values = getattr(node.value, "elts", (node.value,))
        for target, value in zip(targets, values, strict=False):
            floor = isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv)
            floor |= called(value) == "floor_divide" or "rounding_mode='floor'" in ast.unparse(
                value
            )
            counted = not any(isinstance(n, ast.Subscript) for n in ast.walk(value))
            of_them = found & names_in(value) and counted and not _picks_by(value, found)
            if (floor and base(getattr(value, "left", value)) in best) or of_them:
                found.add(ast.unparse(target))
    return found


def _picks_by(node: ast.AST, parents: set[str]) -> bool:
    """Whether rows are picked by an index of these."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Subscript) and parents & names_in(inner.slice):
            return True
        if called(inner) in ("gather", "index_select", "take_along_dim", "reorder_cache"):
            return any(parents & names_in(a) for a in arguments(inner)[1:])
    return False


def _states(loop: ast.For | ast.While) -> dict[str, int]:
    """The variables that a call in a loop is given, and makes anew: with its line."""
    found: dict[str, int] = {}
    for node in ast.walk(loop):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        names = {ast.unparse(e) for e in getattr(node.targets[0], "elts", node.targets)}
        given = {ast.unparse(a) for a in arguments(node.value)}
        given |= {ast.unparse(k.value) for k in node.value.keywords}
        if re.search(
            r"step|decode|rnn|lstm|gru|cell|model|self\.\w+$", ast.unparse(node.value.func)
        ):
            found |= {n: node.lineno for n in names & given if re.search(r"^\w+$", n)}
    return {n: at for n, at in found.items() if STATES.search(n)}


STATES = re.compile(r"state|hidden|^hx?$|^cx?$|cache|past|memory_|kv|mem", re.IGNORECASE)

COUNT = re.compile(  # of key heads
    r"(n|num|nr|n_of|num_of)?_?(kv|key_?value|k|key)_?heads?|n?(num)?_?heads?_(kv|k)|n_?kv|h_?kv|kv_?h",
    re.IGNORECASE,
)
HEAD = re.compile(r"(q|query|off|pid)?_?(h|head)(_?(i|id|idx|index|q))?", re.IGNORECASE)
KEYS = re.compile(r"(^|_)(k|v|kv|keys?|values?)(_|$|\d|[A-Z])|kv", re.IGNORECASE)


def key_heads_by_their_number(tree: ast.Module) -> Iterator[Told]:
    """`kv_head = head // num_kv_heads`: a group has heads // kv heads of them."""
    for scope, nodes in scopes(tree):
        shares = [n for n in nodes if isinstance(n, ast.BinOp) and _is_key_count(n.right)]
        rests = {ast.unparse(n.left) for n in shares if isinstance(n.op, ast.Mod)}
        for node in shares:
            head, number = ast.unparse(node.left), ast.unparse(node.right)
            if not isinstance(node.op, ast.FloorDiv) or head in rests:
                continue
            if not _is_head(node.left, nodes) or not _picks_keys(node, scope, nodes):
                continue
            yield Told(
                line_of(node),
                "head-order",
                f"{ast.unparse(node)} is taken for the key head of {head}, so {number} heads in a "
                f"row share one. There are {number} key heads, and num_heads // {number} query "
                f"heads share each: use {head} // (num_heads // {number})",
            )


def _is_key_count(node: ast.expr) -> bool:
    name = isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2]
    return bool(name and COUNT.fullmatch(name))


def _is_head(node: ast.expr, nodes: list[ast.AST]) -> bool:
    """Whether it counts query heads: by its name, a loop over them or an arange."""
    text = ast.unparse(node)
    values = [node] if called(node) == "arange" else []
    for other in nodes:
        if isinstance(other, ast.For | ast.comprehension) and ast.unparse(other.target) == text:
            values.append(other.iter)
        elif isinstance(other, ast.Assign) and ast.unparse(other.targets[0]) == text:
            values.append(other.value)
    counts = [arguments(v)[-1] for v in values if called(v) in ("range", "arange") and arguments(v)]
    if counts:
        plain = all(re.fullmatch(r"[\w.]+", ast.unparse(c)) for c in counts)
        return plain and all(
            re.search(r"head|(^|[._])(h|hq|nh|n_?q)$", ast.unparse(c), re.IGNORECASE)
            and not _is_key_count(c)
            for c in counts
        )
    return bool(HEAD.fullmatch(text)) and not any(isinstance(v, ast.BinOp) for v in values)


def _picks_keys(node: ast.BinOp, scope: ast.AST, nodes: list[ast.AST]) -> bool:
    """Whether it, or a name that it gets, is an index of keys and values."""
    text, names = ast.unparse(node), set[str]()
    rest = rf"\(?{re.escape(text)}\)?( % [\w.]+)?(\.\w+\([^()]*\))*( for .*)?"
    for other in nodes:
        value = getattr(other, "value", None)
        value = ast.unparse(value).strip("[]") if isinstance(value, ast.expr) else ""
        if isinstance(other, ast.Assign) and re.fullmatch(rest, value):
            names |= names_in(other.targets[0])
        elif isinstance(other, ast.Return) and re.fullmatch(rest, value):
            names.add(getattr(scope, "name", ""))
    for other in nodes:
        at = other.slice if isinstance(other, ast.Subscript) else None
        at = argument(other, 2, "index") if called(other) == "index_select" else at
        if at is not None and KEYS.search(base(other).rpartition(".")[2]):
            names |= {"key"} if names & names_in(at) or text in ast.unparse(at) else set()
    return any(re.search(r"kv|key|k_?head", name, re.IGNORECASE) for name in names)


RULES = (gates_of_one_slot, weights_of_other_ends, states_left_behind, key_heads_by_their_number)
