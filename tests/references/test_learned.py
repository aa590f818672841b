"""Learned positions: the rows, where they go, and the derivative by hand (B4)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references.learned import LearnedPositionalEncoding

few = settings(max_examples=20, deadline=None)
different_sizes = st.lists(st.integers(1, 9), min_size=4, max_size=4, unique=True)


def scene(sizes: list[int]) -> tuple[LearnedPositionalEncoding, Tensor, Tensor]:
    """A table of more positions than the sequence has, x, and ids that repeat and skip."""
    B, S, D, more = sizes
    torch.manual_seed(hash(tuple(sizes)))
    module = LearnedPositionalEncoding(D, S + more).double()
    ids = torch.randint(S + more, (B, S))
    return module, torch.randn(B, S, D, dtype=torch.float64), ids


@given(different_sizes, st.booleans())
@few
def test_adds_the_row_of_each_position(sizes: list[int], own: bool) -> None:
    """B4: entry by entry, with positions 0 ... S - 1 or given ones."""
    module, x, ids = scene(sizes)
    B, S, _, _ = sizes
    out = module(x, ids) if own else module(x)
    for b in range(B):
        for s in range(S):
            p = ids[b, s] if own else s
            assert torch.equal(out[b, s], x[b, s] + module.weight[p])


def test_rows_are_drawn_from_a_narrow_normal() -> None:
    """B4: N(0, 0.02), and by `std` another width."""
    torch.manual_seed(0)
    weight = LearnedPositionalEncoding(400, 500).weight
    assert weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert weight.mean().item() == pytest.approx(0, abs=2e-4)
    wide = LearnedPositionalEncoding(400, 500, std=1.0).weight
    assert wide.std().item() == pytest.approx(1.0, rel=0.02)


@given(different_sizes, st.booleans())
@few
def test_the_derivative_by_hand_is_autograds(sizes: list[int], own: bool) -> None:
    """B4: passed through for x; for the table the batch sum, zeros where no position is."""
    module, x, ids = scene(sizes)
    given_ids = ids if own else None
    grad = torch.randn_like(x)
    module(x.requires_grad_(), given_ids).backward(grad)
    by_hand = module.backward(grad, given_ids)
    assert torch.equal(by_hand, x.grad)
    torch.testing.assert_close(module.grad_embedding, module.weight.grad, rtol=1e-12, atol=1e-12)
    absent = torch.ones(module.max_seq_len, dtype=torch.bool)
    absent[ids if own else torch.arange(x.shape[1])] = False
    assert (module.grad_embedding[absent] == 0).all()


@pytest.mark.parametrize("own", [False, True])
def test_the_derivative_by_hand_is_the_central_difference(own: bool) -> None:
    """B4: in float64 with eps 1e-5, the relative error is below 1e-5."""
    module, x, ids = scene([2, 3, 4, 5])
    given_ids = ids if own else None
    upstream = torch.randn_like(x)

    def loss() -> float:
        with torch.no_grad():
            return (module(x, given_ids).sin() * upstream).sum().item()

    grad_x = module.backward(module(x, given_ids).detach().cos() * upstream, given_ids)
    for values, grad in ((x, grad_x), (module.weight.data, module.grad_embedding)):
        numeric = torch.zeros_like(values)
        for at in torch.cartesian_prod(*(torch.arange(n) for n in values.shape)).tolist():
            here, eps = tuple(at), 1e-5
            was = values[here].item()
            values[here] = was + eps
            up = loss()
            values[here] = was - eps
            numeric[here] = (up - loss()) / (2 * eps)
            values[here] = was
        assert (numeric - grad).norm() < 1e-5 * numeric.norm()


def test_each_backward_overwrites_the_last() -> None:
    """B4: it does not accumulate, and leaves autograd's gradient and the arguments alone."""
    module, x, ids = scene([2, 3, 4, 5])
    assert module.grad_embedding is None
    first = module.backward(x, ids)
    once = module.grad_embedding.clone()
    first.zero_()
    module.backward(x, ids)
    assert torch.equal(module.grad_embedding, once)
    module.backward(x[:, :1])
    assert (module.grad_embedding[1:] == 0).all()
    assert module.grad_embedding.shape == module.weight.shape
    assert module.weight.grad is None
    assert "grad_embedding" not in module.state_dict()


def test_padding_on_the_left_starts_counting_at_the_first_token() -> None:
    """B4: the ids of the docstring give real tokens the rows they have without padding."""
    module, x, _ = scene([2, 5, 4, 3])
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    ids = (real.cumsum(1) - 1).clamp(min=0)
    out = module(x, ids)
    assert torch.equal(out[0, 2:], module(x[:1, 2:])[0])
    assert torch.equal(out[1], module(x[1:])[0])


def test_steps_of_decoding_get_the_rows_of_the_prefill() -> None:
    """B4: one position at a time, or three at once."""
    module, x, _ = scene([2, 7, 4, 3])
    p = torch.arange(7).expand(2, 7)
    parts = [module(x[:, a:b], p[:, a:b]) for a, b in ((0, 3), (3, 4), (4, 7))]
    assert torch.equal(torch.cat(parts, dim=1), module(x))


def test_get_encoding_is_a_copy_cut_off_from_training() -> None:
    """B4: (S, D), and writing to it does not reach the table."""
    module, _, _ = scene([2, 7, 4, 3])
    rows = module.get_encoding(5)
    assert torch.equal(rows, module.weight[:5])
    assert not rows.requires_grad
    rows.zero_()
    assert not (module.weight == 0).any()


@pytest.mark.parametrize("where", ["forward", "backward", "get_encoding"])
def test_sequences_beyond_the_table_are_refused(where: str) -> None:
    """B4: S > max is named, with the maximum."""
    module = LearnedPositionalEncoding(4, 9)
    call = {
        "forward": lambda: module(torch.zeros(2, 10, 4)),
        "backward": lambda: module.backward(torch.zeros(2, 10, 4)),
        "get_encoding": lambda: module.get_encoding(10),
    }[where]
    with pytest.raises(ValueError, match="length is 10: expected at most max_seq_len = 9"):
        call()


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        ([[0, 9, 1]], ValueError, r"position_ids holds 0 ... 9: expected positions from 0 to 8"),
        ([[0, -1, 1]], ValueError, r"position_ids holds -1 ... 1: expected"),
        ([0, 1, 2], ValueError, r"position_ids has shape \(3,\): expected \(B, S\) = \(1, 3\)"),
        ([[0, 1]], ValueError, r"position_ids has shape \(1, 2\): expected \(B, S\) = \(1, 3\)"),
        (
            [[0.0, 1.0, 2.0]],
            TypeError,
            "position_ids has dtype torch.float32: expected torch.int64",
        ),
        ([[True, False, True]], TypeError, "position_ids has dtype torch.bool"),
    ],
)
def test_positions_that_do_not_exist_are_refused(
    ids: list[int], error: type[Exception], said: str
) -> None:
    """B4: -1 would be the last row, and a mask would pick rows; the message names the values."""
    module = LearnedPositionalEncoding(4, 9)
    for call in (module, module.backward):
        with pytest.raises(error, match=said):
            call(torch.zeros(1, 3, 4), torch.tensor(ids))


@pytest.mark.parametrize("shape", [(5, 4), (2, 5, 1), (2, 5, 3), (1, 2, 5, 4)])
def test_an_x_that_would_only_broadcast_is_refused(shape: tuple[int, ...]) -> None:
    """B4: forward names x, backward its own argument."""
    module = LearnedPositionalEncoding(4, 9)
    with pytest.raises(ValueError, match=r"^x has shape .*: expected \(B, S, D\) with D = 4"):
        module(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"^grad_output has shape .*: expected \(B, S, D\)"):
        module.backward(torch.zeros(shape))


@pytest.mark.parametrize(("name", "sizes"), [("max_seq_len", (4, 0)), ("d_model", (0, 4))])
def test_sizes_below_one_are_refused(name: str, sizes: tuple[int, int]) -> None:
    """B4: an empty table helps nobody."""
    with pytest.raises(ValueError, match=f"{name}=0: expected 1 or more"):
        LearnedPositionalEncoding(*sizes)
