"""Permuted positions give permuted outputs (B10): on modules that obey, and on others."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnlab.checks import permutation_equivariance as check
from attnlab.checks.base import Failure, load_checks, parts_of
from attnlab.probe.answers import Skip
from attnlab.probe.inputs.draw import Dice, inputs
from attnlab.records import Contract, Input
from attnlab.references.attention import MultiHeadSelfAttention
from attnlab.references.positional import SinusoidalPositionalEncoding

X = Input(name="x", axes=("B", "S", "D"))
MASK = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True)
KEYS = Input(name="mask", axes=("B", "S"), dtype="bool", role="mask", optional=True)
SIZES = {"B": 3, "S": 7, "D": 12, "H": 3}


class Probe:
    """The verbs that this check uses, over a function in this process."""

    def __init__(self, call: Callable[..., Tensor], *given: Input, **sizes: int) -> None:
        self.function = call
        self.sizes = {**SIZES, **sizes}
        self.contract = Contract(
            sizes=self.sizes,
            inputs=given or (X, MASK),
            output=("B", "S", "D"),
            promises=("averaging",),
        )
        self.dice = Dice(7)

    def draw(self, mask: str = "random", scale: float = 1.0):
        return inputs(self.contract, self.sizes, self.dice, mask, scale)

    def sample(self, mask: str = "random", scale: float = 1.0):
        drawn = self.draw(mask, scale)
        return drawn, self.call(drawn)

    def calls(self, several, train: bool = False):
        return [self.call(given) for given in several]

    def with_mask(self, mask):
        return f" ({mask} mask)"

    def choose_ways(self, ways):
        return list(ways)

    def random_integer(self, low: int, high: int) -> int:
        return self.dice.plain.randrange(low, high)

    def call(self, given, train: bool = False) -> Tensor:
        with torch.no_grad():
            return self.function(*given.values())


def attention() -> MultiHeadSelfAttention:
    torch.manual_seed(3)
    return MultiHeadSelfAttention(12, 3).eval()


def verdict(probe: Probe) -> Failure | None:
    return check.run.failure(probe)


def failure(call: Callable[..., Tensor], *given: Input, **sizes: int) -> str:
    found = verdict(Probe(call, *given, **sizes))
    assert isinstance(found, Failure)
    return found.message


@pytest.mark.parametrize("S", [2, 3, 7, 40])
def test_attention_without_positions_does_not_know_the_order(S: int) -> None:
    """B10: outputs move with the inputs, when both axes of the mask move too."""
    assert verdict(Probe(attention(), S=S)) is None


def test_attention_with_positions_does() -> None:
    """B10: sinusoids added to x end it; so does one trained number per position."""
    module, positions = attention(), SinusoidalPositionalEncoding(12, 50)
    assert "positions were put in the order" in failure(lambda x, m: module(positions(x), m))
    bias = torch.randn(7, 7)
    seen = failure(lambda x, m: torch.softmax(x @ x.mT + bias, -1) @ x)
    assert "random mask" in seen


def test_the_message_can_be_followed() -> None:
    """B10: the order, the place, and which position should have been there."""
    seen = failure(lambda x, m: x * torch.arange(7.0)[:, None])
    found = re.search(r"the order \[(.*?)\], and the output at \[(\d), (\d), (\d+)\]", seen)
    assert found
    order = [int(n) for n in found[1].split(",")]
    assert sorted(order) == list(range(7))
    assert f"is not what position {order[int(found[3])]} gave before" in seen


def test_a_reshape_that_mixes_positions_is_seen() -> None:
    """B10: heads split without a transpose trade features between positions."""

    def scrambled(x: Tensor, m: Tensor | None) -> Tensor:
        heads = x.reshape(3, 3, 7, 4)
        return (torch.softmax(heads @ heads.mT, -1) @ heads).transpose(1, 2).flatten(2)

    assert failure(scrambled)


def test_a_mask_that_is_read_the_wrong_way_round_is_no_matter_of_order() -> None:
    """B10: [key, query] permutes as well; other checks see that one."""
    module = attention()

    def turned(x: Tensor, m: Tensor | None) -> Tensor:
        return module(x, None if m is None else m.mT)

    assert verdict(Probe(turned)) is None


def test_a_mask_of_keys_moves_along_its_one_axis() -> None:
    """B10: (B, S) padding masks are moved with the positions they belong to."""
    module = attention()

    def padded(x: Tensor, m: Tensor | None) -> Tensor:
        return module(x, None if m is None else m[:, None].expand(3, 7, 7))

    assert verdict(Probe(padded, X, KEYS)) is None
    assert failure(lambda x, m: padded(x, None if m is None else m.flip(-1)), X, KEYS)


def test_positions_that_are_an_input_move_too() -> None:
    """B10: an embedding of given position ids keeps the property."""
    ids = Input(name="ids", axes=("B", "S"), dtype="int")
    table = torch.randn(16, 12)
    module = attention()
    assert verdict(Probe(lambda x, ids: module(x + table[ids]), X, ids)) is None


def test_the_inputs_stay_as_they_were() -> None:
    """The check permutes copies."""
    kept: list[tuple[Tensor, Tensor]] = []

    def call(x: Tensor, m: Tensor | None) -> Tensor:
        kept.append((x, x.clone()))
        return x

    verdict(Probe(call))
    assert all(torch.equal(*pair) for pair in kept)


def test_nothing_to_permute_is_skipped() -> None:
    """One position has one order, and a causal module knows the order by its own mask."""
    with pytest.raises(Skip, match="one position"):
        verdict(Probe(attention(), S=1))
    probe = Probe(nn.Identity(), X)
    probe.contract = Contract(
        sizes=SIZES, inputs=(X,), output=("B", "S", "D"), promises=("averaging", "causal")
    )
    with pytest.raises(Skip, match="causal"):
        verdict(probe)


def test_the_order_is_a_shuffle() -> None:
    """Something always moves, and over many draws it is more than a shift."""
    probe = Probe(attention())
    orders = [check._shuffled(probe, 7) for _ in range(50)]
    assert all(sorted(order) == list(range(7)) and order != sorted(order) for order in orders)
    shifts = [list(range(k, 7)) + list(range(k)) for k in range(7)]
    assert any(order not in shifts for order in orders)
    assert all(check._shuffled(probe, 2) == [1, 0] for _ in range(9))


def test_it_is_found_and_stands_behind_what_explains_it() -> None:
    """By its file; leaks and mask faults come first and fold it."""
    ids = [part.id for part in parts_of(load_checks())]
    for earlier in ("batch-independence", "causality", "mask-effect"):
        assert ids.index(earlier) < ids.index("permutation-equivariance")
    assert ids.index("permutation-equivariance") < ids.index("matches-reference")
