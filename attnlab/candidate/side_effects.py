"""The random state that belongs to the whole process."""

from __future__ import annotations

import torch

SEED = 20170612


def set_seed(seed: int) -> None:
    """As torch.manual_seed does; that notes a stack for every device that is not there."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
