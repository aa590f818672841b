"""Lessons as pages."""

import pytest
from rich.cells import cell_len

from attnlab.lessons import find_lesson
from attnlab.lessons.base import Grid, Lesson, Step
from attnlab.render.lesson import LessonListPage, LessonPage

LESSON = find_lesson("sinusoidal")
PAGES = {
    "lesson": LessonPage(lesson=LESSON),
    "lesson-step": LessonPage(lesson=LESSON, only=9),
    "lessons": LessonListPage(titles={"sinusoidal": "Sines by hand", "x": "Another"}),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_it_was(name, width, golden, shown):
    """A change of any page is seen, and looked at, before it is kept."""
    golden(f"{name}-{width}", shown(PAGES[name], width))


@pytest.mark.parametrize("width", [30, 60, 79, 81, 200])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_the_screen(name, width, shown):
    """Nothing but a command, which is not broken, is left to the terminal to wrap."""
    lines = (line for line in shown(PAGES[name], width).splitlines() if "attnlab " not in line)
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("name", PAGES)
def test_ascii_terminal_gets_ascii(name, shown):
    """A page can be printed where the encoding is not UTF-8."""
    assert shown(PAGES[name], encoding="ascii").isascii()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_number_is_cut_off(width, shown):
    """From 80 columns on every table is whole."""
    assert "…" not in shown(PAGES["lesson"], width)


def test_tables_stand_side_by_side_where_they_fit(shown):
    """Two narrow ones on 80 columns, one below the other on 40."""
    grid = Grid(columns=("p", "value"), rows=((0, 0.5),))
    page = LessonPage(
        lesson=Lesson(id="x", title="t", about="a", steps=(Step(title="s", grids=(grid, grid)),))
    )
    assert shown(page, 80).count("p    value") == 2
    assert len([line for line in shown(page, 80).splitlines() if "value" in line]) == 1
    assert len([line for line in shown(page, 30).splitlines() if "value" in line]) == 2


def test_one_step_leads_to_the_next(shown):
    """The last one leads out of the lesson."""
    assert "next: attnlab lesson sinusoidal --step 10" in shown(PAGES["lesson-step"])
    assert shown(LessonPage(lesson=LESSON, only=1)).startswith("1  What is to be made")
    last = " ".join(shown(LessonPage(lesson=LESSON, only=len(LESSON.steps))).split())
    assert last.endswith(LESSON.next)


def test_documents():
    """Numbers are whole, and steps are numbered."""
    document = PAGES["lesson"].document()
    assert document["lesson"] == "sinusoidal"
    assert [s["number"] for s in document["steps"]] == list(range(1, len(LESSON.steps) + 1))
    assert document["steps"][4]["grids"][0]["rows"][1][1] == pytest.approx(0.8414709848078965)
    assert PAGES["lesson-step"].document()["steps"][0]["number"] == 9
    assert PAGES["lessons"].document()["lessons"][1] == {"id": "x", "title": "Another"}
