"""A step on the tape gives the loss and the gradients that the script had."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from attnlab.training.tape import Tape


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def cross_entropy(layer, x):
    return F.cross_entropy(layer(x), torch.arange(4))


def filled_in_place(layer, x):
    out = torch.zeros(4, 6)
    for row in range(4):
        out[row] = layer(x[row]).tanh()
    out[:, 2] = 0.0
    return out.square().sum()


def by_hand(layer, x):
    weights = (layer(x) @ layer(x).mT).masked_fill(torch.ones(4, 4).triu(1).bool(), -1e9)
    return -(weights.softmax(-1) @ x).log_softmax(-1)[:, 0].mean()


def own_function(layer, x):
    return Straight.apply(layer(x)).square().mean()


def recomputed(layer, x):
    return checkpoint(layer, x, use_reentrant=False).square().mean()


def penalty(layer, x):
    given = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(layer(given).tanh().sum(), given, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


@pytest.mark.parametrize(
    "loss", [cross_entropy, filled_in_place, by_hand, own_function, recomputed, penalty]
)
def test_loss_and_gradients_come_again_and_follow_the_weights(loss):
    """In-place writes, functions of their own, checkpoints and gradients of gradients."""
    torch.manual_seed(0)
    layer, x = nn.Linear(6, 6), torch.randn(4, 6)
    with Tape() as tape:
        tape.paused = False
        tape.losses.append(loss(layer, x))
        tape.hold(layer.parameters())
    tape.prepare()
    with torch.no_grad():
        layer.weight.mul_(0.5)
    wanted = torch.autograd.grad(loss(layer, x), layer.weight)[0]
    again = tape.loss()
    torch.testing.assert_close(again, loss(layer, x))
    torch.testing.assert_close(torch.autograd.grad(again, layer.weight)[0], wanted)
    tape.rewind()
    torch.testing.assert_close(tape.loss(), tape.losses[0])


def test_what_the_weights_do_not_reach_stays_as_it_was():
    """The batch, its random numbers, and other weights, whatever becomes of them later."""
    layer, other, x = nn.Linear(6, 6), nn.Linear(6, 6), torch.randn(4, 6)
    with Tape() as tape:
        tape.paused = False
        noise = torch.randn(4, 6)
        tape.losses.append((layer(x + noise) - other(x).sigmoid()).square().mean())
        tape.hold(layer.parameters())
    tape.prepare()
    with torch.no_grad():
        other.weight.fill_(9.0)
        x.zero_()
    torch.testing.assert_close(tape.loss(), tape.losses[0])


def test_dropout_is_drawn_anew_or_left_out():
    """As the script has it, or not at all."""
    layer, x = nn.Linear(6, 6), torch.randn(4, 6)
    with Tape() as tape:
        tape.paused = False
        tape.losses.append(F.dropout(layer(x), 0.5).square().mean())
        tape.hold(layer.parameters())
    tape.prepare()
    assert tape.loss() != tape.loss()
    torch.testing.assert_close(tape.loss(drops=False), layer(x).square().mean())
