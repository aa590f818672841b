"""What belongs to the whole process in which a candidate runs, and what has become of it."""

import re
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module

SPACES = {"torch": torch, "F": F, "nn": nn, "Tensor": Tensor, "nn.Module": nn.Module}
REACHING = {"setattr", "__setattr__", "__dict__", "vars", "globals", "exec", "eval", "getattr"}
SEED = 20170612
TINY = 1e-40  # a denormal float32
HOOKS = [n for n in vars(module) if n.startswith("_global_") and n.endswith("_hooks")]
Flags = dict[str, Any]
# Settings that a file may have good reasons for and that are undone after its import.
HARMLESS: dict[str, Callable[[Any], object]] = {
    "the number of threads": torch.set_num_threads,
    "deterministic algorithms": torch.use_deterministic_algorithms,
    "anomaly detection": torch.autograd.set_detect_anomaly,
    "the matmul precision": torch.set_float32_matmul_precision,
}


class Surroundings:
    """What belongs to the whole process, as it is now. `spaces` are the names in torch."""

    def __init__(self) -> None:
        self.flags = _flags()
        self.spaces = {name: dict(vars(space)) for name, space in SPACES.items()}

    def undo_settings(self) -> list[str]:
        """Restore the harmless settings that the candidate's file changed; what they are."""
        now = _flags()
        changed = [what for what in HARMLESS if now[what] != self.flags[what]]
        for what in changed:
            HARMLESS[what](self.flags[what])
        return changed

    def changes(self, words: Collection[str] | None = None) -> list[str]:
        """What is not any more as it was, one phrase each; in torch by these names, or by all.

        To look at an object at all writes into it: in a forked process all names cost 600 pages."""
        now = _flags()
        found = [
            f"{what} is {now[what]}, it was {was}"
            for what, was in self.flags.items()
            if now[what] != was
        ]
        for name, space in SPACES.items():
            have, was = vars(space), self.spaces[name]
            looked = was if words is None else [n for n in sorted(words) if n in was]
            swapped = [n for n in looked if have.get(n) is not was[n]]
            found += [
                f"{name}.{n} was replaced" for n in swapped if not _rebound(n, have.get(n), was[n])
            ]
        return found


def words_of(text: str) -> frozenset[str] | None:
    """The names that a text can reach; None where it may reach any."""
    words = frozenset(re.findall(r"\w+", text))
    return None if words & REACHING else words


def _flags() -> Flags:
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "grad mode": torch.is_grad_enabled(),
        "the number of threads": torch.get_num_threads(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly detection": torch.is_anomaly_enabled(),
        "the matmul precision": torch.get_float32_matmul_precision(),
        "the use of oneDNN": torch.backends.mkldnn.enabled,
        "the smallest number that is not 0": (torch.full((1,), TINY) * 0.5 > 0).item(),
        "the number of hooks for all modules": sum(len(vars(module)[name]) for name in HOOKS),
    }


def _rebound(name: str, now: Any, was: Any) -> bool:
    """Whether torch itself gives a name another meaning: private ones, one that names a dtype, and
    functions that torch._dynamo wraps once something imports it."""
    code = getattr(now, "__code__", None)
    wrapped = code and code.co_filename == torch._compile.__file__ and now.__wrapped__ is was
    return bool(wrapped) or name == "Storage" or (name.startswith("_") and name != "__call__")


def set_seed(seed: int) -> None:
    """As torch.manual_seed does; that notes a stack for every device that is not there."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
