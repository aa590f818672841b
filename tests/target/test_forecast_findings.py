"""What the text of a file says of forecasts."""

import pytest

from attnlab.target.source_findings import source_findings

SET = """
def item(self, i):
    end = i + self.context
    {begin} = i + self.context - 1
    x = self.series[{x}]
    {y}
    return x, y
"""
ONE = "y = self.series[{}]".format


def lines(text):
    return [f.line for f in source_findings(text, "net.py") if f.rule == "target-in-input"]


@pytest.mark.parametrize(
    ("x", "y", "found"),
    [
        ("i:end", ONE("end - 1"), True),
        ("i:end", ONE("end"), False),
        ("i:i + self.context", ONE("start:start + self.horizon"), True),
        ("i:i + self.context", ONE("start + 1:start + 1 + self.horizon"), False),
        ("i:end, :", ONE("end - 1:end + horizon - 1, 0"), True),
        ("i:end, 1:", ONE("end - 1:end + horizon - 1, 0"), False),
        ("i:end", ONE("end - 1:end + self.horizon"), False),
        ("i:end", ONE("end - self.label:end + self.horizon"), False),
        ("i:end", "y = self.classes[end - 1]", False),
        ("i:end", ONE("i + 1:end + 1"), False),
        ("i:end", "shown = self.series[end - 1:end - 1 + n]", False),
    ],
)
def test_a_forecast_begins_behind_what_is_given(x, y, found):
    """The last value of the inputs is no target; a decoder may begin with it, and a label of a
    window stand at its end."""
    assert lines(SET.format(begin="start", x=x, y=y)) == [6] * found


@pytest.mark.parametrize(("less", "found"), [("", False), (" - 1", True)])
def test_two_cuts_are_returned_at_once(less, found):
    """Inputs and targets need no names."""
    text = f"""
def __getitem__(self, i):
    return self.s[i:i + n], self.s[i + n{less}:i + n + m{less}]
"""
    assert lines(text) == [3] * found
