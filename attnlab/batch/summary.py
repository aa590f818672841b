"""What a run says as a whole: who fails what, and who says the same as others."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from attnlab.batch.run import BatchStore
from attnlab.files import shown_path
from attnlab.records.batch import Alike, BatchRun, BatchSummary, Graded, Reason, Told


def summarize(store: BatchStore, run: BatchRun, known: Mapping[str, str]) -> BatchSummary:
    """The verdicts so far; `known` are the digits of the shipped text and of the solution."""
    graded = tuple(store.graded())
    return BatchSummary(
        run=run,
        file=shown_path(store.path),
        graded=graded,
        outcomes=dict(Counter(one.verdict.outcome for one in graded).most_common()),
        reasons=tuple(_reasons(graded)),
        alike=tuple(_find_alike(graded, known)),
    )


def _reasons(graded: Sequence[Graded]) -> Iterable[Reason]:
    wrong = [one for one in graded if one.verdict.outcome != "passed"]
    for reason, ones in _largest_first(wrong, lambda one: one.first):
        told = _largest_first(ones, lambda one: one.message)
        yield Reason(
            id=reason,
            names=_names(ones),
            told=tuple(Told(message=message, names=_names(same)) for message, same in told),
        )


def _largest_first(
    graded: Iterable[Graded], key: Callable[[Graded], str]
) -> list[tuple[str, list[Graded]]]:
    """Submissions by what `key` says of them."""
    groups: dict[str, list[Graded]] = {}
    for one in graded:
        groups.setdefault(key(one), []).append(one)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def _names(graded: Iterable[Graded]) -> tuple[str, ...]:
    return tuple(one.name for one in graded)


def _find_alike(graded: Sequence[Graded], known: Mapping[str, str]) -> Iterable[Alike]:
    """Groups of two and more, the largest first; also one alone that is as it was shipped."""
    known_text = [one for one in graded if one.alike]
    for digest, ones in _largest_first(known_text, lambda one: one.alike):
        shipped, solution = (known.get(name) == digest for name in ("shipped", "solution"))
        if len(ones) > 1 or shipped:
            yield Alike(names=_names(ones), shipped=shipped, solution=solution)
