"""What the user said, and commands that are ready to paste: the same with what was missing."""

from __future__ import annotations

import re
import shlex
from dataclasses import field, replace

from attnlab.catalogue.literals import Scalar
from attnlab.records import Input, record


@record
class TraceCommand:
    """A command line of `attnlab trace`, as far as it says what is traced and how."""

    target: str
    init: str = ""
    sizes: str = ""
    inputs: tuple[str, ...] = ()
    case: str = ""
    tiny: bool = False  # of the sizes: B=1, S=4, D=8, H=2
    rest: tuple[str, ...] = ()  # the other flags, as they were typed

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
        words = ["attnlab", "trace", self.target]
        for flag, said in (("--case", self.case), ("--init", self.init), ("--sizes", self.sizes)):
            words += [flag, said] if said else []
        for said in self.inputs:
            words += ["--input", said]
        return " ".join(map(quote_word, (*words, *self.rest)))


@record
class UserOptions:
    """What the user said, from --case and flags together, and how it was typed."""

    init: dict[str, Scalar]
    sizes: dict[str, int]
    typed: TraceCommand
    inputs: tuple[Input, ...] = ()
    arguments: dict[str, Scalar | None] = field(default_factory=dict)
    given_sizes: frozenset[str] = frozenset()  # sizes that are not from a preset


def input_flag(entry: Input) -> str:
    """`mask: B S S bool forbids`, as --input takes it."""
    words = [*entry.axes, *([entry.dtype] if entry.dtype != "float" else [])]
    if entry.role == "mask":
        words += ["forbids" if entry.forbids else "allows"]
    words += ["additive"] * entry.additive + ["optional"] * entry.optional
    words += [entry.role] if entry.role in ("segments", "positions") else []
    return f"{entry.name}: {' '.join(words)}"


def quote_word(word: str) -> str:
    """For a shell; in double quotes where that is enough, as they are easier to read."""
    if re.fullmatch(r"[\w./:=*+,@%-]+", word):
        return word
    return f'"{word}"' if not re.search(r'["$`\\!]', word) else shlex.quote(word)
