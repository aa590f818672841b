"""A note names the bug whose line it points at, wherever that line stands by now."""

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.places import bug_lines
from attnlab.catalogue.programs import compose, read_program
from attnlab.practice import notes
from attnlab.practice.notes import _lines_before, read_note

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
IDS = ("mask-one-late", "no-zero-grad", "odd-loss-layout")
GIVEN = compose(PROGRAM, IDS)
MASK = next(n for n, line in enumerate(GIVEN["model.py"].splitlines(), 1) if "triu" in line)


def read(text, files=GIVEN):
    return read_note(text, PROGRAM, IDS, files)


def test_the_lines_of_each_bug_are_those_of_the_round():
    """Spans lie in the text that was given, with all patches in it; decoys have theirs."""
    spans = bug_lines(PROGRAM, IDS)
    assert set(spans) == set(IDS)
    for bug, places in spans.items():
        for (file, first, last), edit in zip(places, PROGRAM.patches[bug].edits, strict=True):
            lines = GIVEN[file].splitlines()[first - 1 : last]
            assert edit.new.strip("\n") == "" or edit.new.strip() in "\n".join(lines).strip()


@pytest.mark.parametrize("off", [-2, 0, 2])
def test_a_note_near_the_line_names_the_bug(off):
    """Two lines beside it still point at it, and words make a reason."""
    reading = read(f"model.py:{MASK + off} the diagonal is off, so each position sees the next")
    assert (reading.bug, reading.reason) == ("mask-one-late", True)


def test_a_note_elsewhere_names_nothing():
    """Neither another file, nor a line far away, nor a note without a place."""
    for text in (f"train.py:{MASK} x", f"model.py:{MASK + 20} x", "the mask is wrong"):
        assert not read(text).bug
    assert not read(f"model.py:{MASK}").reason


def test_a_note_at_a_decoy_names_the_decoy_where_no_bug_is_near():
    """So that the card can say it; a bug two lines away is meant rather."""
    file, line, _ = bug_lines(PROGRAM, IDS)["odd-loss-layout"][0]
    assert read_note(f"{file}:{line} x", PROGRAM, IDS[2:], GIVEN).bug == "odd-loss-layout"
    assert read(f"{file}:{line} x").bug in ("odd-loss-layout", "no-zero-grad")


def test_lines_that_moved_are_followed():
    """With ten new lines above it, the number on the screen is meant; the old one is as good."""
    moved = GIVEN | {"model.py": "# new\n" * 10 + GIVEN["model.py"]}
    assert read(f"model.py:{MASK + 10} the mask", moved).bug == "mask-one-late"
    assert read(f"model.py:{MASK} the mask", moved).bug == "mask-one-late"
    gone = GIVEN | {"model.py": ""}
    assert read(f"model.py:{MASK} the mask", gone).bug == "mask-one-late"


def test_a_note_gives_a_reason_where_it_says_something_of_the_bug():
    """Words alone are none: they have to be about it, in whatever form."""
    at = f"model.py:{MASK}"
    for text in ("the mask hides too little", "masking starts one late", "triu from the diagonal"):
        assert read(f"{at} {text}").reason, text
    for text in ("I like this line", "this one is wrong for sure", "banana apple cherry"):
        reading = read(f"{at} {text}")
        assert (reading.bug, reading.reason) == ("mask-one-late", False)
        assert not notes.words_about(PROGRAM.patches["mask-one-late"], f"{at} {text}")


def test_the_words_that_are_about_a_bug_are_told():
    """As they were written, each once; the place is none of them."""
    bug, text = PROGRAM.patches["mask-one-late"], f"model.py:{MASK} Masking hides the banana masks"
    assert notes.words_about(bug, text)[0] in ("masking", "masks")
    assert "banana" not in notes.words_about(bug, text)
    assert len(notes.words_about(bug, text)) == len(set(notes.words_about(bug, text)))


def test_of_two_bugs_near_a_line_the_one_that_is_spoken_of_is_meant(monkeypatch):
    """Not the nearest one."""
    monkeypatch.setattr(notes, "NEAR", 1000)
    file, line, _ = bug_lines(PROGRAM, IDS)["no-zero-grad"][0]
    text = "gradients of the step before are never cleared"
    for off in (-4, 0, 4):
        assert read(f"{file}:{line + off} {text}").bug == "no-zero-grad"


def test_each_line_of_a_rewritten_piece_stands_for_its_own():
    """Three lines replaced by two: a note at the second is not about the first."""
    before = "a = 1\nmask = torch.triu(ones)\nloss = criterion(scores, labels)\nb = 2\n"
    after = "a = 1\nmask = torch.triu(ones, 1)\nb = 2\n"
    assert list(_lines_before(before, after, 2)) == [2]
    grown = before.replace("loss = ", "x = 0\nloss = 2 * ")
    assert list(_lines_before(before, grown, 4)) == [3]
    assert list(_lines_before(before, grown, 5)) == [4]
