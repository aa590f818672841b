"""What a trace shows beside its table: values, heads, gradients, sizes; and how it ends."""

from dataclasses import replace

import pytest
from rich.cells import cell_len
from sample_records import INF, NAN, OPS, REPORT, TRACE, op

from attnlab.records import Crash, Report, Trace
from attnlab.records.trace import Attention, Backward, Guard, Head, Heat, Kernel, ParameterGradient
from attnlab.render.findings import show_findings
from attnlab.render.fold import View
from attnlab.render.formats import file_labels, format_seconds
from attnlab.render.show import as_text, trace_page
from attnlab.render.trace import TracePage
from attnlab.sizes import format_bytes

SMALL = Heat(title="scores[0, 0]", rows=((0.5, -INF), (1.25, -0.5)), axes=("S", "S'"))
LARGE = Heat(title="weights", rows=((0.5,) * 40,) * 40, axes=("S", "S'"), cut=True)
HEADS = tuple(
    Head(number=n, weights=Heat(title="", rows=((1.0, 0.0), (0.5, 0.5)), axes=("S", "S'")),
         entropy=0.35, largest=0.75)
    for n in range(9)
)  # fmt: skip
ATTENTION = Attention(
    line=28, file="m.py", scores=9, mask=11, weights=12, context=13, heads=HEADS,
    coverage=0.6, causal=True, fused=True, module="h.0.attn", message="each query looks at itself",
)  # fmt: skip
BACKWARD = Backward(
    parameters=(
        ParameterGradient(name="q.weight", shape=(8, 8), norm=1.5),
        ParameterGradient(name="k.weight", shape=(8, 8), norm=NAN, finite=False),
        ParameterGradient(name="lost.bias", shape=(8,), norm=None),
    ),
    origin=12,
    message="softmax gives a NaN gradient",
)
GUARDS = (Guard(relation="S == hd", file="m.py", line=25, source="q + k", op="add"),)
ALL = replace(
    TRACE, values=(SMALL, LARGE), attention=(ATTENTION,) * 3, backward=BACKWARD, guards=GUARDS
)


def page(trace=TRACE, **more):
    report = replace(REPORT, trace=trace)
    return TracePage(target="m.py:M", outcome="crashed", report=report, sizes={"B": 2}, **more)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_sections_keep_to_the_screen(shown, width, encoding):
    """Every section fits any width, in any encoding."""
    lines = shown(page(ALL), width, encoding).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert encoding == "utf-8" or all(line.isascii() for line in lines)


def test_notes_alone_are_counted_and_not_called_ok(shown):
    """Shown or hidden: where something was found, the last line does not say that nothing was."""
    note = replace(TRACE.findings[0], severity="note")
    for trace, hidden in ((Trace(ops=OPS, findings=(note,)), 0), (Trace(ops=OPS), 1)):
        said = shown(replace(page(trace, hidden=hidden), outcome="ok"))
        assert said.rstrip().splitlines()[-1].startswith("· 1 note  in ")
        assert "suspicious" not in said


def test_what_forward_did_not_get_is_said(shown):
    """With the flag that gives it; of names that nobody knows the axes are left to say."""
    said = " ".join(shown(page(omitted=["mask: B S S bool forbids", "bias"])).split())
    assert 'does with mask, bias (None here); --input "mask: B S S bool forbids" gives it' in said
    assert '--input "bias: AXES"' in " ".join(shown(page(omitted=["bias"])).split())


def test_small_matrices_show_their_numbers(shown):
    """Six by six can be read; what is not finite has a mark of its own and is told."""
    said = shown(page(replace(TRACE, values=(SMALL,))))
    assert "-inf (1 of the values)" in said
    assert "1.25  -0.5" in said
    assert "0.5" not in shown(page(replace(TRACE, values=(LARGE,)))).partition("weights")[2][:200]


def test_a_matrix_without_a_number_is_told(shown):
    """There is no scale to draw it with."""
    odd = Heat(title="scores", rows=((NAN, -INF),), axes=("", ""))
    assert "scores: no finite number in it" in shown(page(replace(TRACE, values=(odd,))))


def test_attention_names_its_roles_and_heads(shown):
    """Rows by role; the first attentions are drawn, the rest say their figures."""
    said = shown(page(ALL), 120)
    assert "60% of the pairs may attend, no weight on later keys, recomputed beside a fused" in said
    assert "mask      line 27  masked_fill" in said
    assert "each query looks at itself" in said
    assert said.count("1 more head: --json has them") == 2
    assert "head 8: entropy 0.35, largest weight of a query 0.75" in said


def test_only_a_weight_of_zero_is_blank(shown):
    """A small weight is no masked one, and a head that weighs all keys alike is drawn."""
    rows = {"0": (0.02, 0.0, 0.98), "1": (0.25,) * 3}
    for first, weights in rows.items():
        heat = Heat(title="", rows=(weights,), axes=("S", "S'"))
        head = Head(number=0, weights=heat, entropy=1.0, largest=max(weights))
        looked = replace(ATTENTION, heads=(head,))
        said = shown(page(replace(TRACE, attention=(looked,)))).splitlines()
        (drawn,) = (line[2:] for line in said if line.startswith("0 "))
        assert (" " in drawn.strip()) == (first == "0")
        assert drawn.strip()


def test_gradients_say_what_is_wrong_first(shown):
    """The origin, then parameters without a gradient, then norms."""
    said = shown(page(ALL), 120)
    assert said.index("softmax gives a NaN gradient") < said.index("1 parameter got no gradient")
    assert "crash-at-out-proj.py:28  softmax" in said
    assert any(line.startswith("✗") and "k.weight" in line for line in said.splitlines())


def test_many_gradients_show_the_extremes(shown):
    """The sick, the smallest and the largest, in the order of the module."""
    many = tuple(ParameterGradient(name=f"p{i}.w", shape=(2,), norm=float(i)) for i in range(60))
    said = shown(page(replace(TRACE, backward=Backward(parameters=many))))
    assert "36 between the smallest and the largest left out" in said
    assert "p0.w" in said
    assert "p59.w" in said
    assert "p30.w" not in said


def test_sizes_that_a_run_depends_on(shown):
    """The relation, the place, the source."""
    assert "S == hd  m.py:25  add  q + k" in shown(page(ALL))


# ---------------------------------------------------------------- the table


def test_columns_that_were_asked_for_are_kept(shown):
    """Time, bytes and gradients go before the source."""
    ops = tuple(replace(o, seconds=3e-6, bytes=4096, grad=0.5) for o in OPS)
    for width in (80, 120):
        head = shown(page(Trace(ops=ops)), width).splitlines()[1].split()
        assert [w for w in head if w in ("time", "bytes", "gradient")] == [
            "time",
            "bytes",
            "gradient",
        ]


def test_the_range_goes_before_the_source(shown):
    """On a narrow screen the source is what one reads: no width shows ranges without it."""
    ops = tuple(replace(o, source="q, k, v = self.qkv(x).chunk(3, dim=-1)") for o in OPS)
    heads = [shown(page(Trace(ops=ops)), width).splitlines()[1].split() for width in range(44, 121)]
    assert all("source" in head for head in heads if "range" in head)
    assert any("source" in head and "range" not in head for head in heads)


def test_kernels_stand_below_their_operation(shown):
    """Each with its shape."""
    kernel = Kernel(op="aten.addmm", shape=(8, 24), dtype="float16")
    lines = shown(page(Trace(ops=(replace(OPS[0], kernels=(kernel,)),))), 120).splitlines()
    assert "aten.addmm" in lines[3]
    assert "float16" in lines[3]


def test_layers_alike_have_a_heading(shown):
    """What a heading stands for is marked in the margin, and modules are named from it on."""
    ops = tuple(
        op(3 * n + i, i, f"op{i}", "x", "B", "2", module=f"h.{n}.attn.{i}")
        for n in range(4)
        for i in range(3)
    )
    report = Report(outcome="ok", trace=Trace(ops=ops))
    said = shown(
        TracePage(target="m", outcome="ok", report=report, sizes={}, view=View()), 120
    ).splitlines()
    assert "h.0 … h.3: 4 times alike, shown once" in said[2]
    assert [line[0] for line in said[3:6]] == ["│"] * 3
    assert " attn.1 " in said[4]


def test_a_call_shows_both_ends(shown):
    """In and out, and how much is inside."""
    ops = tuple(replace(o, module="attn.q", parents=(o.index - 1,)) for o in OPS[:3])
    view = View(depth=0, inputs=(("B", "S", "D"),))
    line = shown(page(Trace(ops=ops), view=view), 120).splitlines()[2]
    assert "attn" in line
    assert "B S D → B 3 H S hd" in line
    assert "(3 operations)" in line


def test_names_of_files_tell_them_apart():
    """As many folders as it takes; each of several has one."""
    files = ("a/x/net.py", "b/net.py", "c/y/net.py", "lib/very_long_name_of_a_file_indeed.py")
    ops = [replace(OPS[0], file=f) for f in files]
    names = file_labels(Trace(ops=tuple(ops)), "a/x/net.py")
    assert [names[file] for file in files[:3]] == ["x/net", "b/net", "y/net"]
    assert names[files[3]].startswith("..")
    assert len(names[files[3]]) <= 18


@pytest.mark.parametrize(("heading", "place"), [("train.py", "model:31"), ("model.py", "31")])
def test_rows_name_their_file_unless_the_heading_does(heading, place, shown):
    """Lines of model.py below a heading of train.py would be looked for in train.py."""
    ops = tuple(replace(op, file="p/model.py", line=31) for op in OPS)
    rows = shown(page(Trace(ops=ops), view=View(file=f"p/{heading}"))).splitlines()
    assert any(row.split()[:1] == [place] for row in rows)


# ---------------------------------------------------------------- what is said


def test_what_a_file_says_commands_no_terminal(shown):
    """Escapes in messages, sources and output are shown, not obeyed."""
    evil = "\x1b]0;x\x07\x1b[2J\u202e"
    crash = Crash(
        op="", file="m.py", line=1, operands=(), message=evil, explanation=evil, source=evil
    )
    report = Report(outcome="ok", trace=Trace(crash=crash), output=evil, target=evil)
    said = shown(TracePage(target="m", outcome="crashed", report=report, sizes={}))
    assert not set(said) & set("\x1b\x07\u202e")
    assert "\\x1b[2J" in said


def test_only_findings_where_there_are_none(shown):
    """The last line alone says so."""
    clean = replace(TRACE, findings=(), crash=None)
    said = shown(replace(page(clean, view=View(only_findings=True)), outcome="ok"))
    assert "nothing suspicious  in the axes and flow" in said
    assert "no row" not in said


def test_findings_alike_on_several_lines_are_one_paragraph(shown):
    """Queries, keys and values share a mistake: it is explained once."""
    several = [replace(TRACE.findings[0], line=line) for line in (16, 17, 18)]
    said = shown(page(replace(TRACE, findings=tuple(several))))
    assert said.count(several[0].message[:20]) == 1
    assert "lines 16, 17, 18" in said


def test_a_finding_of_every_layer_is_said_once(shown):
    """With how often it was made; the gravest first."""

    class Page:
        def show(self, screen):
            show_findings(TRACE.findings * 12, screen, {TRACE.findings[1].file: "lib/other"})

    said = shown(Page())
    assert said.count("12 times") == 2
    assert said.count("was broadcast against") == 1
    assert "lib/other:27 masked_fill" in said


def test_long_headings_put_the_sizes_below(shown):
    """Neither the name nor the sizes run into each other."""
    report = Report(outcome="ok", target=f"Net({', '.join(f'a{i}={i}' for i in range(20))})")
    sizes = {f"S{i}": i for i in range(9)}
    lines = shown(TracePage(target="m", outcome="ok", report=report, sizes=sizes)).splitlines()
    assert lines[0].startswith("trace  Net(")
    assert lines[1].startswith("       ")
    assert any(line.strip().startswith("S0=0") for line in lines[:4])


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, ""), (2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 us")],
)
def test_seconds(value, said):
    """Three digits and a unit."""
    assert format_seconds(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(None, ""), (0, "0 B"), (4096, "4.1 kB"), (12_600_000, "12.6 MB")]
)
def test_sizes(value, said):
    """Thousands, as tensors are counted."""
    assert format_bytes(value) == said


# ---------------------------------------------------------------- notebooks


def test_text_is_the_page():
    """Without colours, without blanks at the ends of lines."""
    said = as_text(trace_page(TRACE, {"B": 2}, "M(dim=8)"), 80)
    assert said.startswith("trace  M(dim=8)  B=2\n")
    assert said.endswith("✗ crashed  after 16 operations")
    assert not any(line.endswith(" ") for line in said.splitlines())
    assert "\x1b" not in said


def test_outcome_is_said_in_each(monkeypatch):
    """Nothing suspicious, found and crashed."""
    assert "✓ nothing suspicious" in as_text(trace_page(Trace(ops=OPS), {}, "M"))
    assert "! 1 finding" in as_text(trace_page(replace(TRACE, crash=None), {}, "M"))
