"""Calls one after the other, each fed with the cache that the one before returned."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from attnlab.candidate.session import Session
from attnlab.tracer.bind_arguments import named_tensors
from attnlab.tracer.cast import Given
from attnlab.tracer.decoding import cache_argument, cache_in
from attnlab.tracer.nested_tensors import tensors_in


class CacheFeed:
    """Gives the target of a session what its latest call returned for the argument `name`."""

    def __init__(
        self, session: Session, name: str, axes: Mapping[str, Sequence[str]], past: str
    ) -> None:
        """`name` is "" where usual names decide; `axes` are those of the inputs, and `past` is the
        one that grows from call to call."""
        self.session = session
        function = getattr(session.target, "forward", session.target)
        self.name = name or cache_argument(function) or ""
        self.axes, self.past = axes, past
        self.arguments = session.arguments  # of a call that is fed with nothing
        self.returned: Any = None

    def start(self, target: Any) -> None:
        """Begin anew, with another target and no cache."""
        self.session.target, self.returned = target, None

    def invoke(self, given: Given) -> Any:
        self.returned = None  # as long as the call has not come to its end
        self.returned = self.session.invoke(given)
        return self.returned

    @property
    def cache(self) -> Any:
        """The cache that the latest call returned; None where there is none."""
        return cache_in(self.returned, self.name) if self.name else None

    def shapes(self) -> list[list[int]]:
        """The shapes of the tensors in the cache."""
        return [list(t.shape) for t in tensors_in(self.cache)]

    def next_inputs(self, given: Given) -> Given:
        """The inputs of the next call. A cache with the form of declared inputs takes their place;
        any other becomes an argument of the session's calls."""
        cache, own = self.cache, dict(self._own(given))
        parts = dict(named_tensors(cache, self.name))
        fits = parts.keys() == own.keys() and all(self._same(n, own[n], parts[n]) for n in own)
        fed = cache is not None and not (own and fits)
        self.session.arguments = {**self.arguments, **({self.name: cache} if fed else {})}
        if fed:
            return [(n, t) for n, t in given if n not in own]
        return [(n, parts.get(n, t)) for n, t in given]

    def past_place(self, given: Given) -> int | None:
        """Where the first tensor of a declared cache has the axis that grows."""
        first = next((self.axes[n] for n, _ in self._own(given)), ())
        return first.index(self.past) if self.past in first else None

    def past_size(self, given: Given) -> dict[str, int]:
        """How many positions a declared cache holds, by the name of their axis."""
        place = self.past_place(given)
        first = next((t for _, t in self._own(given)), None)
        return {} if place is None or first is None else {self.past: first.shape[place]}

    def _own(self, given: Given) -> Given:
        return [(n, t) for n, t in given if n.partition(".")[0] == self.name]

    def _same(self, name: str, declared: Tensor | None, part: Tensor) -> bool:
        """Whether a returned tensor has the declared shape, but for the positions so far."""
        if declared is None or declared.dim() != part.dim():
            return False
        sizes = zip(self.axes[name], declared.shape, part.shape, strict=True)
        return all(old == new or axis == self.past for axis, old, new in sizes)
