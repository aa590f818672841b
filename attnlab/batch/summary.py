"""What a run says as a whole: who fails what, and who says the same as others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attnlab.batch.run import BatchStore
from attnlab.files import shown_path
from attnlab.records.batch import Alike, BatchRun, BatchSummary, Graded, Reason


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
    names: dict[str, list[str]] = {}
    for one in graded:
        if one.verdict.outcome != "passed":
            names.setdefault(one.first, []).append(one.name)
    for reason in sorted(names, key=lambda reason: -len(names[reason])):
        yield Reason(id=reason, names=tuple(names[reason]))


def _find_alike(graded: Sequence[Graded], known: Mapping[str, str]) -> Iterable[Alike]:
    """Groups of two and more, the largest first; also one alone that is as it was shipped."""
    groups: dict[str, list[str]] = {}
    for one in graded:
        if one.alike:
            groups.setdefault(one.alike, []).append(one.name)
    for digest in sorted(groups, key=lambda digest: -len(groups[digest])):
        shipped, solution = (known.get(name) == digest for name in ("shipped", "solution"))
        if len(groups[digest]) > 1 or shipped:
            yield Alike(names=tuple(groups[digest]), shipped=shipped, solution=solution)
