"""Requests say what they are, and each has a handler."""

from __future__ import annotations

from attnlab.records.position import PositionJob
from attnlab.worker.judge import HANDLERS
from attnlab.worker.requests import POSITION, REQUESTS, decode


def test_each_request_has_a_handler():
    assert HANDLERS.keys() == REQUESTS.keys()


def test_a_request_travels_with_its_tag():
    job = PositionJob(kind="rope")
    assert decode(bytearray(POSITION.encode(job))) == ("position", job)
