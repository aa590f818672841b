"""Reads what a candidate's process answered, which may be anything.

What is not of the form that was asked for counts as nothing, or is said to be odd.
"""

from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.describe_output import kind
from attnlab.probe.answers import Gradients, Skip
from attnlab.probe.weights.match import loading_error

MOST = 200  # of names that are read of an answer


class UnexpectedOutput(Exception):
    """The module answered with something that cannot be compared; the message says what."""


def output_in(answer: dict[str, Any]) -> Tensor:
    """The tensor that forward returned; raises `UnexpectedOutput` where it cannot be compared."""
    out = answer.get("output")
    if isinstance(out, Tensor) and is_plain(out):
        return out.as_subclass(Tensor)
    if isinstance(out, Tensor):  # only a session in this process can hand one over
        odd = kind(out)
    else:
        odd = str(out.get("$odd") if isinstance(out, dict) else answer.get("kind", "nothing"))
    raise UnexpectedOutput(f"forward returned {odd[:200]}, not one plain tensor")


def is_plain(t: Tensor) -> bool:
    return t.layout is torch.strided and not (t.is_complex() or t.is_meta or t.is_quantized)


def tensors_in(told: dict[str, Any], key: str) -> dict[str, Tensor]:
    found = told.get(key)
    if not isinstance(found, dict):
        return {}
    return {str(n): t for n, t in found.items() if isinstance(t, Tensor)}


def list_in(value: object) -> list[Any]:
    return value[:MOST] if isinstance(value, list) else []


def names_in(value: object) -> tuple[str, ...]:
    return tuple(str(name)[:200] for name in list_in(value))


def refuse(told: dict[str, Any]) -> None:
    refusal = loading_error(told)
    if refusal:
        raise Skip(f"its weights cannot be replaced: {refusal}")


def gradients_in(
    told: dict[str, Any], cotangent: Tensor, size: float, train: bool, still: bool = False
) -> Gradients:
    """Gradients for a cotangent of size 1, of an answer for one that is `size` times as large."""
    return Gradients(
        cotangent=cotangent,
        inputs=in_units(tensors_in(told, "inputs"), size),
        parameters=in_units(tensors_in(told, "weights"), size),
        still=still,
        train=train,
        dtype=str(told.get("dtype", ""))[:20],
    )


def in_units(gradients: dict[str, Tensor], size: float) -> dict[str, Tensor]:
    """What they would be for a cotangent of size 1."""
    return gradients if size == 1.0 else {name: g / size for name, g in gradients.items()}
