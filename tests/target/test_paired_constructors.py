"""Arguments of two constructors that mean the same under other names."""

import pytest

from attnlab.candidate.host import LocalHost
from attnlab.errors import AttnlabError
from attnlab.grading.pipeline import run_job
from attnlab.records import Limits
from attnlab.target.command_line import TraceCommand
from attnlab.target.diff_target import diff_job, paired_arguments
from attnlab.target.paired_constructors import pair_constructors

RIGHT = """
from torch import nn


class Net(nn.Module):
    def __init__(self, {arguments}):
        super().__init__()
        self.up, self.down = nn.Linear({wide}, {inner}), nn.Linear({inner}, {wide})
        self.kept = {kept}

    def forward(self, x):
        return self.down(self.up(x).relu()) * self.kept
"""
MINE = RIGHT.format(arguments="channels, blub, reach", wide="channels", inner="blub", kept="reach")


def pair(folder, mine, theirs):
    (folder / "mine.py").write_text(mine)
    (folder / "right.py").write_text(theirs)
    typed = TraceCommand(target=f"{folder / 'mine.py'}:Net", verb="diff")
    return typed, f"{folder / 'right.py'}:Net"


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("dim, hidden_dim, window", {"channels": "dim", "blub": "hidden_dim", "reach": "window"}),
        ("dim, reach, hidden_dim", {"channels": "dim", "blub": "hidden_dim"}),
        ("dim, hidden_dim", {"channels": "dim"}),
    ],
)
def test_arguments_are_paired_by_size_then_by_name_and_place(arguments, names, tmp_path):
    """Of one size, of one name, and else at one place, where as many are left on both sides."""
    kept = "reach" if "reach" in arguments else "window" if "window" in arguments else "3"
    theirs = RIGHT.format(arguments=arguments, wide="dim", inner="hidden_dim", kept=kept)
    paired = pair_constructors(*pair(tmp_path, MINE, theirs))
    assert paired is not None
    assert {n: paired.names[n] for n in names} == names


def test_what_neither_side_says_is_chosen_and_both_are_built_alike(tmp_path):
    """`reach` and `distance` say nothing: without a value the two could not be compared."""
    theirs = RIGHT.format(
        arguments="dim, hidden_dim, distance", wide="dim", inner="hidden_dim", kept="distance"
    )
    typed, reference = pair(tmp_path, MINE, theirs)
    paired = next(paired_arguments(typed, reference, "Net"))
    assert "reach=3" in paired.mine
    fed = typed.with_flags(init=paired.mine)
    for text, outcome in (
        (MINE, "same"),
        (MINE.replace("* self.kept", "+ self.kept"), "different"),
    ):
        (tmp_path / "mine.py").write_text(text)
        report = run_job(diff_job(fed, reference, Limits()), lambda *_: LocalHost())
        assert report.diff is not None
        assert report.diff.outcome == outcome, report.diff.message


def test_the_reference_library_needs_no_pairs_and_equal_names_are_kept(tmp_path):
    """Nothing is asked again where names say all of it."""
    text = MINE.replace("reach", "window").replace("blub", "hidden_dim")
    typed, reference = pair(tmp_path, text, text)
    assert not [*paired_arguments(typed, "ref:LayerNorm", "Net")]
    again = pair_constructors(typed, reference)
    assert again is not None
    assert all(theirs == mine for mine, theirs in again.names.items())
    assert not again.mine + again.theirs


def test_names_that_mean_another_size_there_are_paired_by_place(tmp_path):
    """`hidden_dim` is mostly the width of the feed-forward part; here it is the model's own."""
    mine = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, hidden_dim, inter_dim):
        super().__init__()
        self.up = nn.Parameter(torch.ones(hidden_dim, inter_dim))

    def forward(self, x):
        return x @ self.up @ self.up.T
"""
    theirs = RIGHT.format(arguments="d_model, d_ff", wide="d_model", inner="d_ff", kept="3")
    typed, reference = pair(tmp_path, mine, theirs)
    paired = [*paired_arguments(typed, reference, "Net")][-1]
    assert paired.names == {"hidden_dim": "d_model", "inter_dim": "d_ff"}
    assert "hidden_dim=D" in paired.mine


@pytest.mark.parametrize(
    ("reference", "says"), [("gone.py:Net", "no such file"), ("right.py:Other", "defines no Other")]
)
def test_a_reference_that_is_not_there_is_told_before_what_mine_lacks(reference, says, tmp_path):
    """Else the user is asked for arguments, and told of the file only after that."""
    typed, _ = pair(tmp_path, MINE, MINE)
    with pytest.raises(AttnlabError, match=says):
        diff_job(typed, f"{tmp_path}/{reference}", Limits())
