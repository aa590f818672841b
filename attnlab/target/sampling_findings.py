"""What the text of a file does to choose the next token: temperature, position, top-k and top-p."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Function, Told, called, line_of, scopes

DRAWS = {"argmax", "multinomial", "topk", "softmax"}


def sampled_wrong(tree: ast.Module) -> Iterator[Told]:
    """Generation that reads the wrong position, or uses the temperature the wrong way round."""
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function) or not any(called(n) in DRAWS for n in nodes):
            continue
        loops = any(isinstance(n, (ast.For, ast.While)) for n in nodes)
        for node in nodes:
            if wrong := _wrong_step(node, loops):
                yield Told(line_of(node), "sampling", wrong)


def _wrong_step(node: ast.AST, loops: bool) -> str:
    """What is wrong with a step of choosing the next token; "" for nothing that is known."""
    text = ast.unparse(node) if isinstance(node, (ast.Subscript, ast.BinOp, ast.Call)) else ""
    given = [ast.unparse(a) for a in node.args] if isinstance(node, ast.Call) else [""]
    name, first = called(node), (given or [""])[0]
    read = not isinstance(getattr(node, "ctx", None), ast.Store)  # `scores[:, 0] = 0` begins beams
    if (
        loops
        and read
        and re.fullmatch(
            r"(\w*(logits|out|output|scores)\w*|(self|model)\w*\(.*\))\[:, 0(, :)?\]", text
        )
    ):
        return (
            f"{text} are the scores behind the first position, always the same: the next token "
            "comes from the last, [:, -1]"
        )
    if isinstance(node, ast.BinOp) and HOT.search(text):
        return (
            f"{text}: scores are divided by the temperature; multiplied, a high one makes the "
            "choice sharper"
        )
    if name.startswith("masked_fill") and TURNED.search(text):
        return f"{text[:60]} hides what is above the limit, the best choices: hide what is below"
    if name == "multinomial" and "logits" in first and not re.search(r"softmax|exp", first):
        return f"multinomial draws by probabilities, and {first} are scores: apply softmax first"
    if loops and name == "cat" and isinstance(node, ast.Call) and node.args:
        names = [ast.unparse(p) for p in getattr(node.args[0], "elts", [])]
        if len(names) == 2 and re.match(r"(next|new|tok$|token$|nxt)", names[0]):
            return f"cat puts {names[0]} before {names[1]}: the next token belongs behind"
    return ""


HOT = re.compile(r"logits\w*(\[[^]]*\])? \* \w*(temperature|temp)\b")
TURNED = re.compile(r"masked_fill(_)?\(\s*\w+ >=? \w*(kth|thresh|cut|top_?k|min_|smallest|v\[)")


def sorted_masks(tree: ast.Module) -> Iterator[Told]:
    """A mask that is made of sorted scores and put on the scores as they stand: nothing takes it
    back to their order."""
    for scope, nodes in scopes(tree):
        for node in nodes:
            if not isinstance(node, ast.Assign) or called(node.value) != "sort":
                continue
            names = [ast.unparse(e) for e in getattr(node.targets[0], "elts", ())]
            given = _sorted_scores(node.value)
            if len(names) != 2 or not given:
                continue
            used = re.findall(rf"\b{re.escape(names[1])}\b", ast.unparse(scope))
            if len(used) > 1:  # the order is taken back, or followed
                continue
            made = _made_of(nodes, names[0], node.lineno)
            for late in nodes:
                if hidden := _hidden_by(late, given, made):
                    yield Told(
                        line_of(late),
                        "sampling",
                        f"{hidden} is in the order of {names[0]}, and hides entries of {given}, "
                        f"which stand in the order of the vocabulary: other tokens are removed "
                        f"than those meant. Take it back with scatter and {names[1]} first",
                    )
                    break


def _sorted_scores(call: ast.expr) -> str:
    """The name of what is sorted."""
    if not isinstance(call, ast.Call):
        return ""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    first = call.args[0] if call.args else None
    chosen = first if owner is None or ast.unparse(owner) == "torch" else owner
    return chosen.id if isinstance(chosen, ast.Name) else ""


def _made_of(nodes: list[ast.AST], name: str, after: int) -> set[str]:
    """The variables that are made of this one, and of nothing that stands in another order."""
    made = {name}
    for node in nodes:
        if not isinstance(node, ast.Assign) or node.lineno <= after:
            continue
        if made & {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}:
            made |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return made - {name}


def _hidden_by(node: ast.AST, scores: str, made: set[str]) -> str:
    """The mask of `made` by which entries of the scores are hidden; "" for none."""
    if called(node).startswith("masked_fill") and isinstance(node, ast.Call):
        owner = ast.unparse(getattr(node.func, "value", node))
        first = ast.unparse(node.args[0]) if node.args else ""
        return first if owner == scores and first in made else ""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        index = ast.unparse(target.slice)
        return index if ast.unparse(target.value) == scores and index in made else ""
    return ""


def places_as_tokens(tree: ast.Module) -> Iterator[Told]:
    """`values, ids = logits.topk(k)`, and what is drawn from the values is taken for a token: it is
    a place among them."""
    for scope, nodes in scopes(tree):
        for node in nodes:
            if not isinstance(node, ast.Assign) or called(node.value) not in ("topk", "sort"):
                continue
            names = [ast.unparse(e) for e in getattr(node.targets[0], "elts", ())]
            if len(names) != 2 or names[1] in _names_read(scope):
                continue
            made = {names[0]}
            for late in (n for n in nodes if line_of(n) > node.lineno):
                if isinstance(late, ast.Assign) and made & {
                    n.id for n in ast.walk(late.value) if isinstance(n, ast.Name)
                }:
                    made |= {t.id for t in late.targets if isinstance(t, ast.Name)}
                if called(late) in ("multinomial", "argmax") and made & {
                    n.id for n in ast.walk(late) if isinstance(n, ast.Name)
                }:
                    yield Told(
                        line_of(late),
                        "sampling",
                        f"{ast.unparse(late)[:60]} draws a place among the {called(node.value)} "
                        f"of line {node.lineno}, and no token: {names[1]}, which says which token "
                        f"stands there, is never read. Use {names[1]}.gather(-1, ...)",
                    )
                    break


def _names_read(scope: ast.AST) -> set[str]:
    names = (n for n in ast.walk(scope) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Load)}


def variances_as_noise(tree: ast.Module) -> Iterator[Told]:
    """`mean + betas[t] * noise` in a sampler: noise is scaled by a standard deviation."""
    if not any(called(n) == "cumprod" for n in ast.walk(tree)):
        return
    made = {
        ast.unparse(n.targets[0]): ast.unparse(n.value)
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and len(n.targets) == 1
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp):
            continue
        if taken := _noise_taken(node, made):
            yield Told(taken[0], "variance-as-deviation", taken[1])
        product = node.right if isinstance(node.op, ast.Add) else None
        if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
            continue
        scale, noise = ast.unparse(product.left), ast.unparse(product.right)
        if not re.search(r"noise|randn|^z$|^eps$", noise) or not isinstance(node.left, ast.Name):
            continue
        name = scale.partition("[")[0]
        meant = made.get(name, name) if not VARIANCE.search(scale) else scale
        if VARIANCE.search(meant) and not re.search(r"sqrt|\*\* 0?\.5|log|exp|std", scale + meant):
            yield Told(
                node.lineno,
                "variance-as-deviation",
                f"{scale} * {noise} scales noise by a variance ({meant}): it is drawn too narrow, "
                f"and samples come out too sharp. Use its square root, {scale}.sqrt()",
            )


def _noise_taken(node: ast.BinOp, made: dict[str, str]) -> tuple[int, str] | None:
    """The line of `x - beta / (1 - alpha_bar) * eps`, whose divisor lacks its square root, and what
    is to be said of it."""
    product = node.right
    if not (isinstance(node.op, ast.Sub) and isinstance(product, ast.BinOp)):
        return None
    if not (isinstance(product.op, ast.Mult) and NOISE.search(ast.unparse(product.right))):
        return None
    scale = ast.unparse(product.left)
    meant = made.get(scale, scale)
    divided = QUOTIENT.fullmatch(meant.strip("()") if meant is scale else meant)
    sums = {name.partition("[")[0] for name, value in made.items() if "cumprod" in value}
    if not divided or divided["sum"] not in sums:
        return None
    return node.lineno, (
        f"{scale} * {ast.unparse(product.right)} takes noise away by {meant}: the noise in x is "
        f"sqrt(1 - {divided['sum']}) of one with variance 1, so it is divided by the square root"
    )


NOISE = re.compile(r"^(\w*(eps|noise)\w*)$|^(self\.)?(model|net)\w*\(")
QUOTIENT = re.compile(
    r"(\(1(\.0)? - \w+(\[\w+\])?\)|(self\.)?betas?\w*(\[\w+\])?) / "
    r"\(1(\.0)? - (?P<sum>[\w.]+)(\[\w+\])?\)"
)
VARIANCE = re.compile(r"^(self\.)?(beta|betas|beta_t|\w*variance|var)(\[.*\])?$")


RULES = (sampled_wrong, sorted_masks, places_as_tokens, variances_as_noise)
