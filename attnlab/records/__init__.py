"""Frozen records that flow from the command line to the judge and back.

The stage that owns a record makes it once and completely; no later stage edits it. Everybody
imports records from here.
"""

from attnlab.records.base import FORMAT as FORMAT
from attnlab.records.base import from_json as from_json
from attnlab.records.base import plain as plain
from attnlab.records.base import record as record
from attnlab.records.base import to_json as to_json
from attnlab.records.job import Bug as Bug
from attnlab.records.job import Cache as Cache
from attnlab.records.job import Challenge as Challenge
from attnlab.records.job import ChallengeProgress as ChallengeProgress
from attnlab.records.job import CheckResult as CheckResult
from attnlab.records.job import Code as Code
from attnlab.records.job import Contract as Contract
from attnlab.records.job import Divergence as Divergence
from attnlab.records.job import GradeOutcome as GradeOutcome
from attnlab.records.job import Input as Input
from attnlab.records.job import Job as Job
from attnlab.records.job import JobOutcome as JobOutcome
from attnlab.records.job import Limits as Limits
from attnlab.records.job import Outcome as Outcome
from attnlab.records.job import Position as Position
from attnlab.records.job import Refusal as Refusal
from attnlab.records.job import Report as Report
from attnlab.records.job import Until as Until
from attnlab.records.job import UserEnvironment as UserEnvironment
from attnlab.records.job import Verdict as Verdict
from attnlab.records.trace import Attention as Attention
from attnlab.records.trace import Backward as Backward
from attnlab.records.trace import Crash as Crash
from attnlab.records.trace import Finding as Finding
from attnlab.records.trace import Guard as Guard
from attnlab.records.trace import Head as Head
from attnlab.records.trace import Heat as Heat
from attnlab.records.trace import Kernel as Kernel
from attnlab.records.trace import Op as Op
from attnlab.records.trace import Operand as Operand
from attnlab.records.trace import ParameterGradient as ParameterGradient
from attnlab.records.trace import Severity as Severity
from attnlab.records.trace import Trace as Trace
from attnlab.records.trace import TraceOptions as TraceOptions
