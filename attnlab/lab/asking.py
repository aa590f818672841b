"""More verbs of the probe, on the trusted side: those that checks of a module's contract use.

What a candidate's process answers may be anything; what is not of the form that was asked for
counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attnlab.checks.base import CannotTell, Facts, Inputs
from attnlab.lab.host import Died, Host, Raised, answered
from attnlab.lab.raw import RawTrace
from attnlab.records import Op, from_json, plain

LONGEST = 32 << 20  # characters of a trace
MOST = 200  # of names that are read of an answer


class Odd(Exception):
    """The module answered with something that cannot be compared; the message says what."""


class Asking:
    """Mixed into `HostProbe`, which has the host and turns an answer into an output."""

    host: Host

    def recipe(self) -> dict[str, Any]:
        """What builds the module of this round."""
        raise NotImplementedError

    def output(self, answer: dict[str, Any], inputs: Inputs) -> Tensor:
        """The tensor in an answer; raises `Odd` where there is none."""
        raise NotImplementedError

    def on(self, device: str, inputs: Inputs) -> Tensor | None:
        if not getattr(torch, device).is_available():
            return None
        answer = answered(self.host.ask("on", device=device, inputs=list(inputs.items())))
        if answer.get("absent"):
            return None
        if answer.get("device", device) != device:
            place = str(answer.get("device"))[:20]
            raise Odd(f"inputs on {device} gave an output on {place}")
        return self.output(answer, inputs)

    def strided(self, inputs: Inputs) -> Tensor:
        return self.output(answered(self.host.ask("strided", inputs=list(inputs.items()))), inputs)

    def reloaded(self, inputs: Inputs) -> Tensor:
        asked = {**self.recipe(), "inputs": list(inputs.items())}
        answer = answered(self.host.ask("reload", **asked))
        return self.output(answer, inputs)

    def exported(self, inputs: Inputs) -> Tensor:
        answer = answered(self.host.ask("export", inputs=list(inputs.items())))
        if "unable" in answer:
            why = str(answer["unable"])[:200]
            raise CannotTell(
                f"torch.export does not load where the candidate runs: {why}", "export"
            )
        return self.output(answer, inputs)

    def overwrite(self, parameters: Mapping[str, Tensor]) -> None:
        answered(self.host.ask("put", tensors=dict(parameters)))

    def facts(self) -> Facts:
        told = answered(self.host.ask("facts"))
        return Facts(
            trained=_names(told.get("trained")),
            tied=tuple(map(_names, _list(told.get("tied")))),
            copies=tuple(map(_names, _list(told.get("copies")))),
            saved=_names(told.get("saved")),
            modules=_names(told.get("modules")),
        )

    def operations(self, inputs: Inputs) -> Sequence[Op]:
        answer = answered(self.host.ask("trace", inputs=list(inputs.items()), seed=0))
        text = str(answer.get("trace", ""))
        try:
            if len(text) > LONGEST:
                raise ValueError("too long")  # noqa: TRY301 - both are no trace
            raw = from_json(RawTrace, text)
        except (TypeError, ValueError) as error:
            raise Died("crashed", "answered with no trace") from error
        if raw.fall is not None:
            raise Raised({**plain(raw.fall), "verb": "trace"})
        return raw.ops

    def trespasses(self, inputs: Inputs) -> Sequence[str]:
        asked = {**self.recipe(), "inputs": list(inputs.items())}
        return _names(answered(self.host.ask("trespasses", **asked)).get("changes"))

    def aliased(self, inputs: Inputs) -> str:
        told = answered(self.host.ask("alias", inputs=list(inputs.items()))).get("alias")
        return str(told or "")[:100]


def _list(value: object) -> list[Any]:
    return value[:MOST] if isinstance(value, list) else []


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(name)[:200] for name in _list(value))
