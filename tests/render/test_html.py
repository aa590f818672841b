"""Pages as one HTML file: complete, safe, and usable by eye, keyboard and reader of screens."""

from __future__ import annotations

import base64
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from sample_pages import EVIL, HEAT, PAGES, SUMMARY, WRONG, graded
from sample_records import (
    FAILED,
    OPS,
    SHARP,
    TRACE,
)

from attnlab.records import Report, Trace
from attnlab.records.batch import Reason, Told
from attnlab.render.batch import BatchPage
from attnlab.render.grade import GradePage
from attnlab.render.heat import level_rgb
from attnlab.render.html import KINDS, TEMPLATES, as_document, as_fragment, title_of
from attnlab.render.png import heat_uri
from attnlab.render.trace import TracePage


class Outline(HTMLParser):
    """What a reader of screens meets, and what would reach the network."""

    VOID = ("meta", "input", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.labelled = 0
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "input":
            self.labelled += "label" in self.open
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.mark.parametrize("name", PAGES)
def test_a_document_is_complete_and_has_its_landmarks(name):
    """One title, one main heading, a language; every picture and field named; nothing from afar."""
    text = as_document(PAGES[name], title_of(PAGES[name]))
    outline = Outline(text)
    assert [len(outline.of(tag)) for tag in ("html", "title", "main", "h1", "footer")] == [1] * 5
    assert outline.of("html")[0]["lang"] == "en"
    assert all(img["alt"] and img["src"].startswith("data:") for img in outline.of("img"))
    assert outline.labelled == len(outline.of("input"))
    links = [a["href"] for a in outline.of("a")]
    ids = {attrs["id"] for _, attrs in outline.tags if "id" in attrs}
    assert {link.removeprefix("#") for link in links} <= ids
    assert not re.search(r"https?://|@import|url\(", text)
    assert all("tabindex" in attrs for _, attrs in outline.tags if attrs.get("class") == "scroll")
    assert all(th.get("scope") == "col" for th in outline.of("th"))


def test_every_kind_of_page_has_a_template():
    """A template that is missing would be seen only when somebody asks for that page."""
    assert {f"{kind}.html.j2" for kind in KINDS.values()} <= {p.name for p in TEMPLATES.iterdir()}


def test_what_a_candidate_says_is_only_text():
    """Names, sources, messages and output cannot become markup, script or another template."""
    op = replace(
        OPS[0], op=EVIL, source=EVIL, module=EVIL, axes=(EVIL, "S", "D"), file=EVIL, line=1
    )
    found = replace(TRACE.findings[0], message=EVIL, file=EVIL, op=EVIL)
    crash = replace(TRACE.crash, message=EVIL, source=EVIL, explanation=EVIL)
    heat = replace(HEAT, title=EVIL)
    trace = Trace(ops=(op,), findings=(found,), crash=crash, values=(heat,), notes=(EVIL,))
    report = Report(outcome="crashed", target=EVIL, trace=trace, output=EVIL, message=EVIL)
    row = graded(EVIL, "failed")
    reason = Reason(id=EVIL, names=(EVIL,), told=(Told(message=EVIL, names=(EVIL,)),))
    pages = (
        TracePage(
            target=EVIL, outcome="crashed", report=report, sizes={EVIL: 2}, code=((EVIL, EVIL),)
        ),
        GradePage(challenge=SHARP, file=EVIL, verdict=replace(FAILED, message=EVIL, output=EVIL)),
        replace(PAGES["triage"], triage=replace(PAGES["triage"].triage, message=EVIL, target=EVIL)),
        replace(
            PAGES["diff"],
            report=replace(PAGES["diff"].report, diagnosis=(replace(WRONG, source=EVIL),)),
        ),
        BatchPage(summary=replace(SUMMARY, graded=(row,), reasons=(reason,))),
    )
    for page in pages:
        for text in (as_document(page, EVIL), as_fragment(page, EVIL)):
            scripts = len(Outline(text).of("script"))
            assert scripts == isinstance(page, TracePage)
            assert "alert(1)</script>" not in text
            assert not [a for _, a in Outline(text).tags if "onmouseover" in a]
            assert "{{ 7*7 }}" in text
            assert not re.search("[\x1b\u202e]", text)


def test_cells_of_a_notebook_do_not_share_marks():
    """A link in one cell must not lead into another, and a cell brings no frame of its own."""
    page = PAGES["trace"]
    first, second = as_fragment(page, "one"), as_fragment(page, "two")
    marks = [set(re.findall(r'id="([^"]+)"', text)) for text in (first, second)]
    assert not marks[0] & marks[1]
    assert not re.search("<(html|head|body|main|title)[ >]", first)


def test_a_heat_map_is_a_picture_of_its_values():
    """Each pixel has the colour that the terminal gives the value; NaN is grey."""
    data = base64.b64decode(heat_uri(HEAT).partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (2, 2)
    at = data.index(b"IDAT") + 4
    (size,) = struct.unpack(">I", data[at - 8 : at - 4])
    pixels = zlib.decompress(data[at : at + size])
    expected = [level_rgb(level) for level in (0, -32, 99, 32)]
    assert [tuple(pixels[p : p + 3]) for p in (1, 4, 8, 11)] == [tuple(c) for c in expected]
    for start, kind in ((8, b"IHDR"), (at - 8, b"IDAT")):
        (length,) = struct.unpack(">I", data[start : start + 4])
        body = data[start + 4 : start + 8 + length]
        assert body[:4] == kind
        assert (
            zlib.crc32(body)
            == struct.unpack(">I", data[start + 8 + length : start + 12 + length])[0]
        )


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_light_and_dark():
    """Each colour of text on each background reaches 4.5 to 1."""
    css = (TEMPLATES / "base.html.j2").read_text()
    themes = [
        dict(re.findall(r"--(\w+): (#\w{6})", line))
        for line in css.splitlines()
        if "--paper:" in line
    ]
    assert len(themes) == 2
    for theme in themes:
        for ground in ("paper", "panel"):
            for ink in ("ink", "quiet", "bad", "good", "warn", "name"):
                assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
        assert contrast(theme["ink"], theme["mark"]) >= 4.5


@pytest.fixture
def browser(tmp_path):
    """`browser(page, script)`: the title of the page's window once the script has run in it."""
    if not shutil.which("chromium"):
        pytest.skip("no headless browser")

    def run(page, script: str) -> str:
        tell = f"<script>parent.document.title = (function () {{ {script} }})();</script>"
        text = as_document(page, "page").replace("</body>", f"{tell}</body>")
        (tmp_path / "page.html").write_text(text)
        frame = '<iframe width="390" height="800" src="page.html"></iframe>'
        (tmp_path / "frame.html").write_text(frame)  # a window itself is at least 500 wide
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--allow-file-access-from-files"]
        address = f"file://{tmp_path / 'frame.html'}"
        said = subprocess.run(
            [*command, "--virtual-time-budget=5000", address], capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        found = re.search(r"<title>(.*)</title>", said.stdout)
        assert found, said.stderr[-500:]
        return found[1]

    return run


@pytest.mark.parametrize("name", ["trace", "batch"])
def test_nothing_is_cut_off_on_a_phone(browser, name):
    """At 390 pixels no page is wider than its window."""
    said = browser(PAGES[name], "return document.documentElement.scrollWidth + ' ' + innerWidth;")
    wide, window = map(int, said.split())
    assert wide <= window == 390


def test_a_trace_is_filtered_and_its_axes_are_lit(browser):
    """By keyboard as by mouse: a button lights an axis in rows and source, a word hides rows."""
    script = """
        var count = function (what) { return document.querySelectorAll(what).length; };
        document.querySelector("button[data-axis=D]").click();
        var lit = count("b.lit") + " " + count("li.lit");
        var field = document.querySelector("input[type=search]");
        field.value = "softmax";
        field.dispatchEvent(new Event("input"));
        return lit + " " + count("tr[data-op]:not([hidden])");
    """
    with_d = sum(any("D" in axis.split("*") for axis in op.axes) for op in OPS)
    lines = {op.line for op in OPS if any("D" in axis.split("*") for axis in op.axes)}
    softmax = sum(op.op == "softmax" for op in OPS)
    assert browser(PAGES["trace"], script) == f"{with_d} {len(lines)} {softmax}"
