"""Verbs that answer with gradients: of one call, and of calls inside a network."""

from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.describe_output import output
from attnlab.candidate.input_copies import cast_inputs, find_overwritten, reverse_strides
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.candidate.verbs.building import answers_by_dtype
from attnlab.candidate.verbs.calls import call
from attnlab.tracer.cast import Given, fresh


@verb
def gradients(
    session: Session, inputs: Given, cotangent: Tensor, train: bool = False, still: bool = False
) -> Any:
    """Gradients of (output * cotangent).sum(); of weights alone where inputs are `still`."""
    session.set_mode(train)
    given = fresh(inputs) if still else _requiring_gradients(inputs)
    weights = _reset_gradients(session)
    with torch.enable_grad():
        out = session.invoke(given)
        if not isinstance(out, Tensor):
            return output(out)
        if out.requires_grad:
            (out * cotangent.to(out.dtype)).sum().backward()  # type: ignore[no-untyped-call]
    wrote = find_overwritten(inputs, given, [0] * len(given))
    return ({"wrote": wrote} if wrote else {}) | {
        "dtype": str(out.dtype),
        "inputs": _gradients(given),
        "weights": {n: w.grad for n, w in weights.items() if w.grad is not None},
    }


@verb
def cast_gradients(
    session: Session, dtypes: list[str], inputs: Given, cotangent: Tensor, train: bool
) -> Any:
    """What `gradients` answers of copies in other types, as `answers_by_dtype` gives them."""

    def answer(dtype: torch.dtype) -> list[Any]:
        return [gradients(session, cast_inputs(inputs, dtype), cotangent, train)]

    return answers_by_dtype(session, dtypes, answer)


@verb
def interleaved_gradients(
    session: Session, inputs: list[Given], cotangents: list[Tensor], train: bool
) -> Any:
    """What learns when inputs come from another layer and outputs go on to one, when calls are
    made before others have sent their gradient back, and gradients add up; the second inputs
    come once more, as a first layer gets them. Then what reaches the first inputs where no
    parameter learns, and the output for them in eval mode."""
    session.set_mode(train)
    weights = _reset_gradients(session)
    leaves = [_requiring_gradients(given) for given in inputs]
    answers: list[dict[str, Any]] = []
    before: tuple[Any, ...] = ()
    skips = [torch.zeros_like(each, requires_grad=True) for each in cotangents]
    with torch.enable_grad():
        calls = [*map(_as_of_a_layer, leaves), fresh(inputs[1])]
        around = zip(calls, [*cotangents, cotangents[1]], [*skips, None], strict=True)
        for given, cotangent, skip in around:
            residual = (
                None if skip is None else skip * 1
            )  # older than the call: gets its share last
            out = session.invoke(given)
            answers.append(output(out))
            if before:  # sends its gradient back after the next was called
                _backward(*before)
            before = out, cotangent, residual
        _backward(*before)
        learnt = {n: w.grad for n, w in weights.items() if w.grad is not None}
        frozen = _input_gradients_frozen(session, inputs[0], cotangents[0])
    return {
        "answers": [*answers[:-1], call(session, inputs[0])],
        "inputs": [_gradients(given) for given in leaves],
        "weights": learnt,
        "frozen": frozen,
        "skips": {str(i): skip.grad for i, skip in enumerate(skips) if skip.grad is not None},
    }


def _input_gradients_frozen(
    session: Session, inputs: Given, cotangent: Tensor
) -> dict[str, Tensor]:
    """The gradients of inputs where no parameter requires one."""
    held = [w for w in dict(session.named_tensors("parameters")).values() if w.requires_grad]
    leaves = _requiring_gradients(inputs)
    try:
        for weight in held:
            weight.requires_grad_(False)
        _backward(session.invoke(_as_of_a_layer(leaves)), cotangent)
    finally:
        for weight in held:
            weight.requires_grad_(True)
    return _gradients(leaves)


def _reset_gradients(session: Session) -> dict[str, Tensor]:
    """The parameters by name, with their gradients set to None."""
    weights = dict(session.named_tensors("parameters"))
    for weight in weights.values():
        weight.grad = None
    return weights


def _requiring_gradients(given: Given) -> Given:
    return [
        (n, t.requires_grad_() if t is not None and t.is_floating_point() else t)
        for n, t in fresh(given)
    ]


def _as_of_a_layer(given: Given) -> Given:
    """As another layer hands them over: no leaves, and at other strides."""
    return [(n, reverse_strides(t) if t is not None and t.requires_grad else t) for n, t in given]


def _backward(out: object, cotangent: Tensor, residual: Tensor | None = None) -> None:
    """The gradient of ((output + residual) * cotangent).sum(), as a view that has the axes in
    another order."""
    if isinstance(out, Tensor) and out.requires_grad:
        if residual is not None and residual.shape == out.shape:
            out = out + residual.to(out.dtype)
        back = list(range(out.dim()))[::-1]
        turned = cotangent.to(out.dtype).permute(back).contiguous()
        (out.permute(back) * turned).sum().backward()  # type: ignore[no-untyped-call]


def _gradients(given: Given) -> dict[str, Tensor]:
    return {n: t.grad for n, t in given if t is not None and t.grad is not None}
