"""Who answers a probe: a candidate's process, or a session in this one."""

from typing import Any, Literal, Protocol

from attnlab.candidate.session import Session
from attnlab.records import Limits

Reason = Literal["crashed", "timeout", "memory"]


class Died(Exception):
    """The candidate's process can answer no more."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Raised(Exception):
    """The candidate's code raised. Everything in here is the candidate's own word."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.error = str(told.get("error", "Exception"))[:100]
        self.verb = str(told.get("verb", ""))[:20]  # what was asked when it raised
        kinds = told.get("kinds")
        self.kinds = (self.error, *map(str, kinds if isinstance(kinds, list) else ()))
        self.message = str(told.get("message", ""))[:500]
        self.file = str(told.get("file", ""))[:500]
        line = told.get("line", 0)
        self.line = line if isinstance(line, int) and line > 0 else None
        self.source = str(told.get("source", ""))[:200]
        self.memory = told.get("memory") is True
        self.shapes = _shapes(told.get("shapes"))  # of the inputs of the call that raised
        super().__init__(": ".join(filter(None, (self.error, self.message))))


def _shapes(told: Any) -> dict[str, tuple[int, ...]]:
    """Shapes by name, of what may be anything."""
    found = told if isinstance(told, dict) else {}
    return {
        str(name)[:100]: tuple(shape)
        for name, shape in found.items()
        if isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    }


class Host(Protocol):
    """A process, or a session here, that answers the verbs of `Session`."""

    isolation: tuple[str, ...]
    missing: tuple[str, ...]

    def ask(self, verb: str, **args: Any) -> dict[str, Any]: ...

    def set_deadline(self, deadline: float) -> None:
        """Replace the deadline, a time of time.monotonic()."""

    def close(self) -> None: ...

    @property
    def printed(self) -> str: ...


class Spawn(Protocol):
    """Makes a fresh host. `deadline` is a time of time.monotonic()."""

    def __call__(self, limits: Limits, own: bool, deadline: float) -> Host: ...


class HostWrapper:
    """Does what another host does; subclasses change some of it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.isolation, self.missing = host.isolation, host.missing

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        return self.host.ask(verb, **args)

    def set_deadline(self, deadline: float) -> None:
        self.host.set_deadline(deadline)

    def close(self) -> None:
        self.host.close()

    @property
    def printed(self) -> str:
        return self.host.printed


class LastingHost(HostWrapper):
    """A host that is there for several jobs: closing it is left to whoever made it."""

    alive = True

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        try:
            return super().ask(verb, **args)
        except Died:
            self.alive = False
            raise

    def close(self) -> None:
        pass


class LocalHost:
    """A session in this very process: for the Python API and for tests, not for strangers' code."""

    isolation: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("everything: the code runs in this process",)
    printed = ""

    def __init__(self) -> None:
        self.session = Session()

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        return self.session.ask(verb, **args)

    def set_deadline(self, deadline: float) -> None:
        pass

    def close(self) -> None:
        pass


def checked_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, or `Raised` when the candidate's code raised."""
    if "raised" in answer:
        told = answer["raised"]
        raise Raised(told if isinstance(told, dict) else {})
    return answer
