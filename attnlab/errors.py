"""Errors that a user can meet: each has one line, a hint and an exit code.

Every error a user can meet is an `AttnlabError`. `cli.py` turns it into a line on stderr (or into
the JSON error document) and the exit code of its kind; nothing else formats errors.
"""


class AttnlabError(Exception):
    """Something a user can act on. `where` is a file, `file:line` or a key inside a file."""

    outcome = "refused"
    exit_code = 2

    def __init__(self, message: str, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where
        if hint:
            self.add_note(hint)  # what Python shows below the message where nobody catches it


class Refused(AttnlabError):
    """Nothing ran: a wrong flag, an unknown challenge or an unknown class."""


class Unreadable(AttnlabError):
    """The file cannot be used: missing, a folder, binary, empty, too large, a syntax error."""

    outcome = "unreadable"


class Broken(AttnlabError):
    """attnlab failed: the judge died, an answer was malformed, the installation is damaged."""

    outcome = "error"
    exit_code = 70


class NotIsolated(AttnlabError):
    """Nothing ran: the isolation that was required cannot be had."""

    exit_code = 78


class PropertyFailed(AssertionError):
    """A property does not hold, as `attnlab.testing` raises it: pytest shows it as a page.

    It stands here, where nothing is imported, so that the plugin of pytest can know it.
    """

    width = 100  # characters of a line of a page; the plugin knows the terminal's

    def __init__(self, finding: str, page: str = "", seed: int = 0) -> None:
        super().__init__(f"{finding}\n\n{page}" if page else finding)
        self.finding = finding  # one sentence, with the name of the check
        self.page = page  # where, at which sizes, the rows of the trace, what to do next
        self.seed = seed
