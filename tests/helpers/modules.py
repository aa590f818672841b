"""Modules and helpers for the lab's tests. Texts are candidates as a user would hand them in."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.candidate.host import LocalHost, checked_answer
from attnlab.candidate.session import Session
from attnlab.grading.pipeline import run_job
from attnlab.records import Code, Contract, Input, Job, Limits, Report, Trace, from_json
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace
from attnlab.tracer.capture import raw_trace_of
from attnlab.tracer.raw_trace import RawTrace, crash_of
from attnlab.tracer.recorder import Recorder

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
SIZES = {"B": 2, "S": 4, "D": 8, "H": 2}
X = Input(name="x", axes=("B", "S", "D"))
MASK = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True)
ATTENTION = Contract(
    sizes=SIZES,
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(X, MASK),
    output=("B", "S", "D"),
)
PLAIN = Contract(sizes=SIZES, init={"width": "D"}, inputs=(X,), output=("B", "S", "D"))

# The flagship bug: chunk leaves an axis of 1, the mask then lines up one axis off.
FLAGSHIP = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads, self.hd = num_heads, embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        B, S, _ = x.shape
        qkv = self.qkv_proj(x).reshape(B, S, 3, self.heads, self.hd).permute(0, 2, 3, 1, 4)
        q, k, v = qkv.squeeze(1).chunk(3, dim=1)  # CHUNK
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.hd)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1), float("-inf"))  # FILL
        context = scores.softmax(-1) @ v
        return self.out_proj(context.transpose(1, 2).flatten(2))  # CRASH
"""
)


def module(forward: str, init: str = "", head: str = "self, x", takes: str = "width") -> str:
    """The text of a module `Net`: `forward` and `init` are its bodies, one statement a line."""
    body = "".join(f"        {line}\n" for line in forward.splitlines())
    built = "".join(f"        {line}\n" for line in init.splitlines())
    return (
        f"{HEAD}class Net(nn.Module):\n    def __init__(self, {takes}):\n"
        f"        super().__init__()\n{built}    def forward({head}):\n{body}"
    )


def line_of(text: str, mark: str) -> int:
    """The number of the line with the comment `# MARK`."""
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {mark}"))


def local(limits: Limits, own: bool, deadline: float) -> LocalHost:
    return LocalHost()


def hosted(text: str, contract: Contract = PLAIN, file: str = "net.py") -> LocalHost:
    """A host in this process with the candidate loaded and built at the contract's sizes."""
    from attnlab.sizes import constructor_arguments, with_head_dim

    host = LocalHost()
    checked_answer(host.ask("load", file=file, text=text, path="", own=None))
    init = constructor_arguments(contract.init, with_head_dim(contract.sizes))
    checked_answer(host.ask("build", name="Net", init=init, seed=0))
    return host


def job(text: str, contract: Contract = PLAIN, **more: object) -> Job:
    code = Code(file="net.py", text=text, name="Net")
    return Job(candidate=code, contract=contract, seed=7, **more)  # type: ignore[arg-type]


def inspected(text: str, contract: Contract = PLAIN, **more: object) -> Report:
    return run_job(job(text, contract, **more), local)


def traced(text: str, contract: Contract = PLAIN) -> Trace:
    """What `attnlab trace` shows of a candidate."""
    report = inspected(text, contract, stages=("trace",))
    assert report.trace is not None, report.message
    return report.trace


def recorded(what: object, *inputs: Tensor, root: nn.Module | None = None) -> RawTrace:
    """The raw trace of a call of any callable; an exception ends it as its fall."""
    recorder = Recorder(root if root is not None else what if isinstance(what, nn.Module) else None)
    recorder.name_inputs(list(inputs))
    crash = None
    try:
        with recorder:
            what(*inputs)  # type: ignore[operator]
    except Exception as error:
        crash = crash_of(recorder, error, __file__)
    return raw_trace_of(recorder, [(f"input{i}", t) for i, t in enumerate(inputs)], crash)


def seen(what: object, *inputs: Tensor, root: nn.Module | None = None) -> Trace:
    """The trace of a call of any callable, through JSON as it travels, with findings."""
    from attnlab.records import to_json

    raw = from_json(RawTrace, to_json(recorded(what, *inputs, root=root)))
    return build_trace(SizedTrace(raw, {}), None)


def names(raw: RawTrace | Trace) -> list[str]:
    return [op.op for op in raw.ops]


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def loaded(text, file="net.py"):
    session = Session()
    assert session.ask("load", file=file, text=text, path="", own=None) == {}
    return session


def made(text, name="Net", **init):
    session = loaded(text)
    answer = session.ask("build", name=name, init=init or {"width": 4}, seed=0)
    assert answer == {}, answer
    return session


def called(session, *inputs, verb="call", **more):
    given = [(n, t) for n, t in inputs]
    return session.ask(verb, inputs=given, **more)
