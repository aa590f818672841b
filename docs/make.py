"""Write what is generated: docs/checks.md, docs/references.md, docs/catalogue.md, tables of
challenge-format.md and isolation.md.

    python docs/make.py            writes them
    python docs/make.py --check    exits 1 when one of them is not what would be written

Pages are made from docstrings, and the table of promises from `contract_facts.FACTS`, so that
nothing is said twice.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE = "<!-- Made by docs/make.py from docstrings: change those, then run `make docs`. -->\n"
PROMISES = "<!-- Made by docs/make.py from attnlab/catalogue/contract_facts.py. -->\n"
LAYERS = "<!-- Made by docs/make.py from attnlab/worker/sandbox/layers.py. -->\n"
LISTED = "<!-- Made by docs/make.py from challenges/: change those, then run `make docs`. -->\n"
ACTS = "<!-- Made by docs/make.py from attnlab/catalogue/forbidden.toml. -->\n"
END = "<!-- End of what is made. -->\n"
ROW = re.compile(r"\b[AB]\d{1,2}\b")


class System(NamedTuple):
    """One public class or function of the reference library."""

    name: str
    file: str
    what: str
    rows: tuple[str, ...]
    source: str


def main(args: list[str]) -> int:
    pages = {
        DOCS / "checks.md": checks(),
        DOCS / "references.md": references(),
        DOCS / "catalogue.md": catalogue(),
        DOCS / "challenge-format.md": with_tables("challenge-format.md", {PROMISES: promises()}),
        DOCS / "isolation.md": with_tables("isolation.md", {LAYERS: layers(), ACTS: acts()}),
    }
    if "--check" not in args:
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [p for p, t in pages.items() if not p.exists() or p.read_text(encoding="utf-8") != t]
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} is not up to date: run `make docs`\n")
    return int(bool(stale))


def checks() -> str:
    """Every property check, the more basic ones first."""
    from attnlab.checks.base import load_checks

    parts = [MADE, "# The checks\n"]
    for check in load_checks():
        parts.append(f"## {check.id}\n\n**{check.title}.** {check.doc.strip()}\n")
        for part in check.parts:
            needs = ", ".join(part.needs) or "nothing"
            name = f"**{part.title}.** " if len(check.parts) > 1 else ""
            parts.append(f"{name}Needs: {needs}. When it fails: {part.advice}\n")
    return "\n".join(parts)


def catalogue() -> str:
    """Every challenge and program by its first track, without what would spoil it."""
    from attnlab.catalogue.load import load
    from attnlab.catalogue.tracks import read_tracks

    found = load()
    left = {unit.slug: unit for unit in (*found.challenges, *found.programs)}
    files = f"{len(found.challenges)} challenges of one file, {len(found.programs)} programs"
    said = "`attnlab list TRACK` shows one with your progress; `attnlab show NAME` what is asked."
    parts = [LISTED, f"# The catalogue\n\n{files}. {said}\n"]
    for track in sorted(read_tracks(), key=lambda track: bool(track.names)):  # themes first
        units = sorted((u for u in left.values() if track.holds(u)), key=track.order)
        if track.names:
            names = ", ".join(f"`{name}`" for name in track.names)
            parts.append(f"## {track.title}\n\n{track.about} `{track.id}`: {names}.\n")
            continue
        rows = [f"| `{u.name}` | {u.level} | {u.kind} | {u.title} |" for u in units]
        head = "| name | level | kind | |\n|---|---|---|---|"
        if rows:
            parts.append(f"## {track.title}\n\n{track.about} `{track.id}`\n\n{head}")
            parts[-1] += "\n" + "\n".join(rows) + "\n"
        for unit in units:
            del left[unit.slug]
    return "\n".join(parts)


def with_tables(page: str, tables: dict[str, str]) -> str:
    """The page with fresh tables, each after its mark."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for mark, table in tables.items():
        before, rest = text.split(mark)
        text = before + mark + table + END + rest.partition(END)[2]
    return text


def layers() -> str:
    """Every layer of a graded file, and what it does."""
    from attnlab.worker.sandbox.layers import CANDIDATE

    lines = ["| layer | what it does |", "|---|---|"]
    for name, layer in CANDIDATE.items():
        lines.append(f"| {name} | {' '.join((layer.__doc__ or '').split())} |")
    return "\n".join(lines) + "\n"


def acts() -> str:
    """Every forbidden act, and the layer that refuses it."""
    from attnlab.catalogue.forbidden import forbidden_acts

    lines = ["| act | refused by |", "|---|---|"]
    lines += [f"| {act.title} | {act.layer} |" for act in forbidden_acts()]
    return "\n".join(lines) + "\n"


def promises() -> str:
    """Every promise, what it means and the checks that use it."""
    from attnlab.catalogue.contract_facts import PROMISES, known_facts
    from attnlab.checks.base import load_checks
    from attnlab.records import Contract

    needs = {c.id: {need for part in c.parts for need in part.needs} for c in load_checks()}
    lines = ["| promise | it means that | used by |", "|---|---|---|"]
    for name, fact in PROMISES.items():
        lost = known_facts(Contract()) - known_facts(Contract(promises=(name,)))
        users = [f"`{check}`" for check, needed in needs.items() if name in needed]
        users = users or [f"`{check}`" for check in needs if f'"{name}" ' in _check_source(check)]
        users += [f"turns `{check}` off" for check, needed in needs.items() if lost & needed]
        lines.append(f"| `{name}` | {fact.promise} | {', '.join(users)} |")
    return "\n".join(lines) + "\n"


def _check_source(check: str) -> str:
    path = ROOT / "attnlab" / "checks" / f"{check.replace('-', '_')}.py"
    return path.read_text(encoding="utf-8")


def references() -> str:
    """Every system of the reference library, the rows it covers and the tests that cite them."""
    tests = dict(citing_tests())
    lines = [
        MADE,
        "# The reference library\n",
        "Row ids: A stands for attention systems, B for embeddings and positions.\n",
        "| system | what it is | rows | source |",
        "|---|---|---|---|",
    ]
    for s in sorted(systems(), key=lambda s: (s.file, s.name)):
        rows = ", ".join(s.rows)
        lines.append(f"| `{s.file}` `{s.name}` | {s.what} | {rows} | {s.source} |")
    lines += ["\n## Tests by row\n", "| row | systems | tests that cite it |", "|---|---|---|"]
    found = {row for s in systems() for row in s.rows} | set(tests)
    for row in sorted(found, key=lambda r: (r[0], int(r[1:]))):
        names = ", ".join(f"`{s.name}`" for s in systems() if row in s.rows)
        files = "; ".join(f"{file} ({n})" for file, n in sorted(tests.get(row, {}).items()))
        lines.append(f"| {row} | {names} | {files or 'none'} |")
    return "\n".join(lines) + "\n"


def systems() -> list[System]:
    found = []
    for path in sorted((ROOT / "attnlab" / "references").glob("[!_]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                text = ast.get_docstring(node) or ""
                rows = tuple(ROW.findall(_field(text, "Rows")))
                if rows:
                    what = (
                        " ".join(text.partition("\n\n")[0].split()).rstrip(".").replace("|", "\\|")
                    )
                    found.append(System(node.name, path.name, what, rows, _field(text, "Source")))
    return found


def _field(text: str, name: str) -> str:
    """The paragraph that follows `Name:` in a docstring, on one line."""
    match = re.search(
        rf"^\s*{name}:\s*(.+?)(?:\n\s*\n|\n\s*[A-Z][A-Za-z]+:|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return " ".join(match.group(1).split()).replace("|", "\\|") if match else ""


def citing_tests() -> Iterator[tuple[str, dict[str, int]]]:
    """For each row id, the test files whose tests cite it, with how many."""
    found: dict[str, dict[str, int]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        shown = path.relative_to(ROOT / "tests").as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for row in set(ROW.findall(ast.get_docstring(node) or "")):
                    files = found.setdefault(row, {})
                    files[shown] = files.get(shown, 0) + 1
    yield from found.items()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
