"""What `attnlab position` asks and gets: a kind of positions at some sizes, and its portrait.

All of it is plain numbers, so the front needs no torch; `references/position_report.py` computes
them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from attnlab.errors import Refused
from attnlab.records import record
from attnlab.suggest import did_you_mean

Kind = Literal[
    "sinusoidal", "learned", "rope", "alibi", "t5", "xl", "xpos", "2d", "fourier", "number"
]
KINDS: Mapping[str, str] = {
    "sinusoidal": "the table of sines and cosines of the first Transformer",
    "learned": "a trained table, as it is drawn at first",
    "rope": "rotary positions: queries and keys are turned",
    "alibi": "a bias on the scores that falls with distance",
    "t5": "distances gathered in buckets, a learned bias for each",
    "xl": "Transformer-XL: a sinusoid of the distance",
    "xpos": "rotary positions that fade with distance",
    "2d": "a sinusoid for the row and one for the column of a grid",
    "fourier": "sines and cosines of frequencies drawn at random",
    "number": "the position itself, as one column",
}
USES: Mapping[str, tuple[str, ...]] = {  # the sizes that mean something to each
    "sinusoidal": ("dim", "length", "base", "layout"),
    "learned": ("dim", "length"),
    "rope": ("dim", "heads", "length", "base", "layout", "scaling"),
    "alibi": ("heads", "length"),
    "t5": ("length",),
    "xl": ("dim", "length"),
    "xpos": ("dim", "heads", "length", "base"),
    "2d": ("dim", "length", "base"),
    "fourier": ("dim", "length"),
    "number": ("length",),
}
LAYOUTS: Mapping[str, tuple[str, ...]] = {  # the usual one first
    "sinusoidal": ("interleaved", "concatenated"),
    "rope": ("interleaved", "half"),
}
SCALINGS = ("linear", "ntk", "dynamic", "yarn", "llama3")
FACTOR = 4.0  # of a scaling of which no factor is said
SETTINGS = ("dim", "length", "heads", "base", "layout", "scaling", "trained")
OFFSETS = (1, 5, 10, 50)
LONGEST, WIDEST, MOST_HEADS = 5000, 4096, 256
LARGEST = 1 << 22  # entries of a table: 5000 x 512, 1024 x 4096 and what is smaller


DIM, LENGTH, HEADS, BASE = 64, 64, 8, 10000.0  # where nothing is said


@record
class PositionJob:
    kind: Kind
    dim: int = DIM
    length: int = LENGTH
    heads: int = HEADS
    base: float = BASE
    layout: str = ""  # one of LAYOUTS; "" = the usual one
    scaling: str = ""  # one of SCALINGS
    factor: float = 1.0  # of the scaling
    trained: int = 0  # positions seen in training; 0 = not said
    rows: int = 64  # pictures come back with at most so many rows and columns
    columns: int = 128

    @property
    def width(self) -> int:
        """Columns of the table: those of one head where heads are turned one by one."""
        return self.dim // self.heads if _by_head(self) else self.dim

    @property
    def seen(self) -> int:
        """Positions seen in training: half of them where nothing is said, a factor's share where
        frequencies are scaled."""
        return self.trained or max(1, round(self.length / (self.factor if self.scaling else 2)))


@record
class Picture:
    """A matrix, every n-th row and column of it where it is large."""

    title: str
    down: str  # what a row is: "position"
    across: str
    shape: tuple[int, int]  # of the whole matrix
    rows: tuple[int, ...]  # those that are here
    columns: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


@record
class Frequency:
    """One pair of columns, in radians a position and in positions."""

    pair: int
    columns: tuple[int, int]
    frequency: float
    wavelength: float


@record
class Curve:
    """Something that is a function of distance, or nearly."""

    title: str
    count: int  # of distances there are
    distances: tuple[int, ...]  # those that are here
    values: tuple[float, ...]
    spread: float  # how far pairs equally far apart differ at most: 0 = the distance decides


@record
class Statistic:
    id: str
    text: str
    value: float


@record
class Series:
    """One number for each position or column, every n-th where there are many."""

    title: str
    at: tuple[int, ...]
    values: tuple[float, ...]


@record
class Plane:
    """The rows of a table in the two directions in which they differ most (PCA)."""

    points: tuple[tuple[float, float], ...]  # every n-th position, in order
    shares: tuple[float, float]  # of the variance


@record
class RotationTest:
    """Is k positions further one rotation of the whole table? The error is its largest."""

    offset: int
    error: float
    holds: bool


@record
class PositionReport:
    outcome: Literal["ok", "error"] = "ok"
    message: str = ""
    formula: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    frequencies: tuple[Frequency, ...] = ()
    curve: Curve | None = None
    statistics: tuple[Statistic, ...] = ()
    rotation: tuple[RotationTest, ...] = ()
    series: tuple[Series, ...] = ()
    plane: Plane | None = None
    beyond: tuple[Statistic, ...] = ()  # of the positions that training did not show
    notes: tuple[str, ...] = ()


# ---------------------------------------------------------------- asking


def position_job(kind: str, **sizes: str) -> PositionJob:
    """The job that is meant; `Refused` where it makes no sense. `sizes` are texts by the names of
    SETTINGS, "" leaves the default; a scaling is a name with a factor, "yarn:8"."""
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"kinds are {', '.join(KINDS)}"
        raise Refused(f'no kind of positions is called "{kind}"', hint)
    said = dict.fromkeys(SETTINGS, "") | sizes
    name, factor = _scaling(said["scaling"])
    job = PositionJob(
        kind=cast(Kind, kind),
        dim=_whole("--dim", said["dim"], DIM, WIDEST),
        length=_whole("--length", said["length"], LENGTH, LONGEST),
        heads=_whole("--heads", said["heads"], HEADS, MOST_HEADS),
        base=_base(said["base"]),
        layout=_choice("--layout", said["layout"], LAYOUTS.get(kind, (said["layout"],))),
        scaling=name,
        factor=factor,
        trained=_whole("--trained", said["trained"], 1, LONGEST) if said["trained"] else 0,
    )
    if "dim" in USES[kind]:
        _check_width(job)
    if job.trained > job.length:
        raise Refused(
            f"--trained {job.trained}: only {job.length} positions are looked at",
            f"--length {2 * job.trained} goes beyond those of training",
        )
    return job


def position_jobs(kind: str, other: str, **sizes: str) -> tuple[PositionJob, PositionJob]:
    """Two jobs to compare: `other` is a kind, or the same one, with what differs: "base=500000",
    "rope scaling=yarn:4". Sizes that it does not say are those of the first."""
    shared = {name: sizes.get(name, "") for name in ("dim", "length", "heads", "trained")}
    words = other.split()
    theirs = words.pop(0) if words and "=" not in words[0] else kind
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value or name not in SETTINGS:
            hint = did_you_mean(name, SETTINGS) or f"settings are {', '.join(SETTINGS)}"
            raise Refused(f'--vs "{other}": "{word}" is no setting, such as base=500000', hint)
        shared[name] = value
    jobs = position_job(kind, **sizes), position_job(theirs, **shared)
    if jobs[0] == jobs[1]:
        raise Refused(f'--vs "{other}": both are the same', "say what differs: --vs base=500000")
    return jobs


def _scaling(text: str) -> tuple[str, float]:
    if not text:
        return "", 1.0
    name, _, number = text.partition(":")
    _choice("--scaling", name, SCALINGS)
    try:
        factor = float(number or FACTOR)
    except ValueError:
        factor = math.nan
    if not 1 <= factor < math.inf:
        raise Refused(f"--scaling {text}: a factor from 1 on is needed, as in {name}:4")
    return name, factor


def _choice(flag: str, text: str, choices: Sequence[str]) -> str:
    if text and text not in choices:
        hint = did_you_mean(text, choices) or f"it may be {', '.join(choices)}"
        raise Refused(f"{flag} {text}: there is no such thing here", hint)
    return text


def _by_head(job: PositionJob) -> bool:
    return {"dim", "heads"} <= set(USES[job.kind])


def _check_width(job: PositionJob) -> None:
    """Columns come in pairs of sine and cosine; heads and grids share them out first."""
    if _by_head(job) and job.dim % job.heads:
        raise Refused(
            f"--dim {job.dim} is not divisible by --heads {job.heads}",
            f"{job.kind} turns each head, which has dim / heads columns",
        )
    if _by_head(job) and job.width % 2:
        raise Refused(
            f"--dim {job.dim} --heads {job.heads}: a head has {job.width} columns, and {job.kind} "
            "turns pairs of them",
            "dim / heads must be even",
        )
    parts = {"2d": 4, "learned": 1, "number": 1}.get(job.kind, 2)
    if job.dim % parts:
        what = "a multiple of 4: half of it for each axis, in pairs" if parts == 4 else "even"
        raise Refused(
            f"--dim {job.dim}: for {job.kind} the number of columns must be {what}",
            f"try --dim {job.dim + -job.dim % parts}",
        )
    if job.length * job.width > LARGEST:
        raise Refused(
            f"--length {job.length} --dim {job.dim}: a table of more than {LARGEST:,} entries",
            "make one of them smaller",
        )


def _whole(flag: str, text: str, default: int, high: int) -> int:
    try:
        number = int(text or default)
    except ValueError:
        number = 0
    if not 1 <= number <= high:
        raise Refused(f"{flag} {text}: a whole number from 1 to {high} is needed")
    return number


def _base(text: str) -> float:
    try:
        base = float(text or "10000")
    except ValueError:
        base = math.nan
    if not 1 < base < math.inf:
        raise Refused(f"--base {text}: a finite number above 1 is needed", "the paper's is 10000")
    return base
