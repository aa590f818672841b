"""Frozen records that flow from the command line to the judge and back.

The stage that owns a record makes it once and completely; no later stage edits it. Everybody
imports records from here.
"""

from attnlab.records.base import FORMAT, plain, record, to_json
from attnlab.records.check_results import CheckResult, Outcome
from attnlab.records.job import (
    Bug,
    Cache,
    Challenge,
    ChallengeKind,
    ChallengeProgress,
    Code,
    Container,
    Contract,
    Fit,
    GradeOutcome,
    Input,
    Job,
    JobOutcome,
    Limits,
    Position,
    Refusal,
    Report,
    Until,
    UserEnvironment,
    Verdict,
)
from attnlab.records.reading import from_json
from attnlab.records.trace import (
    Attention,
    Backward,
    Crash,
    Finding,
    Guard,
    Head,
    Heat,
    Kernel,
    NextCall,
    Op,
    Operand,
    ParameterGradient,
    Severity,
    Trace,
    TraceOptions,
    Weight,
)
from attnlab.records.training import LiveReport, OneBatch, Promise, TrainingReport
from attnlab.records.triage import Suspicion, Triage
