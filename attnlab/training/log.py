"""What was seen of a training run: plain numbers, with the lines where things happened."""

from __future__ import annotations

from attnlab.records.base import record
from attnlab.records.training import OneBatch


@record
class LossCall:
    """A loss function that was called for a gradient."""

    step: int  # the optimizer steps before it
    name: str  # "cross_entropy"
    file: str
    line: int
    shape: tuple[int, ...]
    target_shape: tuple[int, ...] = ()
    value: float | None = None
    classes: int = 0
    reduction: str = "mean"
    probabilities: bool = False  # its scores sum to 1 and none is negative
    log_probabilities: bool = False  # their exponentials sum to 1
    below: bool = False  # a target of kl_div is below 0, where probabilities are taken
    none_positive: bool = False  # as logarithms of probabilities are
    shift: int | None = None  # positions that targets are ahead of the model's input ids
    agreement: float = 0.0  # the share of targets that are the ids at that distance
    fed: bool = False  # the model is given its targets step by step, each where it is asked for
    hides: bool = False  # no target counts where the model's ids are hidden by one id
    late: bool = False  # no target counts at the first positions: they are given
    mixed: bool = False  # its rows hold numbers of several rows of the model's output
    crossed: bool = False  # its targets fit the ids in the order of the other axis
    padding: int | None = None  # the id that fills rows up, where it is among the targets
    padded: float = 0.0  # the share of the targets that it is
    blank: bool = False  # that id is the blank of CTC, and stands before other labels


@record
class BackwardCall:
    step: int
    file: str
    line: int
    value: float | None = None
    kept: bool = False  # the graph was retained


@record
class Step:
    """One step of an optimizer."""

    number: int  # from 1
    optimizer: int
    file: str
    line: int
    events: tuple[str, ...] = ()  # since its last step: backward, clip, zero, schedule, step
    clip_line: int = 0
    cleared: tuple[str, int] = ("", 0)  # where gradients were cleared last
    gradient: float | None = None  # the norm of all gradients; None: there was none
    leftover: bool = False  # gradients of the step before were still in it
    rate: float = 0.0  # the largest learning rate of its groups; NaN of a step without optimizer
    update: float | None = None  # the median of |change| / |weight| over matrices
    decay: float = 0.0  # the largest weight decay of its groups


@record
class OptimizerMade:
    step: int
    kind: str
    file: str
    line: int
    parameters: int
    known: bool = False  # an earlier one had the same parameters
    groups: tuple[tuple[float, int, int], ...] = ()  # decay, matrices, vectors of each group


@record
class Weight:
    """A parameter of the model that was trained."""

    name: str
    shape: tuple[int, ...]
    trainable: bool
    optimized: bool
    received: bool  # a gradient that is not all zero, at some step
    moved: bool
    layer: str = ""  # the kind of module that holds it
    spread: float | None = None  # of a matrix before the first step: std * sqrt(fan_in)


@record
class Model:
    """A module that the script called."""

    kind: str
    file: str
    line: int  # of the call in the script
    learning_calls: int = 0  # with gradients
    other_calls: int = 0  # without
    learned_in_eval: int = 0  # of the first kind, in eval mode
    learned_in_train: int = 0
    evaluated_in_train: int = 0  # of the second kind, in train mode
    evaluation_file: str = ""
    evaluation_line: int = 0
    drops: bool = False  # has dropout or batch statistics that depend on the mode


@record
class Schedule:
    """A learning-rate scheduler that was stepped."""

    kind: str
    file: str
    line: int  # of its step, or where it is made
    moves: int
    horizon: int | None = None  # moves after which it is over, or begins anew
    shared: int = 0  # moves that came with an optimizer step each
    warm_up: int = 0  # moves after which a rate that begins low is near its top
    peak: float = (
        0.0  # the largest factor of a script's function; 0 where it grows on or there are several
    )
    base: float = 0.0  # the rate of the optimizer that it is multiplied with


@record
class Loader:
    """A DataLoader: where it is made, and how often it was gone through from the start."""

    file: str
    line: int
    batches: int
    starts: int
    started: tuple[str, int]  # where it was started last
    shuffles: bool
    shared: float = 0.0  # of its rows, the share that another loader has
    twin: int = 0  # the line where that one is made


@record
class Follower:
    """A copy of the model that no optimizer moves, and how it follows."""

    kind: str  # "copy", its "buffers", "dict", "reference" or "alias"
    share: float  # of the distance to the model that one step takes away


@record
class Evaluation:
    """A function of the script that was called after its steps."""

    name: str
    file: str = ""
    line: int = 0
    kind: str = ""  # of the modules that it called
    calls: int = 0
    in_train: int = 0
    graded: int = 0  # calls that recorded gradients
    drops: bool = False
    left_in_eval: bool = False  # a module that was in train mode before
    changes_weights: bool = False
    rows: int = 0  # different samples
    trained_rows: int = 0  # of them, those that the steps had seen
    shuffled_starts: int = 0  # of one loader that shuffles
    error: str = ""


@record
class BrokenBackward:
    """The first function of a backward pass that took finite gradients and gave others."""

    function: str  # "SqrtBackward0"
    file: str
    line: int


@record
class TrainingLog:
    steps: tuple[Step, ...] = ()
    losses: tuple[LossCall, ...] = ()
    backwards: tuple[BackwardCall, ...] = ()
    optimizers: tuple[OptimizerMade, ...] = ()
    models: tuple[Model, ...] = ()
    weights: tuple[Weight, ...] = ()  # of the largest model
    schedule_steps: int = 0
    schedule_first: tuple[str, int, int] | None = None  # file, line, optimizer steps before it
    schedulers: int = 0
    schedules: tuple[Schedule, ...] = ()
    loaders: tuple[Loader, ...] = ()
    followers: tuple[Follower, ...] = ()
    seeded: tuple[str, int, int] = ("", 0, 0)  # file, line, how often between steps
    source: str = ""  # of the script
    flagged: tuple[str, ...] = ()  # modules with an attribute requires_grad, which nothing reads
    batches: int = 0  # different ones among the learning calls
    kept_graphs: int = 0  # losses of earlier steps that are alive with their graphs
    kept_at: tuple[str, int] = ("", 0)
    broken_step: int = 0  # the first whose loss or gradient is no number; 0 = none
    broken: BrokenBackward | None = None  # where that step's backward pass broke
    evaluations: tuple[Evaluation, ...] = ()
    one_batch: tuple[OneBatch, ...] = ()  # the last one is that of usual settings
    not_seen: tuple[str, ...] = ()
    redirected: tuple[str, ...] = ()
    crash: str = ""
