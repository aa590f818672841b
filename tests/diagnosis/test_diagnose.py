"""The whole way: mine beside a reference, in one process."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.candidate.host import LocalHost
from attnlab.catalogue.load import load
from attnlab.catalogue.texts import shipped_text, solution_text
from attnlab.diagnosis.families import called
from attnlab.grading.pipeline import run_job
from attnlab.records import Code, Job

CHALLENGES = {c.name: c for c in load().challenges}
PADDED = CHALLENGES["tomorrow-is-known"]
RIGHT = solution_text(PADDED)


def diff(mine, theirs=RIGHT, challenge=PADDED):
    name = challenge.class_name
    job = Job(
        candidate=Code(file="mine.py", text=mine, name=name),
        contract=challenge.contract,
        reference=Code(file="right.py", text=theirs, name=name),
        stages=("diff",),
        seed=1,
    )
    report = run_job(job, lambda *_: LocalHost())
    assert report.diff is not None, report.message
    return report.diff


def line_of(text, part):
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def test_equal_ones_are_the_same():
    """And no line is named."""
    found = diff(RIGHT)
    assert (found.outcome, found.diagnosis) == ("same", ())


def test_a_name_of_an_operation_is_no_english():
    """`to` would be read on: applies to to what."""
    assert (called("to"), called("linear"), called("data")) == ("`to()`", "`linear()`", "`data`")


@pytest.mark.parametrize("path", PADDED.alternatives)
def test_right_rewrites_get_no_diagnosis(path):
    """Other operations, another order, the fused kernel."""
    found = diff(Path(path).read_text("utf-8"))
    assert (found.outcome, found.diagnosis) == ("same", ())


@pytest.mark.parametrize(
    ("old", "new"), [("before - base", "base - before"), ("scores - base", "base - scores")]
)
def test_a_difference_turned_round_is_told_by_finite_numbers(old, new):
    """A running peak starts at minus infinity: there the right difference equals its operand, and
    a needed subtraction was called one step too many; masked scores were called a missing mask."""
    challenge = CHALLENGES["nan-whatever-it-reads"]
    right = solution_text(challenge)
    (found,) = diff(right.replace(old, new), right, challenge).diagnosis
    assert (found.relation, found.line, found.confirmed) == ("sign", line_of(right, old), True)


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("/ math.sqrt(self.head_dim)", "/ self.head_dim", "scale"),
        ("/ math.sqrt(self.head_dim)", "* math.sqrt(self.head_dim)", "scale"),
        (".tril()", ".tril(1)", "mask-diagonal"),
        (".tril()", ".triu()", "mask-transposed"),
        ("masked_fill(~allowed", "masked_fill(allowed", "mask-inverted"),
        ("scores.softmax(dim=-1)", "scores.softmax(dim=-2)", "softmax-axis"),
        (".transpose(1, 2).reshape(b, s, d)", ".reshape(b, s, d)", "axes-mixed"),
        ("weights @ v", "weights @ k", "wrong-operand"),
        ("q, k, v = (self", "q, v, k = (self", ""),
        ("return self.proj(mixed)", "return mixed", ""),
        ("return self.proj(mixed)", "return self.proj(mixed) + x", "extra"),
        ("return self.proj(mixed)", "return self.proj(mixed)[0]", "extra-step"),
    ],
)
def test_a_changed_line_is_named_with_its_relation(old, new, relation):
    """Confirmed by replay on two inputs, where the numbers themselves say what is wrong."""
    assert old in RIGHT
    mine = RIGHT.replace(old, new)
    found = diff(mine)
    assert found.outcome == "different"
    (first, *_) = found.diagnosis
    assert abs(first.line - line_of(mine, new)) <= 1, first
    assert first.relation.startswith(relation)
    assert first.confirmed == (first.relation != "missing-step")


@pytest.mark.parametrize(
    "later",
    [
        (".transpose(1, 2).reshape(b, s, d)", ".reshape(b, s, d)"),
        ("weights @ v", "weights @ k"),
        ("return self.proj(mixed)", "return self.proj(mixed) + x"),
    ],
)
def test_a_fault_is_not_hidden_by_a_later_one(later):
    """What is put in the later place makes the output right by itself; the earlier stays named."""
    mine = RIGHT.replace(".tril()", ".tril(1)").replace(*later)
    found = diff(mine).diagnosis
    wanted = {line_of(mine, ".tril(1)"), line_of(mine, later[1])}
    assert {d.line for d in found} == wanted
    assert next(d for d in found if d.relation == "mask-diagonal").confirmed


def test_two_faults_are_both_named():
    """The first is repaired, and the search goes on."""
    mine = RIGHT.replace("/ math.sqrt(self.head_dim)", "/ self.head_dim").replace("tril", "triu")
    found = diff(mine)
    assert {d.relation for d in found.diagnosis} == {"scale", "mask-transposed"}
    assert all(d.confirmed for d in found.diagnosis)


@pytest.mark.parametrize(
    "name", ["too-sharp", "peeks-ahead", "heads-in-a-blender", "fine-until-you-look"]
)
def test_shipped_bugs_are_named(name):
    """At the line that the solution changes."""
    challenge = CHALLENGES[name]
    mine, right = shipped_text(challenge), solution_text(challenge)
    found = diff(mine, right, challenge)
    changed = [
        n
        for n, (a, b) in enumerate(zip(mine.splitlines(), right.splitlines(), strict=False), 1)
        if a != b
    ]
    assert any(abs(d.line - line) <= 1 for d in found.diagnosis for line in changed[:1])


BY_HAND = next(Path(p).read_text("utf-8") for p in PADDED.alternatives if "infinite" in p)


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        (".tril()", ".tril(1)", "mask-diagonal"),
        ("/ math.sqrt(self.head_dim)", "/ self.head_dim", "scale"),
        ("scores.softmax(dim=-1)", "scores.softmax(dim=-2)", "softmax-axis"),
    ],
)
def test_a_line_is_named_beside_another_style(old, new, relation):
    """The reference has no such mask, or only the one that is turned round."""
    found = diff(RIGHT.replace(old, new), BY_HAND)
    assert abs(found.diagnosis[0].line - line_of(RIGHT.replace(old, new), new)) <= 1
    assert found.diagnosis[0].relation == relation


@pytest.mark.parametrize(
    ("name", "style", "changed"),
    [
        ("the-ruler-stretches", "no_table.py", 39),
        ("a-longer-limit-is-louder", "plain.py", 36),
        ("words-under-the-waves", "frozen_positions.py", 13),
        ("the-mask-is-a-whisper", "groups_in_the_shape.py", 33),
    ],
)
def test_a_repair_that_makes_up_for_a_fault_elsewhere_is_not_confirmed(name, style, changed):
    """Beside another style a later line can be given a value that makes the output right."""
    challenge = CHALLENGES[name]
    right = next(Path(p).read_text("utf-8") for p in challenge.alternatives if style in p)
    found = diff(shipped_text(challenge), right, challenge)
    assert found.outcome == "different"
    assert not [d for d in found.diagnosis if d.confirmed and abs(d.line - changed) > 1]


HELPED = RIGHT.replace("class Causal", "def times(a, b):\n    return a * b\n\n\nclass Causal", 1)


def test_a_helper_is_right_where_another_call_of_it_is():
    """The line that calls it with something else is named, beside a reference without it."""
    old = "        return self.proj(mixed)"
    new = f"        mixed = times(mixed, {{}})\n{old}"
    mine = HELPED.replace("        scores = q @", "        q = times(q, 1.0)\n        scores = q @")
    mine = mine.replace(old, new.format(3.0))
    assert diff(mine, BY_HAND).diagnosis[0].line == line_of(mine, "times(mixed")


CAPPED = """import torch
from torch import nn


def cap(x, most):
    return torch.tanh(x / most) * most


class Capped(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        scores = cap(self.mix(x) @ x.mT, 5.0)
        mixed = scores.softmax(-1) @ x
        return cap(self.out(mixed), 8.0)
"""


def test_a_helper_is_wrong_where_all_calls_of_it_are():
    """A step that it lacks is named inside, not at one of the lines that call it."""
    contract = replace(PADDED.contract, init={"dim": "D"}, inputs=PADDED.contract.inputs[:1])
    challenge = replace(PADDED, contract=contract, class_name="Capped")
    theirs = CAPPED.replace("torch.tanh(x / most) * most", "most * (x / most).tanh()")
    assert diff(CAPPED, theirs, challenge).outcome == "same"
    mine = CAPPED.replace(" / most) * most", " / most)")
    found = diff(mine, theirs, challenge).diagnosis
    assert {d.line for d in found} == {line_of(mine, "return torch.tanh")}


def test_a_crash_is_told_and_nothing_is_invented():
    """With its line."""
    found = diff(RIGHT.replace("q @ k.transpose(-2, -1)", "q @ k.transpose(0, -1)"))
    assert (found.outcome, found.diagnosis) == ("crashed", ())
    assert "mine.py:" in found.message


def test_weights_that_do_not_fit_are_no_difference():
    """A module of another size cannot be compared."""
    found = diff(RIGHT.replace("nn.Linear(dim, dim)", "nn.Linear(dim, dim, bias=False)"))
    assert (found.outcome, found.diagnosis) == ("cannot-compare", ())


def test_other_names_of_weights_are_matched():
    """Though the output is wrong, so that no map can be proven."""
    mine = RIGHT.replace("self.qkv", "self.c_attn").replace("self.proj", "self.c_proj")
    found = diff(mine.replace("/ math.sqrt(self.head_dim)", "/ self.head_dim"))
    assert [d.relation for d in found.diagnosis] == ["scale"]


def test_a_tensor_without_numbers_is_passed_over():
    """On the meta device there are shapes alone."""
    old = "        past = torch.ones("
    found = diff(RIGHT.replace(old, f'        torch.ones(2, 3, device="meta") * 2\n{old}'))
    assert found.outcome == "same"


@pytest.mark.parametrize(
    ("name", "style", "part", "relation"),
    [
        ("too-sharp", "quarter_roots.py", "/ self.scale", "scale"),
        ("everyone-turns-left", "no_table.py", "(second, -first)", "sign"),
    ],
)
def test_a_step_that_the_reference_does_not_have_is_named_by_a_guess(name, style, part, relation):
    """The reference scales queries and keys, or turns without a table: no value of it fits there.
    It is never called confirmed, since another step may be meant."""
    challenge, mine = CHALLENGES[name], shipped_text(CHALLENGES[name])
    other = next(p for p in challenge.alternatives if p.endswith(style))
    (found,) = diff(mine, Path(other).read_text("utf-8"), challenge).diagnosis
    assert (found.line, found.relation) == (line_of(mine, part), relation)
    assert not found.confirmed


def test_a_line_inside_a_backward_is_named_where_it_alone_differs():
    """The lines of a backward are not replayed one by one."""
    challenge = CHALLENGES["every-key-gains-a-little"]
    mine = shipped_text(challenge)
    (found,) = diff(mine, solution_text(challenge), challenge).diagnosis
    assert (found.line, found.end_line) == (line_of(mine, "common = grad.sum"),) * 2
    assert found.confirmed


def test_of_two_backwards_in_a_row_none_is_called_confirmed():
    """The right gradient is known before both alone, where the reference has no value between."""
    challenge = CHALLENGES["right-until-gains-move"]
    other = next(p for p in challenge.alternatives if p.endswith("/plain.py"))
    (found,) = diff(shipped_text(challenge), Path(other).read_text("utf-8"), challenge).diagnosis
    assert "LayerNormFunction or RMSNormFunction" in found.message
    assert not found.confirmed


def test_a_reference_that_takes_one_step_at_a_time_is_paired_as_a_whole():
    """The scores of all its queries are those of mine, and the mask is named, not what follows."""
    challenge = CHALLENGES["peeks-ahead"]
    (theirs,) = (p for p in challenge.alternatives if p.endswith("step_by_step.py"))
    mine = shipped_text(challenge)
    (first,) = diff(mine, Path(theirs).read_text("utf-8"), challenge).diagnosis
    assert (first.line, first.relation) == (line_of(mine, ".tril(diagonal=1)"), "mask-diagonal")


def test_where_nothing_is_alike_the_first_strange_step_is_named():
    """Not the one where the two meet again, and not as confirmed."""
    challenge = CHALLENGES["base-of-another-model"]
    (theirs,) = (p for p in challenge.alternatives if p.endswith("no_table.py"))
    mine = shipped_text(challenge)
    (first,) = diff(mine, Path(theirs).read_text("utf-8"), challenge).diagnosis
    assert (first.line, first.relation, first.confirmed) == (17, "other", False)


CODER = CHALLENGES["loads-and-talks-nonsense"]


def test_a_weight_that_is_loaded_wrongly_is_named_where_it_is_filled():
    """No operation is at fault: the line of the converter is, beside a converter in another
    style."""
    mine = shipped_text(CODER)
    found = diff(mine, Path(CODER.alternatives[0]).read_text("utf-8"), CODER)
    (named,) = found.diagnosis
    line = line_of(mine, 'new["out_proj.weight"] = old["attn.c_proj.weight"]')
    assert (named.line, named.relation) == (line, "transposed")


@pytest.mark.parametrize(
    ("name", "style", "relation", "line"),
    [
        ("neighbours-in-the-mirror", "five_axes.py", "sign", "b * cos - a * sin"),
        ("looks-here-reads-there", "groups_in_the_shape.py", "order", "v = self.split("),
        ("heads-have-favourites", "batched.py", "order", "(self.heads, 2, -1)"),
        ("all-eyes-on-the-end", "recursive.py", "sign", "distance = q_pos[:, None] - k_pos"),
    ],
)
def test_a_guess_says_how_a_line_is_wrong_that_the_reference_does_not_have(
    name, style, relation, line
):
    """A sign, the grouping of heads or an absolute value, beside other steps than mine."""
    challenge = CHALLENGES[name]
    theirs = next(p for p in challenge.alternatives if p.endswith(style))
    mine = shipped_text(challenge)
    (named,) = diff(mine, Path(theirs).read_text("utf-8"), challenge).diagnosis
    assert (named.line, named.relation, named.confirmed) == (line_of(mine, line), relation, False)


@pytest.mark.parametrize(
    ("name", "style", "relation", "line"),
    [
        ("no-one-to-begin-with", "places-compared.py", "mask-diagonal", ".tril(-1)"),
        ("tiny-heads-pass", "zipped.py", "", "weight.view(heads"),
    ],
)
def test_a_step_is_named_where_it_is_made_not_where_its_result_is_used(name, style, relation, line):
    """Ones that `tril` takes are no reason to look further, nor is the call of a converter's
    function that is wrong inside."""
    challenge = CHALLENGES[name]
    theirs = next(p for p in challenge.alternatives if p.endswith(style))
    mine = shipped_text(challenge)
    (named,) = diff(mine, Path(theirs).read_text("utf-8"), challenge).diagnosis
    assert named.line == line_of(mine, line)
    assert relation in ("", named.relation)


SUMS = """
import torch
from torch import nn

class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, keep=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        q = torch.relu(q) + 1
        k = torch.relu(k) + 1
"""
AT_ONCE = f"""{SUMS}
        scores = (q @ k.mT).tril()
        return self.proj(scores @ v / scores.sum(-1, keepdim=True))
"""
TOKEN_BY_TOKEN = f"""{SUMS}
        state, total, rows = 0, 0, []
        for t in range(x.shape[1]):
            state = state + k[:, t, :, None] * v[:, t, None]
            total = total + k[:, t]
            top = (q[:, t, None] @ state).squeeze(1)
            rows.append(top / (q[:, t] * total).sum(-1, keepdim=True))
        return self.proj(torch.stack(rows, 1))
"""


def test_a_step_that_is_left_out_before_a_loop_is_told():
    """Nothing in the loop pairs with what the reference does at once; what it reads does."""
    mine = TOKEN_BY_TOKEN.replace("k = torch.relu(k) + 1", "k = torch.relu(k)")
    (named,) = diff(mine, AT_ONCE).diagnosis
    assert (named.line, named.relation) == (line_of(mine, "k = torch.relu(k)"), "missing-term")


def test_lines_that_a_later_repair_hides_are_said():
    """Three faults in a row: those that are not named are no secret, and not called wrong."""
    mine = RIGHT.replace("/ math.sqrt(self.head_dim)", "/ self.head_dim")
    mine = mine.replace(".tril()", ".triu()").replace(
        ".transpose(1, 2).reshape(b, s, d)", ".reshape(b, s, d)"
    )
    found = diff(mine)
    shown = [str(d.line) for d in found.diagnosis]
    for part in ("/ self.head_dim", ".triu()", ".reshape(b, s, d)"):
        assert str(line_of(mine, part)) in [*shown, *found.message.replace(",", "").split()]
