"""The pieces of a verdict: checks that failed, and how many did not."""

from collections.abc import Mapping, Sequence

from attnlab.records import CheckResult
from attnlab.render.screen import Screen
from attnlab.verdict import UNSEEN


def show_failures(checks: Sequence[CheckResult], screen: Screen, next_: str = "") -> None:
    """Every check that failed by itself in full; those that follow from them on one line.

    Advice that stands as `next_` at the end of the page anyway is not said twice.
    """
    own = [c for c in checks if c.outcome == "failed" and not c.folded_under]
    for check in own:
        screen.gap()
        _show_failure(check, screen, "" if check.advice == next_ else check.advice)
    _show_folded([c for c in checks if c.outcome == "failed" and c.folded_under], screen)
    undecided: dict[str, list[str]] = {}  # checks without an answer, by reason
    for check in (c for c in checks if c.outcome == "error"):
        undecided.setdefault(check.message, []).append(check.id)
    for message, ids in undecided.items():
        screen.say((f"{screen.marks.unsure} {', '.join(ids)}", "warn"), f"  {message}")


def _show_failure(check: CheckResult, screen: Screen, advice: str) -> None:
    """Id, then what should hold, what was seen instead, where, and what to do."""
    screen.say((f"{screen.marks.bad} {check.id}", "bad"))
    sizes = " ".join(f"{name}={size}" for name, size in check.sizes.items())
    place = f"{check.file}:{check.line}" if check.line else ""
    seen = ", ".join(text for text in (place, f"with {sizes}" if sizes else "") if text)
    rows = (("should", check.title), ("but", check.message), ("at", seen), ("do", advice))
    for label, text in rows:
        if text:
            link = screen.link("", check.file) if label == "at" and place else ""
            screen.hang((f"  {label:<6}  ", "title" if label == "do" else "aside"), (text, link))


def _show_folded(folded: Sequence[CheckResult], screen: Screen) -> None:
    if not folded:
        return
    names = ", ".join(check.id for check in folded)
    also = "also failed, as follows from the above" if len(folded) > 1 else "also failed"
    under = "" if len(folded) > 1 else f", as follows from {folded[0].folded_under}"
    screen.gap()
    screen.say((f"{screen.marks.note} {also}: {names}{under}", "aside"))


COUNTED = {"failed": "failed", "passed": "passed", "error": "could not be decided"}


def outcome_counts(
    checks: Sequence[CheckResult], screen: Screen, words: Mapping[str, str] = COUNTED
) -> list[tuple[str, str]]:
    """Counts by outcome, as styled parts of one line; checks that do not apply are left out.

    Those that were not run because an earlier one had failed are counted: the score counts them.
    """
    parts: list[tuple[str, str]] = []
    for outcome, word in words.items():
        mark, style = screen.look(outcome)
        if count := sum(check.outcome == outcome for check in checks):
            parts += [("   ", ""), (f"{mark} {count} {word}", style)]
    if unseen := sum(check.reason == UNSEEN for check in checks):
        parts += [
            ("   ", ""),
            (f"{screen.marks.skip} {unseen} not run: may pass, or not apply", "aside"),
        ]
    return parts[1:]
