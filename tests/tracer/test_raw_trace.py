"""What leaves the candidate's process: rows, the fall, and words that cannot do harm."""

import math
from dataclasses import replace

import pytest
import torch
from modules import randn, recorded

from attnlab.candidate.session import Session
from attnlab.records import Op, from_json, to_json
from attnlab.records.trace import Attention, Heat
from attnlab.tracer import raw_trace
from attnlab.tracer.raw_trace import (
    RawTrace,
    crash_of,
    display_path,
    first_line,
    is_consistent,
    line_of,
    only_file,
    place_of,
    raise_location,
)
from attnlab.tracer.recorder import Recorder


class Hostile(Exception):
    def __str__(self):
        raise SystemExit(3)


class Liar(Exception):
    class Text(str):
        __slots__ = ()

        def strip(self, *a):
            raise KeyboardInterrupt

        def partition(self, *a):
            raise KeyboardInterrupt

    def __str__(self):
        return self.Text(" gotcha\nmore")


class Wrong(Exception):
    def __str__(self):
        return 3  # noqa: PLE0307 - on purpose


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("one\ntwo"), "one"),
        (
            ValueError("Error(s) for Net:\n\tMissing key: w\n\tsize mismatch for b\n\tmore"),
            "Error(s) for Net: Missing key: w size mismatch for b",
        ),
        (ValueError("  padded  "), "padded"),
        (ValueError(), ""),
        (ValueError("x" * 9999), "x" * 500),
        (Hostile(), "(the exception's message cannot be read)"),
        (Liar(), "gotcha"),
        (Wrong(), "(the exception's message cannot be read)"),
    ],
)
def test_first_line_of_a_message(error, line):
    """One line, capped, whatever the exception's own code does; one that only announces those below
    it, as that of load_state_dict does, has the next two with it."""
    assert first_line(error) == line


def test_a_crash_with_a_hostile_message_is_a_crash():
    """An exception whose `__str__` ends the process is reported by its class and line."""

    def f(x):
        raise Hostile

    crash = recorded(f, randn(2)).crash
    assert (crash.error, crash.message) == ("Hostile", "(the exception's message cannot be read)")


def test_raised_at_names_the_deepest_line_of_the_candidates_file():
    """A crash inside a library is shown at the candidate's line that called it."""
    space = {}
    text = "def f(g):\n    return g()\n"
    exec(compile(text, "mine.py", "exec"), space)
    with pytest.raises(ZeroDivisionError) as caught:
        space["f"](lambda: 1 / 0)
    assert raise_location(caught.value, "mine.py")[:2] == (2, "mine.py")


def test_raised_at_without_a_line_of_the_candidate():
    """Where no frame is the candidate's, the deepest that is not ours is named; none is line 0."""
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    line, file, source = raise_location(caught.value, "elsewhere.py")
    assert (line > 0, file.endswith("test_raw_trace.py"), "1 / 0" in source) == (True, True, True)
    assert raise_location(ValueError("never raised"), "elsewhere.py") == (0, "", "")


def test_a_line_of_another_file_is_named_with_its_file():
    """`line 7` alone would be looked for in the file that a finding is about."""
    row = Op(index=0, op="add", line=7, file="lib/model.py", source="", shape=(), axes=(),
             dtype="float32", stride=(), view=False)  # fmt: skip
    assert (line_of(row, row.file), place_of(row, row.file)) == ("line 7", "on line 7")
    assert (line_of(row, "a.py"), place_of(row, "a.py")) == ("model.py:7", "at model.py:7")
    assert only_file(RawTrace(ops=(row, replace(row, file="a.py")))) == ""


def test_paths_below_the_working_folder_are_relative(tmp_path, monkeypatch):
    """A user sees the path that they would type."""
    monkeypatch.chdir(tmp_path)
    assert display_path(f"{tmp_path}/a/net.py") == "a/net.py"
    assert display_path("/somewhere/net.py") == "/somewhere/net.py"
    assert display_path(f"{tmp_path}2/net.py") == f"{tmp_path}2/net.py"


def test_the_flag_of_a_nan_follows_its_views():
    """transpose, view, expand and slices with the NaN are flagged; a slice without it is not."""

    def f(x):
        y = x.clone()
        y[0, 0] = math.nan
        return y.mT, y.view(-1), y.unsqueeze(0).expand(3, 2, 3), y[0], y[1]

    got = recorded(f, randn(2, 3))
    flags = [op.nan for op in got.ops]
    assert flags == [False, True, True, True, True, True, True, False]


def test_an_infinity_is_flagged_in_both_signs():
    """-inf from a mask and +inf from an overflow are both shown as infinite."""
    got = recorded(lambda x: (x.masked_fill(x > 0, -math.inf), x * math.inf), torch.ones(2))
    assert [(op.inf, op.min) for op in got.ops[1:]] == [(True, -math.inf), (True, math.inf)]


def watched(f, *inputs):
    """The raw trace as the session makes it: looked at again at the first NaN."""
    session = Session()
    session.target = f
    given = [(f"input{i}", t) for i, t in enumerate(inputs)]
    return from_json(RawTrace, session.ask("trace", inputs=given, seed=0)["trace"])


def test_fully_masked_rows_are_counted():
    """Of the softmax that gives NaN: how many rows are -inf everywhere, and where the first is."""
    mask = torch.zeros(2, 3, 4, dtype=torch.bool)
    mask[0, 2] = mask[1, 0] = True
    got = watched(lambda x, m: x.masked_fill(m, -math.inf).softmax(-1), randn(2, 3, 4), mask)
    assert [(m.row, m.masked) for m in got.measured] == [(1, (2, (0, 2)))]


def test_rows_are_counted_along_the_axis_of_the_softmax():
    """A softmax over another axis has its empty rows there."""
    x = torch.zeros(2, 3)
    x[:, 1] = -math.inf
    got = watched(lambda x: torch.softmax(x, 0), x)
    assert [m.masked for m in got.measured] == [(1, (1,))]


def test_a_nan_that_came_in_is_told_from_one_that_was_made():
    """The operands that had the NaN before the operation ran are named by their place."""
    bad = torch.tensor([math.nan, 1.0])
    assert [m.tainted for m in watched(lambda x: x + bad, randn(2)).measured] == [(1,)]
    assert [m.tainted for m in watched(lambda x: (x * 0) / 0, randn(2)).measured] == [()]
    assert watched(lambda x: x + 1, randn(2)).measured == ()


def test_rows_of_minus_infinity_count_in_a_softmax_only():
    """A difference of infinities is no softmax, however many of its rows are -inf."""

    def f(x):
        y = x.masked_fill(x < 9, -math.inf)
        return y - y

    assert [m.masked for m in watched(f, randn(2, 3)).measured] == [None]


def test_a_softmax_without_an_axis_can_be_watched():
    """`F.softmax(x)` leaves its axis to PyTorch; counting its rows must not raise."""

    def f(x):
        import torch.nn.functional as F

        return F.softmax(x / 0 * 0, dim=None, _stacklevel=1)

    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        measured = watched(f, torch.ones(2, 2)).measured
    assert measured
    assert not any(m.masked for m in measured)


def test_fall_of_tells_an_operation_from_python():
    """An exception that no operation raised has no op."""
    crash = crash_of(Recorder(), ValueError("no"), "net.py")
    assert (crash.op, crash.error, crash.message) == ("", "ValueError", "no")


def op(index, parents=()):
    return Op(
        index=index,
        op="add",
        line=1,
        file="net.py",
        source="",
        shape=(2,),
        axes=("2",),
        dtype="float32",
        stride=(1,),
        view=False,
        parents=parents,
    )


def crash(**more):
    facts = {"op": "add", "file": "", "line": 1, "source": "", "module": "", "error": "E"}
    return raw_trace.RawCrash(**{**facts, "message": "", **more})


ROLES = Attention(line=1, file="", scores=None, mask=None, weights=None, context=3)


@pytest.mark.parametrize(
    ("trace", "good"),
    [
        (RawTrace(), True),
        (RawTrace(ops=(op(0), op(1, (0,))), operands=((), ((2,),))), True),
        (RawTrace(ops=(op(0),)), False),
        (RawTrace(ops=(op(1),), operands=((),)), False),
        (RawTrace(ops=(op(0, (0,)),), operands=((),)), False),
        (RawTrace(ops=(op(0, (-1,)),), operands=((),)), False),
        (RawTrace(inputs=((2,),)), False),
        (RawTrace(values=(Heat(title="scores", rows=(), index=0),)), False),
        (RawTrace(values=(Heat(title="x", rows=()),)), True),
        (RawTrace(attention=(ROLES,)), False),
        (RawTrace(crash=crash(parents=(0,), operands=((2,),))), False),
        (RawTrace(inputs=((2,),), input_names=("x",), input_kinds=("float",)), True),
    ],
)
def test_a_trace_that_refers_to_what_is_not_there_is_unsound(trace, good):
    """The judge reads a trace that a candidate may have forged: loops and gaps are refused."""
    assert is_consistent(trace) is good


def test_every_real_trace_is_sound():
    """What the recorder makes passes the same test, with a crash and with several outputs."""

    def f(x):
        a, b = x.chunk(2)
        c = a + b
        c += 1
        return torch.cat([a, c]) @ x

    got = recorded(f, randn(4, 3))
    assert got.crash is not None
    assert is_consistent(got)
    assert is_consistent(from_json(RawTrace, to_json(got)))
