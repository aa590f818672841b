"""The verb that calls the module with its file changed, many times."""

from __future__ import annotations
import __future__

import ast
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import islice
from typing import Any, Self

import torch
from torch import Tensor, nn

from attnlab.candidate.input_copies import cast_inputs
from attnlab.candidate.registry import verb
from attnlab.candidate.session import OtherTarget, Session
from attnlab.candidate.value_recorder import numbers_of
from attnlab.candidate.verbs.values import values
from attnlab.tracer.cast import Given, fresh
from attnlab.tracer.nested_tensors import tensors_in

MOST = 0.5  # seconds of CPU that a change may take
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _TooLong(BaseException):
    """A change made a loop without an end."""


@verb
def edited_results(
    session: Session,
    text: str,
    changes: list[tuple[int, int, str]],
    weights: dict[str, Tensor],
    inputs: Given,
    seconds: float,
    pick: int = 0,
    **recipe: Any,
) -> Any:
    """Tensor `pick` of what the module returns, called as by the verb `values`, with each change of
    its text; None where it raises or has other weights. A change is what stands in place of some
    lines, by the first and last of them. Ends early after so many seconds of CPU; `took` says how
    many it took."""
    results = list[Tensor | None]()
    begun = time.process_time()
    if not _can_interrupt():
        return {"results": [], "took": seconds}
    with OtherTarget(session), EditedModule(session, text) as edited:
        kept = _kept(session, edited, weights, recipe)
        for first, last, new in changes:
            if time.process_time() - begun > seconds:
                break
            result = None
            with _interrupted():
                edited.change(first, last, new)
                if kept is not None and kept.leaves(first, last):
                    kept.put_changed()
                    result = _call(session, inputs, pick)
                elif _build(session, weights, recipe):
                    result = _call(session, inputs, pick)
            edited.undo()
            results.append(result)
    return {"results": results, "took": time.process_time() - begun}


@verb
def edited_values(session: Session, text: str, change: tuple[int, int, str], **asked: Any) -> Any:
    """What the verb `values` answers with one change of the text."""
    with EditedModule(session, text) as edited:
        edited.change(*change)
        return values(session, **asked)


def _can_interrupt() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "ITIMER_VIRTUAL")


@contextmanager
def _interrupted() -> Iterator[None]:
    """Leaves what runs inside where it raises, or takes too long."""

    def ring(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST)
        with suppress(Exception, _TooLong):  # a change may do anything
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class EditedModule:
    """In place of a session's module while it is entered: a copy with its functions, classes and
    plain constants made anew, of which one at a time can be changed. What else the text does when
    it is imported is not done again."""

    def __init__(self, session: Session, text: str) -> None:
        self.session, self.module = session, session.module
        self.lines = text.splitlines(keepends=True)
        self.flags = 0
        self.spans: list[tuple[int, int]] = []
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.flags |= __future__.annotations.compiler_flag
            if _is_definition(node):
                decorators = [d.lineno for d in getattr(node, "decorator_list", ())]
                self.spans.append((min([node.lineno, *decorators]), node.end_lineno or node.lineno))

    def __enter__(self) -> Self:
        module = self.session.module
        self.session.module = copy = types.ModuleType(module.__name__ if module else "edited")
        self.space = vars(copy)
        self.space.update(vars(module) if module else {})
        for first, last in self.spans:
            self._define(first, "".join(self.lines[first - 1 : last]))
        self.names = dict(self.space)
        return self

    def __exit__(self, *error: object) -> None:
        self.session.module = self.module

    def _define(self, first: int, text: str) -> None:
        code = compile(
            "\n" * (first - 1) + text, self.session.file, "exec", self.flags, dont_inherit=True
        )
        exec(code, self.space)

    def change(self, first: int, last: int, new: str) -> None:
        """Define what stands on these lines with others in place of them, if any do."""
        if not last:
            return None
        for start, end in self.spans:
            if start <= first and last <= end:
                before, after = self.lines[start - 1 : first - 1], self.lines[last:end]
                return self._define(start, "".join((*before, new, *after)))
        raise LookupError("nothing is defined there")

    def undo(self) -> None:
        self.space.clear()
        self.space.update(self.names)


def _is_definition(node: ast.stmt) -> bool:
    plain = isinstance(node, ast.Assign) and not any(
        isinstance(inner, ast.Call) for inner in ast.walk(node)
    )
    return plain or isinstance(node, DEFINITIONS)


def _build(session: Session, weights: dict[str, Tensor], recipe: dict[str, Any]) -> bool:
    """Make the module in float64; whether it has these weights, and no others."""
    with _in_float64():
        session.build(**recipe, arguments=session.arguments)
        if hasattr(session.target, "double"):
            session.target.double()
        told = session.set_parameters(weights)
    return not (told["missing"] or told["extra"] or told["shapes"])


def _call(session: Session, inputs: Given, pick: int) -> Tensor | None:
    with _in_float64(), torch.no_grad():
        out = session.invoke(fresh(cast_inputs(inputs, torch.float64)))
    found = next(islice(tensors_in([out]), pick, None), None)
    return None if found is None else numbers_of(found)


@contextmanager
def _in_float64() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


def _kept(
    session: Session, edited: EditedModule, weights: dict[str, Tensor], recipe: dict[str, Any]
) -> KeptModule | None:
    """The module as its unchanged text makes it; None where that cannot be kept."""
    made: KeptModule | None = None
    with _interrupted():
        called, built = _calls_of(session.file, lambda: _build(session, weights, recipe))
        if built and isinstance(session.target, nn.Module) and session.cache is None:
            made = KeptModule(session, edited, called)
    return made


def _calls_of(file: str, make: Callable[[], bool]) -> tuple[list[types.CodeType], bool]:
    """The code of a file that runs while something is made; and what making it gives."""
    called = list[types.CodeType]()

    def note(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == file:
            called.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return called, make()
    finally:
        sys.setprofile(before)


class KeptModule:
    """A module that is made once, for changes of what runs only when it is called."""

    def __init__(
        self, session: Session, edited: EditedModule, called: list[types.CodeType]
    ) -> None:
        self.session, self.edited = session, edited
        self.target: nn.Module = session.target
        self.classes = {
            kind.__name__: kind
            for kind in map(type, self.target.modules())
            if edited.names.get(kind.__name__) is kind
        }
        starts = {code.co_firstlineno for code in called}
        names = {name for code in called for name in code.co_names}
        tree = ast.parse("".join(edited.lines))
        self.free: list[tuple[int, int]] = []  # lines of what does not run when it is made
        if any(kind.__subclasses__() for kind in self.classes.values()):
            return
        handed = _names_not_called(tree)
        for top in tree.body:
            known = isinstance(top, ast.ClassDef) and top.name in self.classes
            if not known and (not isinstance(top, DEFINITIONS[:2]) or top.name in handed):
                continue
            for node in ast.walk(top):
                if not isinstance(node, DEFINITIONS[:2]) or node.name in names:
                    continue
                if not starts.intersection(range(node.lineno, (node.end_lineno or 0) + 1)):
                    self.free.append((node.body[0].lineno, node.end_lineno or node.lineno))

    def leaves(self, first: int, last: int) -> bool:
        """Whether a change of these lines leaves the module as it was made."""
        return any(start <= first and last <= end for start, end in self.free)

    def put_changed(self) -> None:
        """A copy of the module, with its classes as they are defined now, is the session's."""
        self.session.target = copied = deepcopy(self.target)
        for module in copied.modules():
            if self.classes.get(type(module).__name__) is type(module):
                module.__class__ = self.edited.space[type(module).__name__]
        self.session.entry = type(copied).forward


def _names_not_called(tree: ast.Module) -> set[str]:
    """What is read by name other than to be called: it may be kept anywhere."""
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return {
        n.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in called
    }
