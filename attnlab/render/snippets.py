"""Snippets as one script: what is not Python is a comment, and no line is wrapped."""

from attnlab.records import plain, record
from attnlab.render.code import highlight_python
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, escape_control
from attnlab.target.snippets import Snippet


@record
class SnippetsPage:
    target: str
    built: str
    snippets: tuple[Snippet, ...]

    def show(self, screen: Screen) -> None:
        rule = "-" * 20
        for snippet in self.snippets:
            title = " ".join((snippet.title or self.built).split())
            text = f"# {rule} {snippet.id}: {title}\n\n{snippet.code}"
            screen.print(highlight_python(escape_control(text)), soft_wrap=True)

    def document(self) -> Document:
        return {**pick(self, "target", "built"), "snippets": plain(self.snippets)}
