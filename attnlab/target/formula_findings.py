"""Formulas that the text of a file gets wrong: a skew that pads at the wrong end, a product of
parameters that are all zero, windows that are shifted twice, a quotient that is 0 everywhere,
positions in a dtype that cannot hold them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, arguments, called, line_of, scopes

WHOLE = re.compile(r"ids?$|tokens?|mask|idx|index|label|position|len")  # names of integers
CHANNELS_FIRST = re.compile(r"\[(None, )?:, None, None\]|\.view\((1, )?-1, 1, 1\)")
SMALL = 0.2  # as a standard deviation of weights is, and a mean is not
VIEWS = {"view", "reshape"}
PADDED = re.compile(r"pad\(\w+, \(0, 1\)")  # one column more, at the right


def turned_skews(tree: ast.Module) -> Iterator[Told]:
    """The skew of relative attention with its empty column at the right end."""
    for _, nodes in scopes(tree):
        padded: dict[str, int] = {}
        zeros: set[str] = set()
        for node in nodes:
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
                continue
            name, value = node.targets[0].id, node.value
            if called(value) in ("zeros", "new_zeros", "zeros_like"):
                zeros.add(name)
            joined = getattr(value, "args", ())[:1] if called(value) in ("cat", "concat") else ()
            parts = [ast.unparse(e) for e in getattr(joined[0], "elts", ())] if joined else []
            if PADDED.search(ast.unparse(value)) or (len(parts) == 2 and parts[1] in zeros):
                padded[name] = node.lineno
        turned = {
            ast.unparse(n.targets[0])
            for n in nodes
            if isinstance(n, ast.Assign) and _is_turned_view(n.value, set(padded))
        }
        cut = any(
            isinstance(n, ast.Subscript)
            and re.search(r"(^|, )1:(, |$|\))", ast.unparse(n.slice))
            and (ast.unparse(n.value) in turned or _is_turned_view(n.value, set(padded)))
            for n in nodes
        )
        if cut and padded:
            yield Told(
                next(iter(padded.values())),
                "distance-bias",
                "the empty column stands at the right: read as one column fewer, and without the "
                "first row, each entry then lands one distance off, and the last ones on other "
                "queries. It belongs at the left, as in F.pad(x, (1, 0))",
            )


def _is_turned_view(node: ast.AST, padded: set[str]) -> bool:
    """`p.view(..., cols, rows)` of something padded."""
    return called(node) in VIEWS and ast.unparse(node).partition(".")[0] in padded


def rolls_that_go_on(tree: ast.Module) -> Iterator[Told]:
    """Shifted windows that are shifted once more, where they should be shifted back."""
    for _, nodes in scopes(tree):
        rolled: dict[tuple[str, str], int] = {}  # by variable and shift
        for node in nodes:
            if not isinstance(node, ast.Assign) or called(node.value) != "roll":
                continue
            name = ast.unparse(node.targets[0])
            owner, shift = _rolled(node.value)
            first = rolled.setdefault((name, shift), node.lineno)
            between = (n for n in nodes if first < line_of(n) < node.lineno)
            if first < node.lineno and owner == name and any(map(_calls_a_part, between)):
                yield Told(
                    node.lineno,
                    "rolled-on",
                    f"{name} is rolled here as at line {first}, by {shift}: that shifts "
                    "it once more, and what it is added to stands elsewhere. Roll it back by the "
                    "opposite shift",
                )


def _rolled(call: ast.expr) -> tuple[str, str]:
    """What is rolled, and by how much."""
    assert isinstance(call, ast.Call)
    owner = getattr(call.func, "value", None)
    given = [ast.unparse(a) for a in call.args]
    if owner is not None and ast.unparse(owner) != "torch":
        given = [ast.unparse(owner), *given]
    named = {k.arg: ast.unparse(k.value) for k in call.keywords}
    return (given or [""])[0], (given[1:2] or [named.get("shifts", "")])[0]


def _calls_a_part(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")


def whole_quotients(tree: ast.Module) -> Iterator[Told]:
    """`arange(0, half) // half`: the quotient of whole numbers is 0 everywhere."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)):
            continue
        left = node.left
        while called(left) in ("float", "to", "double") and isinstance(left, ast.Call):
            left = getattr(left.func, "value", left)
        if called(left) != "arange" or not isinstance(left, ast.Call) or len(left.args) > 2:
            continue
        if left.args and ast.unparse(left.args[-1]) == ast.unparse(node.right):
            yield Told(
                node.lineno,
                "whole-quotient",
                f"{ast.unparse(node)} divides whole numbers below {ast.unparse(node.right)} by it: "
                "all are 0. Divide with /",
            )


def narrow_positions(tree: ast.Module) -> Iterator[Told]:
    """`arange(T, dtype=x.dtype)` of activations, in a file that runs them in half precision:
    bfloat16 holds whole numbers up to 256, float16 up to 2048."""
    source = ast.unparse(tree)
    half = re.search(r"bfloat16|float16|\.half\(\)|autocast|\bbf16|fp16", source)
    if half is None:
        return
    for scope, nodes in scopes(tree):
        taken = [a.arg for a in getattr(getattr(scope, "args", None), "args", ())]
        for node in nodes:
            if called(node) != "arange" or not isinstance(node, ast.Call):
                continue
            dtypes = [ast.unparse(k.value) for k in node.keywords if k.arg == "dtype"]
            owner = dtypes[0].removesuffix(".dtype") if dtypes else ""
            if owner in taken and owner != dtypes[0] and not WHOLE.search(owner):
                yield Told(
                    node.lineno,
                    "dtype-narrowed",
                    f"{ast.unparse(node)} counts positions in the dtype of the activations: in "
                    f"bfloat16 there is no whole number between 256 and 258 ({half[0]} is meant "
                    "to run here), so far positions fall together. Count in float32, and cast cos "
                    "and sin",
                )


def cut_rollouts(tree: ast.Module) -> Iterator[Told]:
    """A state that is kept as a prediction, and detached before the next one is made of it."""
    for scope, nodes in scopes(tree):
        text = ast.unparse(scope) if nodes else ""
        if "no_grad" in text or ".backward(" in text:  # sampling, or a cut between two passes
            continue
        for loop in (n for n in nodes if isinstance(n, ast.For | ast.While)):
            kept = {
                ast.unparse(n.args[0]): n.lineno
                for n in ast.walk(loop)
                if isinstance(n, ast.Call) and called(n) == "append" and n.args
            }
            for node in loop.body:
                if (
                    isinstance(node, ast.Assign)
                    and isinstance(loop, ast.For)
                    and _detaches_each(node, loop)
                ):
                    name = ast.unparse(node.targets[0])
                    yield Told(
                        node.lineno,
                        "gradient-cut",
                        f"{name} is detached before every step of {ast.unparse(loop.target)}: "
                        "nothing learns from what a step does to later ones. Detach it once, "
                        "before the loop, where a sequence is continued",
                    )
                if not isinstance(node, ast.Assign) or called(node.value) != "detach":
                    continue
                name = ast.unparse(node.targets[0])
                if name in kept and ast.unparse(node.value).startswith(f"{name}.detach"):
                    yield Told(
                        node.lineno,
                        "gradient-cut",
                        f"{name} is kept as a prediction (line {kept[name]}) and detached before "
                        "the next one is made of it: the loss of later ones teaches nothing of "
                        "how they came about. Feed it back as it is",
                    )


def _detaches_each(node: ast.Assign, loop: ast.For) -> bool:
    """`state = [h.detach() for h in state]`, or of a tuple, in a loop that makes the state anew."""
    name, text = ast.unparse(node.targets[0]), ast.unparse(node.value)
    if not isinstance(node.targets[0], ast.Name):
        return False
    if not isinstance(node.value, ast.ListComp | ast.Tuple | ast.GeneratorExp | ast.Call):
        return False
    of_itself = re.search(rf"(for [\w, ()]+ in {name}\b|\b{name}(\[\d\])?\.detach\(\))", text)
    body = "\n".join(ast.unparse(s) for s in loop.body if s is not node)
    again = re.search(rf"\b{name}(\[[^\]]+\])? = |, {name} = |\({name}\b", body)
    steps = re.search(r"range\(|unbind|enumerate", ast.unparse(loop.iter))
    return bool(".detach()" in text and of_itself and again and steps)


def spreads_as_means(tree: ast.Module) -> Iterator[Told]:
    """`normal_(weight, 0.02)`: the number is the mean, and the standard deviation stays 1."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or called(node) != "normal_" or node.keywords:
            continue
        mean = next((a.value for a in node.args[1:2] if isinstance(a, ast.Constant)), None)
        filled = not isinstance(node.args[0] if node.args else None, ast.Constant)
        if len(node.args) == 2 and filled and isinstance(mean, float) and 0 < mean < SMALL:
            yield Told(
                node.lineno,
                "initialization",
                f"{ast.unparse(node)} draws with the mean {mean} and the standard deviation 1: the "
                f"first number is the mean. Say std={mean}",
            )


FLATTENED = re.compile(r"\.(reshape|flatten|view)\(")


def channel_norms(tree: ast.Module) -> Iterator[Told]:
    """A norm whose weights belong to axis 1, the channels of a map, and whose mean runs along the
    last one, its width."""
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        text = ast.unparse(kind)
        if not re.search(r"norm", kind.name, re.IGNORECASE) or not CHANNELS_FIRST.search(text):
            continue
        if re.search(r"instance|group", kind.name, re.IGNORECASE) or FLATTENED.search(text):
            continue  # whose last axis holds the whole map
        for node in ast.walk(kind):
            if called(node) not in ("mean", "var", "std") or not isinstance(node, ast.Call):
                continue
            axes = [k.value for k in node.keywords if k.arg == "dim"] + node.args
            if axes and ast.unparse(axes[0]) in ("-1", "3") and "permute" not in text:
                yield Told(
                    node.lineno,
                    "norm-axis-of-map",
                    f"{kind.name} takes {ast.unparse(node)} along the width of a map, and its "
                    "weights belong to the channels, axis 1: a norm of (B, C, H, W) over its "
                    "channels takes dim=1",
                )
                break


def norms_in_the_stream(tree: ast.Module) -> Iterator[Told]:
    """`x = norm1(x); x = x + f(x); x = norm2(x); x = x + g(x)`: what is added to is the norm."""
    for _, nodes in scopes(tree):
        steps: dict[str, str] = {}  # by variable: N for a norm, A for what is added
        first: dict[str, ast.Assign] = {}
        for node in nodes:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name, text = node.targets[0].id, ast.unparse(node.value)
            if re.fullmatch(rf"self\.\w*(ln|norm)\w*\({name}\)", text, re.IGNORECASE):
                first.setdefault(name, node)
                steps[name] = steps.get(name, "") + "N"
            elif re.match(rf"{name} \+ [\w.]+\(.*\b{name}\b", text):
                steps[name] = steps.get(name, "") + "A"
        for name, order in steps.items():
            if re.fullmatch(r"(NA){2,}", order):
                yield Told(
                    first[name].lineno,
                    "norm-in-the-stream",
                    f"{name} itself becomes its norm before each sublayer, and what a sublayer "
                    "gives is added to that: the stream that should run through all layers is cut "
                    f"at each norm. Pre-norm is {name} = {name} + f(norm({name}))",
                )


AHEAD = re.compile(r"look_?ahead|future|anti_?causal|backward|reverse|right_?(pad|context)|delay")


def padded_ahead(tree: ast.Module) -> Iterator[Told]:
    """`F.pad(x, (0, (k - 1) * d))` before a convolution that is to be causal."""
    source = ast.unparse(tree)
    if not re.search(r"causal|auto-?regressive|wavenet", source, re.IGNORECASE):
        return
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        text = ast.unparse(kind)
        if AHEAD.search(text.lower()) or not re.search(r"[Cc]onv1d\(", text):
            continue
        for node in ast.walk(kind):
            given = [ast.unparse(a) for a in arguments(node)[1:2]]
            found = re.fullmatch(r"[(\[]0, ([^,]+)[)\]]", "".join(given))
            if called(node) != "pad" or found is None:
                continue
            name = found[1]
            made = re.search(rf"{re.escape(name)} = ([^\n]+)", text)
            width = f"{name} {made[1] if made else ''}"
            if re.search(r"(kernel\w*|\bk\b|ks)(\[0\])? - 1|dilation", width):
                yield Told(
                    line_of(node),
                    "padded-ahead",
                    f"{ast.unparse(node)[:60]} pads at the end: position t then reads the inputs "
                    f"up to t + {name}, which it is to predict. Pad at the beginning, ({name}, 0)",
                )


RULES = (
    channel_norms,
    cut_rollouts,
    narrow_positions,
    norms_in_the_stream,
    padded_ahead,
    rolls_that_go_on,
    spreads_as_means,
    turned_skews,
    whole_quotients,
)
