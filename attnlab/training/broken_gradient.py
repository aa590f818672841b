"""Find the operation in whose backward pass the first NaN or infinity comes up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import display_path
from attnlab.tracer.recorder import is_library_code
from attnlab.training.log import BrokenBackward

LINE = re.compile(r'File "(.+?)", line (\d+)')


class GradientWatch:
    """While it is on, every node of a graph knows the line that made it; `on_backward` then looks
    at the gradients that each node takes and gives."""

    def __init__(self) -> None:
        self.found: BrokenBackward | None = None

    def begin(self) -> None:
        torch.autograd.set_detect_anomaly(True, check_nan=False)

    def end(self) -> None:
        torch.autograd.set_detect_anomaly(False)

    def on_backward(self, loss: Tensor) -> None:
        for node in _nodes(loss.grad_fn):
            node.register_hook(self._looking_at(node))

    def _looking_at(self, node: Any) -> Callable[[Any, Any], None]:
        def look(inner: Any, outer: Any) -> None:
            if self.found is None and _are_finite(outer) and not _are_finite(inner):
                file, line = _place(node)
                self.found = BrokenBackward(function=node.name(), file=file, line=line)

        return look


def _nodes(start: Any) -> Iterator[Any]:
    seen, left = set(), [start]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        left += [inner for inner, _ in node.next_functions]


def _are_finite(gradients: Any) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors_in(gradients))


def _place(node: Any) -> tuple[str, int]:
    """The innermost line of the script that made the node."""
    for text in reversed(node.metadata.get("traceback_", [])):
        match = LINE.search(text)
        if match and not is_library_code(match[1]):
            return display_path(match[1]), int(match[2])
    return "", 0
