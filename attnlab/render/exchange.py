"""What other programs read of a page: annotations of GitHub, SARIF 2.1.0, JUnit's XML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from attnlab import __version__
from attnlab.batch.grader import round_verdict
from attnlab.records import CheckResult, Outcome, Severity, Verdict, record, to_json
from attnlab.render.batch import BatchPage
from attnlab.render.grade import GradePage
from attnlab.render.json import Page
from attnlab.render.round import RoundGradePage, count_right, grade_word
from attnlab.render.screen import escape_control
from attnlab.render.triage import TriagePage
from attnlab.render.verify import VerifyPage

HOME = "https://json.schemastore.org/sarif-2.1.0.json"
WORDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
LEVELS: dict[Outcome, Severity] = {
    "passed": "note", "skipped": "note", "failed": "error", "error": "warning",
}  # fmt: skip


@record
class Result:
    """One thing that was looked at."""

    subject: str  # a file, a module, a person
    rule: str
    title: str
    outcome: Outcome
    level: Severity
    message: str
    file: str = ""
    line: int | None = None

    @property
    def bad(self) -> bool:
        return self.outcome in ("failed", "error")


def exchange(page: Page, form: str) -> str:
    """The page in one of the formats: github, sarif or junit."""
    return WRITERS[form](list(page_results(page)))


def page_results(page: Page) -> Iterator[Result]:
    """What a page says of each thing; a page of another kind says nothing."""
    if isinstance(page, GradePage):
        yield from _verdict_results(page.verdict.file, page.verdict)
    elif isinstance(page, BatchPage):
        for one in page.summary.graded:
            yield from _verdict_results(one.name, one.verdict)
    elif isinstance(page, VerifyPage):
        yield from _checks(page.target, page.checks) or _whole(
            page.target, page.outcome, page.message
        )
    elif isinstance(page, RoundGradePage):
        yield from _round_results(page)
    elif isinstance(page, TriagePage):
        yield from _suspicions(page)


def _verdict_results(subject: str, verdict: Verdict) -> Iterable[Result]:
    told = _checks(subject, verdict.checks, verdict.file)
    if not any(one.bad for one in told) or verdict.outcome in ("unreadable", "error"):
        told += _whole(subject, verdict.outcome, verdict.message, verdict.file)
    return told


def _checks(subject: str, checks: Sequence[CheckResult], file: str = "") -> list[Result]:
    return [
        Result(
            subject=subject,
            rule=check.id,
            title=check.title,
            outcome=check.outcome,
            level="note" if check.folded_under else LEVELS[check.outcome],
            message="\n".join(filter(None, (check.message or check.title, check.advice))),
            file=check.file or file,
            line=check.line,
        )
        for check in checks
    ]


def _whole(subject: str, outcome: str, message: str, file: str = "") -> list[Result]:
    """One result for all of it, where no check says why."""
    said: Outcome = "passed" if outcome == "passed" else "error" if outcome == "error" else "failed"
    return [
        Result(
            subject=subject, rule=outcome, title=outcome, outcome=said,
            level="note" if said == "passed" else "error", message=message or outcome, file=file,
        )
    ]  # fmt: skip


def _round_results(page: RoundGradePage) -> Iterable[Result]:
    """Parts are named once the round has ended."""
    report = page.report if page.ended else replace(page.report, parts=())
    verdict = round_verdict(page.program.slug, page.folder, report)
    told = f"{grade_word(page.report)}: {count_right(page.report)}"
    return [*_checks(page.folder, verdict.checks), *_whole(page.folder, verdict.outcome, told)]


def _suspicions(page: TriagePage) -> Iterator[Result]:
    found = page.triage
    for one in found.suspicions:
        yield Result(
            subject=found.target, rule=one.rule, title=one.meaning or one.rule,
            outcome="skipped" if one.severity == "note" else "failed", level=one.severity,
            message=one.message, file=one.file, line=one.line,
        )  # fmt: skip
    if not found.suspicions:
        outcome = "passed" if found.outcome == "nothing-found" else found.outcome
        yield from _whole(found.target, outcome, found.message or "nothing suspicious was found")


# ---------------------------------------------------------------- the formats


def write_github(results: Iterable[Result]) -> str:
    """A workflow command for each result that is not fine, which GitHub shows at its line."""
    lines = []
    for one in results:
        if one.outcome in ("passed", "skipped") and one.level == "note":
            continue
        place = {"file": one.file, "line": str(one.line or "") if one.file else ""}
        place["title"] = f"{one.subject}: {one.rule}"
        said = ",".join(f"{k}={_github(v, ':,')}" for k, v in place.items() if v)
        lines.append(f"::{WORDS[one.level]} {said}::{_github(one.message)}\n")
    return "".join(lines) or "::notice title=attnlab::nothing is wrong\n"


def _github(text: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in escape_control(text))


def write_sarif(results: Sequence[Result]) -> str:
    """One run of SARIF 2.1.0; what passed is told too."""
    rules = {one.rule: one.title for one in results}
    names = list(rules)
    driver = {
        "name": "attnlab", "version": __version__,
        "rules": [{"id": n, "shortDescription": {"text": t or n}} for n, t in rules.items()],
    }  # fmt: skip
    found = [_sarif_result(one, names.index(one.rule)) for one in results]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": found}
    return to_json({"$schema": HOME, "version": "2.1.0", "runs": [run]}) + "\n"


def _sarif_result(one: Result, index: int) -> dict[str, Any]:
    kinds = {"passed": "pass", "skipped": "notApplicable", "failed": "fail", "error": "open"}
    kind = "fail" if one.outcome == "skipped" and one.level != "note" else kinds[one.outcome]
    said: dict[str, Any] = {
        "ruleId": one.rule, "ruleIndex": index, "kind": kind,
        "level": one.level if kind == "fail" else "none",  # no other kind may have one
        "message": {"text": f"{one.subject}: {one.message}"},
    }  # fmt: skip
    if one.file:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(PurePath(one.file).as_posix())}}
        if one.line:
            place["region"] = {"startLine": one.line}
        said["locations"] = [{"physicalLocation": place}]
    return said


def write_junit(results: Sequence[Result]) -> str:
    """A suite for each subject, a case for each result."""
    from attnlab.render.html import fill_template

    suites: dict[str, list[Result]] = {}
    for one in results:
        suites.setdefault(one.subject, []).append(one)
    return fill_template("junit.xml.j2", suites=suites)


WRITERS: dict[str, Callable[[list[Result]], str]] = {
    "github": write_github,
    "sarif": write_sarif,
    "junit": write_junit,
}
