"""What changes right files: the edits of a bug, and the questions that follow it."""

from attnlab.records.base import record


@record
class Edit:
    """One replaced span of a file: `old` stands in the right file once, from `start` on."""

    file: str
    old: str
    new: str
    start: int


@record
class FollowUp:
    question: str
    answer: str
