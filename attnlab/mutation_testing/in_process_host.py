"""Runs a candidate in this process with settings of its own: only for mutants, which are trusted.

Starting a process for each of ten thousand mutants would take most of the time. A mutant may change
global settings: whether gradients are recorded, the default dtype, the random state. They are saved
after every answer and restored before the next.
"""

from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.host import LocalHost
from attnlab.records import Limits

Settings = tuple[bool, torch.dtype, Tensor]


class InProcessHost(LocalHost):
    """A session with settings of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = _settings()

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        ours = _settings()
        _set(self.settings)
        try:
            return super().ask(verb, **args)
        finally:
            self.settings = _settings()
            _set(ours)


def spawn_in_process(limits: Limits, own: bool, deadline: float) -> InProcessHost:  # noqa: ARG001  a Spawn
    return InProcessHost()


def _settings() -> Settings:
    return torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_rng_state()


def _set(settings: Settings) -> None:
    grad, dtype, random_state = settings
    torch.set_grad_enabled(grad)
    if torch.get_default_dtype() is not dtype:
        torch.set_default_dtype(dtype)
    torch.set_rng_state(random_state)
