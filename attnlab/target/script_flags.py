"""Values to start a script with, for the arguments that its argparse parser asks for."""

import ast
from collections.abc import Iterator

from attnlab.files import PARSING
from attnlab.target.conventions import DIMENSIONS, LITERALS, size_by_name
from attnlab.target.infer import SIZES

RATES = {"lr", "learning_rate"}


def flag_values(text: str) -> dict[str, str]:
    """By flag, a value of the type that it takes; a flag that takes a text has none here."""
    try:
        with PARSING:
            calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {flag: value for call in calls for flag, value in _values(call)}


def _values(call: ast.Call) -> Iterator[tuple[str, str]]:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return
    flags = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
    said = {k.arg: k.value for k in call.keywords}
    chosen = getattr(said.get("choices"), "elts", [])
    kind = ast.unparse(said["type"]) if "type" in said else ""
    name = flags[-1].lstrip("-").replace("-", "_") if flags else ""
    value = ""
    if chosen and isinstance(chosen[0], ast.Constant):
        value = str(chosen[0].value)
    elif kind == "int":
        value = str(_number(name))
    elif kind == "float":
        value = "0.001" if name in RATES else "0.1"
    if value:
        yield from ((flag, value) for flag in flags)


def _number(name: str) -> int:
    usual = LITERALS.get(name)
    if type(usual) is int:
        return usual
    return SIZES.get(DIMENSIONS.get(name, ""), 0) or size_by_name(name) or 1
