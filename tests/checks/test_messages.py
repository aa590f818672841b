"""Messages point at the bug: what a failure is called, and the factor that explains it."""

from dataclasses import replace

import pytest
from trial import ATTENTION, ENCODING, SELF, TABLE, Case, changed, tried

from attnlab.records import Code, Input, Position

KEYS = replace(
    SELF,
    inputs=(
        SELF.inputs[0],
        Input(name="mask", axes=("B", "S"), dtype="bool", role="mask", optional=True),
    ),
)
BY_KEY = changed(ATTENTION, ("mask[:, None]", "mask[:, None, None]"))
ADDED = changed(TABLE, ("return self.pe[:S].unsqueeze(0)", "return x + self.pe[:S].unsqueeze(0)"))
ADDING = replace(ENCODING, output=("B", "S", "D"), position=Position(form="added"))
FLOAT64 = replace(SELF, dtypes=("float64",))
FIRST_MASK = """if mask is not None:
            if getattr(self, "kept", mask).shape == mask.shape:
                mask = self.kept = getattr(self, "kept", mask)
        if mask is not None:"""


def first(case):
    """The first failure of a grade that stops there."""
    result = tried(case, until="reason")[0]
    assert result.outcome == "failed"
    return result


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("* q.shape[-1] ** 0.5", "4 = hd"),
        ("", "2 = sqrt(hd)"),
        ("/ D ** 0.5", "0.7071 = 1/sqrt(H)"),
        ("/ 3", "0.6667"),
    ],
)
def test_a_wrong_scale_of_scores_is_told_by_its_factor(scale, factor):
    """Four wrong scales are four messages."""
    found = first(Case(changed(ATTENTION, ("/ q.shape[-1] ** 0.5", scale))))
    assert found.message.endswith(
        f": before the softmax the scores are {factor} times the reference's"
    )


def test_an_output_that_is_a_multiple_is_told_by_its_factor():
    """With the residual, and without it."""
    norm = "self.norm(self.out_proj(out))"
    whole = first(Case(changed(ATTENTION, (f"{norm} + x", f"3 * ({norm} + x)"))))
    assert whole.message.endswith(": the output is 3 times the reference's")
    branch = first(Case(changed(ATTENTION, (f"{norm} + x", f"3 * {norm} + x"))))
    assert branch.message.endswith(": without the residual the output is 3 times the reference's")


def test_a_crash_after_many_calls_is_blamed_on_what_they_left_behind():
    """A store that fills up gives other outputs long before it raises, in whichever check."""
    filling = """B, S, D = x.shape
        self.used = getattr(self, "used", 0) + 1
        x = torch.zeros(7)[self.used] + x * self.used"""
    found = first(Case(changed(ATTENTION, ("B, S, D = x.shape", filling))))
    assert (found.id, found.reason) == ("no-hidden-state", "")
    assert found.message.startswith("the same input gave another output the second time")


def test_a_mask_kept_from_the_first_call_is_hidden_state():
    """Nothing is summed over the batch."""
    found = first(Case(changed(ATTENTION, ("if mask is not None:", FIRST_MASK))))
    assert found.id == "no-hidden-state"
    assert "kept from an earlier call" in found.message
    assert "self" in found.advice


@pytest.mark.parametrize(("source", "contract"), [(ATTENTION, SELF), (BY_KEY, KEYS)])
def test_heads_that_are_not_transposed_back_are_told(source, contract):
    """Whether the future leaks by it or a masked key: the mask is right."""
    right = Code(file="right.py", text=source, name="M")
    wrong = changed(source, ("heads.transpose(1, 2).reshape", "heads.reshape"))
    found = first(Case(wrong, contract, right))
    assert found.message.endswith("where the memory of (B, H, S, hd) is read as (B, S, D)")
    assert "axes of the heads" in found.advice
    assert "transpose" not in found.message + found.advice  # that would be the fix


def test_a_shifted_mask_is_not_called_a_missing_transpose():
    """It reaches neighbours."""
    fill = "scores = scores.masked_fill(mask[:, None], -torch.inf)"
    late = "scores = scores.masked_fill(mask[:, None].roll(-1, -1), -torch.inf)"
    assert "memory" not in first(Case(changed(ATTENTION, (fill, late)))).message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x + self.pe", "x + 0.7 * self.pe", "the whole table is 0.7 times that of the formula"),
        ("x + self.pe", "x * x.shape[-1] ** 0.5 + self.pe", "x is multiplied by 2.828 = sqrt(D)"),
    ],
)
def test_a_factor_is_not_a_wrong_row_of_the_table(old, new, message):
    """Each row is right but for it."""
    found = first(Case(changed(ADDED, (old, new)), ADDING, None))
    assert found.id == "formula-match"
    assert found.message.startswith(message)
    assert "factor" in found.advice


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("B, S, D = x.shape", "B, S, D = x.shape\n        self.out_proj.bias.mul_(1.0)"),
        ("heads = weights @ v", "heads = weights @ v\n        weights *= 1.0"),
    ],
)
def test_what_autograd_cannot_follow_in_place_is_told_by_gradients(old, new):
    """The rest of the process is as it was."""
    found = first(Case(changed(ATTENTION, (old, new))))
    assert found.id == "gradients-match"
    assert "new tensor" in found.advice


@pytest.mark.parametrize("squeeze", ["squeeze(1)", "squeeze()"])
def test_an_axis_that_is_squeezed_away_is_a_wrong_shape(squeeze):
    """At one position no value is wrong."""
    last = "self.norm(self.out_proj(out)) + x"
    found = first(Case(changed(ATTENTION, (last, f"({last}).{squeeze}"))))
    assert found.id == "output-shape"
    assert "squeeze" in found.advice


@pytest.mark.parametrize("eps", ["1e-3", "1e-6", "1e-12"])
def test_another_eps_is_a_wrong_value(eps):
    """Number types are right."""
    found = first(
        Case(changed(ATTENTION, ("embed_dim)\n\n", f"embed_dim, eps={eps})\n\n")), FLOAT64)
    )
    assert found.id == "matches-reference"


def test_a_backward_by_hand_is_derived_and_no_graph_is_looked_for():
    """Nothing is detached where autograd is not asked."""
    half = """
class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()

    @staticmethod
    def backward(ctx, dy): return dy / 2
"""
    text = changed(
        ATTENTION, ("self.norm(self.out_proj(out))", "Halved.apply(self.norm(self.out_proj(out)))")
    )
    found = first(Case(text + half))
    assert found.id == "gradients-match"
    assert found.advice.startswith("Derive backward by hand")
