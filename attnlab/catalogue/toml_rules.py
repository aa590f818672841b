"""TOML files read by a table of rules, with messages that name file, line and key.

A rule is a function from the value in the file to the value used. It raises `InvalidValue` where
the value does not fit; `Document.read` turns that into an `Unreadable` with the place. Rules nest,
so a whole file is one rule: `table({"level": whole(1, 5), "hints": listing(text)})`.
"""

from __future__ import annotations

import keyword
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attnlab.errors import Unreadable
from attnlab.files import read_bytes, shown_path
from attnlab.records import record
from attnlab.suggest import closest_names, did_you_mean, either

Rule = Callable[[Any], Any]
At = tuple[str | int, ...]  # where in the document: ("contract", "extra_sizes", 0, "S")
LARGEST = 256 << 10  # bytes of a description; real ones have about two thousand
LINES = 1000  # of longer files the line is not searched, which takes quadratic time


class InvalidValue(ValueError):
    """What does not fit: `says` follows the key's name, `at` is the way from the rule's value."""

    def __init__(self, says: str, at: At = (), hint: str = "") -> None:
        super().__init__(says)
        self.says = says
        self.at = at
        self.hint = hint

    def inside(self, step: str | int) -> InvalidValue:
        return InvalidValue(self.says, (step, *self.at), self.hint)


@record
class Document:
    """A TOML file, with what it takes to say where something in it is wrong."""

    file: str  # as messages show it
    text: str
    data: dict[str, Any]

    def read(self, rule: Rule) -> Any:
        """What `rule` makes of the whole document; raises `Unreadable`."""
        try:
            return rule(self.data)
        except InvalidValue as wrong:
            raise self.error(wrong.at, wrong.says, wrong.hint) from None

    def error(self, at: At, says: str, hint: str = "") -> Unreadable:
        """The error that says of the key `at` what `says` tells, with its line."""
        line = line_of(self.text, at)
        where = f"{self.file}:{line}" if line else self.file
        return Unreadable(f"{label(at)}{says}", hint, where)


def read_document(path: Path) -> Document:
    """The TOML file at `path`; raises `Unreadable`."""
    file = shown_path(path)
    data = read_bytes(path, file, LARGEST)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{file}:{data[: error.start].count(10) + 1}"
        raise Unreadable(f"{file} is not UTF-8 text", "Save it as UTF-8.", where) from None
    try:
        return Document(file=file, text=text, data=tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        line = _broken_line(text, str(error))
        says = re.sub(r" \(at [^)]*\)$", "", str(error))
        where = f"{file}:{line}"
        raise Unreadable(f"no valid TOML: {says}", f"Look at line {line}.", where) from None


def label(at: At) -> str:
    """`contract.extra_sizes[0].S`."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in at]
    return "".join(parts).removeprefix(".")


def line_of(text: str, at: At) -> int | None:
    """The line on which the key `at`, or the nearest table around it, begins.

    TOML is read statement by statement: the first beginning of the text that parses and holds the
    key ends with the key's statement, which begins after the beginning that parsed before it."""
    found, deepest, parsed = None, 0, 0
    for count, data in _beginnings(text):
        if (depth := _depth(data, at)) > deepest:
            found, deepest = parsed + 1, depth
        parsed = count
    return found


def _depth(data: Any, at: At) -> int:
    """How many steps of `at` can be followed in `data`."""
    for done, step in enumerate(at):
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return done
    return len(at)


def _broken_line(text: str, says: str) -> int:
    """The line that `says` names, else that of the statement which never ends."""
    if found := re.search(r"at line (\d+)", says):
        return int(found[1])
    return max((count for count, _ in _beginnings(text)), default=0) + 1


def _beginnings(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first 1, 2, 3... lines of the text, where they parse."""
    lines = text.split("\n")
    for count in range(1, len(lines) + 1) if len(lines) <= LINES else ():
        try:
            yield count, tomllib.loads("\n".join(lines[:count]))
        except (ValueError, RecursionError):
            continue


# ---------------------------------------------------------------- rules


def expected(value: Any, what: str, hint: str = "") -> InvalidValue:
    return InvalidValue(f" = {describe(value)}: expected {what}", hint=hint)


def describe(value: Any) -> str:
    """The value as the file's author wrote it, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else f"a list of {len(value)}"
    said = f'"{value}"' if isinstance(value, str) else str(value)
    said = said.replace("\n", "\\n")
    return said if len(said) <= 60 else f"{said[:56]}..."


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise expected(value, "text")
    return value.strip()


def line(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value.strip():
        raise expected(value, "text on one line")
    return value.strip()


def name(value: Any) -> str:
    if not isinstance(value, str) or not value.isidentifier() or keyword.iskeyword(value):
        raise expected(value, "a Python name")
    return value


def number(value: Any) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value <= 0:
        raise expected(value, "a number above 0")
    return float(value)


def scalar(value: Any) -> str | int | float | bool:
    """A constructor argument. NaN and the infinities do not survive JSON beside strings."""
    if isinstance(value, float) and not math.isfinite(value):
        raise expected(value, "a finite number")
    if isinstance(value, (str, int, float)):
        return value
    raise expected(value, "text, a number, true or false")


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise expected(value, "true or false")
    return value


def whole(low: int, high: int | None = None) -> Rule:
    what = f"a whole number of at least {low}" if high is None else f"{low} to {high}"

    def rule(value: Any) -> int:
        good = isinstance(value, int) and not isinstance(value, bool)
        if not good or value < low or (high is not None and value > high):
            raise expected(value, what)
        return int(value)

    return rule


def one_of(*names: str) -> Rule:
    def rule(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            guess = closest_names(value, names) if isinstance(value, str) else []
            hint = f'Did you mean "{guess[0]}"?' if guess else ""
            raise expected(value, either(names), hint)
        return value

    return rule


def matching(pattern: str, what: str) -> Rule:
    def rule(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise expected(value, what)
        return value

    return rule


def listing(item: Rule, least: int = 0, most: int | None = None) -> Rule:
    what = f"a list of {least}" if least == most else f"a list of at least {least}"

    def rule(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise expected(value, "a list")
        if len(value) < least or (most is not None and len(value) > most):
            raise expected(value, what)
        return tuple(_inside(item, index, entry) for index, entry in enumerate(value))

    return rule


def mapping(keys: str, what: str, item: Rule, least: int = 0) -> Rule:
    """A table whose keys are free as long as they match the pattern `keys`."""

    def rule(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise expected(value, "a table")
        if len(value) < least:
            raise InvalidValue(": the table is empty")
        for entry in value:
            if not re.fullmatch(keys, entry):
                raise InvalidValue(f": the key must be {what}", (entry,))
        return {entry: _inside(item, entry, value[entry]) for entry in value}

    return rule


def table(
    rules: dict[str, Rule],
    required: tuple[str, ...] = (),
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Rule:
    """A table of known keys. Keys that are left out are left out of the result; `renamed` maps keys
    of former versions to those of today."""

    def rule(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise expected(value, "a table")
        for key in value:
            if key in renamed:
                raise InvalidValue(f" is called {renamed[key]} now", (key,), "Rename the key.")
            if key not in rules:
                hint = did_you_mean(key, rules) or f"Known keys: {', '.join(rules)}"
                raise InvalidValue(": unknown key", (key,), hint)
        for key in required:
            if key not in value:
                raise InvalidValue(
                    ": missing", (key,), f"Add {key}; docs/challenge-format.md says how."
                )
        return {key: _inside(rules[key], key, value[key]) for key in rules if key in value}

    return rule


def fields_of(kind: type[Any], rules: dict[str, Rule], required: tuple[str, ...] = ()) -> Rule:
    """A table whose keys are the fields of a record, which it becomes."""
    rule = table(rules, required)

    def build(value: Any) -> Any:
        return kind(**rule(value))

    return build


def _inside(rule: Rule, step: str | int, value: Any) -> Any:
    try:
        return rule(value)
    except InvalidValue as wrong:
        raise wrong.inside(step) from None
