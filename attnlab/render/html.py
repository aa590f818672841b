"""Pages as HTML, by a template for each kind: a file with all that it needs in it, or a part of a
notebook. Templates are filled with the records that the terminal shows; all text is escaped."""

import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab import __version__
from attnlab.records import Op, Trace
from attnlab.render.batch import BatchPage
from attnlab.render.diff import DiffPage
from attnlab.render.fold import Repeat, arrange_rows
from attnlab.render.formats import format_number, format_seconds, has_nan_or_inf, value_range
from attnlab.render.grade import WORDS, GradePage
from attnlab.render.json import Page
from attnlab.render.png import heat_uri
from attnlab.render.round import RoundGradePage, count_right, grade_word
from attnlab.render.scorecard import ScorecardPage
from attnlab.render.screen import CONTROL, plain_text, plural
from attnlab.render.stage import clock_of
from attnlab.render.trace import TracePage
from attnlab.render.triage import TriagePage, describe_likelihood
from attnlab.render.verify import UNCOMPARED, VerifyPage
from attnlab.render.verify import WORDS as HOLDS

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
KINDS: dict[type, str] = {
    TracePage: "trace",
    TriagePage: "triage",
    DiffPage: "diff",
    GradePage: "grade",
    RoundGradePage: "round",
    ScorecardPage: "scorecard",
    BatchPage: "batch",
    VerifyPage: "verify",
}
PLAIN_WIDTH = 100  # characters, of pages that have no template


def title_of(page: Page) -> str:
    """Of the window that shows it: `trace of my.py:Attention`."""
    words = {"round": "grade", "plain": "attnlab"}
    kind = KINDS.get(type(page), "plain")
    document = page.document()
    about = document.get("target") or document.get("challenge") or document.get("slug") or ""
    return f"{words.get(kind, kind)} of {about}" if about else words.get(kind, kind)


def as_document(page: Page, title: str) -> str:
    """A whole file, which needs no other and no network."""
    return _fill(page, title, whole=True)


def as_fragment(page: Page, title: str) -> str:
    """The same without the frame of a document, for the cell of a notebook."""
    return _fill(page, title, whole=False)


def fill_template(name: str, **values: object) -> str:
    """A template with these values, all of them escaped."""
    return _environment().get_template(name).render(values)


def _fill(page: Page, title: str, *, whole: bool) -> str:
    kind = KINDS.get(type(page), "plain")
    uid = f"a{zlib.crc32(repr((title, kind)).encode('utf-8', 'replace')):08x}"  # cells share a page
    more = {"text": plain_text(page.show, PLAIN_WIDTH)} if kind == "plain" else {}
    template = _environment().get_template(f"{kind}.html.j2")
    return template.render(
        page=page, title=title, whole=whole, uid=uid, version=__version__, **more
    )


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=StrictUndefined, finalize=_visible,
    )  # fmt: skip
    made.filters |= {
        "number": format_number,
        "seconds": format_seconds,
        "plural": plural,
        "range": lambda op: value_range(op, "…"),
        "ill": has_nan_or_inf,
        "png": heat_uri,
        "likely": describe_likelihood,
        "clock": clock_of,
        "factors": lambda axis: [part for part in axis.split("*") if not part.isdigit()],
        "grade_word": grade_word,
        "count_right": count_right,
    }
    made.globals |= {
        "WORDS": WORDS, "HOLDS": HOLDS, "UNCOMPARED": UNCOMPARED,
        "arrange": arrange_rows, "sources": source_lines, "lines_of": _by_file,
    }  # fmt: skip
    made.tests |= {"repeat": lambda shown: isinstance(shown, Repeat)}
    return made


def _visible(value: Any) -> Any:
    """Text without what steers a terminal or turns the direction of writing."""
    return CONTROL.sub("�", value) if type(value) is str else value


def source_lines(
    trace: Trace, code: Sequence[tuple[str, str]] = ()
) -> list[tuple[str, list[tuple[int, str]]]]:
    """Each file's name and its lines by number: all of a file whose text is known, else those that
    ran."""
    texts = dict(code)
    found: dict[str, dict[int, str]] = {}
    for op in _all_ops(trace):
        if op.line:
            found.setdefault(op.file, {})[op.line] = op.source
    for file, text in texts.items():
        if file in found:
            found[file] = dict(enumerate(text.splitlines(), 1))
    return [(file, sorted(lines.items())) for file, lines in found.items()]


def _by_file(trace: Trace) -> dict[tuple[str, int], list[str]]:
    """The axes of what each line computes."""
    axes: dict[tuple[str, int], list[str]] = {}
    for op in _all_ops(trace):
        known = axes.setdefault((op.file, op.line), [])
        parts = [part for axis in op.axes for part in axis.split("*") if not part.isdigit()]
        known += [part for part in dict.fromkeys(parts) if part not in known]
    return axes


def _all_ops(trace: Trace) -> Sequence[Op]:
    return (*trace.ops, *(op for call in trace.calls for op in call.trace.ops))
