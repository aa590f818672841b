"""What the text of a file says of noise that is added by a schedule: of its two coefficients, the
squares sum to 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from attnlab.target.source_walk import Told, called, line_of, pairs_of, scopes, set_once, words

PASSED = {"view", "reshape", "unsqueeze", "to", "float", "expand", "expand_as", "type_as"}
PRODUCT = re.compile(r"cumprod|alphas?_?(bar|hat|cum|prod|t\b)", re.IGNORECASE)
NOISE = re.compile(r"noise|eps|randn", re.IGNORECASE)
ROOT = re.compile(r"sqrt|\*\* ?\(?0?\.5|\*\* ?\(1 ?/ ?2|pow\(|exp\(|\*\*")
Known = Mapping[str, ast.expr]


class _Tables(NamedTuple):
    """The names of a text that hold products of alphas, and roots of what is left of them."""

    products: frozenset[str]
    roots: frozenset[str]

    def has_product(self, text: str) -> bool:
        return PRODUCT.search(text) is not None or not self.products.isdisjoint(_named(text))


def _tables(tree: ast.Module) -> _Tables:
    """`self.abar = torch.cumprod(alpha, 0)` and `self.noise_scale = (1 - self.abar).sqrt()`."""
    products, roots = set[str](), set[str]()
    for target, value in (pair for node in ast.walk(tree) for pair in _set(node)):
        name, text = ast.unparse(target).strip("'").rpartition(".")[2], ast.unparse(value)
        if "cumprod" in text and not (ROOT.search(text) or _complement(value)):
            products.add(name)
        if "sqrt" in text and re.search(r"1(\.0)? - ", text) and products & _named(text):
            roots.add(name)
    return _Tables(frozenset(products), frozenset(roots))


def _named(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def coefficients_without_root(tree: ast.Module) -> Iterator[Told]:
    """`ab.sqrt() * x + (1 - ab) * noise`, and the other way round."""
    cumulated = "cumprod" in words(tree)
    tables = _tables(tree) if cumulated else _Tables(frozenset(), frozenset())
    for _, nodes in scopes(tree) if cumulated or "sqrt" in words(tree) else ():
        known = set_once(nodes)
        for node in nodes:
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
                continue
            sides = _factors(node.left), _factors(node.right)
            if any(len(side) != 2 for side in sides):
                continue
            for one, two in (sides, sides[::-1]):
                bare = _bare(one, two, known, tables)
                if bare:
                    yield Told(
                        node.lineno,
                        "noise-without-root",
                        f"`{ast.unparse(node)[:70]}` scales with {bare}, without a root: of the "
                        "two coefficients the squares sum to 1, so the variance stays the same. "
                        "Noise takes (1 - a).sqrt(), and what it is added to a.sqrt()",
                    )
                    break


def _bare(one: list[ast.expr], two: list[ast.expr], known: Known, tables: _Tables) -> str:
    """Which coefficient lacks its root, of a sum of two products; "" where none does."""
    for first in one:
        for second in two:
            (root, a), (other_root, b) = _read(first, known), _read(second, known)
            rest = _rest(b)
            product = tables.has_product(b + _value(b, known))
            if root and not other_root and (rest == a or (_rest(a) == b and product)):
                return ast.unparse(second)
            noise = any(NOISE.search(ast.unparse(f)) for f in two if f is not second)
            named = tables.has_product(a + _value(a, known))
            if rest == a and not root and not other_root and noise and named and tables.products:
                return f"{ast.unparse(first)} and {ast.unparse(second)}"
            # One root is in a table, and the table of products stands where the other's should.
            table = tables.roots & _named(a + _value(a, known)) and tables.products & _named(b)
            noise = any(NOISE.search(ast.unparse(f)) for f in one if f is not first)
            if table and noise and not (root or other_root or ROOT.search(b)):
                return ast.unparse(second)
    return ""


def _value(name: str, known: Known) -> str:
    return ast.unparse(known[name]) if name in known else ""


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(node.left) + _factors(node.right)
    return [node]


def _read(node: ast.expr, known: Known) -> tuple[bool, str]:
    """Whether a coefficient is a root, and what of."""
    node = _peeled(node, known)
    if isinstance(node, ast.Call) and called(node) == "sqrt":
        inner = node.args[0] if node.args else getattr(node.func, "value", node)
        return True, ast.unparse(_peeled(inner, known))
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    if power and ast.unparse(node.right) == "0.5":  # type: ignore[attr-defined]
        return True, ast.unparse(_peeled(node.left, known))  # type: ignore[attr-defined]
    return False, ast.unparse(node)


def _peeled(node: ast.expr, known: Known) -> ast.expr:
    """A coefficient without what only fits its shape; a name as the formula that it stands for."""
    while True:
        inner = known.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(inner, ast.BinOp | ast.Call) and _is_formula(inner):
            node = inner
        elif isinstance(node, ast.Call) and called(node) in PASSED:
            node = getattr(node.func, "value", node)
        elif isinstance(node, ast.Subscript) and "None" in ast.unparse(node.slice):
            node = node.value
        else:
            return node


def _is_formula(node: ast.expr) -> bool:
    """`1 - a` or a root, perhaps in another shape."""
    while (isinstance(node, ast.Call) and called(node) in PASSED) or isinstance(
        node, ast.Subscript
    ):
        node = (
            node.value
            if isinstance(node, ast.Subscript)
            else getattr(node.func, "value", node.func)
        )
    return bool(_rest(ast.unparse(node))) or _read(node, {})[0]


def _rest(text: str) -> str:
    """A of `1 - a`, `a[t]` of `(1 - a)[t]`, and so on."""
    rest = _complement(ast.parse(text, mode="eval").body) if "1" in text else None
    return "" if rest is None else ast.unparse(rest)


def _complement(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        one = isinstance(node.left, ast.Constant) and node.left.value == 1
        return node.right if one and not isinstance(node.right, ast.BinOp) else None
    if isinstance(node, ast.Subscript):
        inner = _complement(node.value)
        return inner and ast.Subscript(inner, node.slice, ast.Load())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        if node.func.id == "cumprod":
            return None
        inner = _complement(node.args[0])  # of a table, as `extract(1 - a, t)` takes it
        return inner and ast.Call(node.func, [inner, *node.args[1:]], node.keywords)
    return None


def _set(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement sets, also as a buffer."""
    if isinstance(node, ast.Call) and called(node) == "register_buffer" and len(node.args) > 1:
        return [(node.args[0], node.args[1])]
    return list(pairs_of(node))


def roots_in_name_only(tree: ast.Module) -> Iterator[Told]:
    """`sqrt_one_minus_alphas = 1 - alphas_cumprod`: the name has the root, and the value none."""
    for node in ast.walk(tree) if "cumprod" in words(tree) else ():
        for target, value in _set(node):
            while (
                isinstance(value, ast.Call) and len(value.args) == 1 and called(value) != "cumprod"
            ):
                value = value.args[0]  # noqa: PLW2901
            text, name = ast.unparse(value), ast.unparse(target)
            name = name.strip("'").rpartition(".")[2]
            product = called(value) == "cumprod" or PRODUCT.search(text)
            whole = isinstance(value, ast.Name | ast.Attribute | ast.Call) and product
            if not re.match(r"sqrt_", name) or ROOT.search(text) or not (whole or _rest(text)):
                continue
            if isinstance(value, ast.Call) and called(value) != "cumprod":
                continue
            yield Told(
                line_of(value),
                "noise-without-root",
                f"{name} is {text[:60]}, which is no root: say torch.sqrt({text[:60]})",
            )


BETAS = re.compile(r"betas?(_?(t|schedule))?", re.IGNORECASE)
SMALL = r"[\w.]*linspace\((0\.0\d*|\d(\.\d+)?e-\d+), 0\.[0-4]\d*\b"  # as betas are


def products_of_betas(tree: ast.Module) -> Iterator[Told]:
    """`torch.cumprod(betas, 0)`: what is left of a sample is a product of alphas, 1 - beta."""
    text = ast.unparse(tree) if "cumprod" in words(tree) else ""
    for node in ast.walk(tree) if text else ():
        if not isinstance(node, ast.Call) or called(node) != "cumprod":
            continue
        given = ast.unparse(getattr(node.func, "value", node))
        if given in ("torch", "np", "numpy", "jnp") and node.args:
            given = ast.unparse(node.args[0])
        name = given.rpartition(".")[2] if re.fullmatch(r"[\w.]+", given) else "0"
        turned = re.search(rf"\b{name}'?(?: =|,) .*\b1(\.0)? - ", text)
        named = BETAS.fullmatch(name) and re.search(rf"\b1(\.0)? - (\w+\.)?{name}\b", text)
        if (named or re.search(rf"\b{name}'?(?: =|,) {SMALL}", text)) and not turned:
            yield Told(
                node.lineno,
                "product-of-betas",
                f"`{ast.unparse(node)[:60]}` multiplies the betas, and is almost 0 from the first "
                "steps on: every sample is noise alone. What is left of a sample is the product "
                f"of the alphas, 1 - {name}",
            )


RULES = (coefficients_without_root, roots_in_name_only, products_of_betas)
