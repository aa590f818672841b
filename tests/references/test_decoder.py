"""The decoder language model: causal, tied, cached, and able to learn (A6)."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from attention_scenes import exact, few, randomised, spin
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnlab.references import masks
from attnlab.references.block import BERT, GPT2, LLAMA
from attnlab.references.decoder import DecoderLM

V, MAX = 11, 12
STYLES = {"gpt2": GPT2, "post-norm": BERT, "llama": replace(LLAMA, num_kv_heads=2, rotate=spin)}
styles = st.sampled_from(sorted(STYLES))


def build(name: str) -> DecoderLM:
    return randomised(DecoderLM(V, 24, 6, 2, MAX, STYLES[name]))


def copies(count: int, length: int) -> Tensor:
    """Random words, the mark 0, the same words again: (count, 2 * length + 1)."""
    words = torch.randint(1, V, (count, length))
    return torch.cat((words, torch.zeros(count, 1, dtype=torch.int64), words), dim=1)


def test_it_learns_to_copy() -> None:
    """A6: the loss of the second half falls from about chance, ln(10), to next to nothing, and
    the words come back when they are generated."""
    torch.manual_seed(0)
    model = DecoderLM(V, 32, 4, 2, 11)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(120):
        ids = copies(32, 5)
        logits = model(ids[:, :-1])[:, 5:]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 6:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(V), rel=0.1)
    assert sum(losses[-10:]) / 10 < 0.1 * math.log(V - 1)
    ids = copies(20, 5)
    right = model.eval().generate(ids[:, :6], 5) == ids
    assert right.double().mean().item() > 0.95


@pytest.mark.parametrize("name", sorted(STYLES))
def test_it_is_its_parts_in_order(name: str) -> None:
    """A6: embedding and positions, blocks under a causal mask, norm, scores against each token."""
    model, ids = build(name), torch.randint(V, (3, 5))
    h = F.one_hot(ids, V).double() @ model.tokens.weight
    if name != "llama":
        h = h + model.positions.weight[:5]
    for block in model.blocks:
        h = block(h, torch.ones(1, 1, 5, 5, dtype=torch.bool).triu(1))
    if name == "gpt2":
        h = F.layer_norm(h, (24,), model.norm.weight, model.norm.bias)
    elif name == "llama":
        h = F.rms_norm(h, (24,), model.norm.weight, eps=1e-6)
    expected = torch.einsum("bsd,vd->bsv", h, model.tokens.weight)
    torch.testing.assert_close(model(ids), expected, **exact)


@given(styles, st.integers(1, 4), st.integers(1, MAX - 1))
@few
def test_the_future_changes_nothing(name: str, B: int, S: int) -> None:
    """A6: logits are those of the beginning alone, whatever follows."""
    model, ids = build(name), torch.randint(V, (B, MAX))
    torch.testing.assert_close(model(ids)[:, :S], model(ids[:, :S]), **exact)


@given(styles, st.lists(st.integers(1, 4), min_size=1, max_size=3))
@few
def test_decoding_in_any_parts_is_one_pass(name: str, parts: list[int]) -> None:
    """A5, A6: with positions and masks that count on from the caches."""
    model, ids = build(name), torch.randint(V, (3, sum(parts)))
    caches = model.new_caches(3)
    with torch.no_grad():
        steps = [model(part, caches=caches) for part in ids.split(parts, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(ids), **exact)


@pytest.mark.parametrize("name", sorted(STYLES))
def test_a_padded_batch_generates_as_each_alone(name: str) -> None:
    """A4, A5: prompts padded on the left, with their own positions, prefilled and decoded."""
    model, ids, real = build(name), torch.randint(V, (3, 5)), torch.tensor([5, 2, 3])
    start, caches, new = 5 - real, model.new_caches(3), torch.randint(V, (3, 1))

    def mask(S: int) -> Tensor:
        return masks.padding_mask(S - start, S, side="left")

    at = (torch.arange(6) - start[:, None]).clamp(min=0)
    with torch.no_grad():
        model(ids, mask(5), positions=at[:, :5], caches=caches)
        last = model(new, mask(6), positions=at[:, 5:], caches=caches)
    for b, n in enumerate(start.tolist()):
        alone = model(torch.cat((ids[b : b + 1, n:], new[b : b + 1]), dim=1))
        torch.testing.assert_close(last[b : b + 1], alone[:, -1:], **exact)


@pytest.mark.parametrize("name", sorted(STYLES))
def test_a_packed_row_is_as_its_parts_alone(name: str) -> None:
    """A4, A6: with segments as mask and positions that begin anew."""
    model, ids, segments = build(name), torch.randint(V, (1, 9)), masks.segment_ids([4, 2, 3])
    packed = model(ids, masks.packed_mask(segments), positions=masks.segment_positions(segments))
    alone = torch.cat([model(part) for part in ids.split([4, 2, 3], dim=1)], dim=1)
    torch.testing.assert_close(packed, alone, **exact)


@pytest.mark.parametrize("name", sorted(STYLES))
def test_generating_takes_the_likeliest_token(name: str) -> None:
    """A6: the same ids as by passing the whole sequence again at each step."""
    model, ids = build(name), torch.randint(V, (3, 4))
    found = model.generate(ids, 5)
    for _ in range(5):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), dim=1)
    assert torch.equal(found, ids)
    assert torch.equal(model.generate(ids, 0), ids)


def test_beams_share_a_prompt() -> None:
    """A5, A6: one prompt is prefilled once and goes on as several beams, each with its token."""
    model, prompt, new = build("llama"), torch.randint(V, (1, 4)), torch.tensor([[1], [2], [3]])
    caches = model.new_caches(1)
    with torch.no_grad():
        model(prompt, caches=caches)
        for cache in caches:
            cache.reorder(torch.zeros(3, dtype=torch.int64))
        found = model(new, caches=caches)
    whole = model(torch.cat((prompt.expand(3, 4), new), dim=1))
    torch.testing.assert_close(found, whole[:, -1:], **exact)


def test_the_head_is_the_embedding() -> None:
    """A6: one tensor, saved once; a token that is only a target gets a gradient too."""
    model = build("gpt2")
    assert not [name for name in model.state_dict() if "head" in name]
    logits = model(torch.tensor([[1, 2, 3]]))
    F.cross_entropy(logits.flatten(0, 1), torch.tensor([4, 4, 4])).backward()
    assert model.tokens.weight.grad[4].abs().sum() > 0
    assert model.positions.weight.grad[3:].abs().sum() == 0


def test_dropout_falls_on_the_embedding_too() -> None:
    """A6: with everything dropped nothing of the tokens is left, in training only."""
    model = randomised(DecoderLM(V, 24, 6, 2, MAX, replace(GPT2, dropout=1.0))).train()
    logits = model(torch.randint(V, (3, 5)))
    nothing = F.linear(model.norm.bias, model.tokens.weight)
    torch.testing.assert_close(logits, nothing.expand(3, 5, V), **exact)


def test_rotated_positions_need_no_table() -> None:
    """A6: a style with `rotate` has no learned table; without positions order would not matter."""
    model, ids = build("llama"), torch.tensor([[1, 2, 3, 4]])
    assert model.positions is None
    moved = model(torch.tensor([[2, 1, 3, 4]]))
    assert not torch.allclose(model(ids)[:, -1], moved[:, -1])


def test_post_norm_blocks_end_with_their_own_norm() -> None:
    """A6: a pre-norm model has one norm more, before the head."""
    assert not list(build("post-norm").norm.parameters())
    assert list(build("gpt2").norm.parameters())


@pytest.mark.parametrize(("dtype", "close"), [(torch.float16, 1e-2), (torch.bfloat16, 4e-2)])
@pytest.mark.parametrize("name", sorted(STYLES))
def test_narrower_types_stay_close(name: str, dtype: torch.dtype, close: float) -> None:
    """A6: with the same rounded weights, near float64."""
    torch.manual_seed(0)
    model, ids = (
        DecoderLM(V, 24, 6, 2, MAX, STYLES[name]).to(dtype).eval(),
        torch.randint(V, (2, 5)),
    )
    with torch.no_grad():
        found, expected = model(ids), model.double()(ids)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: DecoderLM(0, 8, 2, 1, 4), ValueError, "vocab_size=0: expected a positive"),
        (lambda m: DecoderLM(9, 8, 2, 0, 4), ValueError, "num_layers=0: expected a positive"),
        (lambda m: DecoderLM(9, 8, 2, 1, -4), ValueError, "max_len=-4: expected a positive"),
        (lambda m: DecoderLM(9, 8, 3, 1, 4), ValueError, "embed_dim=8, num_heads=3: expected"),
        (
            lambda m: m(torch.zeros(4).long()),
            ValueError,
            r"ids has shape \(4,\): expected \(B, S\)",
        ),
        (lambda m: m(torch.zeros(2, 4)), TypeError, "ids has dtype torch.float32: expected whole"),
        (lambda m: m(torch.tensor([[9]])), ValueError, r"ids holds 9 \.\.\. 9: .* from 0 to 8"),
        (lambda m: m(torch.tensor([[-1]])), ValueError, r"ids holds -1 \.\.\. -1: .* from 0 to 8"),
        (
            lambda m: m(torch.zeros(2, 5).long()),
            ValueError,
            "the sequence length is 5: expected at most max_len = 4",
        ),
        (
            lambda m: m(torch.zeros(2, 3).long(), positions=torch.tensor([0, 1, 4])),
            ValueError,
            r"positions holds 0 \.\.\. 4: expected numbers from 0 to 3",
        ),
        (
            lambda m: m(torch.zeros(2, 3).long(), positions=torch.tensor([[0, 1, 2]])),
            ValueError,
            r"positions has shape \(1, 3\): expected \(3,\) or \(2, 3\)",
        ),
        (
            lambda m: m(torch.zeros(2, 3).long(), caches=[]),
            ValueError,
            "there are 0 caches: expected 1, one per block",
        ),
        (
            lambda m: m(torch.zeros(2, 3).long(), masks.causal_mask(4)),
            ValueError,
            r"masks of shapes \(1, 1, 3, 3\), \(1, 1, 4, 4\): expected the same sizes",
        ),
        (
            lambda m: m.generate(torch.zeros(2, 3).long(), 2),
            ValueError,
            "steps=2 after 3 positions: expected 0 or more, and at most max_len = 4 in all",
        ),
        (lambda m: m.generate(torch.zeros(2, 3).long(), -1), ValueError, "steps=-1 after 3"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, error: type, said: str) -> None:
    """A6: naming the argument, its value and what is expected."""
    with pytest.raises(error, match=said):
        call(DecoderLM(9, 8, 2, 1, 4))
