"""Caches that do not follow their beams."""

from check_cases.cache_equals_full.prefill_equals_decode import KEPT
from sources import CACHED, DECODER, INNER
from trial import Case, changed

REORDER = "self.cache = tuple(t[parents] for t in self.cache)"


def kept(line):
    source = changed(changed(CACHED, *KEPT), (REORDER, line))
    return Case(source, INNER, None)


WRONG = {
    "keys alone": kept("self.cache = self.cache[0][parents], self.cache[1]"),
    "not at all": kept("pass"),
    "for one step": Case(
        changed(
            changed(CACHED, *KEPT),
            (
                "self.H, self.cache = num_heads, None",
                "self.H, self.cache, self.old = num_heads, None, None",
            ),
            (REORDER, f"self.old = self.cache\n        {REORDER}"),
            ("self.cache = k, v", "self.cache, self.old = self.old or (k, v), None"),
        ),
        INNER,
        None,
    ),
    "backwards": kept("self.cache = tuple(t[parents.argsort()] for t in self.cache)"),
}
RIGHT = {
    "all that is kept": kept(REORDER),
    "by index_select": kept("self.cache = tuple(t.index_select(0, parents) for t in self.cache)"),
    "returned, for the caller to reorder": Case(CACHED, DECODER, None),
}
