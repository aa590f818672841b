"""How long calls may take, and how long they took.

What goes through pairs of positions one by one, in plain Python, is right and slow; a few calls of
hundreds of positions would use up its time.
"""

import time
from typing import Any

from attnlab.candidate.host import Host, HostWrapper
from attnlab.sizes import Sizes

PILOT = 32  # positions of the call by which longer ones are judged
QUICK = 0.01  # seconds that such a call takes at most where nothing goes one by one
LENGTHS = ("S", "Sq", "Sk")  # what a longer sequence has more of


def pairs(sizes: Sizes, length: int) -> int:
    """Of positions in one sequence, in all heads."""
    return sizes.get("H", 1) * length**2


# ---------------------------------------------------------------- a file that is slow everywhere

TIMED = ("build", "call", "calls")  # verbs whose time is that of their calls
ENOUGH = 3  # calls that show how long one takes
NOTABLE = 0.02  # seconds: where calls are quicker, one that does not end is no slow one
SLACK = 4  # times as long as calls so far: it may take gradients, or the machine is busy


class CallTimes:
    """The seconds that calls of the candidate took, as the judge measures them."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.elements = 0
        self.pending = (0.0, 0, 0)  # of what was asked last: when, how many calls and elements

    @property
    def mean(self) -> float:
        """Seconds of one call."""
        return self.seconds / max(self.count, 1)

    def begin(self, args: dict[str, Any]) -> None:
        calls = calls_in(args.get("inputs") or args.get("calls") or [])
        elements = sum(t.numel() for given in calls for _, t in given if t is not None)
        self.pending = time.monotonic(), len(calls), elements

    def end(self) -> None:
        started, count, elements = self.pending
        if count:
            self.count += count
            self.elements += elements
            self.seconds += time.monotonic() - started

    def slow(self) -> bool:
        """Whether what is being called, and did not end, was no slower than the calls before."""
        started, count, elements = self.pending
        if self.count < ENOUGH or self.mean < NOTABLE:
            return False
        usual = self.elements / self.count * max(count, 1)
        larger = max(elements / max(usual, 1), 1)
        return time.monotonic() - started < SLACK * self.mean * max(count, 1) * larger


def calls_in(inputs: list[Any]) -> list[Any]:
    """The inputs of each call; those of a single one are a list of names and tensors."""
    return [inputs] if inputs and isinstance(inputs[0], tuple) else inputs


class TimedHost(HostWrapper):
    """A host that notes how long its answers take."""

    def __init__(self, host: Host, times: CallTimes) -> None:
        super().__init__(host)
        self.times = times

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        self.times.begin(args)
        answer = super().ask(verb, **args)
        if verb in TIMED and "raised" not in answer:
            self.times.end()
        return answer
