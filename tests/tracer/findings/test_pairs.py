"""What the two sides of a loss are made of."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attnlab

NET, HEAD = nn.Linear(6, 6), nn.Linear(6, 3)


def rules(step):
    """The rules of the findings of a traced step."""
    with attnlab.tracing() as traced:
        step().backward()
    return [f.rule for f in traced.findings]


def noise(same):
    x = torch.ones(4, 6)
    asked = torch.randn(4, 6)
    put = asked if same else torch.randn(4, 6)
    return F.mse_loss(NET(x + put), asked)


def orders(same):
    x, y = torch.randn(8, 6), torch.rand(8, 6)
    first = torch.randperm(8)
    second = first if same else torch.randperm(8)
    return F.mse_loss(NET(x[first]), y[second])


def balance(same):
    probabilities = HEAD(torch.randn(8, 6)).softmax(-1)
    chosen = F.one_hot(probabilities.argmax(-1), 3).float().mean(0)
    weight = probabilities.mean(0) if same else chosen
    return probabilities.log().mean() + (chosen * weight).sum()


@pytest.mark.parametrize(
    ("rule", "step"),
    [("draws-differ", noise), ("draws-differ", orders), ("term-without-gradient", balance)],
)
def test_sides_of_a_loss_that_know_nothing_of_each_other(rule, step):
    """Two draws where one is meant; a term that no gradient leads out of."""
    assert rule in rules(lambda: step(same=False))
    assert rule not in rules(lambda: step(same=True))


def test_a_teacher_may_see_a_view_of_its_own():
    """Both sides are learned: two draws are two augmentations."""

    def step():
        x = torch.ones(4, 6)
        with torch.no_grad():
            target = NET(x + torch.randn(4, 6))
        return F.mse_loss(HEAD(NET(x + torch.randn(4, 6))), HEAD(target))

    assert "draws-differ" not in rules(step)


@pytest.mark.parametrize("axes", ["B D", "N D"])
@pytest.mark.parametrize(("dim", "found"), [(0, True), (-1, False)])
def test_vectors_are_normalised_over_their_features(dim, found, axes):
    """Not over the batch, nor over rows of no known kind."""
    trace = attnlab.trace(lambda x: F.normalize(x, dim=dim), torch.randn(4, 6), dims={"x": axes})
    assert ("batch-contraction" in [f.rule for f in trace.findings]) == found


def test_a_count_that_a_loss_is_divided_by_needs_no_gradient():
    """An average over what was chosen by the model's own numbers, as a policy's live steps."""

    def step():
        scores = HEAD(NET(torch.ones(4, 6)))
        chosen = (scores.argmax(-1) != 0).float()
        return (scores.sum(-1) * chosen).sum() / chosen.sum()

    assert "term-without-gradient" not in rules(step)


CODES = nn.Parameter(torch.randn(5, 6))


@pytest.mark.parametrize("taken", ["index", "rows", "distance"])
def test_codes_that_are_looked_up_have_a_gradient(taken):
    """Vectors of a codebook are moved towards what was encoded, which is detached there."""

    def step():
        z = NET(torch.randn(4, 6))
        near = torch.cdist(z.detach(), CODES)
        found = (
            CODES[near.argmin(-1)] if taken == "index" else CODES.index_select(0, near.argmin(-1))
        )
        pull = near.amin(-1).mean() if taken == "distance" else F.mse_loss(found, z.detach())
        return pull + 0.25 * F.mse_loss(z, found.detach())

    assert "term-without-gradient" not in rules(step)


def test_a_weight_of_a_term_needs_no_gradient():
    """An average of scores, detached, may say how much a term counts."""

    def step():
        scores = HEAD(torch.randn(8, 6))
        return scores.logsumexp(-1).mean() + scores.std().detach() * scores.square().mean()

    assert "term-without-gradient" not in rules(step)


def test_vectors_are_normed_over_their_features():
    """F.normalize takes axis 1 unless told otherwise, and that is the positions of (B, S, D)."""
    tokens = torch.randn(3, 5, 6)
    assert "norm-axis" in rules(lambda: F.normalize(NET(tokens)).sum())
    assert "norm-axis" not in rules(lambda: F.normalize(NET(tokens), dim=-1).sum())
    assert "norm-axis" not in rules(lambda: F.normalize(NET(tokens[0])).sum())


@pytest.mark.parametrize(("dtype", "cut"), [(torch.long, True), (torch.float, False)])
def test_numbers_with_decimals_are_written_into_decimals(dtype, cut):
    """zeros_like of whole numbers is whole, and cuts what is written into it."""

    def step():
        returns = torch.zeros_like(torch.ones(4, 6, dtype=dtype))
        for i in range(4):
            returns[i] = 0.95 * torch.ones(6) * i
        return F.mse_loss(NET(torch.ones(4, 6)), returns.float())

    assert ("dtype-narrowed" in rules(step)) == cut
