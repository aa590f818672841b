"""Read what the verb `values` answered: a process that may be hostile said it."""

from typing import Any

from torch import Tensor

from attnlab.candidate.value_recorder import Value, Values
from attnlab.probe.answers import CannotTell


def values_in(answer: dict[str, Any]) -> Values:
    """What the verb `values` answered; raises `CannotTell` where it is none."""
    told, last, result = answer.get("values"), answer.get("output"), answer.get("result")
    values = [
        _value(each, place) for place, each in enumerate(told if isinstance(told, list) else [])
    ]
    if not isinstance(last, int) or not -1 <= last < len(values):
        raise CannotTell("what it computes cannot be read")
    result = result if isinstance(result, Tensor) else None
    returned, alone = answer.get("returned"), answer.get("alone") is True
    return Values(values, last, result, returned if isinstance(returned, int) else 0, alone)


def _value(told: Any, place: int) -> Value:
    """One value of a candidate's process, which may say anything."""
    try:
        value = Value(**told)
    except TypeError:
        raise CannotTell("what it computes cannot be read") from None
    words = (value.op, value.file, value.module, value.scalars, value.name)
    numbers = (value.line, value.call, value.slot)
    good = (
        isinstance(value.numbers, Tensor)
        and all(isinstance(word, str) for word in words)
        and all(type(number) is int for number in numbers)
        and isinstance(value.inputs, list)
        and all(type(i) is int and 0 <= i < place for i in value.inputs)
        and isinstance(value.callers, list)
        and all(type(line) is int for line in value.callers)
        and _is_gradient(value)
    )
    if not good:
        raise CannotTell("what it computes cannot be read")
    return value


def _is_gradient(value: Value) -> bool:
    """Whether what a value says of its gradient can be read."""
    given, own, hooked = value.gradient, value.backward, value.hooked
    return (
        (given is None or (isinstance(given, Tensor) and given.shape == value.numbers.shape))
        and isinstance(own, list)
        and isinstance(hooked, list)
        and [type(each) for each in own] in ([], [str, str, int, int])
        and [type(each) for each in hooked] in ([], [str, int])
    )
