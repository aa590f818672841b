"""Where else a page goes: into a file to be sent, or in a format that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import emit, note

if TYPE_CHECKING:
    from attnlab.render.json import Page

Html = Annotated[
    str, typer.Option("--html", metavar="FILE", help="Also write the page to a file, to be sent.")
]


def emit_also(page: Page, json: bool, code: int = 0, html: str = "") -> int:
    """Print the page or its document, and write it to the file `html`; returns `code`."""
    if html:
        _write_html(page, html)
    return emit(page, json, code)


def _write_html(page: Page, file: str) -> None:
    """Write the page as one file with all in it; raises `Refused` where that cannot be."""
    from attnlab.errors import Refused
    from attnlab.files import write_whole
    from attnlab.render.html import as_document, title_of

    try:
        write_whole(Path(file), as_document(page, title_of(page)))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"--html {file} cannot be written: {why}", "name another file") from None
    note(f"wrote {file}: one file, which needs no network")
