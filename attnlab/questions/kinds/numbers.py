"""Work out a number: parameters, FLOPs, bytes, a loss, a wavelength.

Sizes are drawn; an answer within 5 % is right. Write it as you like: `12.6M`, `1.5e9`, `4*768**2`,
`2 GiB`. What is asked stands in `attnlab/questions/numbers.toml`.
"""

from __future__ import annotations

import ast
import math
import operator
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attnlab.errors import Refused
from attnlab.questions.base import Judged, Part, Runner, asked

MATERIAL = ""
FILE = Path(__file__).parents[1] / "numbers.toml"
# Of an answer: its share that it may be off, or that is rounding; its characters.
CLOSE, EXACT, LONGEST = 0.05, 0.001, 80
GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")  # 12,600
FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
SHOWN = list(FACTORS.items())
FACTORS |= {f"{p}i": 1024.0**n for n, p in enumerate("kmgt", 1)} | {"b": 1e9}
FUNCTIONS = {"sqrt": math.sqrt, "log": math.log, "ln": math.log, "exp": math.exp}
NAMES = {"pi": math.pi, "e": math.e}
NAMED = {"thousand": "k", "million": "m", "billion": "g", "trillion": "t", "bytes": "", "flops": ""}
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: math.pow,
}  # fmt: skip
UNIT = re.compile(r"^(.*?(?:[\d.)]|pi))\s*([kmgtpe]i?|b)?(?:b|flops?|bytes?)?$")


@cache
def entries() -> list[dict[str, Any]]:
    import tomllib

    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["numbers"]
    return found


def draw(piece: object, dice: random.Random, runner: Runner) -> Sequence[Part] | None:  # noqa: ARG001
    template = dice.choice(entries())
    sizes = {name: dice.choice(values) for name, values in template["sizes"].items()}
    sizes |= {name: evaluate(text, sizes) for name, text in template.get("derived", {}).items()}
    value = float(evaluate(template["value"], sizes))
    if any(is_close(evaluate(text, sizes), value) for text in template.get("wrong", ())):
        return None
    return [
        Part(
            question=asked(template["prompt"].format(**sizes), "a number"),
            right=format_value(value),
            judge=lambda typed: judge_number(typed, value),
            why=template["why"],
            base=f"numbers/{template['id']}",
            category=template["category"],
        )
    ]


def evaluate(text: str, sizes: Mapping[str, Any]) -> Any:
    """The value of an expression of the file, which is ours."""
    return eval(text, {**vars(math), **sizes})  # noqa: S307


def is_close(number: float, value: float) -> bool:
    return abs(number - value) <= CLOSE * abs(value)


def judge_number(typed: str, value: float) -> Judged:
    number = read_number(typed)
    shown = format_value(number)
    if is_close(number, value):
        exact = math.isclose(number, value, rel_tol=EXACT)
        return Judged("right", shown, "" if exact else f"within {CLOSE:.0%}")
    ratio = number / value
    message = f"{shown} is {ratio:.3g} times the right number" if 1e-6 < ratio < 1e6 else ""
    return Judged("wrong", shown, message or f"{shown} is far from it")


def read_number(typed: str) -> float:
    """The number that was typed; raises `Refused` where it is none."""
    text = GROUPED.sub(lambda found: found[0].replace(",", ""), typed)
    if "," in text:
        raise Refused(f'"{typed[:60]}" is no number', "a comma groups thousands: 2.4, or 12,600")
    text = text.lower().replace("_", "").replace("^", "**").replace("≈", "")
    for word, letter in NAMED.items():
        text = text.replace(word, letter)
    found = UNIT.match(text.strip())
    try:
        tree = ast.parse(found[1].strip() if found and len(text) <= LONGEST else "", mode="eval")
        number = _value(tree.body) * FACTORS[(found and found[2]) or ""]
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        hint = "type one such as 12.6M, 1.5e9, 2 GiB or 4*768**2"
        raise Refused(f'"{typed[:60]}" is no number', hint) from None
    if not math.isfinite(number):
        raise Refused(f'"{typed[:60]}" is no finite number', "type one such as 12.6M")
    return number


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int(number) | float(number)) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in NAMES:
            return NAMES[name]
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in FUNCTIONS:
            return FUNCTIONS[name](_value(argument))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError


def format_value(value: float) -> str:
    """`12,600,000 (12.6 M)`, or four digits of what is smaller."""
    if abs(value) < 1e4:
        return f"{value:.4g}"
    letter, factor = next((u, f) for u, f in reversed(SHOWN) if abs(value) >= f)
    short = f"{value / factor:.4g} {letter.upper()}"
    return f"{round(value):,} ({short})" if value < 1e15 else short
