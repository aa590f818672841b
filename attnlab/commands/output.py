"""Where else a page goes: into a file to be sent, or in a format that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import emit, note

if TYPE_CHECKING:
    from attnlab.render.json import Page


def _writable_file(file: str) -> str:
    """Raises `Refused` where a page cannot be written there: before anything runs."""
    from attnlab.errors import Refused

    folder = Path(file).absolute().parent
    why = f"there is no folder {folder.name}/" if file and not folder.is_dir() else ""
    why = why or ("it is a folder" if file and Path(file).is_dir() else "")
    if why:
        raise Refused(f"--html {file} cannot be written: {why}", "name another file", "--html")
    return file


Html = Annotated[
    str,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Also write the page to a file, to be sent.",
        callback=_writable_file,
    ),
]
FORMATS = ("github", "sarif", "junit")


def _known_format(form: str) -> str:
    """Raises `Refused` where nothing is called so: before anything runs."""
    from attnlab.errors import Refused
    from attnlab.suggest import did_you_mean

    if form and form not in FORMATS:
        hint = did_you_mean(form, FORMATS) or "github, sarif or junit"
        raise Refused(f"--format {form}: there is no such format", hint, "--format")
    return form


Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Print what other programs read instead: github, sarif or junit.",
        autocompletion=lambda incomplete: [n for n in FORMATS if n.startswith(incomplete)],
        callback=_known_format,
    ),
]


def emit_also(page: Page, json: bool, code: int = 0, html: str = "", form: str = "") -> int:
    """Print the page, its document or the format `form`, and write it to the file `html`; returns
    `code`."""
    if html:
        write_html(page, html)
    if json or not form:
        return emit(page, json, code)
    from attnlab.render.exchange import exchange
    from attnlab.render.json import write_text

    write_text(exchange(page, form))
    return code


def write_html(page: Page, file: str, again: str = "name another file") -> None:
    """Write the page as one file with all in it; raises `Refused` where that cannot be."""
    from attnlab.errors import Refused
    from attnlab.files import write_whole
    from attnlab.render.html import as_document, title_of

    try:
        write_whole(Path(file), as_document(page, title_of(page)))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"--html {file} cannot be written: {why}", again) from None
    note(f"wrote {file}: one file, which needs no network")
