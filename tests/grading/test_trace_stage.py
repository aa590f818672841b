"""The trace stage: the example, a second look at telling sizes, and hosts that lie or die."""

import os
from dataclasses import replace

import pytest
from modules import ATTENTION, FLAGSHIP, PLAIN, X, hosted, job, module, traced

from attnlab.candidate.host import Died, LocalHost
from attnlab.grading.trace_stage import trace_example
from attnlab.records import Code, Contract, Job, TraceOptions, UserEnvironment

LAYER = "self.proj = nn.Linear(width, width)"
GOOD = module("return self.proj(x)", LAYER)


class Broken(LocalHost):
    """A host whose answers to `trace` are replaced, from the given turn on."""

    def __init__(self, text, answer, turn=1):
        super().__init__()
        self.session = hosted(text).session
        self.answer, self.turn, self.turns = answer, turn, 0

    def ask(self, verb, **args):
        self.turns += verb == "trace"
        if verb != "trace" or self.turns < self.turn:
            return super().ask(verb, **args)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_example_is_the_same_every_time():
    """A puzzle must not change while one looks at it, nor with the job's seed."""
    first = trace_example(job(FLAGSHIP, ATTENTION), hosted(FLAGSHIP, ATTENTION))
    other = trace_example(replace(job(FLAGSHIP, ATTENTION), seed=99), hosted(FLAGSHIP, ATTENTION))
    assert first == other


@pytest.mark.parametrize(
    ("mask", "rows"),
    [("causal", 1), ("random", 1), ("none", 0), ("empty-rows", 1)],
)
def test_the_example_has_the_mask_of_the_contract(mask, rows):
    """The contract says which mask `run` shows; none leaves the optional argument out."""
    text = module("return x if mask is None else x * mask.any()", head="self, x, mask=None")
    contract = replace(ATTENTION, init={"width": "D"}, example_mask=mask)
    assert len(traced(text, contract).ops) == 2 * rows


def test_numbers_are_those_of_the_example():
    """The second look gives names, never values: shapes and ranges are the example's."""
    trace = traced(module("return x.new_ones(x.shape) * x.shape[1]"))
    assert [(op.shape, op.axes, op.max) for op in trace.ops] == [
        ((2, 4, 8), ("B", "S", "D"), 1.0),
        ((2, 4, 8), ("B", "S", "D"), 4.0),
    ]


def test_a_module_that_is_bound_to_its_sizes_has_one_look():
    """Literal sizes in the constructor: at others it would crash for no fault of its own."""
    contract = Contract(sizes={"B": 2, "S": 3}, init={"width": 4}, inputs=(X,))
    contract = replace(contract, sizes={**contract.sizes, "D": 4})
    trace = traced(GOOD, contract)
    assert (trace.findings, trace.ops[0].axes) == ((), ("B", "S", "D"))


def test_a_second_look_that_raises_is_left_out():
    """A constructor that refuses the other sizes costs names, not the trace."""
    trace = traced(module("return self.proj(x)", "assert width == 8\n" + LAYER))
    assert (trace.crash, len(trace.ops)) == (None, 1)


def test_a_table_that_is_long_enough_is_no_coincidence():
    """Sequences beyond a table's length raise by right: the example is not bound to its sizes."""
    init = LAYER + "\nself.register_buffer('pe', torch.ones(1, 9, width))"
    assert traced(module("return self.proj(x) + self.pe[:, :x.shape[1]]", init)).findings == ()


@pytest.mark.parametrize("sizes", [{"B": 2, "S": 8, "D": 8}, {"B": 3, "S": 3, "D": 4}])
def test_a_coincidence_is_confirmed_at_smaller_sizes(sizes):
    """S = D, or B = S: what breaks at any other length was bound to this one."""
    contract = Contract(sizes=sizes, init={"width": "D"}, inputs=(X,))
    forward = "return self.proj(x.mT)" if sizes["S"] == 8 else "return x + x.transpose(0, 1)"
    (finding,) = traced(module(forward, LAYER), contract).findings
    assert (finding.rule, finding.severity) == ("size-coincidence", "warning")
    assert "(at B=11, S=13" in finding.message


def test_a_refusal_in_python_is_no_coincidence():
    """A ValueError of the module's own for other sizes is its right."""
    forward = "if x.shape[0] > 2: raise ValueError('two at most')\nreturn self.proj(x)"
    assert traced(module(forward, LAYER)).findings == ()


def test_notes_say_what_is_not_shown(monkeypatch):
    """A trace that was cut says so."""
    monkeypatch.setattr("attnlab.tracer.recorder.MAX_ROWS", 3)
    trace = traced(module("for _ in range(9): x = x + 1\nreturn x"))
    assert (len(trace.ops), len(trace.notes)) == (3, 1)


# ---------------------------------------------------------------- hosts that lie or die


ROW = (
    '{"index": 0, "op": "add", "line": 1, "file": "", "source": "", "shape": [2], "axes": ["2"], '
    '"dtype": "float32", "stride": [1], "view": false, "parents": [%s]}'
)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"trace": None},
        {"trace": "no json"},
        {"trace": '{"ops": 3}'},
        {"trace": '{"ops": [%s], "operands": [[]]}' % (ROW % "0")},
        {"trace": '{"ops": [%s], "operands": [[]]}' % (ROW % "7")},
        {"trace": '{"ops": [%s], "operands": []}' % (ROW % "")},
        {"trace": '{"crash": {"op": "add"}}'},
        {"trace": '{"measured": [{"row": 3}]}'},
        {"trace": '{"backward": {"origin": 5}}'},
    ],
)
def test_a_forged_trace_ends_the_candidate_and_not_the_judge(answer):
    """An answer that is no sound trace counts as a broken process."""
    with pytest.raises(Died) as caught:
        trace_example(job(GOOD), Broken(GOOD, answer))
    assert caught.value.reason == "crashed"


def test_a_host_that_dies_at_the_second_look_keeps_the_first():
    """The example ran: its trace stands, and a fresh process is there for what follows."""
    renewed = []
    host = Broken(GOOD, Died("memory", "ran out of memory"), turn=2)
    trace = trace_example(job(GOOD), host, lambda: renewed.append(1))
    assert ([op.op for op in trace.ops], renewed) == (["linear"], [1])


def test_after_a_timeout_nothing_is_renewed():
    """The deadline has passed for a fresh process too."""
    renewed = []
    host = Broken(GOOD, Died("timeout", "did not answer in time"), turn=2)
    trace = trace_example(job(GOOD), host, lambda: renewed.append(1))
    assert (len(trace.ops), renewed) == (1, [])


# ---------------------------------------------------------------- a file's own demo


def test_without_a_contract_the_files_demo_is_traced(monkeypatch, tmp_path):
    """The demo builds and feeds; its inputs are named by what they are called."""
    text = (
        "import torch\nfrom torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.p = nn.Linear(4, 1)\n"
        "    def forward(self, x, target):\n"
        "        return self.p(x).mean(1) - target\n"
        'if __name__ == "__main__":\n'
        "    print(Net()(torch.ones(3, 5, 4), target=torch.ones(3)))\n"
    )
    monkeypatch.setattr("sys.modules", {**__import__("sys").modules})
    monkeypatch.setattr("sys.argv", ["x"])
    monkeypatch.chdir(tmp_path)
    own = UserEnvironment(cwd=str(tmp_path), env=dict(os.environ))
    asked = Job(candidate=Code(file="demo.py", text=text), own=own, stages=("trace",))
    trace = trace_example(asked, LocalHost())
    assert [(op.op, op.axes) for op in trace.ops] == [
        ("linear", ("B", "S", "1")),
        ("mean", ("B", "1")),
        ("sub", ("B", "3")),
    ]
    assert (trace.crash, trace.ops[0].module) == (None, "p")


def test_a_demo_says_what_it_cannot_be_asked(monkeypatch, tmp_path):
    """It makes its own inputs and runs once: other inputs, further calls are not for it."""
    text = "import torch\ntorch.nn.Linear(4, 1)(torch.ones(3, 4))\n"
    monkeypatch.setattr("sys.modules", {**__import__("sys").modules})
    monkeypatch.setattr("sys.argv", ["x"])
    monkeypatch.chdir(tmp_path)
    own = UserEnvironment(cwd=str(tmp_path), env=dict(os.environ))
    asked = Job(
        candidate=Code(file="demo.py", text=text),
        own=own,
        stages=("trace",),
        options=TraceOptions(calls=2, fill="ones"),
    )
    notes = trace_example(asked, LocalHost()).notes
    assert [note.partition(":")[0] for note in notes[-2:]] == [
        "a demo runs once",
        "a demo makes its own inputs",
    ]


def test_a_job_without_a_reference_or_limits_can_be_looked_at():
    """What `attnlab trace` asks for: a candidate, how to build it, how to feed it."""
    trace = trace_example(Job(candidate=Code(file="net.py", text=GOOD, name="Net"), contract=PLAIN),
                 hosted(GOOD))  # fmt: skip
    assert [op.axes for op in trace.ops] == [("B", "S", "D")]
