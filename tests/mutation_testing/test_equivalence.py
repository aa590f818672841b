"""Whether two modules do the same, looked at apart from every check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.catalogue.load import load, read_challenge
from attnlab.mutation_testing.equivalence import difference, standard
from attnlab.records import Cache, Code, Contract, Input

CHALLENGES = Path(__file__).parent.parent.parent / "challenges"


def code(challenge, path):
    text = Path(path).read_text(encoding="utf-8")
    return Code(file=Path(path).name, text=text, name=challenge.class_name)


class Material:
    """A challenge, its right files and the standard that they set."""

    def __init__(self, slug):
        self.challenge = read_challenge(CHALLENGES / slug)
        paths = (self.challenge.solution, self.challenge.alternatives[0])
        self.right = [code(self.challenge, path) for path in paths]
        self.standard = standard(self.right, self.challenge.contract, 0)

    def differs(self, *changes):
        """What the solution does otherwise once its text is changed."""
        text = self.right[0].text
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return difference(replace(self.right[0], text=text), self.standard)


@pytest.fixture(scope="module")
def attention():
    return Material("attention/crash-at-out-proj")


@pytest.fixture(scope="module")
def table():
    return Material("position/sinusoidal-from-scratch")


def test_right_files_do_the_same(attention, table):
    """Each of them stays within what all of them set."""
    files = [(attention, attention.right[0]), (attention, attention.right[-1])]
    files += [(table, table.right[0]), (table, table.right[-1])]
    assert [difference(file, material.standard) for material, file in files] == [""] * 4


def test_shipped_mutants_do_not(attention):
    """What people wrote as bugs is seen to be different without any check."""
    mutants = [code(attention.challenge, path) for path in attention.challenge.mutants]
    assert len(mutants) > 5
    assert all(difference(mutant, attention.standard) for mutant in mutants)


SAME = [
    ("softmax(dim=-1)", "softmax(dim=3)"),
    ("transpose(-2, -1)", "transpose(-1, -2)"),
    (" + x", " + 1 * x"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_another_way_to_write_it_is_no_difference(attention, old, new):
    """An equivalent mutant must not count as one that the grader failed to see."""
    assert attention.differs((old, new)) == ""


OTHERWISE = {
    "output differs": ("math.sqrt(self.head_dim)", "math.sqrt(self.head_dim + 1e-4)"),
    "inputs x differs": ("weights @ v", "weights.detach() @ v"),
    "random state is changed": ("batch, seq, _", "torch.manual_seed(0); batch, seq, _"),
    "it raises": (" + x", " + x[:, :4]"),
    "tensors x differs": (") + x", ") + x + 0 * (x.data if x.requires_grad else x.mul_(2))"),
    "its parameters are others": ("self.norm = ", "self.other = nn.Linear(1, 1); self.norm = "),
    "dtype of output is torch.float32": (")) + x", ") + 0).add(x).float()"),
}


@pytest.mark.parametrize("said", OTHERWISE)
def test_each_kind_of_difference_is_seen_and_named(attention, said):
    """Values, gradients, random state, inputs, names, dtypes and exceptions all count."""
    assert said in attention.differs(OTHERWISE[said])


def test_large_inputs_are_looked_at(attention):
    """Scores that a finite fill value does not keep down come only with large inputs."""
    assert "output differs" in attention.differs(('float("-inf")', "-1e3"))


def test_what_is_refused_is_part_of_it(table):
    """A promised exception that does not come, or comes as another one, is a difference."""
    assert "raised" in table.differs(('raise ValueError(f"{length}', 'raise Warning(f"{length}'))
    assert table.differs(("if d_model % 2:", "if False:"))


def test_long_tables_are_looked_at(table):
    """Positions that half precision makes equal lie beyond those of the example."""
    rounded = "torch.arange(max_seq_len).bfloat16().double()"
    assert table.differs(("torch.arange(max_seq_len, dtype=torch.float64)", rounded))


def test_a_table_of_another_dtype_is_seen(table):
    """The dtype that comes out counts, not only the values."""
    assert table.differs(("pe.float()", "pe.double()"))


def test_a_dtype_that_right_files_disagree_on_is_not_promised():
    """Their values are still compared."""
    challenge = read_challenge(CHALLENGES / "position/sinusoidal-from-scratch")
    right = [code(challenge, challenge.solution)]
    always = replace(right[0], text=right[0].text.replace("[:, :length]", "[:, :length].float()"))
    wrong = replace(always, text=always.text.replace("10000", "10001"))
    assert always.text != right[0].text
    assert difference(always, standard(right, challenge.contract, 0))
    lenient = standard([*right, always], challenge.contract, 0)
    assert difference(always, lenient) == ""
    assert "output differs" in difference(wrong, lenient)


RENAMED = {"qkv_proj": "in_proj", "out_proj": "merge"}


def renamed(text):
    for old, new in RENAMED.items():
        text = text.replace(f"self.{old}", f"self.{new}")
    return text


def test_a_right_file_with_other_names_takes_nothing_from_the_standard(attention):
    """It cannot be given the same weights, so it says nothing of values; those of the others are
    still compared, and its own mutants with itself."""
    one, other = attention.right[0], replace(attention.right[0])
    other = replace(other, text=renamed(one.text))
    assert other.text != one.text
    found = standard([one, other], attention.challenge.contract, 0)
    assert len(found) == 2
    assert [difference(file, found) for file in (one, other)] == ["", ""]
    for file in (one, other):
        wrong = replace(file, text=file.text.replace("weights @ v", "weights.detach() @ v"))
        assert wrong.text != file.text
        assert "inputs x differs" in difference(wrong, found)


def with_right_files_of_their_own():
    """A challenge that stands alone, and one of each of two small bases."""
    bases = {c.base: c for c in load().challenges}
    alone = load().find("too-sharp")
    return [alone, bases["attention/reads-the-source"], bases["attention/bounded-scores"]]


@pytest.mark.parametrize("challenge", with_right_files_of_their_own(), ids=lambda c: c.name)
def test_every_right_file_sets_or_shares_a_standard_of_values(challenge):
    """What would let every mutant of a challenge pass for equivalent: nothing to compare."""
    paths = (challenge.solution, *challenge.alternatives)
    for one in standard([code(challenge, path) for path in paths], challenge.contract, 0):
        compared = {key for steps in one.tolerances for allowed in steps for key in allowed}
        assert {"output", "inputs x"} <= compared
        assert sum("output" in allowed for steps in one.tolerances for allowed in steps) > 40


CACHED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.v = nn.Linear(width, width)

    def forward(self, x, mask=None, cache=None):
        v = self.v(x)
        v = v if cache is None else torch.cat((cache, v), dim=1)
        S, K = x.shape[1], v.shape[1]
        scores = torch.zeros(S, K)
        if mask is not None and mask.dtype == torch.bool:
            scores = scores.masked_fill(mask, -torch.inf)
        elif mask is not None:
            scores = scores + mask
        later = torch.ones(S, K, dtype=torch.bool).triu(K - S + 1)
        return (scores.masked_fill(later, -torch.inf).softmax(-1).to(v) @ v), v
"""
KEEPS = Contract(
    sizes={"B": 2, "S": 5, "D": 4},
    init={"width": "D"},
    inputs=(
        Input(name="x", axes=("B", "S", "D")),
        Input(name="mask", axes=("B", "S", "Sk"), dtype="bool", role="mask", additive=True,
              optional=True),
    ),
    output=("B", "S", "D"),
    promises=("causal",),
    cache=Cache(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("torch.cat((cache, v), dim=1)", "torch.cat((v, cache), dim=1)", "cached_steps"),
        ("triu(K - S + 1)", "triu(1)", "cached_steps"),
        ("scores = scores + mask", "scores = scores - mask", "call"),
        ("scores = scores + mask", "scores = scores + mask * (not self.training)", "train"),
    ],
)
def test_calls_with_a_cache_and_masks_of_floats_are_looked_at(old, new, said):
    """What differs in a second call, or under a mask that is added, alone."""
    contract = replace(KEEPS, sizes={**KEEPS.sizes, "Sk": 5})
    right = Code(file="solution.py", text=CACHED, name="M")
    made = standard([right], contract, 0)
    assert difference(right, made) == ""
    assert old in CACHED
    assert said in difference(replace(right, text=CACHED.replace(old, new)), made)


def test_a_text_that_cannot_be_loaded_is_different(attention):
    """There is nothing to compare, so it is not the same."""
    broken = replace(attention.right[0], text="import nothing_of_this_name\n")
    assert "loading it raises" in difference(broken, attention.standard)
