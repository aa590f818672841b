"""More verbs of a session: those that checks of a module's contract ask.

They tell what the candidate is made of and what it does to its surroundings. Nothing here knows a
check: a verb does one thing and says what came.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.lab.capture import Given, fresh
from attnlab.lab.recorder import OURS

SEED = 20170612
PLAIN = {Tensor, nn.Parameter, nn.Buffer}  # types whose values are all there is to them
SPACES = {"torch": torch, "F": F, "nn": nn, "Tensor": Tensor, "nn.Module": nn.Module}
REACHING = {"setattr", "__setattr__", "__dict__", "vars", "globals", "exec", "eval", "getattr"}
Flags = dict[str, object]


class Surroundings:
    """What belongs to the whole process, as it is now. `spaces` are the names in torch."""

    def __init__(self) -> None:
        self.flags = _flags()
        self.spaces = {name: dict(vars(space)) for name, space in SPACES.items()}

    def changes(self, words: Collection[str] | None = None) -> list[str]:
        """What is not any more as it was, one phrase each; in torch by these names, or by all.

        To look at an object at all writes into it: in a forked process all names cost 600 pages.
        """
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
            found += [f"{name}.{n} was replaced" for n in swapped if not _rebound(n)]
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
    }


def seeded(seed: int) -> None:
    """As torch.manual_seed does; that notes a stack for every device that is not there."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def _rebound(name: str) -> bool:
    """Names that torch itself gives another meaning: private ones, and one that names a dtype."""
    return name == "Storage" or (name.startswith("_") and name != "__call__")


class Verbs:
    """Mixed into `Session`, which builds and calls."""

    built: Any

    def __init__(self, before: Surroundings | None = None) -> None:
        self.before = before or Surroundings()  # nothing of the candidate has run yet
        self.words: frozenset[str] | None = None  # by which its code can reach things; None = all
        self.first: Any = None  # the module that was put aside

    def do_build(self, name: str | None, init: dict[str, Any], seed: int) -> Any:
        raise NotImplementedError

    def _invoke(self, given: Given) -> Any:
        raise NotImplementedError

    def _answer(self, given: Given) -> dict[str, Any]:
        """The output of a call in eval mode, without gradients."""
        raise NotImplementedError

    # ------------------------------------------------------------ in another form

    def do_aside(self) -> Any:
        """Keep the module that is there; the next one is built beside it."""
        self.first = self.built
        return {}

    def do_back(self) -> Any:
        """Go on with the module that was put aside."""
        self.built, self.first = self.first if self.first is not None else self.built, None
        return {}

    def do_twin(self, dtype: str) -> Any:
        """Put the module aside for a copy in another type; `failed` where it cannot be copied."""
        try:
            twin = copy.deepcopy(self.built)
        except Exception:  # attributes may be anything
            return {"failed": True}
        self.do_aside()
        self.built = twin
        return self.do_cast(dtype)

    def do_cast(self, dtype: str) -> Any:
        """The module in another floating-point type."""
        if isinstance(self.built, nn.Module):
            self.built.to(getattr(torch, dtype))
        return {}

    def do_cast_calls(self, dtype: str, inputs: list[Given]) -> Any:
        """The outputs of a copy in another type; `failed` where there can be no copy."""
        kept, to = self.built, getattr(torch, dtype)
        try:
            if self.do_twin(dtype).get("failed"):
                return {"failed": True}
            return {"answers": [self._answer(_in_type(given, to)) for given in inputs]}
        finally:
            self.built = kept

    def do_on(self, device: str, inputs: Given) -> Any:
        """The output of a call on another device; the module itself stays."""
        if not getattr(torch, device).is_available():
            return {"absent": True}
        kept = self.built
        try:
            if isinstance(kept, nn.Module):
                self.built = copy.deepcopy(kept).to(device)
            answer = self._answer([(n, t if t is None else t.to(device)) for n, t in inputs])
        finally:
            self.built = kept
        out = answer.get("output")
        if isinstance(out, Tensor):
            return {**answer, "output": out.cpu(), "device": out.device.type}
        return answer

    def do_strided(self, inputs: Given) -> Any:
        """The output of a call whose inputs have the same values at other strides."""
        return self._answer([(n, t if t is None else _strided(t)) for n, t in inputs])

    def do_reload(self, name: str | None, init: dict[str, Any], seed: int, inputs: Given) -> Any:
        """The output of a second instance that was given this one's state_dict."""
        kept, saved = self.built, None
        if isinstance(kept, nn.Module):
            saved = {n: v.clone() if isinstance(v, Tensor) else v for n, v in _state(kept)}
        try:
            self.do_build(name, init, seed)
            if saved is not None:
                self.built.load_state_dict(saved)
            return self._answer(inputs)
        finally:
            self.built = kept

    def do_export(self, inputs: Given) -> Any:
        """The output of the program that torch.export makes. Imports the compiler."""
        folder, tempfile.tempdir = (
            tempfile.tempdir,
            os.curdir,
        )  # none can be written: a name will do
        try:
            from torch.export import export
        except (ImportError, OSError) as error:
            return {"unable": f"{type(error).__name__}: {error}"}
        finally:
            tempfile.tempdir = folder
        whole = self.built if isinstance(self.built, nn.Module) else _Wrapped(self.built)
        args = tuple(t for _, t in fresh(inputs))
        while args and args[-1] is None:
            args = args[:-1]
        with torch.no_grad():
            program = export(whole.eval(), args).module()
        kept, self.built = self.built, program
        try:
            return self._answer([(f"input{i}", t) for i, t in enumerate(args)])
        finally:
            self.built = kept

    # ------------------------------------------------------------ what it is made of

    def do_facts(self) -> Any:
        """Names: what is trained, what is one and the same, what is saved, what is inside."""
        if not isinstance(self.built, nn.Module):
            return {"trained": [], "tied": [], "copies": [], "saved": [], "modules": []}
        one: dict[int, list[str]] = defaultdict(list)
        shared: dict[int, list[str]] = defaultdict(list)
        for name, weight in self.built.named_parameters(remove_duplicate=False):
            one[id(weight)].append(name)
            if weight.numel() and name == one[id(weight)][0]:
                shared[weight.data_ptr()].append(name)
        inside = {type(m).__name__ for m in self.built.modules() if _torchs(type(m))}
        return {
            "trained": [n for n, w in self.built.named_parameters() if w.requires_grad],
            "tied": [names for names in one.values() if len(names) > 1],
            "copies": [names for names in shared.values() if len(names) > 1],
            "saved": [n for n, _ in _state(self.built)],
            "modules": sorted(f"nn.{name}" for name in inside),
        }

    # ------------------------------------------------------------ what it leaves behind

    def do_trespasses(
        self, name: str | None, init: dict[str, Any], inputs: Given, seed: int
    ) -> Any:
        """What loading, building and calling changed of what belongs to everybody."""
        kept, grad = self.built, torch.is_grad_enabled()
        try:
            self.do_build(name, init, seed)
            reseeded = ["the random seed was set while building"]
            found = reseeded if torch.initial_seed() != seed else []
            given = fresh(inputs)
            seeded(SEED)
            before = torch.get_rng_state()
            self._invoke(given)  # bare: a no_grad around it would put the grad mode back
            changes = self.before.changes(self.words)
        finally:
            self.built = kept
            torch.set_grad_enabled(grad)
        if torch.initial_seed() != SEED:
            found = [*found, "the random seed was set by a call"]
        elif not torch.equal(torch.get_rng_state(), before):
            found = [*found, "a call in eval mode drew random numbers"]
        return {"changes": [*found, *changes]}


class fitting:  # noqa: N801 - reads as what it is: with fitting(...)
    """Says what a callable takes and was given, where the two do not fit.

    Not a generator: contextlib's frames would be taken for the candidate's.
    """

    def __init__(self, called: Any, names: list[str]) -> None:
        self.called, self.names = called, names

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, TypeError) or not _misfit(error):
            return
        try:
            takes = ", ".join(inspect.signature(self.called).parameters)
        except (TypeError, ValueError):
            return
        given = ", ".join(self.names) or "nothing"
        raise TypeError(f"{error}; it takes ({takes}) and is given ({given})") from None


def _misfit(error: TypeError) -> bool:
    """Raised by the call itself, before a line of what was called could run."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else ""
    ours = file.startswith(OURS) or file.endswith("torch/nn/modules/module.py")
    return ours and "argument" in str(error)


class _Wrapped(nn.Module):
    """A function where a module is asked for."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _in_type(given: Given, dtype: torch.dtype) -> Given:
    return [(n, t.to(dtype) if t is not None and t.is_floating_point() else t) for n, t in given]


def _strided(t: Tensor) -> Tensor:
    """The same values, every second element of twice as many, the axes laid out backwards."""
    if t.dim() < 2:
        return torch.stack((t, t), dim=-1)[..., 0]
    back = list(range(t.dim()))[::-1]
    wide = torch.stack((t, t), dim=-1)[..., 0]
    return wide.permute(back).contiguous().permute(back)


def _state(module: nn.Module) -> list[tuple[str, Any]]:
    return list(module.state_dict().items())


def _torchs(kind: type) -> bool:
    return kind.__module__.startswith("torch.nn.modules")


def alias(out: Any, given: Given) -> str:
    """The name of the input whose memory the output shares."""
    mine = _memory(out) if isinstance(out, Tensor) else 0
    names = [n for n, t in given if t is not None and mine and _memory(t) == mine]
    return names[0] if names else ""


def _memory(t: Tensor) -> int:
    """Where its storage begins; 0 where it has none."""
    try:
        return t.untyped_storage().data_ptr() if t.numel() else 0
    except Exception:  # sparse and other odd tensors
        return 0
