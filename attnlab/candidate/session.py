"""One candidate and the verbs it answers to.

A session runs where the candidate runs: in the child process of the grader, or in this process
for the Python API and the tests. It knows no reference, no check and no answer. Every verb takes
and returns plain values and tensors, so that a pipe can stand between it and whoever asks.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from attnlab.candidate.call_errors import fitting
from attnlab.candidate.describe_output import output
from attnlab.candidate.gradients import Learning
from attnlab.candidate.init_objects import made
from attnlab.candidate.input_copies import written
from attnlab.candidate.kv_cache import Keeping, Kept
from attnlab.candidate.load import made_of, module_name, move_in, remember
from attnlab.candidate.process_state import Surroundings, words_of
from attnlab.candidate.side_effects import Leaving, seeded
from attnlab.candidate.signature import Placing
from attnlab.candidate.verbs import Verbs
from attnlab.records import Look, to_json
from attnlab.tracer.axes.module_sizes import hypers
from attnlab.tracer.bind_arguments import known
from attnlab.tracer.capture import Given, Shot, capture, finish, fresh
from attnlab.tracer.cast import refilled
from attnlab.tracer.demo_recorder import Enough, FirstCall
from attnlab.tracer.raw_trace import describe, fall_of

HUNG = "Hung"  # the name of what stops a user's own code when its time is up


class Session(Verbs, Learning, Leaving, Keeping):
    """Holds the candidate's module object; `ask` is the one door."""

    def __init__(self, before: Surroundings | None = None) -> None:
        super().__init__()
        Leaving.__init__(self, before)
        self.file = ""
        self.module: types.ModuleType | None = None
        self.entry: object = None  # the candidate's function that is called, for calls that misfit
        self.built: Any = None  # an nn.Module, or a plain callable
        self.arguments: dict[str, Any] = {}  # of forward, that are no tensors
        self.placing = Placing()

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """The answer of a verb, or `{"raised": ...}` when the candidate's code raised."""
        doing: Callable[..., dict[str, Any]] = getattr(self, f"do_{verb}")
        try:
            return doing(**args)
        except BaseException as error:  # also SystemExit: a candidate may raise anything
            return {"raised": {"verb": verb, **describe(error, self.file, self.entry)}}

    # ------------------------------------------------------------ bringing it to life

    def do_load(self, file: str, text: str, path: str, own: dict[str, Any] | None) -> Any:
        """Execute the source as a module of its own."""
        self.file = file
        if own:
            move_in(own)
            if own["module"]:
                self.module = importlib.import_module(own["module"])
                self.file = getattr(self.module, "__file__", None) or file
                return {}
        self.words = words_of(text) if not own else None
        self.module = types.ModuleType(module_name(file))
        self.module.__file__ = path or file
        sys.modules[self.module.__name__] = self.module
        remember(file, text)
        exec(compile(text, file, "exec", dont_inherit=True), self.module.__dict__)
        return {}

    def do_build(
        self,
        name: str | None,
        init: dict[str, Any] | list[Any],
        seed: int,
        arguments: dict[str, Any] | None = None,
        put: dict[str, Tensor] | None = None,
        inputs: Sequence[Given] = (),
    ) -> Any:
        """Construct the class called `name`, or call or take the function; eval mode. `init` is by
        name, or in order.

        `arguments` of its forward are no tensors, and the same for every call. `put` are the
        weights to give it, answered as `do_set_parameters` does; where they fit, `inputs` are
        called with.
        """
        self.arguments = arguments or {}
        thing = self._find(name)
        if not callable(thing):
            raise TypeError(f"{name} is a {type(thing).__name__}, not a class or a function")
        seeded(seed)
        self.entry = thing.__init__ if inspect.isclass(thing) else thing
        space = vars(self.module) if self.module else {}
        order, named = (init, {}) if isinstance(init, list) else ([], init)
        self.built = made_of(
            thing,
            [made(value, space) for value in order],
            {key: made(value, space) for key, value in named.items()},
        )
        if isinstance(self.built, nn.Module):
            self.entry = getattr(type(self.built), "forward", None)  # a scripted one has none
            self.built.eval()
        self.kept = Kept(self.built, **self.cache) if self.cache else None
        told: dict[str, Any] = self.do_set_parameters(put) if put is not None else {}
        if inputs and not (told.get("missing") or told.get("shapes")):
            told |= self._tried(inputs)
        return told

    def _tried(self, inputs: Sequence[Given]) -> dict[str, Any]:
        """The answers to calls; none where one raises, which is for a call of its own to say. That
        the first one of all fell is told: the next may pass."""
        answers: list[Any] = []
        try:
            for given in inputs:
                answers += self.do_calls([given])["answers"]
        except BaseException as error:
            if type(error).__name__ == HUNG:
                raise
            fell = {} if answers else {"fell": describe(error, self.file, self.entry)}
            return {"answers": None, **fell}
        return {"answers": answers}

    def _find(self, name: str | None) -> Any:
        space = vars(self.module) if self.module else {}
        if name:
            if name not in space:
                raise NameError(f"{self.file} defines no {name}")
            return space[name]
        own = [
            v
            for v in space.values()
            if inspect.isclass(v)
            and issubclass(v, nn.Module)
            and v.__module__ == (self.module.__name__ if self.module else "")
        ]
        if len(own) != 1:
            names = ", ".join(c.__name__ for c in own) or "none"
            raise NameError(f"{self.file} must define one module to trace; it defines {names}")
        return own[0]

    # ------------------------------------------------------------ weights and buffers

    def do_parameters(self) -> Any:
        return {"tensors": {n: p.detach().clone() for n, p in self._named("parameters")}}

    def do_buffers(self) -> Any:
        return {"tensors": {n: b.detach() for n, b in self._named("buffers")}}

    def _named(self, kind: str) -> list[tuple[str, Tensor]]:
        if not isinstance(self.built, nn.Module):
            return []
        return list(getattr(self.built, f"named_{kind}")())

    def do_set_parameters(self, tensors: dict[str, Tensor]) -> Any:
        """Copy parameters in by name; buffers are never touched, a wrong table must stay wrong."""
        mine = dict(self._named("parameters"))
        lazy = [n for n, p in mine.items() if isinstance(p, UninitializedParameter)]
        if lazy:
            raise TypeError(f"{lazy[0]} has no shape before the first call: say both of its sizes")
        shapes = {
            n: [list(mine[n].shape), list(t.shape)]
            for n, t in tensors.items()
            if n in mine and mine[n].shape != t.shape
        }
        missing = [n for n in tensors if n not in mine]
        extra = [n for n in mine if n not in tensors]
        if not missing and not shapes:
            with torch.no_grad():
                for name, tensor in tensors.items():
                    mine[name].copy_(tensor)
        return {"missing": missing, "extra": extra, "shapes": shapes}

    # ------------------------------------------------------------ running it

    def do_call(self, inputs: Given, train: bool = False) -> Any:
        """The output, and nothing else."""
        self._mode(train)
        return self._answer(inputs, learns=train)

    def do_calls(self, inputs: Sequence[Given], train: bool | Sequence[bool] = False) -> Any:
        """The outputs of several calls, one after the other; `train` is of all, or of each."""
        answers = []
        modes = [train] * len(inputs) if isinstance(train, bool) else train
        mine: Given = []
        for given, mode in zip(inputs, modes, strict=True):
            self._mode(mode)  # a forward may have changed it
            mine = refilled(mine, given)
            answers.append(self._answer(given, mine, learns=mode))
        return {"answers": answers}

    def _answer(
        self, given: Given, mine: Given | None = None, learns: bool = False
    ) -> dict[str, Any]:
        """The output for `mine`, a copy. Where a module learns, its inputs are those of a layer
        amid others."""
        mine = mine or fresh(given)
        versions = [0 if t is None else t._version for _, t in mine]
        for tensor in (t for _, t in mine if learns and t is not None and t.is_floating_point()):
            tensor.requires_grad_()
        with torch.no_grad():
            told = output(self._invoke(mine))
        wrote = written(given, mine, versions)
        return told | {"wrote": wrote} if wrote else told

    def do_with_weights(
        self, weights: list[dict[str, Tensor]], inputs: list[Given], back: dict[str, Tensor]
    ) -> Any:
        """The outputs of several calls, each with other weights; then the module has `back`."""
        self._mode(train=False)
        answers = []
        try:
            for lent, given in zip(weights, inputs, strict=True):
                told = self.do_set_parameters(lent)
                if told.get("missing") or told.get("shapes"):
                    return told
                answers.append(self._answer(given))
        finally:
            self.do_set_parameters(back)
        return {"answers": answers}

    def _mode(self, train: bool) -> None:
        # To look is many times cheaper than to set what is set already.
        if isinstance(self.built, nn.Module) and any(
            m.training is not train for m in self.built.modules()
        ):
            self.built.train(train)

    def _invoke(self, given: Given, goes_on: bool = False) -> Any:
        """Call by position, but by keyword what the candidate keeps at another place.

        Without `goes_on` nothing is kept from the calls before.
        """
        target = self.built.forward if isinstance(self.built, nn.Module) else self.built
        places = self.placing.of(target)
        args, kwargs = [], {}
        for i, (name, tensor) in enumerate(given):
            if places.get(name, i) != i:
                kwargs[name] = tensor
            else:
                args.append(tensor)
        kwargs |= self.arguments
        if self.kept is None:
            with fitting(target, [name for name, _ in given]):
                return self.built(*args, **kwargs)
        if goes_on:
            kwargs |= self.kept.arguments()
        else:
            self.kept.built = self.built  # which another verb may have exchanged
            self.kept.clear()
        return self.kept.output(self.built(*args, **kwargs))

    # ------------------------------------------------------------ looking at it

    def do_trace(
        self,
        inputs: Given,
        seed: int,
        axes: dict[str, list[str]] | None = None,
        sizes: dict[str, int] | None = None,
        look: dict[str, Any] | None = None,
    ) -> Any:
        """Every operation of one forward pass, as the JSON text of a `RawTrace`.

        `axes` are what the user calls the axes of the inputs, `sizes` what the names stand for.
        """
        self._mode(train=False)
        root = self.built if isinstance(self.built, nn.Module) else None
        shot = Shot(
            call=self._invoke,
            given=inputs,
            root=root,
            axes={n: tuple(a) for n, a in (axes or {}).items()},
            sizes={**hypers(root), **(sizes or {})},
            file=self.file,
            entry=self.entry,
            seed=seed,
            look=Look(**(look or {})),
        )
        return {"trace": to_json(capture(shot))}

    def do_demo(self, file: str, text: str, path: str, own: dict[str, Any]) -> Any:
        """Run a file as `python file.py` would, and record the first module that it calls."""
        self.file = file
        move_in(own)
        sys.argv = [path or file]
        main = types.ModuleType("__main__")
        main.__file__ = path or file
        main.__package__ = (own["module"] or "").rpartition(".")[0] or None
        sys.modules["__main__"] = main
        remember(file, text)
        recorder = FirstCall()
        fall = None
        try:
            with recorder:
                exec(compile(text, file, "exec", dont_inherit=True), main.__dict__)
        except Enough:
            pass
        except Exception as error:
            fall = fall_of(recorder, error, self.file)
        if not recorder.began and fall is None:
            raise LookupError(f"{file} ran to its end without calling a module")
        raw = finish(recorder, recorder.given, fall, known(recorder.given, recorder.root))
        note = "the first call of a module in the demo; what comes after it was not run"
        return {"trace": to_json(replace(raw, notes=(*raw.notes, note)))}
