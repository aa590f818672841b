"""What parts of a module do: the same call again with one of them switched off."""

from typing import Literal

from attnlab.records.base import record

PartKind = Literal[
    "mask", "positions", "norm", "residual", "branch", "dropout", "head", "block", "module"
]


@record
class Ablation:
    """One part that was switched off, and what that changed."""

    kind: PartKind
    what: str  # "head 2", "blocks.1", "masked_fill"
    file: str = ""
    line: int = 0
    times: int = 1  # operations that were switched off together
    change: float | None = 0.0  # RMS of the change, in RMS of the output; None where it raised
    loss: float | None = None  # with the part switched off
    broke: tuple[str, ...] = ()  # "causality", "order", "finite"; what held before
    message: str = ""
    is_finding: bool = False  # whether `message` says what seems wrong


@record
class AblationReport:
    """What each part does, on one batch in eval mode; dropout in train mode."""

    parts: tuple[Ablation, ...] = ()  # those that change most first
    causal: bool | None = None  # whether it is with nothing switched off; None = cannot be told
    ordered: bool | None = None  # whether the order of positions matters
    loss: float | None = None
    notes: tuple[str, ...] = ()
