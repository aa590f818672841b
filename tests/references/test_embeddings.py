"""Token embeddings and ties, against PyTorch's own (B1, B2)."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnlab.references.embeddings import TiedHead, TokenEmbedding
from attnlab.references.positional import sinusoidal_positional_encoding

few = settings(max_examples=20, deadline=None)
different_sizes = st.lists(st.integers(2, 9), min_size=4, max_size=4, unique=True)


def tokens(V: int, B: int, S: int) -> Tensor:
    return torch.randint(V, (B, S))


# ---------------------------------------------------------------- the lookup


@given(different_sizes, st.booleans(), st.booleans())
@few
def test_lookup_is_a_product_with_one_hot_rows(sizes: list[int], scale: bool, padded: bool) -> None:
    """B1: one_hot(ids) @ weight * sqrt(D), with and without scale and padding."""
    V, B, S, D = sizes
    module = TokenEmbedding(V, D, 1 if padded else None, scale=scale).double()
    ids = tokens(V, B, S)
    by_product = F.one_hot(ids, V).double() @ module.weight * (math.sqrt(D) if scale else 1)
    torch.testing.assert_close(module(ids), by_product)


@given(different_sizes)
@few
def test_it_is_pytorch_embedding(sizes: list[int]) -> None:
    """B1: with the same rows and padding token, outputs and gradients are `nn.Embedding`'s."""
    V, B, S, D = sizes
    module = TokenEmbedding(V, D, padding_idx=0)
    twin = nn.Embedding(V, D, padding_idx=0)
    twin.weight.data.copy_(module.weight.data)
    ids, cotangent = tokens(V, B, S), torch.randn(B, S, D)
    assert torch.equal(module(ids), twin(ids))
    (module(ids) * cotangent).sum().backward()
    (twin(ids) * cotangent).sum().backward()
    assert torch.equal(module.weight.grad, twin.weight.grad)


def test_rows_are_drawn_with_a_deviation_of_one_fiftieth() -> None:
    """B1: N(0, 0.02^2), or the std that is asked for."""
    assert TokenEmbedding(500, 200).weight.std().item() == pytest.approx(0.02, rel=0.03)
    assert TokenEmbedding(500, 200, std=1.0).weight.std().item() == pytest.approx(1, rel=0.03)


def test_norms_of_scaled_rows() -> None:
    """B1: at D = 512 the norm is 10.2 beside the 16.0 of a position; with std 1 it is D."""
    torch.manual_seed(0)
    ids = torch.arange(400)[None]
    small = TokenEmbedding(400, 512, scale=True)(ids).norm(dim=-1).mean().item()
    large = TokenEmbedding(400, 512, scale=True, std=1.0)(ids).norm(dim=-1).mean().item()
    assert small == pytest.approx(10.2, abs=0.1)
    assert large == pytest.approx(512, rel=0.01)
    assert sinusoidal_positional_encoding(9, 512).norm(dim=1)[5].item() == pytest.approx(16.0)


def test_the_scale_multiplies_the_variance_by_the_width() -> None:
    """B1: it preserves none."""
    plain, scaled = TokenEmbedding(300, 64), TokenEmbedding(300, 64, scale=True)
    scaled.load_state_dict(plain.state_dict())
    ids = torch.arange(300)[None]
    assert (scaled(ids).var() / plain(ids).var()).item() == pytest.approx(64, rel=1e-4)


def test_the_padding_row_is_zeros_after_every_start() -> None:
    """B1: as built, and after its parameters are drawn anew."""
    module = TokenEmbedding(9, 6, padding_idx=2, scale=True)
    for _ in range(2):
        assert not module.weight[2].any()
        assert module.weight[[0, 1, 3]].all()
        module.reset_parameters()


def test_the_padding_row_gets_no_gradient() -> None:
    """B1: also after `reset_parameters`; the others do get theirs."""
    module = TokenEmbedding(9, 6, padding_idx=2, scale=True)
    module.reset_parameters()
    module(torch.tensor([[2, 2, 5]])).sum().backward()
    assert not module.weight.grad[2].any()
    assert module.weight.grad[5].tolist() == pytest.approx([math.sqrt(6)] * 6)


def test_a_tied_head_gives_the_padding_row_a_gradient() -> None:
    """B1: every row is a row of the head, so an optimiser moves the padding row after all."""
    module = TokenEmbedding(9, 6, padding_idx=2)
    TiedHead(module)(module(torch.tensor([[1, 2, 5]]))).sum().backward()
    assert module.weight.grad[2].any()


def test_pretrained_rows_are_frozen_unless_asked() -> None:
    """B1: as they are, the padding row too; a copy, which training may change."""
    rows = torch.randn(9, 6)
    frozen = TokenEmbedding.from_pretrained(rows, padding_idx=2)
    assert torch.equal(frozen.weight, rows)
    assert not frozen.weight.requires_grad
    assert frozen.padding_idx == 2
    trained = TokenEmbedding.from_pretrained(rows, freeze=False, scale=True)
    assert trained.weight.requires_grad
    before = rows.clone()
    trained.weight.data.zero_()
    assert torch.equal(rows, before)
    assert trained.factor == math.sqrt(6)


# ---------------------------------------------------------------- ties


def tied() -> nn.ModuleDict:
    """Source, target and output head on one matrix."""
    embedding = TokenEmbedding(9, 6)
    return nn.ModuleDict({"source": embedding, "target": embedding, "head": TiedHead(embedding)})


def storages(model: nn.ModuleDict) -> set[int]:
    weights = (model["source"].weight, model["target"].weight, model["head"].weight)
    return {w.untyped_storage().data_ptr() for w in weights}


@given(different_sizes)
@few
def test_the_head_is_the_transposed_matrix(sizes: list[int]) -> None:
    """B2: logits are h @ weight^T, without the embedding's scale."""
    V, B, S, D = sizes
    embedding = TokenEmbedding(V, D, scale=True).double()
    h = torch.randn(B, S, D, dtype=torch.float64)
    expected = torch.einsum("bsd,vd->bsv", h, embedding.weight)
    torch.testing.assert_close(TiedHead(embedding)(h), expected)


def test_a_tie_is_one_parameter() -> None:
    """B2: with one gradient, the sum of what lookup and head give."""
    model = tied()
    assert len(list(model.parameters())) == 1
    ids = tokens(9, 2, 5)
    model["head"](model["source"](ids)).sum().backward()
    weight = model["source"].weight.detach().clone().requires_grad_()
    (F.embedding(ids, weight) @ weight.T).sum().backward()
    torch.testing.assert_close(model["source"].weight.grad, weight.grad)


@pytest.mark.parametrize("assign", [False, True])
def test_a_tie_outlives_a_checkpoint(assign: bool) -> None:
    """B2: saved and loaded again, also by assignment, three names are one storage."""
    saved, model = copy.deepcopy(tied()), tied()
    model.load_state_dict(saved.state_dict(), assign=assign)
    assert len(storages(model)) == 1
    assert len(list(model.parameters())) == 1
    assert torch.equal(model["head"].weight, saved["source"].weight)


def test_assignment_parts_the_common_tie() -> None:
    """B2: why the head holds the embedding: `head.weight = embedding.weight` becomes two."""
    common = nn.ModuleDict({"source": nn.Embedding(9, 6), "head": nn.Linear(6, 9, bias=False)})
    common["head"].weight = common["source"].weight
    state = {name: value.clone() for name, value in common.state_dict().items()}
    assert len(list(common.parameters())) == 1
    common.load_state_dict(state, assign=True)
    assert len(list(common.parameters())) == 2


def test_a_tie_outlives_moving_and_copying() -> None:
    """B2: another type, another device, a deep copy."""
    for model in (tied().to(torch.float64), tied().to("meta"), copy.deepcopy(tied())):
        assert len(list(model.parameters())) == 1
        assert len(storages(model)) == 1


@pytest.mark.parametrize("vocab_size", [4, 12])
def test_a_tie_outlives_another_vocabulary(vocab_size: int) -> None:
    """B2: the head has as many logits as the embedding has tokens, and old rows stay."""
    model = tied()
    before = model["source"].weight.detach().clone()
    model["source"].resize(vocab_size)
    assert len(storages(model)) == 1
    assert model["head"](torch.randn(2, 3, 6)).shape == (2, 3, vocab_size)
    kept = min(vocab_size, 9)
    assert torch.equal(model["target"].weight[:kept], before[:kept])
    assert model["source"].weight[kept:].all()
    assert model["source"].weight.requires_grad


# ---------------------------------------------------------------- what is refused


def test_narrow_ids_are_read_too() -> None:
    """B1: int32 gives what int64 gives."""
    module, ids = TokenEmbedding(11, 6), tokens(11, 2, 5)
    assert torch.equal(module(ids.int()), module(ids))


@pytest.mark.parametrize("ids", [torch.tensor([[3, 9]]), torch.tensor([[-1, 3]])])
def test_tokens_outside_the_vocabulary_are_refused(ids: Tensor) -> None:
    """B1: negative ones do not count from the end; the message says what came and what may."""
    said = rf"ids reach from {ids.min()} to {ids.max()}: expected 0 to vocab_size - 1 = 8"
    with pytest.raises(ValueError, match=said):
        TokenEmbedding(9, 6)(ids)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 1), ()])
def test_ids_of_another_rank_are_refused(shape: tuple[int, ...]) -> None:
    """B1: naming the shape."""
    with pytest.raises(ValueError, match=r"ids have shape \(.*expected \(B, S\)"):
        TokenEmbedding(9, 6)(torch.zeros(shape, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.uint8])
def test_ids_of_another_type_are_refused(dtype: torch.dtype) -> None:
    """B1: naming the type."""
    with pytest.raises(TypeError, match=f"ids have dtype {dtype}: expected int64 or int32"):
        TokenEmbedding(9, 6)(torch.zeros(2, 3, dtype=dtype))


@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 1), (2, 3, 7)])
def test_hidden_states_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    """B2: a width of 1 is not stretched."""
    with pytest.raises(ValueError, match=r"h has shape \(.*expected \(B, S, D\) with D = 6"):
        TiedHead(TokenEmbedding(9, 6))(torch.zeros(shape))


def test_bad_arguments_are_refused() -> None:
    """B1: each by name and value."""
    with pytest.raises(ValueError, match="vocab_size=0, d_model=6: expected positive"):
        TokenEmbedding(0, 6)
    with pytest.raises(ValueError, match="vocab_size=3, d_model=-6: expected positive"):
        TokenEmbedding(3, -6)
    for index in (-1, 9):
        with pytest.raises(ValueError, match=f"padding_idx={index}: expected None or .* to 8"):
            TokenEmbedding(9, 6, padding_idx=index)
    with pytest.raises(ValueError, match="std=-1: expected a finite number"):
        TokenEmbedding(9, 6, std=-1)
    with pytest.raises(ValueError, match=r"weight has shape \(9,\) .*expected \(V, D\)"):
        TokenEmbedding.from_pretrained(torch.zeros(9))
    with pytest.raises(ValueError, match=r"dtype torch.int64: expected \(V, D\), floating"):
        TokenEmbedding.from_pretrained(torch.zeros(9, 6, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"padding_idx=4: .* to 2"):
        TokenEmbedding(9, 6, padding_idx=4).resize(3)
