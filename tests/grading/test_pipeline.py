"""The whole pipeline over hand-written candidates: a report, whatever they do."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from modules import ATTENTION, FLAGSHIP, HEAD, PLAIN, inspected, job, local, module

from attnlab.candidate.host import Died, LocalHost
from attnlab.candidate.registry import VERBS, load_verbs
from attnlab.checks.base import load_checks
from attnlab.grading.pipeline import run_job
from attnlab.probe import pacing
from attnlab.probe.reference import BadReference, ReferenceCache
from attnlab.records import Code, UserEnvironment

GOOD = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        q, k, v = self.qkv_proj(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        allowed = None if mask is None else ~mask[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.norm(self.out_proj(y.transpose(1, 2).flatten(2))) + x
"""
)
A1 = "MultiHeadSelfAttention"


def graded(text, contract=ATTENTION, reference=A1):
    return inspected(text, contract, reference=reference, stages=("check",))


def failed(report):
    return [c for c in report.checks if c.outcome == "failed"]


def test_a_good_candidate_passes_every_check_that_applies():
    """Nothing failed, nothing in error, and values were compared."""
    report = graded(GOOD)
    assert report.outcome == "ok"
    assert {c.outcome for c in report.checks} == {"passed", "skipped"}
    outcome = {c.id: c.outcome for c in report.checks}
    assert outcome["matches-reference"] == outcome["masked-keys-ignored"] == "passed"
    assert len(report.checks) == len(load_checks())


def test_a_report_says_what_was_built_and_how():
    """Target, seed, seconds and the isolation of its host."""
    report = inspected(GOOD, ATTENTION)
    assert report.target == "Net(embed_dim=8, num_heads=2)"
    assert (report.seed, report.trace is not None) == (7, True)
    assert report.seconds > 0
    assert report.missing == LocalHost.missing


def test_the_same_seed_gives_the_same_report():
    """Seeds are drawn when none is given, and told."""
    first, again = (replace(graded(FLAGSHIP), seconds=0) for _ in range(2))
    assert first == again
    assert run_job(replace(job(GOOD, ATTENTION), seed=None, stages=()), local).seed >= 0


def test_the_stages_that_are_asked_for_run():
    """Trace only, checks only, both, none."""
    for stages in ((), ("trace",), ("check",), ("trace", "check")):
        report = run_job(job(GOOD, ATTENTION, stages=stages), local)
        assert (report.trace is not None) == ("trace" in stages)
        assert bool(report.checks) == ("check" in stages)


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("attn_mask=allowed)", "attn_mask=allowed, scale=1.0)", "matches-reference"),
        ("~mask[:, None]", "mask[:, None]", "causality"),
        ("attn_mask=allowed", "attn_mask=None", "causality"),
        ("y.transpose(1, 2).flatten(2)", "y.reshape(x.shape)", "causality"),
        (" + x", "", "matches-reference"),
        (" + x", " + x.mean(0)", "batch-independence"),
        ("        return", "        x += 1\n        return", "input-unchanged"),
        (" + x", " + torch.rand_like(x)", "no-hidden-state"),
        (" + x", " + x / 0", "finite"),
        (" + x", "[:, 0]", "output-shape"),
    ],
)
def test_each_bug_is_met_by_its_check_first(old, new, check):
    """The failure that stands first is the property that the bug breaks."""
    assert GOOD.count(old) == 1
    assert failed(graded(GOOD.replace(old, new)))[0].id == check


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (
            "(x, mask)",
            "forward returned a tuple with a float32 tensor of shape (2, 4, 8) and a bool",
        ),
        ("[x]", "forward returned a list with a float32 tensor of shape (2, 4, 8), not"),
        ("None", "forward returned None, not one plain tensor"),
        ("{'x': x}", "forward returned a dict with 'x', not one plain tensor"),
        ("torch.complex(x, x)", "forward returned a complex64 tensor of shape"),
        ("x.to_sparse()", "forward returned a float32 sparse_coo tensor"),
        ("x.to('meta')", "forward returned a float32 tensor of shape (2, 4, 8) on the meta device"),
        ("x > 0", "the output is torch.bool, expected floating point"),
        ("x.long()", "the output is torch.int64, expected floating point"),
        ("x.sum()", "the output is () at B=2"),
        ("x[:0]", "the output is (0, 4, 8) at B=2"),
    ],
)
def test_an_output_of_another_kind_fails_and_never_passes(returned, says):
    """output-shape fails with the kind; what rests on an output is not looked at."""
    text = module(f"return {returned}", head="self, x, mask=None", takes="embed_dim, num_heads")
    report = graded(text)
    first = failed(report)[0]
    assert (report.outcome, first.id) == ("ok", "output-shape")
    assert first.message.startswith(says)
    assert not [c for c in report.checks if c.outcome == "passed" and c.id == "matches-reference"]
    assert not [c for c in report.checks if c.reason == "internal"]


def test_a_subclass_of_tensor_is_no_answer():
    """It may say anything of itself, so it is refused in a sentence of its own, right or lying."""
    sub = "class Sub(torch.Tensor):\n    pass\n\n"
    lies = "class Sub(torch.Tensor):\n    def __sub__(self, o): return self * 0\n    def abs(self):"
    lies += " return self * 0\n\n"
    right = GOOD.replace(" + x\n", " + x).as_subclass(Sub)\n").replace(
        "self.norm(self", "(self.norm(self"
    )
    wrong = right.replace("attn_mask=allowed)", "attn_mask=allowed, scale=9.0)")
    first = failed(graded(right.replace("class Net", sub + "class Net")))[0]
    assert (first.id, first.reason) == ("output-shape", "odd")
    assert "Sub" in first.message
    assert failed(graded(wrong.replace("class Net", lies + "class Net")))


@pytest.mark.parametrize("text", ["raise ValueError('no')", "import sys; sys.exit()", "1 / 0"])
def test_a_file_that_cannot_be_loaded(text):
    """Crashed, with the line; nothing was checked."""
    report = inspected(text, ATTENTION)
    assert (report.outcome, report.checks, report.trace) == ("crashed", (), None)
    assert report.message.startswith("net.py:1: importing net.py raised ")


def test_a_crash_in_the_constructor():
    """The first check fails with the exception and its line, the others follow from it."""
    report = graded(GOOD.replace("self.h = num_heads", "self.h = num_heads / 0"))
    first, *others = failed(report)
    assert (first.id, first.line, first.reason) == ("output-shape", 9, "crashed")
    assert first.message.startswith("building the module raised ZeroDivisionError")
    assert all(c.folded_under == "output-shape" for c in others)
    traced = inspected(GOOD.replace("self.h = num_heads", "self.h = num_heads / 0"), ATTENTION)
    assert traced.outcome == "crashed"


def test_a_crash_in_forward():
    """The trace ends at it; the first check fails with it."""
    report = inspected(FLAGSHIP, ATTENTION, reference=A1)
    assert (report.outcome, report.trace.crash.op) == ("ok", "linear")
    assert failed(report)[0].id == "output-shape"
    assert "mat1 and mat2 shapes cannot be multiplied (4x32 and 8x8)" in failed(report)[0].message


@pytest.mark.parametrize("raises", ["SystemExit(0)", "KeyboardInterrupt", "MemoryError"])
def test_a_candidate_that_leaves(raises):
    """exit(0) in forward passes nothing; a MemoryError is told as such."""
    text = module(f"raise {raises}", head="self, x, mask=None", takes="embed_dim, num_heads")
    report = graded(text)
    assert not [c for c in report.checks if c.outcome == "passed"]
    assert failed(report)[0].reason == ("memory" if raises == "MemoryError" else "crashed")


@pytest.mark.parametrize(
    ("old", "new", "others"),
    [
        ("self.out_proj = nn.Linear(embed_dim, embed_dim)", "self.out_proj = nn.Identity()", []),
        (
            "self.h = num_heads",
            "self.h = num_heads\n        self.more = nn.Linear(2, 2)",
            ["gradients-match"],
        ),
    ],
)
def test_other_parameters_cannot_be_compared(old, new, others):
    """An error with the reason no-weights; what fails beside it rests on no reference."""
    report = graded(GOOD.replace(old, new))
    result = next(c for c in report.checks if c.id == "matches-reference")
    assert (result.outcome, result.reason) == ("error", "no-weights")
    assert [c.id for c in failed(report)] == others


def test_other_names_of_parameters_are_found_out():
    """A right module passes under names of its own, once its map of the weights is proven."""
    report = graded(GOOD.replace("out_proj", "projection"))
    assert not failed(report)
    assert "matches-reference" in [c.id for c in report.checks if c.outcome == "passed"]


def test_a_missing_class_and_a_missing_keyword():
    """Both are the candidate's exceptions, told by name."""
    assert "net.py defines no Net" in inspected("x = 1", ATTENTION).message
    report = inspected(GOOD.replace("num_heads):", "heads):"), ATTENTION)
    assert "unexpected keyword argument 'num_heads'" in report.message
    assert report.outcome == "crashed"


def test_nobody_said_how_to_build_a_users_own_module(monkeypatch):
    """A constructor with more arguments than were given is refused with the flag to use."""
    own = UserEnvironment(cwd=".")
    asked = job(module("return x", takes="width, depth"), PLAIN, stages=("trace",))
    host, load = LocalHost(), load_verbs()["load"]
    # Without moving this process into the user's surroundings.
    monkeypatch.setitem(VERBS, "load", lambda s, **args: load(s, **{**args, "own": None}))
    report = run_job(replace(asked, own=own), lambda limits, own, deadline: host)
    assert (report.outcome, "--init" in report.hint) == ("refused", True)


def test_a_reference_that_is_a_file_runs_in_a_host_of_its_own():
    """The solution and the candidate never share a module."""
    hosts = []

    def spawn(limits, own, deadline):
        hosts.append(LocalHost())
        return hosts[-1]

    solution = Code(file="solution.py", text=GOOD, name="Net")
    report = run_job(job(GOOD, ATTENTION, reference=solution, stages=("check",)), spawn)
    assert not failed(report)
    assert len(hosts) == 2
    assert hosts[0].session.module is not hosts[1].session.module


class Dying(LocalHost):
    """A host that dies at the n-th question, in a given way."""

    printed = "last words\n"

    def __init__(self, death, at):
        super().__init__()
        self.death, self.at, self.asked, self.closed = death, at, 0, False

    def ask(self, verb, **args):
        self.asked += 1
        if self.asked >= self.at:
            raise self.death
        return super().ask(verb, **args)

    def close(self):
        self.closed = True


def test_a_solution_that_does_not_load_leaves_no_process():
    """It is a fault of the challenge; its host is closed like any other."""
    hosts = []

    def spawn(limits, own, deadline):
        hosts.append(Dying(Died("crashed", "is gone"), at=99))
        return hosts[-1]

    broken = Code(file="solution.py", text="1 / 0", name="Net")
    with pytest.raises(BadReference):
        run_job(job(GOOD, ATTENTION, reference=broken, stages=("check",)), spawn)
    assert [host.closed for host in hosts] == [True, True]


def test_a_solution_that_died_on_the_shelf_is_started_again():
    """What one candidate does to it is no matter of the next one."""
    hosts, references = [], ReferenceCache()

    def spawn(limits, own, deadline):
        hosts.append(Dying(Died("crashed", "is gone"), at=9999))
        return hosts[-1]

    solution = Code(file="solution.py", text=GOOD, name="Net")
    asked = job(GOOD, ATTENTION, reference=solution, stages=("check",))
    assert not failed(run_job(asked, spawn, references))
    references.held[0].host.at = 0
    assert not failed(run_job(asked, spawn, references))
    assert len(hosts) == 4


@pytest.mark.parametrize("reason", ["timeout", "memory", "crashed"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_process_that_dies_at_any_step_gives_a_report(reason, at):
    """Load, build, trace, second look, checks: a report each time, every host closed, and no
    pass but what a fresh process could still show."""
    hosts = []

    def spawn(limits, own, deadline):
        hosts.append(Dying(Died(reason, "is gone"), at))
        return hosts[-1]

    report = run_job(job(GOOD, ATTENTION, reference=A1), spawn)
    assert all(h.closed for h in hosts)
    assert report.output.startswith("last words")
    assert {c.reason for c in report.checks if c.outcome == "failed"} <= {reason}
    assert not [c for c in report.checks if c.outcome == "passed" and c.id != "matches-reference"]
    if at <= 3:  # before the example could be shown
        assert (report.outcome, report.message) == (reason, "net.py is gone")
    else:
        assert report.trace is not None


def test_hosts_are_closed_when_we_fail_ourselves(monkeypatch):
    """An exception of our own leaves no process behind."""
    host = Dying(RuntimeError("ours"), 2)
    with pytest.raises(RuntimeError, match="ours"):
        run_job(job(GOOD, ATTENTION), lambda limits, own, deadline: host)
    assert host.closed


def test_a_solution_that_serves_many_jobs_has_no_alarm():
    """It would ring in a job that is long after the first one."""
    limits = []

    def spawn(given, own, deadline):
        limits.append(given)
        return LocalHost()

    solution = Code(file="solution.py", text=GOOD, name="Net")
    asked = job(GOOD, ATTENTION, reference=solution, stages=("check",), until="verdict")
    run_job(asked, spawn, ReferenceCache())
    assert [given.rings for given in limits] == [True, False]


def test_a_right_file_that_is_slow_fails_no_check(monkeypatch):
    """Each call takes 0.3 s: the report says so, and which time to give it."""
    clock = [0.0]
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Slow(LocalHost):
        def ask(self, verb, **args):
            answer = super().ask(verb, **args)
            calls = pacing.calls_in(args.get("inputs") or [])
            clock[0] += 0.3 * len(calls)
            if clock[0] > 10:
                raise Died("timeout", "did not answer in time")
            return answer

    hosts = iter([Slow(), LocalHost(), LocalHost()])
    asked = job(GOOD, ATTENTION, reference=A1, stages=("check",))
    report = run_job(asked, lambda *_: next(hosts))
    assert report.outcome == "timeout"
    assert "too slow to be graded in 10 seconds: a call takes about 0.3 s" in report.message
    assert report.hint.endswith("--timeout 75")
    assert {c.outcome for c in report.checks} <= {"passed", "skipped"}


def test_a_crash_is_told_with_the_sizes_of_its_call():
    """A check may call with fewer positions than its round has."""
    text = GOOD.replace("return", "assert x.shape[1] != 1\n        return", 1)
    asked = job(text, ATTENTION, reference=A1, stages=("check",))
    crashed = [c for c in run_job(asked, local).checks if c.reason == "crashed"]
    assert crashed
    assert {c.sizes["S"] for c in crashed} == {1}
