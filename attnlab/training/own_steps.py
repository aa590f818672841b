"""Steps that a script takes without an optimizer: weights that it changes between two backward
passes, as in `w -= lr * w.grad`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from attnlab.training.log import Step

MOST_NODES = 20_000  # of a graph that is searched for its leaves
MOST = 1 << 22  # weights that are copied


class OwnSteps:
    """Follows the leaves of each backward pass; what changed before the next one was a step."""

    def __init__(self) -> None:
        self._leaves: list[Tensor] = []
        self._before: list[Tensor] = []  # the leaves as the last backward pass saw them
        self._place = ("", 0)
        self._norm: float | None = None
        self._leftover = False
        self._used: dict[int, Tensor] = {}  # leaves whose gradients the step before has used
        self.done = 0

    def begin_backward(
        self, loss: Tensor, place: tuple[str, int], inputs: Iterable[Tensor] | None
    ) -> Step | None:
        """Note a backward pass that is about to run, to `inputs` or to all leaves; returns the
        step that was taken since the one before."""
        step = self._finish_step()
        self._place = place
        found = list(_leaves(loss.grad_fn)) if inputs is None else list(inputs)
        self._leaves = found if sum(leaf.numel() for leaf in found) <= MOST else []
        self._before = [leaf.detach().clone() for leaf in self._leaves]
        self._leftover = inputs is None and any(
            _nonzero(leaf.grad) for leaf in self._leaves if id(leaf) in self._used
        )
        return step

    def end_backward(self, gradients: Iterable[Tensor | None] | None) -> None:
        """Note its gradients: those returned, or those that the leaves hold."""
        held = [leaf.grad for leaf in self._leaves] if gradients is None else gradients
        norms = [float(g.norm()) for g in held if isinstance(g, Tensor)]
        self._norm = math.hypot(*norms) if norms else None

    def _finish_step(self) -> Step | None:
        pairs = list(zip(self._leaves, self._before, strict=True))
        changes = [(float((p.detach() - old).norm()), old) for p, old in pairs]
        if not any(change > 0 for change, _ in changes):
            return None
        self.done += 1
        self._used = {id(p): p for p in self._leaves}
        sizes = [(change, float(old.norm())) for change, old in changes if old.dim() > 1]
        ratios = sorted(change / size for change, size in sizes if size > 0)
        return Step(
            number=self.done,
            optimizer=0,
            file=self._place[0],
            line=self._place[1],
            events=("backward",),
            gradient=self._norm,
            leftover=self._leftover,
            rate=math.nan,  # nobody names it
            update=ratios[len(ratios) // 2] if ratios else None,
        )


def _nonzero(gradient: Tensor | None) -> bool:
    return gradient is not None and bool(gradient.any())


def _leaves(root: Any) -> Iterable[Tensor]:
    """The tensors to which a graph leads gradients."""
    seen: set[Any] = set()
    todo = [root]
    while todo and len(seen) < MOST_NODES:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        todo += [following for following, _ in node.next_functions]
