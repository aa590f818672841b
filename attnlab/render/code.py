"""Python in colours that a dark and a light background both bear: the terminal's own, no yellow."""

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

# Kinds of tokens as Pygments names them.
STYLES = {
    (): "",
    ("Comment",): "dim",
    ("Keyword",): "bold",
    ("Operator", "Word"): "bold",
    ("Name", "Class"): "bold cyan",
    ("Name", "Function"): "bold cyan",
    ("Name", "Decorator"): "cyan",
    ("Literal", "Number"): "magenta",
    ("Literal", "String"): "green",
}
THEME = ANSISyntaxTheme({token: Style.parse(style) for token, style in STYLES.items()})


def highlight_python(code: str) -> Text:
    """Highlighted, and not cut into lines of any width: what is copied must be whole."""
    return Syntax("", "python", theme=THEME).highlight(code)
