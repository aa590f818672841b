"""The user's options, and corrected command lines that are ready to paste."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import field, replace

from attnlab.catalogue.literals import Scalar
from attnlab.records import Container, Contract, Input, record


@record
class TraceCommand:
    """A command line that names a target, and how to construct and call it."""

    target: str
    init: str = ""
    sizes: str = ""
    inputs: tuple[str, ...] = ()
    case: str = ""
    tiny: bool = False  # of the sizes: B=1, S=4, D=8, H=2
    rest: tuple[str, ...] = ()  # the other flags, as they were typed
    verb: str = "trace"

    @property
    def describes_module(self) -> bool:
        """Whether a flag or file says how to build or feed the target."""
        return bool(self.init or self.sizes or self.inputs or self.case)

    def with_flags(
        self, init: str = "", sizes: str = "", inputs: tuple[str, ...] = ()
    ) -> TraceCommand:
        return replace(
            self,
            init=", ".join(filter(None, (self.init, init))),
            sizes=", ".join(filter(None, (self.sizes, sizes))),
            inputs=(*self.inputs, *inputs),
        )

    def command(self) -> str:
        """`attnlab trace my.py:Net --init "dim=12"`."""
        words = ["attnlab", self.verb, self.target]
        for flag, said in (("--case", self.case), ("--init", self.init), ("--sizes", self.sizes)):
            words += [flag, said] if said else []
        for said in self.inputs:
            words += ["--input", said]
        return " ".join(map(quote_word, (*words, *self.rest)))


@record
class UserOptions:
    """What --case and the flags say together, and the command as it was typed."""

    init: dict[str, Scalar]
    sizes: dict[str, int]
    typed: TraceCommand
    inputs: tuple[Input, ...] = ()
    containers: tuple[Container, ...] = ()
    arguments: dict[str, Scalar | None] = field(default_factory=dict)
    given_sizes: frozenset[str] = frozenset()  # sizes that are not from a preset


def input_flag(entry: Input) -> str:
    """An input in the form of --input: `mask: B S S bool forbids`."""
    words = [*entry.axes, *([entry.dtype] if entry.dtype != "float" else [])]
    if entry.role == "mask":
        words += ["forbids" if entry.forbids else "allows"]
    words += ["additive"] * entry.additive + ["optional"] * entry.optional
    words += [entry.role] if entry.role in ("segments", "positions", "lengths") else []
    return f"{entry.name}: {' '.join(words)}"


def describe_containers(contract: Contract) -> tuple[str, ...]:
    """What each container holds, as Python would show it: `cache: (B H T hd, B H T hd)`."""
    held = {c.name: c for c in contract.containers}
    axes = {entry.name: " ".join(entry.axes) for entry in contract.inputs}

    def shown(name: str) -> str:
        if name in axes:
            return axes[name]
        container = held[name]
        parts = [(key, shown(f"{name}.{key}")) for key in container.keys]
        if container.kind == "dict":
            return f"{{{', '.join(f'{key}: {part}' for key, part in parts)}}}"
        inner = ", ".join(part for _, part in parts)
        return f"[{inner}]" if container.kind == "list" else f"({inner})"

    return tuple(f"{name}: {shown(name)}" for name in held if "." not in name)


def quote_word(word: str) -> str:
    """Quote a word for the shell; in double quotes where they suffice, as they read better."""
    if re.fullmatch(r"[\w./:=*+,@%-]+", word):
        return word
    return f'"{word}"' if not re.search(r'["$`\\!]', word) else shlex.quote(word)


def repeated_flags(presets: tuple[str, ...], values: Mapping[str, str | bool]) -> tuple[str, ...]:
    """The flags that a repeated command needs again: those of `values` that were given."""
    words = [word for preset in presets for word in ("--preset", preset)]
    for flag, value in values.items():
        words += [flag] if value is True else [flag, value] if value else []
    return tuple(words)
