"""One candidate and what it takes to build and call its module.

A session runs where the candidate runs: in the child process of the grader, or in this process
for the Python API and the tests. It knows no reference, no check and no answer. What it can be
asked are the verbs in `verbs/`: each takes and returns plain values and tensors, so that a pipe can
stand between it and whoever asks.
"""

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from attnlab.candidate.describe_output import output
from attnlab.candidate.input_copies import find_overwritten
from attnlab.candidate.kv_cache import KVCache
from attnlab.candidate.load import made_of, make_argument
from attnlab.candidate.process_state import Surroundings, set_seed
from attnlab.candidate.program import CandidateProgram
from attnlab.candidate.registry import load_verbs
from attnlab.candidate.signature import ArgumentMismatch, ParameterPositions
from attnlab.records import Container
from attnlab.suggest import did_you_mean
from attnlab.tracer.cast import Given, fresh, pack
from attnlab.tracer.raw_trace import describe_error

HUNG = "Hung"  # the name of what stops a user's own code when its time is up


class Session:
    """Holds the candidate's source module and the `target` built from it; `ask` is the one door."""

    def __init__(self, surroundings: Surroundings | None = None) -> None:
        self.surroundings = surroundings or Surroundings()  # before any code of the candidate ran
        # Sends an answer from inside the candidate's code, which then runs no further.
        self.answer_now: Callable[[dict[str, Any]], None] = lambda _: None
        self.clear()

    def clear(self) -> None:
        """Forget the source that was loaded last, if any, and all that came of it."""
        self.reachable_names: frozenset[str] | None = None  # by its source text; None = all names
        self.file = ""
        self.module: types.ModuleType | None = None  # the candidate's source
        self.entry: object = None  # the candidate's function that is called, for calls that misfit
        self.target: Any = None  # an nn.Module, or a plain callable
        self.set_aside: Any = None  # the target that waits for `take_back`
        self.arguments: dict[str, Any] = {}  # of forward, that are no tensors
        self.containers: dict[str, Container] = {}  # of inputs, by their names
        self.cache_form: dict[str, Any] = {}  # how targets keep keys and values between calls
        self.cache: KVCache | None = None
        self.program: CandidateProgram | None = None  # of several files, with a training loop
        self.parameter_positions = ParameterPositions()
        self.called_with: dict[str, list[int]] = {}  # shapes of the latest call's inputs

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """The answer of a verb, or `{"raised": ...}` when the candidate's code raised."""
        function = load_verbs()[verb]
        self.called_with = {}
        try:
            return function(self, **args)
        except BaseException as error:  # also SystemExit: a candidate may raise anything
            told = {"verb": verb, "shapes": self.called_with}
            return {"raised": {**told, **describe_error(error, self.file, self.entry)}}

    # ------------------------------------------------------------ the target

    def find(self, name: str | None) -> Any:
        """The class or function called `name`, or the only module that the source defines."""
        namespace = vars(self.module) if self.module else {}
        if name:
            if name not in namespace:
                guess = did_you_mean(name, namespace)
                raise NameError(f"{self.file} defines no {name}. {guess}".removesuffix(". "))
            return namespace[name]
        own = [
            v
            for v in namespace.values()
            if inspect.isclass(v)
            and issubclass(v, nn.Module)
            and v.__module__ == (self.module.__name__ if self.module else "")
        ]
        if len(own) != 1:
            names = ", ".join(c.__name__ for c in own) or "none"
            raise NameError(f"{self.file} must define one module to trace; it defines {names}")
        return own[0]

    def build(
        self,
        name: str | None,
        init: dict[str, Any] | list[Any],
        seed: int,
        arguments: dict[str, Any] | None = None,
        containers: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Construct the class called `name`, or call or take the function; eval mode.

        `init` is by name, or in order. `arguments` of its forward are no tensors, and the same for
        every call; `containers` of its inputs are records as dicts, and stay those of the build
        before where they are left out."""
        self.arguments = arguments or {}
        if containers:
            self.declare_containers(containers)
        thing = self.find(name)
        if not callable(thing):
            raise TypeError(f"{name} is a {type(thing).__name__}, not a class or a function")
        set_seed(seed)
        self.entry = thing.__init__ if inspect.isclass(thing) else thing
        namespace = vars(self.module) if self.module else {}
        positional, named = (init, {}) if isinstance(init, list) else ([], init)
        self.target = made_of(
            thing,
            [make_argument(value, namespace) for value in positional],
            {key: make_argument(value, namespace) for key, value in named.items()},
        )
        if isinstance(self.target, nn.Module):
            self.entry = getattr(type(self.target), "forward", None)  # a scripted one has none
            self.target.eval()
        self.cache = KVCache(self.target, **self.cache_form) if self.cache_form else None

    def declare_containers(self, containers: Sequence[dict[str, Any]]) -> None:
        """Which of the arguments of forward hold inputs: records as dicts."""
        self.containers = {c["name"]: Container(**c) for c in containers}

    def named_tensors(self, kind: str) -> list[tuple[str, Tensor]]:
        """The target's "parameters" or "buffers" by dotted name."""
        if not isinstance(self.target, nn.Module):
            return []
        return list(getattr(self.target, f"named_{kind}")())

    def set_parameters(self, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """Copy parameters in by name; buffers are never touched, a wrong table must stay wrong."""
        mine = dict(self.named_tensors("parameters"))
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

    # ------------------------------------------------------------ a call

    def set_mode(self, train: bool) -> None:
        """Train or eval mode. To look first is many times cheaper than to set what is set."""
        if isinstance(self.target, nn.Module) and any(
            m.training is not train for m in self.target.modules()
        ):
            self.target.train(train)

    def invoke(self, given: Given, continues: bool = False) -> Any:
        """Call by position, but by keyword what the candidate takes at another place.

        Without `continues` the cache of the calls before is empty."""
        self.called_with = {name: list(t.shape) for name, t in given if t is not None}
        packed = pack(given, self.containers) if self.containers else given
        args, kwargs = self.call_arguments(packed)
        if self.cache is None:
            with ArgumentMismatch(self._function, [name for name, _ in packed]):
                return self.target(*args, **kwargs)
        if continues:
            kwargs |= self.cache.arguments()
        else:
            self.cache.target = self.target  # which another verb may have exchanged
            self.cache.clear()
        return self.cache.output(self.target(*args, **kwargs))

    @property
    def _function(self) -> Any:
        return self.target.forward if isinstance(self.target, nn.Module) else self.target

    def call_arguments(self, packed: Sequence[tuple[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, by position where the candidate takes them there."""
        places = self.parameter_positions.of(self._function)
        args, kwargs = [], dict[str, Any]()
        for i, (name, value) in enumerate(packed):
            if places.get(name, i) != i:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs | self.arguments

    def answer(
        self, given: Given, copies: Given | None = None, requires_grad: bool = False
    ) -> dict[str, Any]:
        """The output for copies of the inputs, without gradients, and which input it wrote to.

        With `requires_grad` the inputs require one, as those of a layer inside a network do."""
        copies = copies or fresh(given)
        versions = [0 if t is None else t._version for _, t in copies]
        for _, t in copies if requires_grad else ():
            if t is not None and t.is_floating_point():
                t.requires_grad_()
        with torch.no_grad():
            answer = output(self.invoke(copies))
        wrote = find_overwritten(given, copies, versions)
        return answer | {"wrote": wrote} if wrote else answer


class OtherTarget:
    """Puts the session's target, which entering it gives, back at the end, whatever took its place.

    Not a generator: contextlib's frames would be taken for the candidate's."""

    def __init__(self, session: Session) -> None:
        self.session, self.target = session, session.target

    def __enter__(self) -> Any:
        return self.target

    def __exit__(self, *error: object) -> None:
        self.session.target = self.target
