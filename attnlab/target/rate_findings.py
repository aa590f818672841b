"""What the text of a file says of learning rates: factors that are rates themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator

from attnlab.target.source_walk import Function, Told, called, pairs_of, words

SMALL = 0.1  # a number that is no factor
FACTORS = {"LambdaLR", "MultiplicativeLR"}
WARM_UP = re.compile(r"warm", re.IGNORECASE)
NOW = re.compile(r"^(?!.*(total|max|num_|n_)).*(step|epoch|iter|\bit\b|\bt\b|\bi\b)", re.IGNORECASE)
SCHEDULE = re.compile(r"lr|rate|factor|sched|warm|lambda", re.IGNORECASE)


def rates_as_factors(tree: ast.Module) -> Iterator[Told]:
    """`LambdaLR(optimizer, get_lr)` where `get_lr` returns a rate: the optimizer's own rate is
    multiplied with it."""
    if not FACTORS & words(tree):
        return
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, Function)}
    rates = {
        _word(k.value): ast.unparse(k.value)
        for n in ast.walk(tree)
        if isinstance(n, ast.Call)
        for k in n.keywords
        if k.arg == "lr" and _word(k.value)
    }
    for call in ast.walk(tree):
        if called(call) not in FACTORS or not isinstance(call, ast.Call):
            continue
        given = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "lr_lambda")]
        for function in given:
            bound = getattr(function, "args", None) if called(function) == "partial" else None
            inner = bound[0] if bound else function
            made = functions.get(called(inner) or _word(inner))  # also by one that makes functions
            body: ast.AST | None = inner if isinstance(inner, ast.Lambda) else made
            if isinstance(inner, ast.Lambda) and called(inner.body) in functions:
                body = functions[called(inner.body)]
            names = [] if body is None else [t for r, t in rates.items() if _returns(body, r)]
            if names:
                yield Told(
                    call.lineno,
                    "rate-squared",
                    f"{ast.unparse(function)[:50]} returns a rate made of {names[0]}, and "
                    f"{called(call)} multiplies it with the optimizer's own, lr={names[0]}: what "
                    f"is used is {names[0]} squared. Return a factor, 1.0 for the full rate",
                )


def _returns(body: ast.AST, rate: str) -> bool:
    """Whether a function may return a rate; what it sets itself is looked up."""
    own: dict[str, list[ast.expr]] = {}
    for target, value in (pair for node in ast.walk(body) for pair in pairs_of(node)):
        own.setdefault(ast.unparse(target), []).append(value)
    values = [v for r in _returned(body) for v in own.get(ast.unparse(r), [r])]
    if not rate.isidentifier():  # a number: alone it may be a floor
        return any(isinstance(v, ast.BinOp) and _scales_by(v, rate, own) for v in values)
    return any(_scales_by(value, rate, own) for value in values)


def _returned(body: ast.AST) -> Iterator[ast.expr]:
    """The values that a function or a lambda may return."""
    if isinstance(body, ast.Lambda):
        yield body.body
    for node in ast.walk(body):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _word(value: ast.expr) -> str:
    """The last name of a value, `peak` of `self.config.peak`, or a small number."""
    if isinstance(value, ast.Constant) and isinstance(value.value, float) and value.value < SMALL:
        return str(value.value)
    return str(getattr(value, "attr", getattr(value, "id", "")))


def _scales_by(value: ast.expr, rate: str, own: Container[str]) -> bool:
    """Whether a value is a rate, or a product with one, that is divided by none."""
    if not isinstance(value, ast.BinOp):
        return _word(value) == rate and ast.unparse(value) not in own
    sides = (value.left, value.right)
    if isinstance(value.op, ast.Div):
        divided = rate in map(_word, (n for n in ast.walk(value.right) if isinstance(n, ast.expr)))
        return _scales_by(value.left, rate, own) and not divided
    if isinstance(value.op, ast.Mult):
        return any(_scales_by(side, rate, own) for side in sides)
    sums = isinstance(value.op, ast.Add | ast.Sub) and rate.isidentifier()
    return sums and any(_scales_by(side, rate, own) for side in sides)


def factors_rounded_down(tree: ast.Module) -> Iterator[Told]:
    """`return step // warmup_steps`: 0 until the warm-up is over, and 1 after it."""
    for function in ast.walk(tree):
        if not isinstance(function, Function) or not SCHEDULE.search(function.name):
            continue
        for value in _returned(function):
            for node in ast.walk(value):
                if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
                    continue
                if WARM_UP.search(ast.unparse(node.right)) and NOW.search(ast.unparse(node.left)):
                    yield Told(
                        node.lineno,
                        "rate-rounded-down",
                        f"`{ast.unparse(node)[:60]}` rounds down: it is 0 all through the warm-up, "
                        "so nothing is learned until then. Divide with /",
                    )


RULES = (rates_as_factors, factors_rounded_down)
