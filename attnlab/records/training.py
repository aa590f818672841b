"""What a module seems to promise, and what was seen of a script's training."""

from attnlab.records.base import record
from attnlab.records.check_results import CheckResult
from attnlab.records.trace import Finding, Trace


@record
class Promise:
    """A property that a module seems to promise, and what shows it."""

    name: str  # see catalogue/contract_facts.py
    reason: str  # "line 12 masks with a triangle"; "--promise" where the user said it


@record
class LiveReport:
    """What a model seems to promise, and what became of each property on a batch of its own."""

    promises: tuple[Promise, ...] = ()
    checks: tuple[CheckResult, ...] = ()


@record
class OneBatch:
    """One batch that was learned again and again."""

    how: str  # "the script's AdamW, learning rate 0.001"
    steps: int
    losses: tuple[float, ...]  # some of them: the first, ..., the last
    learned: bool  # the loss came close to 0
    falling: bool = False  # it still fell when the time was over
    usual: bool = False  # with settings of ours in place of the script's


@record
class TrainingReport:
    """What was seen of the first optimizer steps of a script."""

    steps: int  # of its optimizers, as many as were watched
    losses: tuple[float, ...] = ()  # those that `backward` was called on
    findings: tuple[Finding, ...] = ()
    properties: tuple[CheckResult, ...] = ()  # of the model, on copies of its own batches
    trace: Trace | None = None  # of one of the steps
    looked_at: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()  # each with the reason
    crash: str = ""  # what ended it: "train.py:31: RuntimeError: ..."
    one_batch: tuple[OneBatch, ...] = ()
    redirected: tuple[str, ...] = ()  # files that were written to a scratch folder instead
