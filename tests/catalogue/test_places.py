"""What was written at the place of one bug, alone in the right program."""

from itertools import chain

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.places import bug_lines, change_alone, stray_changes
from attnlab.catalogue.programs import compose, read_program

PROGRAM = read_program(shipped_folder() / "programs" / "trainer-lm")
CLIP, ZERO = "clipped-before-there-is-any", "gradients-gone-before-use"
IDS = ("waves-scaled-too", CLIP, ZERO)
GIVEN = compose(PROGRAM, IDS)


def written(*pairs):
    text = GIVEN["train.py"]
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return GIVEN | {"train.py": text}


def alone(files, bug, gone=None):
    strays = [] if gone is None else [*chain(*stray_changes(PROGRAM, IDS, files, bug, gone))]
    return change_alone(PROGRAM, IDS, files, bug, strays)


def test_where_nothing_was_written_there_is_no_change():
    """Neither at the place nor elsewhere; what was written at another bug is not elsewhere."""
    fixed = compose(PROGRAM, [bug for bug in IDS if bug != "waves-scaled-too"])
    for gone in (None, [], ["waves-scaled-too"]):
        assert alone(GIVEN, CLIP, gone) is None
        assert alone(fixed, CLIP, gone) is None
        assert alone(fixed, "waves-scaled-too", gone).files == PROGRAM.files


def test_a_line_that_moved_away_is_put_back_elsewhere():
    """Removed at its place and written beside another bug: both together are the fix."""
    zero, step = "        self.optimizer.zero_grad()\n", "        self.optimizer.step()\n"
    moved = zero.replace("()", "(set_to_none=True)")
    files = written((zero + step, step + moved))
    assert "zero_grad" not in alone(files, ZERO).files["train.py"]
    right, whole = PROGRAM.files["train.py"], alone(files, ZERO, gone=[]).files["train.py"]
    assert whole == right.replace(zero, "").replace(step, step + moved)
    assert alone(files, ZERO, gone=[CLIP]) == alone(files, ZERO)  # it is what was written for CLIP


def test_lines_of_several_bugs_that_were_written_anew_together_are_told():
    """What was written there can not be put in for one of them alone."""
    lines = GIVEN["train.py"].splitlines(keepends=True)
    places = [place for bug in (CLIP, ZERO) for place in bug_lines(PROGRAM, IDS)[bug]]
    first, last = min(p[1] for p in places), max(p[2] for p in places)
    text = "".join([*lines[: first - 1], "        self.optimize(loss)\n", *lines[last:]])
    for bug in (CLIP, ZERO):
        assert alone(GIVEN | {"train.py": text}, bug).shared
