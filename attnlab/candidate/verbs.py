"""More verbs of a session: those that checks of a module's contract ask.

They tell what the candidate is made of and what it does to its surroundings. Nothing here knows a
check: a verb does one thing and says what came.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.describe_output import output
from attnlab.candidate.input_copies import WAYS, alias, bare, in_type
from attnlab.candidate.uninitialised import NewBooleansAreFalse, allocates, new_memory_is_nan
from attnlab.tracer.capture import Given, fresh


class Verbs:
    """Mixed into `Session`, which builds and calls."""

    built: Any
    kept: Any  # what a cache holds
    words: frozenset[str] | None  # by which its code can reach things; None = all

    def __init__(self) -> None:
        self.first: Any = None  # the module that was put aside

    def do_build(self, name: str | None, init: dict[str, Any] | list[Any], seed: int) -> Any:
        raise NotImplementedError

    def _invoke(self, given: Given) -> Any:
        raise NotImplementedError

    def _mode(self, train: bool) -> None:
        """Train or eval mode."""
        raise NotImplementedError

    def do_calls(self, inputs: list[Given], train: bool | list[bool] = False) -> Any:
        raise NotImplementedError

    def _answer(
        self, given: Given, mine: Given | None = None, learns: bool = False
    ) -> dict[str, Any]:
        """The output of a call in eval mode, without gradients."""
        raise NotImplementedError

    # ------------------------------------------------------------ in another form

    def do_put_aside(self) -> Any:
        """Keep the module that is there; the next one is built beside it."""
        self.first = self.built
        return {}

    def do_take_back(self) -> Any:
        """Go on with the module that was put aside."""
        self.built, self.first = self.first if self.first is not None else self.built, None
        return {}

    def do_cast_twin(self, dtype: str) -> Any:
        """Put the module aside for a copy in another type; `failed` where it cannot be copied, and
        where what is copied are no parameters any more."""
        if isinstance(self.built, torch.jit.ScriptModule):
            return {"failed": True}
        try:
            twin = copy.deepcopy(self.built)
        except Exception:  # attributes may be anything
            return {"failed": True}
        self.do_put_aside()
        self.built = twin
        return self.do_cast(dtype)

    def do_cast(self, dtype: str) -> Any:
        """The module in another floating-point type."""
        if isinstance(self.built, nn.Module):
            self.built.to(getattr(torch, dtype))
        return {}

    def do_cast_calls(self, dtypes: list[str], inputs: list[Given]) -> Any:
        """Outputs, as `_in_types` has them."""
        return self._in_types(dtypes, lambda to: [self._answer(in_type(g, to)) for g in inputs])

    def _in_types(self, dtypes: list[str], answer: Callable[[torch.dtype], list[Any]]) -> Any:
        """Answers of copies in other types, type by type; `failed` where there can be none."""
        kept, answers = self.built, []
        try:
            for dtype in dtypes:
                self.built = kept
                if self.do_cast_twin(dtype).get("failed"):
                    return {"failed": True}
                answers += answer(getattr(torch, dtype))
        finally:
            self.built = kept
        return {"answers": answers}

    def do_call_on_device(self, device: str, inputs: Given) -> Any:
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

    def do_strided_calls(self, inputs: list[Given], ways: list[str]) -> Any:
        """The outputs of calls whose inputs have the same values at other strides, each its way."""
        return {
            "answers": [
                self._answer(given, [(n, t if t is None else WAYS[way](t)) for n, t in given])
                for given, way in zip(inputs, ways, strict=True)
            ]
        }

    def do_call_reloaded(
        self, name: str | None, init: dict[str, Any], seed: int, inputs: Given
    ) -> Any:
        """The output of a second instance that was given this one's state_dict."""
        kept, saved = self.built, None
        if isinstance(kept, nn.Module):
            saved = {n: v.clone() if isinstance(v, Tensor) else v for n, v in _state(kept)}
        try:
            self.do_build(name, init, seed)
            try:
                if saved is not None:
                    self.built.load_state_dict(saved)
            except RuntimeError as error:
                return {"refused": str(error)}
            return self._answer(inputs)
        finally:
            self.built = kept

    def do_fresh_instance(
        self,
        name: str | None,
        init: dict[str, Any],
        seed: int,
        inputs: list[Given],
        train: bool | list[bool],
    ) -> Any:
        """The outputs of another instance with this one's parameters, and which of its own these
        calls changed."""
        kept = self.built
        try:
            self.do_build(name, init, seed)
            _give(_weights(kept), self.built)
            before = {n: w.clone() for n, w in _weights(self.built).items()}
            told = self.do_calls(inputs, train)
            after = _weights(self.built)
        finally:
            self.built = kept
        changed = [n for n, w in before.items() if n not in after or not torch.equal(w, after[n])]
        told |= {"before": {n: before[n] for n in changed}}
        return told | {"after": {n: after[n] for n in changed if n in after}}

    def do_uninitialised_memory(
        self, name: str | None, init: dict[str, Any], seed: int, inputs: list[Given]
    ) -> Any:
        """As `do_fresh_instance`, where new memory is NaN; and which parameters begin so. Where a
        text can make them, new booleans are True, and False in a second instance."""
        kept, answers, begun = self.built, [], set[str]()
        ways = (nullcontext, NewBooleansAreFalse)[: 1 + allocates(self.words)]
        try:
            for way in ways:
                with new_memory_is_nan(), way():
                    self.do_build(name, init, seed)
                    begun |= {n for n, w in _weights(self.built).items() if w.isnan().any().item()}
                    _give(_weights(kept), self.built)
                    answers += self.do_calls(inputs)["answers"]
        finally:
            self.built = kept
        return {"answers": answers, "begun": sorted(begun)}

    def do_positional_calls(
        self, name: str | None, init: dict[str, Any], seed: int, inputs: list[Given]
    ) -> Any:
        """The outputs of an instance with this one's parameters that is built and called by
        position alone; inputs at the end that are None are left out."""
        kept = self.built
        try:
            self.do_build(name, list(init.values()), seed)
            _give(_weights(kept), self.built)
            if isinstance(self.built, nn.Module):
                self.built.eval()
            with torch.no_grad():
                return {"answers": [output(self._plainly(given)) for given in inputs]}
        finally:
            self.built = kept

    def _plainly(self, given: Given) -> Any:
        """A call by position alone, which goes on from nothing that was kept."""
        if self.kept is None:
            return self.built(*bare(given))
        self.kept.clear()
        own = self.kept.arguments() if self.kept.form == "given" else {}
        return self.kept.output(self.built(*bare(given), **own))

    def do_call_exported(self, inputs: Given) -> Any:
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
        args = tuple(bare(inputs))
        with torch.no_grad():
            program = export(whole.eval(), args).module()
        kept, self.built = self.built, program
        try:
            return self._answer([(f"input{i}", t) for i, t in enumerate(args)])
        finally:
            self.built = kept

    def do_inputs_after_call(self, inputs: Given) -> Any:
        """The inputs as the module left them, the one its output lies in, whether that stays."""
        given = fresh(inputs)
        self._mode(train=False)
        with torch.no_grad():
            out = self._invoke(given)
            left = {n: t for n, t in given if t is not None}
            learns = next((n for n, t in left.items() if t.requires_grad), "")
            told = {"tensors": left, "alias": alias(out, given), "learns": learns}
            return told | {"overwritten": self._overwritten(out, inputs)}

    def _overwritten(self, out: Any, inputs: Given) -> bool:
        """Whether a call with other inputs changes what this one returned."""
        if not isinstance(out, Tensor) or self.kept is not None:
            return False
        before = out.clone()
        other = [(n, t + 1 if t is not None and t.is_floating_point() else t) for n, t in inputs]
        self._invoke(fresh(other))
        return not torch.equal(before.nan_to_num(), out.nan_to_num())

    def do_with_changed_buffer(
        self, name: str | None, init: dict[str, Any], seed: int, buffer: str, inputs: Given
    ) -> Any:
        """The outputs of two instances that differ in the values of a buffer; `spoiled` where the
        second still has those after its call."""
        kept, (path, _, leaf) = self.built, buffer.rpartition(".")
        try:
            self.do_build(name, init, seed)
            answers = [self._answer(inputs)]
            self.do_build(name, init, seed)
            owner = self.built.get_submodule(path)
            usual = owner._buffers[leaf]
            other = usual.logical_not() if usual.dtype is torch.bool else usual + _one(usual)
            owner._buffers[leaf] = other
            answers.append(self._answer(inputs))
        finally:
            self.built = kept
        return {"answers": answers, "spoiled": owner._buffers.get(leaf) is other}

    def do_after_sibling(
        self, name: str | None, init: dict[str, Any], seed: int, other: Given, inputs: Given
    ) -> Any:
        """The output after another instance was built, called, and given other parameters."""
        kept = self.built
        try:
            self.do_build(name, init, seed)
            self._answer(other)
            for weight in _weights(self.built).values():
                weight.add_(1)
        finally:
            self.built = kept
        return self._answer(inputs)

    # ------------------------------------------------------------ what it is made of

    def do_module_facts(self) -> Any:
        """Names: what is trained, what is one and the same, what is saved, what is inside."""
        if not isinstance(self.built, nn.Module):
            kinds = "trained", "tied", "copies", "held", "buffers", "learning", "saved", "modules"
            return {kind: [] for kind in kinds}
        one: dict[int, list[str]] = defaultdict(list)
        shared: dict[int, list[str]] = defaultdict(list)
        for name, weight in self.built.named_parameters(remove_duplicate=False):
            one[id(weight)].append(name)
            if weight.numel() and name == one[id(weight)][0]:
                shared[weight.data_ptr()].append(name)
        learning = [n for n, b in self.built.named_buffers() if b.requires_grad]
        inside = {type(m).__name__ for m in self.built.modules() if _torchs(type(m))}
        return {
            "trained": [n for n, w in self.built.named_parameters() if w.requires_grad],
            "tied": [names for names in one.values() if len(names) > 1],
            "copies": [names for names in shared.values() if len(names) > 1],
            "held": [n for n, _ in self.built.named_parameters(remove_duplicate=False)],
            "buffers": [n for n, _ in self.built.named_buffers(remove_duplicate=False)],
            "learning": learning,
            "saved": [n for n, _ in _state(self.built)],
            "modules": sorted(f"nn.{name}" for name in inside),
        }


class _Wrapped(nn.Module):
    """A function where a module is asked for."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _one(like: Tensor) -> complex:
    """What changes both parts of a number."""
    return 1 + 1j if like.is_complex() else 1


def _weights(built: Any) -> dict[str, Tensor]:
    named = built.named_parameters() if isinstance(built, nn.Module) else ()
    return {name: weight.detach() for name, weight in named}


def _give(weights: dict[str, Tensor], built: Any) -> None:
    """Copy parameters in, those that have the same name and shape."""
    for name, weight in _weights(built).items():
        if name in weights and weights[name].shape == weight.shape:
            weight.copy_(weights[name])


def _state(module: nn.Module) -> list[tuple[str, Any]]:
    return list(module.state_dict().items())


def _torchs(kind: type) -> bool:
    return kind.__module__.startswith("torch.nn.modules")
