"""What the text of a file says of objectives that compare: a policy with its older self or with a
reference, two views of a batch with each other, and a picture with what was hidden of it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping

from attnlab.target.source_walk import (
    Told,
    called,
    line_of,
    pairs_of,
    scopes,
    set_once,
    terms,
    words,
)

DRAWN = re.compile(r"sample|rollout|collect|generat|^act$|select_act|reset|play|explore|interact")
KEPT = re.compile(r"buffer|memory|replay|storage|sampler", re.IGNORECASE)


def ratios_of_one(tree: ast.Module) -> Iterator[Told]:
    """`ratio = (logp - old).exp()` where `old` is the present policy's own, taken anew in each
    pass over the samples."""
    for _, nodes in scopes(tree) if {"exp", "step"} <= words(tree) else ():
        known = {**_unpacked(nodes), **set_once(nodes)}
        lines = {t.id: line_of(n) for n in nodes for t, _ in _names(n)}
        for node in nodes:
            pair = _difference(node, known)
            if pair is None or not all(isinstance(p, ast.Name) and p.id in known for p in pair):
                continue
            new, old = (ast.unparse(p) for p in pair)
            one, other = (_plain(known[name], known) for name in (new, old))
            loop = _innermost(nodes, lines[old])
            if new == old or (one not in (other, new) and other not in (one, new)):
                continue
            if loop is None or loop is not _innermost(nodes, lines[new]):
                continue
            if _updates(loop) and not _is_branched(
                loop, lines[old], sorted((lines[old], lines[new]))
            ):
                yield Told(
                    lines[old],
                    "ratio-of-one",
                    f"{old} is the present policy's own, as {new}: their ratio is 1 in every pass "
                    "of the update, so nothing is ever clipped. Take the old log-probabilities "
                    "once, without gradients, before the loop",
                )


def _names(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr]]:
    for target, value in pairs_of(node):
        for name in getattr(target, "elts", [target]):
            if isinstance(name, ast.Name):
                yield name, value


def _unpacked(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """Of `a, b = f(x)`: a as `f(x)[0]`; what is set again is left out."""
    found: dict[str, ast.expr | None] = {}
    for target, value in (pair for node in nodes for pair in pairs_of(node)):
        for place, name in enumerate(getattr(target, "elts", [])):
            if isinstance(name, ast.Name):
                item = ast.Subscript(value, ast.Constant(place), ast.Load())
                found[name.id] = None if name.id in found else item
    return {name: item for name, item in found.items() if item is not None}


def _difference(node: ast.AST, known: Mapping[str, ast.expr]) -> tuple[ast.expr, ast.expr] | None:
    """Of `exp(a - b)`: a and b."""
    if not isinstance(node, ast.Call) or called(node) != "exp":
        return None
    inner = node.args[0] if node.args else getattr(node.func, "value", node)
    if isinstance(inner, ast.Name):
        inner = known.get(inner.id, inner)
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub):
        return None
    return inner.left, inner.right


class _Plain(ast.NodeTransformer):
    """Puts in what names stand for, and leaves out what only cuts the graph."""

    def __init__(self, known: Mapping[str, ast.expr], depth: int = 5) -> None:
        self.known, self.depth = known, depth

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.known or not self.depth:
            return node
        value = copy.deepcopy(self.known[node.id])
        found: ast.AST = _Plain(self.known, self.depth - 1).visit(value)
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if called(node) in ("detach", "clone") and isinstance(node.func, ast.Attribute):
            node = self.visit(node.func.value)
        else:
            self.generic_visit(node)
        return node


def _plain(value: ast.expr, known: Mapping[str, ast.expr]) -> str:
    return ast.unparse(_Plain(known).visit(copy.deepcopy(value))).replace(".data", "")


def _innermost(nodes: list[ast.AST], line: int) -> ast.For | ast.While | None:
    loops = [n for n in nodes if isinstance(n, ast.For | ast.While)]
    around = [n for n in loops if n.lineno < line <= (n.end_lineno or 0)]
    return max(around, key=lambda n: n.lineno, default=None)


def _updates(loop: ast.For | ast.While) -> bool:
    """Whether a loop takes optimizer steps on samples that were drawn before it."""
    calls = [n for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Call)]
    names = [ast.unparse(c.func) for c in calls]
    steps = [n for n in names if re.search(r"(opt\w*|optim\w*)\.step$|^(update|step)_?\w*$", n)]
    drawn = [n for n in names if DRAWN.search(n.rpartition(".")[2]) and not KEPT.search(n)]
    return bool(steps) and not drawn and not any(re.search(r"\benvs?\b", n) for n in names)


def _is_branched(loop: ast.For | ast.While, line: int, between: list[int]) -> bool:
    """Whether a line runs in some passes only, or a step is taken between the two."""
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or 0):
            return True
        if called(node) in ("step", "backward") and between[0] < line_of(node) < between[1]:
            return True
    return False


ROLES = re.compile(
    r"(?<![a-zA-Z])(reference|ref|policy|pi|theta|actor|student|model|base|frozen)(?![a-zA-Z])"
)
REFERENCE = re.compile(r"(?<![a-zA-Z])(reference|ref)(?![a-zA-Z])")
PREFERENCE = re.compile(r"logsigmoid|log_sigmoid|softplus")


def added_references(tree: ast.Module) -> Iterator[Told]:
    """`logits = pi_ratio + ref_ratio`: a preference is measured against the reference, whose
    log-probabilities are subtracted."""
    for scope, nodes in scopes(tree) if any(map(PREFERENCE.search, words(tree))) else ():
        if not PREFERENCE.search(ast.unparse(scope)):
            continue
        known = set_once(nodes)
        for node in nodes:
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
                continue
            signs = {name: n for name, n in terms(node, known).items() if name and n}
            pairs = [
                (own, ref)
                for ref in filter(REFERENCE.search, signs)
                for own in signs
                if not REFERENCE.search(own) and _role(own) == _role(ref)
            ]
            wrong = [(own, ref) for own, ref in pairs if signs[own] * signs[ref] > 0]
            if wrong:
                own, ref = wrong[0]
                yield Told(
                    node.lineno,
                    "reference-added",
                    f"`{ast.unparse(node)[:60]}` has {ref} with the sign of {own}: what counts is "
                    f"how far the policy is from its reference, {own} - {ref}",
                )
                break


def _role(name: str) -> str:
    """What a log-probability is of, whoever gives it."""
    return re.sub(r"\W+|_", "", ROLES.sub("", name))


JOINED = {"cat", "concat", "concatenate", "vstack"}
REMOVED = re.compile(
    r"\beye\(|fill_diagonal|mask|\binf\b|tri[ul]|!=|scatter|identity|1e\d|finfo|math\.e\b|exp\(1"
)
SUMMED = re.compile(r"cross_entropy|criterion|\blog\(|logsumexp")
USED = re.compile(r"^(cross_entropy|logsumexp|criterion|exp)$|loss", re.IGNORECASE)


def self_pairs(tree: ast.Module) -> Iterator[Told]:
    """`z = cat([z1, z2])` and `cross_entropy(z @ z.T / tau, ...)`: each row finds itself."""
    for scope, nodes in scopes(tree) if JOINED & words(tree) else ():
        pairs = [pair for node in nodes for pair in pairs_of(node)]
        joined = {
            ast.unparse(target)
            for target, value in pairs
            if any(called(n) in JOINED for n in ast.walk(value))
        }
        first = next((n for n in nodes if _compares(n) & joined), None)
        text = ast.unparse(scope) if first is not None else ""
        if first is None or REMOVED.search(text) or not SUMMED.search(text):
            continue
        if any(map(_takes_diagonal, nodes)):
            continue
        names: set[str] = set()
        for target, value in pairs:
            inside = {ast.unparse(n) for n in ast.walk(value) if isinstance(n, ast.Name)}
            if inside & names or any(_compares(n) & joined for n in ast.walk(value)):
                names |= {ast.unparse(t) for t in getattr(target, "elts", [target])}
        if any(_is_cut(n, names) for n in nodes) or not any(_counts(n, names) for n in nodes):
            continue
        yield Told(
            line_of(first),
            "self-in-denominator",
            f"`{ast.unparse(first)[:60]}` compares every row with itself as well, and nothing "
            "takes the diagonal out: it is the largest score of each row, and counts as a "
            "negative. Fill it with -inf before the softmax",
        )


def _compares(node: ast.AST) -> set[str]:
    """The name whose rows are compared with each other: `z` of `z @ z.T`."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and called(node) in ("mm", "matmul", "cosine_similarity"):
        sides = node.args[:2] if len(node.args) > 1 else [node.func, *node.args[:1]]
    words = [ast.unparse(side) for side in sides]
    bases = {re.match(r"\w*", w)[0] for w in words}  # type: ignore[index]
    turned = [
        w for w in words if re.search(r"\.(T|mT|t\(\)|transpose\(|unsqueeze|permute\()|None", w)
    ]
    return bases if len(words) == 2 and len(bases) == 1 and turned else set()


def _takes_diagonal(node: ast.AST) -> bool:
    """Whether the main diagonal is asked for; one at a distance holds the positives."""
    if not isinstance(node, ast.Call) or called(node) not in ("diag", "diagonal", "diag_embed"):
        return False
    method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch"
    return len(node.args) + len(node.keywords) + method < 2


def _is_cut(node: ast.AST, names: set[str]) -> bool:
    """Whether a block of the scores is cut out, as that of one view against the other."""
    if not isinstance(node, ast.Subscript) or ast.unparse(node.value) not in names:
        return False
    index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(i, ast.Slice) and (i.lower or i.upper) for i in index)


def _counts(node: ast.AST, names: set[str]) -> bool:
    """Whether scores go into a softmax, or into exponentials that are summed."""
    if not isinstance(node, ast.Call) or not USED.search(called(node)):
        return False
    owner = getattr(node.func, "value", None)
    inner = node.args[0] if node.args else owner
    if inner is None or any(isinstance(n, ast.USub | ast.Sub) for n in ast.walk(inner)):
        return False
    return any(ast.unparse(n) in names for n in ast.walk(inner) if isinstance(n, ast.Name))


RULES = (ratios_of_one, added_references, self_pairs)
