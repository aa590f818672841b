"""Verbs of a session about gradients: of one call, and of calls as a network makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.describe_output import output
from attnlab.candidate.input_copies import in_type, strided, written
from attnlab.tracer.cast import Given, fresh


class Learning:
    """Mixed into `Session`, which builds and calls."""

    built: Any

    def _mode(self, train: bool) -> None:
        raise NotImplementedError

    def _invoke(self, given: Given) -> Any:
        raise NotImplementedError

    def _named(self, kind: str) -> list[tuple[str, Tensor]]:
        raise NotImplementedError

    def do_call(self, inputs: Given, train: bool = False) -> Any:
        raise NotImplementedError

    def _in_types(self, dtypes: list[str], answer: Callable[[torch.dtype], list[Any]]) -> Any:
        raise NotImplementedError

    def do_gradients(
        self, inputs: Given, cotangent: Tensor, train: bool = False, still: bool = False
    ) -> Any:
        """Gradients of (output * cotangent).sum(); of weights alone where inputs are `still`."""
        self._mode(train)
        given = [
            (n, t.requires_grad_() if t is not None and t.is_floating_point() and not still else t)
            for n, t in fresh(inputs)
        ]
        weights = self._forgotten()
        with torch.enable_grad():
            out = self._invoke(given)
            if not isinstance(out, Tensor):
                return output(out)
            if out.requires_grad:
                (out * cotangent.to(out.dtype)).sum().backward()  # type: ignore[no-untyped-call]
        wrote = written(inputs, given, [0] * len(given))
        return ({"wrote": wrote} if wrote else {}) | {
            "dtype": str(out.dtype),
            "inputs": {n: t.grad for n, t in given if t is not None and t.grad is not None},
            "weights": {n: w.grad for n, w in weights.items() if w.grad is not None},
        }

    def do_cast_gradients(
        self, dtypes: list[str], inputs: Given, cotangent: Tensor, train: bool
    ) -> Any:
        """What `do_gradients` answers of copies in other types, as `_in_types` has them."""
        return self._in_types(
            dtypes, lambda to: [self.do_gradients(in_type(inputs, to), cotangent, train)]
        )

    def do_interleaved_gradients(
        self, inputs: list[Given], cotangents: list[Tensor], train: bool
    ) -> Any:
        """What learns when inputs come from another layer and outputs go on to one, when calls are
        made before others have sent their gradient back, and gradients add up; the second inputs
        come once more, as a first layer gets them. Then what reaches the first inputs where no
        parameter learns, and the output for them in eval mode."""
        self._mode(train)
        weights = self._forgotten()
        leaves = [_leaves(given) for given in inputs]
        answers: list[dict[str, Any]] = []
        before: tuple[Any, ...] = ()
        with torch.enable_grad():
            calls = [*map(_amid, leaves), fresh(inputs[1])]
            for given, cotangent in zip(calls, [*cotangents, cotangents[1]], strict=True):
                out = self._invoke(given)
                answers.append(output(out))
                if before:  # sends its gradient back after the next was called
                    _send(*before)
                before = out, cotangent
            _send(*before)
            learnt = {n: w.grad for n, w in weights.items() if w.grad is not None}
            frozen = self._frozen(inputs[0], cotangents[0])
        return {
            "answers": [*answers[:-1], self.do_call(inputs[0])],
            "inputs": [_gradients(given) for given in leaves],
            "weights": learnt,
            "frozen": frozen,
        }

    def _frozen(self, inputs: Given, cotangent: Tensor) -> dict[str, Tensor]:
        """The gradients of inputs where no parameter requires one."""
        held = [w for w in dict(self._named("parameters")).values() if w.requires_grad]
        leaves = _leaves(inputs)
        try:
            for weight in held:
                weight.requires_grad_(False)
            _send(self._invoke(_amid(leaves)), cotangent)
        finally:
            for weight in held:
                weight.requires_grad_(True)
        return _gradients(leaves)

    def _forgotten(self) -> dict[str, Tensor]:
        """The parameters, whose gradients are no more."""
        weights = dict(self._named("parameters"))
        for weight in weights.values():
            weight.grad = None
        return weights


def _leaves(given: Given) -> Given:
    return [
        (n, t.requires_grad_() if t is not None and t.is_floating_point() else t)
        for n, t in fresh(given)
    ]


def _amid(given: Given) -> Given:
    """As another layer hands them over: no leaves, and at other strides."""
    return [(n, strided(t) if t is not None and t.requires_grad else t) for n, t in given]


def _send(out: object, cotangent: Tensor) -> None:
    """The gradient of (output * cotangent).sum(), as a view that has the axes in another order."""
    if isinstance(out, Tensor) and out.requires_grad:
        back = list(range(out.dim()))[::-1]
        turned = cotangent.to(out.dtype).permute(back).contiguous()
        (out.permute(back) * turned).sum().backward()  # type: ignore[no-untyped-call]


def _gradients(given: Given) -> dict[str, Tensor]:
    return {n: t.grad for n, t in given if t is not None and t.grad is not None}
