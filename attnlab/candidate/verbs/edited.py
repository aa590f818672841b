"""The verb that calls the module with its file changed, many times."""

import ast
import sys
import time
import types
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from attnlab.candidate.input_copies import cast_inputs
from attnlab.candidate.registry import verb
from attnlab.candidate.session import OtherTarget, Session
from attnlab.candidate.value_recorder import numbers_of
from attnlab.tracer.cast import Given, fresh
from attnlab.tracer.nested_tensors import tensors_in

LONGER = 20  # times as long as the first call a change may run
LEAST = 0.2  # seconds that each may
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _TooLong(BaseException):
    """A change made a loop without an end."""


@verb
def edited_results(
    session: Session,
    texts: list[str],
    weights: dict[str, Tensor],
    inputs: Given,
    seconds: float,
    **recipe: Any,
) -> Any:
    """The first tensor that each text's module returns, as the verb `values` calls it; None where
    it raises or has other weights. Ends early after so many seconds of CPU."""
    module, results = session.module, list[Tensor | None]()
    begun = time.process_time()
    allowed = LEAST
    try:
        with OtherTarget(session):
            for text in texts:
                start = time.process_time()
                if start - begun > seconds:
                    break
                results.append(_result(session, module, text, weights, inputs, allowed, recipe))
                allowed = max(allowed, LONGER * (time.process_time() - start) * (len(results) < 2))
    finally:
        session.module = module
    return {"results": results}


def _result(
    session: Session,
    module: types.ModuleType | None,
    text: str,
    weights: dict[str, Tensor],
    inputs: Given,
    allowed: float,
    recipe: dict[str, Any],
) -> Tensor | None:
    ends = time.process_time() + allowed

    def watch(_frame: FrameType, event: str, _argument: object) -> None:
        if event in {"call", "c_call"} and time.process_time() > ends:
            raise _TooLong

    before = sys.getprofile()
    try:
        sys.setprofile(watch)
        session.module = _redefined(module, text, session.file)
        return _call(session, weights, inputs, recipe)
    except (Exception, _TooLong):  # a change may do anything
        return None
    finally:
        sys.setprofile(before)


def _redefined(module: types.ModuleType | None, text: str, file: str) -> types.ModuleType:
    """A copy of a module with the functions, classes and plain constants of another text: what else
    it does when it is imported is not done again."""
    made = types.ModuleType(module.__name__ if module else "changed")
    if module:
        vars(made).update(vars(module))
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if _defines(node)]
    exec(compile(tree, file, "exec", dont_inherit=True), vars(made))
    return made


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    plain = isinstance(node, ast.Assign) and not any(
        isinstance(inner, ast.Call) for inner in ast.walk(node)
    )
    return plain or isinstance(node, DEFINITIONS)


def _call(
    session: Session, weights: dict[str, Tensor], inputs: Given, recipe: dict[str, Any]
) -> Tensor | None:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            session.build(**recipe, arguments=session.arguments)
            if hasattr(session.target, "double"):
                session.target.double()
            told = session.set_parameters(weights)
            if told["missing"] or told["extra"] or told["shapes"]:
                return None
            out = session.invoke(fresh(cast_inputs(inputs, torch.float64)))
    finally:
        torch.set_default_dtype(default)
    found = next(iter(tensors_in([out])), None)
    return None if found is None else numbers_of(found)
