"""Verbs that look at the properties of a model on a batch: the example's, or a demo's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from attnlab.candidate.live_properties import Hints, live_properties
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.candidate.verbs.traces import main_of
from attnlab.records import to_json
from attnlab.tracer.bind_arguments import keyword_arguments
from attnlab.tracer.cast import Given, pack
from attnlab.tracer.demo_recorder import StopDemo


@verb
def look_at_properties(
    session: Session, inputs: Given, promised: Sequence[str], unpromised: Sequence[str]
) -> Any:
    """The properties of the target on these inputs, as the JSON text of a `LiveReport`."""
    packed = pack(inputs, session.containers) if session.containers else inputs
    args, kwargs = session.call_arguments(packed)
    hints = Hints(promised=tuple(promised), unpromised=tuple(unpromised))
    return {"report": to_json(live_properties(session.target, tuple(args), kwargs, hints))}


@verb
def look_at_demo(
    session: Session,
    file: str,
    text: str,
    path: str,
    own: dict[str, Any],
    promised: Sequence[str],
    unpromised: Sequence[str],
) -> Any:
    """The same of the first module that a file calls when it runs, on the inputs of that call."""
    run = main_of(session, file, text, path, own)
    found: list[tuple[nn.Module, tuple[Any, ...], dict[str, Any]]] = []

    def stop(module: nn.Module, args: tuple[Any, ...]) -> None:
        if not found:
            found.append((module, args, dict(keyword_arguments(sys._getframe(1)))))
            raise StopDemo

    hook = register_module_forward_pre_hook(stop)
    try:
        run()
    except StopDemo:
        pass
    finally:
        hook.remove()
    if not found:
        raise LookupError(f"{file} ran to its end without calling a module")
    hints = Hints(promised=tuple(promised), unpromised=tuple(unpromised))
    return {"report": to_json(live_properties(*found[0], hints))}
