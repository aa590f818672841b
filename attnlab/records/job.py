"""What is asked of a judge, what it answers, and what is practised."""

from dataclasses import field
from typing import Literal

from attnlab.records.ablation import AblationReport
from attnlab.records.base import record
from attnlab.records.check_results import CheckResult
from attnlab.records.cost import CostReport
from attnlab.records.diagnosis import DiffReport
from attnlab.records.patch import Edit, FollowUp
from attnlab.records.trace import Trace, TraceOptions
from attnlab.records.training import Promise, TrainingReport

# ---------------------------------------------------------------- what is asked

JobOutcome = Literal["ok", "crashed", "timeout", "memory", "unreadable", "refused", "error"]
# What ends the checks: the first failure, the first with what explains it, or nothing.
Until = Literal["verdict", "reason", "end"]
ChallengeKind = Literal["debug", "implement", "port", "cheaper"]
Stage = Literal["fit", "trace", "check", "training", "diff", "cost", "ablation"]
GradeOutcome = Literal[
    "passed", "failed", "crashed", "timeout", "memory", "unreadable", "cannot-compare", "error"
]


@record
class Input:
    """One argument of `forward`: `mask: B S S bool forbids optional`."""

    name: str
    axes: tuple[str, ...]  # symbols ("B"), products ("3*D") or numbers ("4")
    dtype: Literal["float", "int", "bool"] = "float"
    role: Literal["data", "mask", "segments", "positions", "lengths"] = "data"
    forbids: bool = True  # masks only: True in the mask means "may not be attended"
    additive: bool = False  # masks only: a float mask, added to the scores, is taken too
    optional: bool = False  # may be None

    @property
    def argument(self) -> str:
        """The argument of forward that it is, or is a part of: `cache` of `cache.0`."""
        return self.name.partition(".")[0]


@record
class Container:
    """An argument of `forward` that holds inputs: of `cache`, with the keys `0` and `1`, the inputs
    `cache.0` and `cache.1`, which may be containers too."""

    name: str
    kind: Literal["tuple", "list", "dict"]
    keys: tuple[str, ...]

    @property
    def argument(self) -> str:
        """The argument of forward that it is, or is a part of."""
        return self.name.partition(".")[0]


@record
class Position:
    """What a module says of positions: where it puts them and what they are."""

    kind: Literal["sinusoidal", "rotary", "alibi", "t5", "learned", "other"] = "sinusoidal"
    # forward gives the table, x + table, x with its vectors turned, or scores + a bias
    form: Literal["returned", "added", "rotated", "bias"] = "returned"
    base: float = 10000.0
    layout: Literal["interleaved", "half", "any"] = "interleaved"  # how columns make pairs
    causal: bool = False  # of a bias: keys after the query are of no interest
    buckets: int = 32  # t5: rows of its table
    distance: int = 128  # t5: from here on all share the last bucket
    grid: tuple[str, ...] = ()  # symbols of rows and columns, where positions form a grid
    beyond: Literal["", "extend", "error"] = ""  # what happens beyond the longest sequence


@record
class Cache:
    """How keys and values are kept from one call to the next."""

    form: Literal["returned", "given", "inner"] = "returned"  # see docs/challenge-format.md
    argument: str = "cache"  # of forward; nothing where the module keeps it itself
    new: str = ""  # the module's method that makes an empty one for (B, length); "" = None
    reset: str = ""  # the module's method that empties its own
    reorder: str = ""  # a method of the cache, or of the module: row b goes on from parents[b]
    most: str = ""  # a symbol: of so many positions it holds keys and values, and of no more
    in_place: bool = False  # its tensors are made in the first call, and later only written to


@record
class Refusal:
    """A call that must be refused: other sizes than the example's, and the exception expected."""

    sizes: dict[str, int]
    error: str = "any"  # an exception's name, or "any"


@record
class Contract:
    """How to build a module, how to feed it and what it promises. Sizes are in elements."""

    sizes: dict[str, int] = field(default_factory=dict)  # the example: B=2, S=4, D=8, H=2
    init: dict[str, str | int | float | bool] = field(default_factory=dict)  # "D" or a value
    defaults: dict[str, int] = field(
        default_factory=dict
    )  # of the last ones of these, where stated
    inputs: tuple[Input, ...] = ()
    containers: tuple[Container, ...] = ()  # of inputs, the outer ones first
    # of forward, what is no tensor: a value, or the symbol of a size
    arguments: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    output: tuple[str, ...] = ()  # axes of the one output tensor; () = anything
    promises: tuple[str, ...] = ()  # see docs/challenge-format.md
    buffers: tuple[str, ...] = ()  # names that must be buffers
    vary: tuple[str, ...] = ("B", "S", "D", "H")  # symbols the judge may draw afresh
    multiples: dict[str, int] = field(default_factory=dict)  # of what drawn sizes are: hd = 2
    extra_sizes: tuple[dict[str, int], ...] = ()  # to grade at as well; the rest as in `sizes`
    refusals: tuple[Refusal, ...] = ()
    position: Position | None = None
    dtypes: tuple[str, ...] = ()  # besides float32
    padding_idx: int | None = None  # the token whose row is zeros and never learns
    tied: tuple[tuple[str, ...], ...] = ()  # names that are one and the same parameter
    state_dict: tuple[str, ...] = ()  # what a checkpoint holds, no more and no less
    forbidden: tuple[str, ...] = ()  # operations, modules ("nn.Linear") and shapes ("S S")
    cache: Cache | None = None
    # by the file's parameters, how each is made of the reference's, where names differ
    weights: dict[str, str] = field(default_factory=dict)
    example_mask: Literal["causal", "random", "none", "empty-rows"] = "causal"


@record
class Code:
    """A source file, read once. `file` is what messages show; `path` where it really lies."""

    file: str
    text: str
    name: str | None = None  # the class or function to build; None = find it
    path: str = ""
    siblings: tuple[tuple[str, str], ...] = ()  # files beside it that it may import, with texts


@record
class UserEnvironment:
    """A user's own target: it runs with their import path and folder, under limits only."""

    cwd: str
    sys_path: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    module: str | None = None  # "package.module" instead of a file
    arguments: tuple[str, ...] = ()  # of a script: what follows its name on the command line


@record
class Limits:
    seconds: float = 10.0  # wall clock, for the whole job
    rings: bool = True  # what still runs shortly before that is ended where it is
    memory: int = 2 << 30  # bytes over what the worker already holds
    output: int = 64 << 10  # bytes kept of stdout and stderr together


@record
class Job:
    """Everything the lab needs to look at one candidate, and nothing it should not know."""

    candidate: Code
    contract: Contract | None = None
    reference: str | Code | None = None  # a unit of references/, or source run in its own child
    stages: tuple[Stage, ...] = ("trace", "check")
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    own: UserEnvironment | None = None
    reference_own: UserEnvironment | None = None  # of a reference that is the user's own code
    reference_names: dict[str, str] = field(default_factory=dict)  # its constructor's, by mine
    reference_init: dict[str, str] | None = None  # its own arguments, where mine's are not its
    reference_says: str = ""  # how it was built and fed, where that was guessed
    checkpoints: tuple[str, str] = ("", "")  # files of the weights of mine, of the reference
    full: bool = False  # also the checks that are made on demand only
    until: Until = "end"
    quick: bool = False  # only the sizes that tell most: to blame, not to pass
    only: tuple[str, ...] = ()  # the checks to make; none named = all
    options: TraceOptions = field(default_factory=TraceOptions)
    at: dict[str, int] = field(default_factory=dict)  # sizes at which costs are counted
    steps: int = 0  # of training, to be watched
    overfit: float = 0.0  # seconds to learn one batch in
    evaluate: tuple[str, ...] = ()  # functions of a script to call after its training
    promised: tuple[str, ...] = ()  # by the user, besides what the module seems to promise
    unpromised: tuple[str, ...] = ()  # what the module does not promise, as the user says
    guessed: tuple[str, ...] = ()  # arguments of forward whose axes the user did not say
    unknown: tuple[str, ...] = ()  # those of them whose source and name do not say them either
    stated: tuple[str, ...] = ()  # symbols whose sizes the user said


# ---------------------------------------------------------------- what was found


@record
class Fit:
    """Inputs, arguments and sizes with which a forward runs to its end, found by trying."""

    inputs: tuple[Input, ...]
    arguments: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


@record
class Report:
    """What the lab says of a job: always, also when the candidate crashed, hung or lied."""

    outcome: JobOutcome
    message: str = ""
    hint: str = ""
    target: str = ""  # what was built: "MultiHeadSelfAttention(embed_dim=8, num_heads=2)"
    trace: Trace | None = None
    promises: tuple[Promise, ...] = ()  # of a module that no contract describes
    checks: tuple[CheckResult, ...] = ()
    training: TrainingReport | None = None
    diff: DiffReport | None = None
    cost: CostReport | None = None
    ablation: AblationReport | None = None
    fit: Fit | None = None
    output: str = ""  # captured stdout and stderr, capped
    isolation: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # isolation layers this machine does not give
    seconds: float = 0.0
    seed: int = 0


# ---------------------------------------------------------------- what is practised


@record
class Bug:
    """One of several bugs of a challenge, known by the checks that pass once it is gone."""

    id: str
    checks: tuple[str, ...]
    weight: int = 1


@record
class Challenge:
    """A file to put right: a folder of `challenges/`, or a bug of a base there.

    Texts are Markdown; `folder` and all below it are paths. The file of a bug is its base's
    solution with `edits` made, and lies nowhere: `catalogue.texts.shipped_text` gives it.
    """

    slug: str  # "attention/too-sharp"
    title: str
    kind: ChallengeKind
    level: int  # 1 (warm-up) to 5
    symptom: str
    task: str
    class_name: str
    contract: Contract
    reference: str  # a unit of references/, or "solution.py"
    expected: tuple[str, ...]  # checks that must be among the failures
    source: str  # where the bug was really seen, or "constructed"
    hints: tuple[str, ...]
    folder: str
    file: str  # buggy.py or starter.py, or NAME.py of a bug
    solution: str
    alternatives: tuple[str, ...]
    mutants: tuple[str, ...]
    notes: str
    bugs: tuple[Bug, ...] = ()  # where the score is to tell several apart
    base: str = ""  # the slug of the base that a bug belongs to
    edits: tuple[Edit, ...] = ()
    decoys: tuple[Edit, ...] = ()  # change the solution as well: it looks wrong and is right
    category: str = ""  # what kind of mistake a bug is, as "mask"
    follow_ups: tuple[FollowUp, ...] = ()  # what an interviewer asks next
    given: tuple[str, ...] = ()  # names of the file's top level that are not to be changed
    then: str = ""  # the challenge that asks for the next thing of the same code

    @property
    def topic(self) -> str:
        return self.slug.partition("/")[0]

    @property
    def name(self) -> str:
        return self.slug.partition("/")[2]


@record
class ChallengeProgress:
    """How far a user is with one challenge."""

    status: Literal["new", "started", "tried", "solved"] = "new"
    hints: int = 0
    revealed: bool = False
    tries: int = 0
    best: float = 0.0  # best score, 0-1
    solution_seen: bool = False
    peeked: bool = False  # the solution was seen before the challenge was solved


@record
class Verdict:
    """The grade of one file: what `attnlab grade --json` prints."""

    challenge: str
    file: str
    outcome: GradeOutcome
    score: float
    checks: tuple[CheckResult, ...]  # what to look at first stands first
    isolation: tuple[str, ...] = ()
    seconds: float = 0.0
    message: str = ""
    next: str = ""
    seed: int = 0
    output: str = ""
