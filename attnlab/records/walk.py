"""A module line by line: what each line does, to which axes, and why it is there."""

from dataclasses import field

from attnlab.records.base import record


@record
class WalkRow:
    """One operation of a line."""

    op: str
    took: tuple[tuple[str, ...], ...]  # axes of the tensors that it used
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    view: bool  # it shares memory with an operand
    does: str = ""  # the first time that a line does it
    flops: int = 0
    bytes: int = 0  # that it wrote


@record
class WalkStep:
    """A line of the code, the first time that it ran."""

    file: str
    line: int
    source: str
    rows: tuple[WalkRow, ...]
    times: int = 1  # that it ran
    why: dict[str, str] = field(default_factory=dict)  # by what it is known as: "scale", "mask"
    without: tuple[str, ...] = ()  # what became of a call with parts of the line switched off
    module: str = ""
