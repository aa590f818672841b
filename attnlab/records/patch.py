"""What changes right files: the edits of a bug, and the questions that follow it."""

from __future__ import annotations

from attnlab.records.base import record


@record
class Edit:
    """One replaced span of a file: `old` stands in the right file once, from `start` on."""

    file: str
    old: str
    new: str
    start: int

    def overlaps(self, other: Edit) -> bool:
        """Whether both replace some of the same text."""
        mine, others = self.start + len(self.old), other.start + len(other.old)
        return self.file == other.file and self.start < others and other.start < mine


@record
class FollowUp:
    question: str
    answer: str
