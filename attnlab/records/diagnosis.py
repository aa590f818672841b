"""What comparing two implementations gives: paired steps, and the lines that are wrong and how."""

from dataclasses import field
from typing import Literal

from attnlab.records.base import record

DiffOutcome = Literal["same", "different", "cannot-compare", "crashed"]


@record
class Diagnosis:
    """A wrong line: what it computes, in words, beside what the reference does."""

    file: str
    line: int
    end_line: int
    source: str
    relation: str  # a kind such as "scale" or "mask-inverted"
    message: str
    confidence: float
    confirmed: bool  # the output is right with the reference's value or the fix, and wrong without
    their_file: str = ""  # what corresponds to it in the reference
    their_line: int = 0
    their_end_line: int = 0
    their_source: str = ""  # a line, or those that it takes in its place
    fix: str = ""  # what makes the output right in place of an expression of the line


@record
class PairedStep:
    """A step of mine beside the one of the reference's that gives the same; "" and 0 where there is
    none. `same` is false where that makes the outputs differ."""

    mine: str = ""  # the operation
    line: int = 0
    shape: tuple[int, ...] = ()
    theirs: str = ""
    their_line: int = 0
    same: bool = True


@record
class DiffReport:
    """How the outputs differ, and why."""

    outcome: DiffOutcome
    part: Literal["output", "gradient", "weights"] = "output"  # that differs
    returned: tuple[int, ...] = ()  # tensors that mine and the reference return, unless each is one
    compared: tuple[int, ...] = ()  # which of them were, counted from 1
    max_error: float = 0.0
    message: str = ""
    hint: str = ""
    steps: tuple[PairedStep, ...] = ()
    diagnosis: tuple[Diagnosis, ...] = ()
    runs: int = 0  # how often mine was run again
    weights: dict[str, str] = field(default_factory=dict)  # mine by the reference's, if renamed
    guessed: bool = False  # the way of the weights, of which nothing proves that it is right
    loaded: str = ""  # from which files, at which sizes
