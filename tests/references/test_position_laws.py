"""What every position module keeps to: export, types, batches, gradients (B3-B7)."""

import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from attnlab import references
from attnlab.references.alibi import ALiBi
from attnlab.references.extension import HybridPositionalEncoding
from attnlab.references.grid import (
    FactorisedGridEncoding,
    LearnedGridEncoding,
    SinusoidalGridEncoding,
)
from attnlab.references.hierarchical import HierarchicalPositionalEncoding
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.positional import SinusoidalPositionalEncoding
from attnlab.references.relative import T5RelativeBias
from attnlab.references.rotary import RotaryEmbedding
from attnlab.references.rotary_scaling import (
    DynamicNTKScaling,
    Llama3Scaling,
    LongRoPEScaling,
    YaRNScaling,
)
from attnlab.references.transformer_xl import TransformerXLAttention
from attnlab.references.xpos import XPos

D, H = 8, 4
MODULES = {
    f"attnlab.references.{name}"
    for name in (
        *("positional", "learned", "extension", "hierarchical", "grid"),
        *("rotary", "rotary_scaling", "xpos", "relative", "alibi", "transformer_xl"),
    )
}


class Case(NamedTuple):
    """A module, its inputs for B sequences of S positions, and the axes that may vary."""

    module: Callable[[], nn.Module]
    inputs: Callable[[int, int], tuple[Tensor, ...]]
    axes: tuple[str, ...]  # one word per input; capitals stand for sizes that vary


def x(B: int, S: int) -> Tensor:
    return torch.randn(B, S, D, dtype=torch.float64)


def ids(B: int, S: int) -> Tensor:
    return torch.stack([torch.arange(S) + b for b in range(B)])


def heads(B: int, S: int, n: int = H) -> Tensor:
    return torch.randn(B, n, S, D, dtype=torch.float64)


def image(B: int, S: int) -> tuple[Tensor]:
    return (torch.randn(B, S, S + 2, D, dtype=torch.float64),)


def scores(B: int, S: int) -> tuple[Tensor]:
    return (torch.randn(B, H, S, S + 3, dtype=torch.float64),)


def with_memory(B: int, S: int) -> tuple[Tensor, Tensor, Tensor]:
    mask = torch.rand(B, S, S + 3) < 0.3
    mask[:, 0] = True  # a query without keys
    return x(B, S), x(B, 3), mask


def rotary(**options: Any) -> Case:
    return Case(
        lambda: RotaryEmbedding(D, **options),
        lambda B, S: (heads(B, S), heads(B, S, 2), ids(B, S)),
        ("BhSd", "BhSd", "BS"),
    )


CASES = {
    "sinusoidal": Case(
        lambda: SinusoidalPositionalEncoding(D, 64), lambda B, S: (x(B, S),), ("BSd",)
    ),
    "sinusoidal with ids": Case(
        lambda: SinusoidalPositionalEncoding(D, 64, beyond="extend"),
        lambda B, S: (x(B, S), ids(B, S)),
        ("BSd", "BS"),
    ),
    "learned": Case(lambda: LearnedPositionalEncoding(D, 64), lambda B, S: (x(B, S),), ("BSd",)),
    "learned with ids": Case(
        lambda: LearnedPositionalEncoding(D, 64),
        lambda B, S: (x(B, S), ids(B, S)),
        ("BSd", "BS"),
    ),
    "hybrid": Case(
        lambda: HybridPositionalEncoding(D, 6),
        lambda B, S: (x(B, S), ids(B, S)),
        ("BSd", "BS"),
    ),
    "hierarchical": Case(
        lambda: HierarchicalPositionalEncoding((3, 4, 5), D),
        lambda B, S: (x(B, S),),
        ("BSd",),
    ),
    "hierarchical with ids": Case(
        lambda: HierarchicalPositionalEncoding((3, 4), D),
        lambda B, S: (x(B, S), torch.randint(3, (B, S, 2))),
        ("BSd", "BSd"),
    ),
    "sinusoidal grid": Case(lambda: SinusoidalGridEncoding(16, 16, D), image, ("BSKd",)),
    "learned grid": Case(lambda: LearnedGridEncoding(16, 16, D), image, ("BSKd",)),
    "factorised grid": Case(lambda: FactorisedGridEncoding(16, 16, D), image, ("BSKd",)),
    "factors beside": Case(
        lambda: FactorisedGridEncoding(16, 16, D, combine="concatenate"), image, ("BSKd",)
    ),
    "rotary": Case(
        lambda: RotaryEmbedding(D),
        lambda B, S: (heads(B, S), heads(B, S, 2)),
        ("BhSd", "BhSd"),
    ),
    "rotary in halves, in part": rotary(layout="half", rotary_dim=4),
    "rotary, dynamic": rotary(scaling=DynamicNTKScaling(4.0, 8)),
    "rotary, YaRN": rotary(scaling=YaRNScaling(4.0, 8)),
    "rotary, llama3": rotary(scaling=Llama3Scaling(4.0, 8)),
    "rotary, LongRoPE": rotary(scaling=LongRoPEScaling([1.0] * 4, [2.0] * 4, 2.0, 8)),
    "xpos": Case(
        lambda: XPos(D),
        lambda B, S: (heads(B, S), heads(B, S, 2), ids(B, S)),
        ("BhSd", "BhSd", "BS"),
    ),
    "t5": Case(lambda: T5RelativeBias(H), scores, ("BhSK",)),
    "t5 causal": Case(lambda: T5RelativeBias(H, bidirectional=False), scores, ("BhSK",)),
    "alibi": Case(lambda: ALiBi(H), scores, ("BhSK",)),
    "xl": Case(lambda: TransformerXLAttention(D, 2), lambda B, S: (x(B, S),), ("BSd",)),
    "xl with memory": Case(
        lambda: TransformerXLAttention(D, 2, causal=False), with_memory, ("BSd", "BKd", "BSK")
    ),
}


def each_but(*left_out: str) -> pytest.MarkDecorator:
    names = [name for name in CASES if name not in left_out]
    return pytest.mark.parametrize("case", [CASES[name] for name in names], ids=names)


each = each_but()


def scene(case: Case, B: int = 3, S: int = 5) -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    return case.module().double(), case.inputs(B, S)


def parts(out: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return out if isinstance(out, tuple) else (out,)


def floats(inputs: tuple[Tensor, ...]) -> list[Tensor]:
    return [t for t in inputs if t.is_floating_point()]


def test_no_module_is_left_out() -> None:
    """B3-B7: each class of the position files stands in the table above."""
    here = {cls for _, cls in references._units() if cls.__module__ in MODULES}
    assert here == {type(case.module()) for case in CASES.values()}


@each_but("xl", "rotary, YaRN", "rotary, llama3")  # slow, and no graph of their own
def test_export_takes_any_batch_and_length(case: Case) -> None:
    """B3-B7: one exported graph gives what the module gives, at sizes it has not seen."""
    module, inputs = scene(case)
    dims = tuple(
        {n: Dim.DYNAMIC for n, axis in enumerate(axes) if axis.isupper()} for axes in case.axes
    )
    graph = export(module.eval(), inputs, dynamic_shapes=dims).module()
    for B, S in ((2, 4), (4, 11)):
        other = case.inputs(B, S)
        for got, expected in zip(parts(graph(*other)), parts(module(*other)), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrower_types_give_nearly_the_same(case: Case, dtype: torch.dtype) -> None:
    """B3-B7: in the type of the inputs, within a few steps of it."""
    module, inputs = scene(case)
    narrow = tuple(t.to(dtype) if t.is_floating_point() else t for t in inputs)
    # What the narrow module can at best know: inputs and weights as they were rounded.
    exact = copy.deepcopy(module).to(dtype).double()
    wide = tuple(t.double() if t.is_floating_point() else t for t in narrow)
    eps = torch.finfo(dtype).eps
    with torch.no_grad():
        got, expected = parts(module.to(dtype)(*narrow)), parts(exact(*wide))
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.double(), b, rtol=4 * eps, atol=8 * eps)


@each_but("rotary, dynamic")  # there the longest sequence sets the frequencies of all
def test_sequences_of_a_batch_do_not_meet(case: Case) -> None:
    """B3-B7: each alone, with its own positions, gives what it gives inside the batch."""
    module, inputs = scene(case)
    together = parts(module(*inputs))
    for b in range(3):
        alone = parts(module(*(t[b : b + 1] for t in inputs)))
        for a, whole in zip(alone, together, strict=True):
            torch.testing.assert_close(a, whole[b : b + 1], rtol=1e-12, atol=1e-12)


@each
def test_inputs_are_left_alone_and_answers_repeat(case: Case) -> None:
    """B3-B7: twice the same, under no_grad too."""
    module, inputs = scene(case)
    before = [t.clone() for t in inputs]
    first = parts(module(*inputs))
    with torch.no_grad():
        second = parts(module(*inputs))
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
        assert not b.requires_grad
    assert all(torch.equal(t, was) for t, was in zip(inputs, before, strict=True))


@each
def test_gradients_are_finite_and_reach_every_weight(case: Case) -> None:
    """B3-B7: with anomaly detection on, so that no step on the way makes a NaN."""
    module, inputs = scene(case)
    for t in floats(inputs):
        t.requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        torch.stack([(out**2).sum() for out in parts(module(*inputs))]).sum().backward()
    for p in module.parameters():
        assert p.grad is not None
        assert p.grad.isfinite().all()
        assert p.grad.abs().sum() > 0
    assert inputs[0].grad is not None
    assert inputs[0].grad.isfinite().all()


@each
def test_shapes_alone_are_enough(case: Case) -> None:
    """B3-B7: on the meta device, where there are no values, everything is made where x is."""
    module, inputs = scene(case)
    shapes = [t.shape for t in parts(module(*inputs))]
    there = parts(module.to("meta")(*(t.to("meta") for t in inputs)))
    assert [t.shape for t in there] == shapes
    assert all(t.is_meta for t in there)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(
    "make",
    [
        lambda: SinusoidalPositionalEncoding(64, 4200),
        lambda: LearnedPositionalEncoding(64, 4200),
        lambda: HybridPositionalEncoding(64, 8),
        lambda: HierarchicalPositionalEncoding((7, 600), 64),
    ],
)
def test_positions_near_4096_stay_apart(make: Callable[[], Any], dtype: torch.dtype) -> None:
    """B3-B6: in half types too, whose own numbers skip positions beyond 256 or 2048."""
    torch.manual_seed(0)
    rows = make().to(dtype).get_encoding(4110)[4080:]
    assert rows.dtype == dtype
    assert len(rows.unique(dim=0)) == 30


@pytest.mark.parametrize(
    "kind",
    [SinusoidalPositionalEncoding, LearnedPositionalEncoding, HybridPositionalEncoding],
)
def test_sizes_stand_in_one_order(kind) -> None:
    """B3, B4, B5: the width first, then the longest sequence, whatever the scheme."""
    names = list(inspect.signature(kind).parameters)[:2]
    assert names == ["d_model", "max_seq_len"]
