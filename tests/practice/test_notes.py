"""A note names the bug whose line it points at, wherever that line stands by now."""

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.places import bug_lines
from attnlab.catalogue.programs import compose, read_program
from attnlab.practice import notes
from attnlab.practice.notes import _lines_before, read_note
from attnlab.records.practice import REASON, RIGHT

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
    assert (reading.bug, reading.outcome) == ("mask-one-late", REASON)


def test_a_note_elsewhere_names_nothing():
    """Neither another file, nor a line far away, nor a note without a place."""
    for text in (f"train.py:{MASK} x", f"model.py:{MASK + 20} x", "the mask is wrong"):
        assert not read(text).bug
    assert not read(f"model.py:{MASK} wrong").outcome


def test_a_note_at_a_decoy_names_the_decoy_where_no_bug_is_near():
    """So that the card can say it; a bug two lines away is meant rather."""
    file, line, _ = bug_lines(PROGRAM, IDS)["odd-loss-layout"][0]
    assert read_note(f"{file}:{line} x", PROGRAM, IDS[2:], GIVEN).bug == "odd-loss-layout"
    assert read(f"{file}:{line} x").bug in ("odd-loss-layout", "no-zero-grad")


def test_a_note_at_a_function_names_every_bug_in_it():
    """Which of them it explains is for the person to tick; a range of a whole file names one."""
    ids = ("mask-one-late", "softmax-over-queries")
    given = compose(PROGRAM, ids)
    text = "CausalSelfAttention lets the diagonal mask too little, and sums over queries"
    assert set(read_note(text, PROGRAM, ids, given).bug.split()) == set(ids)
    whole = f"model.py:1-{len(given['model.py'].splitlines())} hides too little"
    assert len(read_note(whole, PROGRAM, ids, given).bug.split()) == 1


def test_a_line_outside_the_function_that_a_note_names_is_asked_about():
    """A mistyped number would name nothing, and nobody would say so before the end."""
    assert str(read(f"model.py:{MASK + 60} CausalSelfAttention is late").outside).startswith("mod")
    assert read(f"model.py:{MASK} CausalSelfAttention is late").outside is None
    assert read("CausalSelfAttention is late").outside is None


def test_lines_that_moved_are_followed():
    """With ten new lines above it, the number on the screen is meant; the old one is as good."""
    moved = GIVEN | {"model.py": "# new\n" * 10 + GIVEN["model.py"]}
    assert read(f"model.py:{MASK + 10} the mask", moved).bug == "mask-one-late"
    assert read(f"model.py:{MASK} the mask", moved).bug == "mask-one-late"
    gone = GIVEN | {"model.py": ""}
    assert read(f"model.py:{MASK} the mask", gone).bug == "mask-one-late"


@pytest.mark.parametrize(
    "text",
    [
        f"model.py line {MASK}: the mask is late",
        f"model.py, lines {MASK - 9}-{MASK + 9} hide too little",
        f"model.py:{MASK - 9}-{MASK} the mask is late",
        f"line {MASK} of model.py: the mask is late",
        f"in model.py the mask of line {MASK} is late",
        "CausalSelfAttention hides one place too few",
        "in model.py the class CausalSelfAttention hides too little",
        "CausalSelfAttention.__init__: the mask is late",
    ],
)
def test_a_place_is_a_line_or_a_name_however_it_is_written(text):
    """Lines before or behind the file, ranges, and names that stand for one thing alone."""
    assert read(text).bug == "mask-one-late"


def test_words_that_are_also_names_are_no_place_in_the_middle_of_a_text():
    """Where the text calls the function they are; a name of two methods never is."""
    assert not read("the model does not train or generate well").places
    for text in ("train: gradients add up", "in train gradients add up", "train() adds up"):
        assert [place.file for place in read(text).places] == ["train.py"], text
    assert not read("in forward the mask is wrong").places
    assert read(f"model.py:{MASK} generate sees too much").outside is None
    assert str(read(f"model.py:{MASK} train(): gradients add up").outside).startswith("train.py")


def test_a_note_that_takes_code_for_right_accuses_nothing():
    """And means a decoy rather than a bug beside it."""
    for text in ("fine, nothing is wrong", "looks wrong, is right", "this is correct.",
                 "no bug: the TODO is wrong", "it looks odd but it is on purpose"):  # fmt: skip
        assert read(f"model.py:{MASK} {text}").outcome == RIGHT, text
    for text in ("the shape is right, but it sees the next", "the right mask is not used here",
                 "nothing of the future is hidden", "on purpose? it learns to copy"):  # fmt: skip
        assert read(f"model.py:{MASK} {text}").outcome == REASON, text
    for bug in PROGRAM.bugs:
        assert read(f"model.py:{MASK} {bug.symptom}").outcome == REASON or "Nothing" in bug.symptom
    file, line, _ = bug_lines(PROGRAM, IDS)["odd-loss-layout"][0]
    assert read(f"{file}:{line} looks odd, is right").bug == "odd-loss-layout"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("looks wrong but changes nothing", True),
        ("looks wrong, but it makes no difference", True),
        ("seems odd and does not matter", True),
        ("a red herring", True),
        ("this is harmless, the shift happens later", True),
        ("the mask looks harmless but sees the next", False),
        ("this is not harmless", False),
        ("the dropout changes nothing here", False),
        ("is it a decoy? the mask is late", False),
        ("the mask makes no difference to the scores", False),
    ],
)
def test_plain_words_for_a_harmless_place_are_understood(text, right):
    """Also where they are other ones than "right"; that something lacks its effect is a bug."""
    assert (read(f"model.py:{MASK} {text}").outcome == RIGHT) == right


def test_the_place_is_judged_and_not_the_words():
    """What a note says of a bug is for the person to judge, beside what is true."""
    for text in ("the mask hides too little", "the stream is added twice", "banana apple cherry"):
        reading = read(f"model.py:{MASK} {text}")
        assert (reading.bug, reading.outcome) == ("mask-one-late", REASON)


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


def test_a_note_at_another_line_of_the_function_names_the_bug_that_its_words_name():
    """A line number read wrong costs nothing where the words are right; without them it does."""
    above = GIVEN["model.py"].splitlines()[:MASK]
    first = max(n for n, line in enumerate(above, 1) if "def __init__" in line)
    assert MASK - first > notes.NEAR
    assert (
        read(f"model.py:{first} the causal mask hides one diagonal too few").bug == "mask-one-late"
    )
    assert not read(f"model.py:{first} banana apple cherry").bug
    assert not read(f"model.py:{MASK + 30} the causal mask hides one diagonal too few").bug


def test_a_function_is_named_with_its_file_before_it():
    """`train.train` as in a call."""
    assert read("train.train never empties the gradients").bug == "no-zero-grad"


def test_of_two_bugs_in_a_function_the_one_that_shares_more_words_is_meant():
    """A name is no nearer to one of them than to the other."""
    program = read_program(shipped_folder() / "programs" / "einsum-canon")
    ids = ("asked-of-the-values", "shares-cut-afterwards")
    files = compose(program, ids)
    for text, bug in (
        ("attend() masks behind the softmax, so the shares do not sum to 1", ids[1]),
        ("attend() compares queries with values and not with keys", ids[0]),
    ):
        assert read_note(text, program, ids, files).bug == bug


def test_the_line_that_a_note_points_at_is_shown():
    """As it stands now; of several the first with code, else a comment; "" where all is blank."""
    (place,) = read(f"model.py:{MASK} x").places
    assert notes.source_line(place, GIVEN) == GIVEN["model.py"].splitlines()[MASK - 1].strip()
    assert notes.source_line(place, {}) == ""
    (whole,) = read("train() x").places
    assert notes.source_line(whole, GIVEN).startswith("def train(")
    place = notes.NotePlace(file="a.py", first=1, last=3)
    for text, line in (("\n# why\n x = 1", "x = 1"), ("\n  # why\n# 2", "# why"), ("\n\n\n", "")):
        assert notes.source_line(place, {"a.py": text}) == line
