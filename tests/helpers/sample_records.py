"""Fixed records for tests of what is shown: made by hand, so that no test needs torch."""

from __future__ import annotations

from math import prod

from attnlab.records import (
    Challenge,
    ChallengeProgress,
    CheckResult,
    Contract,
    Crash,
    Finding,
    Input,
    Op,
    Operand,
    Report,
    Trace,
    Verdict,
)

FILE = "crash-at-out-proj.py"
NAN, INF = float("nan"), float("inf")


def op(index: int, line: int, name: str, source: str, axes: str, shape: str, **more) -> Op:
    sizes = tuple(int(size) for size in shape.split())
    facts = {
        "file": FILE,
        "dtype": "float32",
        "stride": tuple(prod(sizes[at + 1 :]) for at in range(len(sizes))),
        "view": False,
        "min": -1.2345,
        "max": 3.3939,
        "mean": 0.1,
    }
    return Op(
        index=index,
        line=line,
        op=name,
        source=source,
        axes=tuple(axes.split()),
        shape=sizes,
        **{**facts, **more},
    )


VIEW = {"view": True, "min": None, "max": None, "mean": None}
CHUNK = "query, key, value = qkv.squeeze(1).chunk(3, dim=1)"
MASK = "scores = scores.masked_fill(mask.unsqueeze(1), float('-inf'))"
MERGE = "context = context.transpose(1, 2).flatten(2)"
OPS = (
    op(0, 21, "linear", "qkv = self.qkv_proj(x)", "B S 3*D", "2 4 24", module="qkv_proj"),
    op(1, 22, "reshape", "qkv = qkv.reshape(B, S, 3, H, hd)", "B S 3 H hd", "2 4 3 2 4", **VIEW),
    op(2, 23, "permute", "qkv = qkv.permute(0, 2, 3, 1, 4)", "B 3 H S hd", "2 3 2 4 4", **VIEW),
    op(3, 24, "squeeze", CHUNK, "B 3 H S hd", "2 3 2 4 4", **VIEW),
    op(4, 24, "chunk", CHUNK, "B 1 H S hd", "2 1 2 4 4", **VIEW),
    op(5, 24, "chunk", CHUNK, "B 1 H S hd", "2 1 2 4 4", **VIEW),
    op(6, 24, "chunk", CHUNK, "B 1 H S hd", "2 1 2 4 4", **VIEW),
    op(7, 25, "transpose", "scores = query @ key.transpose(-2, -1) / math.sqrt(hd)",
       "B 1 H hd S", "2 1 2 4 4", **VIEW),
    op(8, 25, "matmul", "scores = query @ key.transpose(-2, -1) / math.sqrt(hd)",
       "B 1 H S S", "2 1 2 4 4"),
    op(9, 25, "div", "scores = query @ key.transpose(-2, -1) / math.sqrt(hd)",
       "B 1 H S S", "2 1 2 4 4", min=-0.6, max=1.7),
    op(10, 27, "unsqueeze", MASK, "B 1 S S", "2 1 4 4", dtype="bool", view=True, min=0.0, max=1.0),
    op(11, 27, "masked_fill", MASK, "B B H S S", "2 2 2 4 4", min=-INF, max=1.7, inf=True),
    op(12, 28, "softmax", "weights = scores.softmax(dim=-1)", "B B H S S", "2 2 2 4 4",
       min=0.0, max=1.0),
    op(13, 29, "matmul", "context = weights @ value", "B B H S hd", "2 2 2 4 4"),
    op(14, 30, "transpose", MERGE, "B H B S hd", "2 2 2 4 4", **VIEW),
    op(15, 30, "flatten", MERGE, "B H 4*D", "2 2 32"),
)  # fmt: skip
FINDINGS = (
    Finding(
        rule="silent-broadcast",
        file=FILE,
        line=27,
        op="masked_fill",
        severity="warning",
        message="the mask (B 1 S S) was broadcast against scores (B 1 H S S): the result has the "
        "batch axis twice, 2x2x2x4x4, and is larger than both operands",
        index=11,
    ),
    Finding(
        rule="size-one-axis",
        file=FILE,
        line=24,
        op="chunk",
        severity="note",
        message="chunk(3, dim=1) left an axis of size 1 in each part (B 1 H S hd)",
        index=4,
    ),
)
CRASH = Crash(
    op="linear",
    file=FILE,
    line=31,
    operands=(
        Operand(shape=(2, 2, 32), axes=("B", "H", "4*D")),
        Operand(shape=(8, 8), axes=("D", "D")),
    ),
    message="mat1 and mat2 shapes cannot be multiplied (4x32 and 8x8)",
    explanation="The last axis of operand 1 has 32 elements, the weight wants 8.",
    source="return self.norm(self.out_proj(context)) + x",
    error="RuntimeError",
    module="out_proj",
)
TRACE = Trace(ops=OPS, findings=FINDINGS, crash=CRASH)
BUILT = "MultiHeadSelfAttention(embed_dim=8, num_heads=2)"


def check(id_: str, outcome: str, message: str = "", **more) -> CheckResult:
    return CheckResult(id=id_, title=TITLES[id_], outcome=outcome, message=message, **more)


TITLES = {
    "output-shape": "the output has the shape of its contract",
    "matches-reference": "the output equals the reference's, with the same weights",
    "causality": "later inputs do not change earlier outputs",
    "finite": "every output is finite",
    "masked-keys-ignored": "masked keys change nothing",
    "fully-masked-row": "a row that may attend to nothing gets zeros",
}
CHECKS = (
    check(
        "output-shape",
        "failed",
        "the call raised RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x32 and 8x8)",
        file=FILE,
        line=31,
        advice="Find the first row of attnlab trace whose shape you did not expect.",
        sizes={"B": 2, "S": 4, "D": 8, "H": 2},
    ),
    check(
        "matches-reference", "failed", "the call raised RuntimeError", folded_under="output-shape"
    ),
    check("causality", "failed", "the call raised RuntimeError", folded_under="output-shape"),
    check(
        "masked-keys-ignored", "error", "the weights could not be copied in", reason="no-weights"
    ),
    check("finite", "passed"),
    check("fully-masked-row", "skipped", "fully masked rows are not part of its contract"),
)
NEXT = "attnlab hint crash-at-out-proj"
VERDICT = Verdict(
    challenge="attention/crash-at-out-proj",
    file="./" + FILE,
    outcome="crashed",
    score=1 / 5,
    checks=CHECKS,
    seconds=0.084,
    message="RuntimeError at line 31",
    next=NEXT,
    seed=7,
)
FAILED = Verdict(
    challenge="attention/too-sharp",
    file="./too-sharp.py",
    outcome="failed",
    score=0.8,
    checks=(
        check(
            "matches-reference",
            "failed",
            "the largest difference is 0.43, at output[0, 2, 5]; rounding explains at most 1e-05",
            file="too-sharp.py",
            line=27,
            advice="Compare attnlab trace of your file with the formula, from the scores on.",
            sizes={"B": 3, "S": 7, "D": 30, "H": 6},
        ),
        check("causality", "passed"),
        check("finite", "passed"),
        check("masked-keys-ignored", "passed"),
        check("output-shape", "passed"),
    ),
    next="attnlab hint too-sharp",
    output="scores torch.Size([3, 6, 7, 7])\n",
)
PASSED = Verdict(
    challenge="attention/too-sharp",
    file="./too-sharp.py",
    outcome="passed",
    score=1.0,
    checks=tuple(check(name, "passed") for name in TITLES),
    next="attnlab explain too-sharp tells why it matters",
)
REPORT = Report(outcome="crashed", target=BUILT, trace=TRACE, checks=CHECKS, seed=7, seconds=0.084)

CONTRACT = Contract(
    sizes={"B": 2, "S": 4, "D": 8, "H": 2},
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(
        Input(name="x", axes=("B", "S", "D")),
        Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True),
    ),
    output=("B", "S", "D"),
)
TASK = """
Multi-head self-attention with a fused projection, `MultiHeadSelfAttention(embed_dim, num_heads)`.

* `forward(x, mask)` takes `x` (B, S, D) and an optional boolean `mask` (B, S, S);
* **True means "may not be attended"**;
* it returns `norm(out_proj(attention)) + x`.
"""


def challenge(slug: str, title: str, level: int = 1, kind: str = "debug") -> Challenge:
    return Challenge(
        slug=slug,
        title=title,
        kind=kind,
        level=level,
        symptom="The forward pass dies in `out_proj`, which looks perfectly right.",
        task=TASK,
        class_name="MultiHeadSelfAttention",
        contract=CONTRACT,
        reference="MultiHeadSelfAttention",
        expected=("output-shape",),
        source="constructed",
        hints=("Look at the shapes.", "Look at the `chunk`.", "What does squeeze do to a 3?"),
        folder="",
        file="buggy.py",
        solution="solution.py",
        alternatives=(),
        mutants=(),
        notes="## Why it is wrong\nBecause.\n",
    )


FLAGSHIP = challenge("attention/crash-at-out-proj", "It crashes at the output projection")
SHARP = challenge("attention/too-sharp", "Attention that is too sure of itself", 2)
NEW, STARTED = ChallengeProgress(), ChallengeProgress(status="started")
LISTED = (
    (FLAGSHIP, ChallengeProgress(status="solved", hints=2, tries=3, best=1.0)),
    (challenge("attention/fine-until-you-look", "Fine until you look at it closely", 3), NEW),
    (SHARP, ChallengeProgress(status="tried", tries=2, best=0.8)),
    (challenge("attention/peeks-ahead", "A model that knows the future", 2), STARTED),
    (challenge("position/beats-out-of-step", "Two waves that drift apart", 2), NEW),
    (
        challenge("position/sinusoidal-from-scratch", "Sinusoids from scratch", 2, "implement"),
        NEW,
    ),
)
