from typing import Annotated

import typer

from attnlab.commands.base import Json, emit

PLACE = 120


def complete_lesson(incomplete: str) -> list[tuple[str, str]]:
    from attnlab.lessons import lesson_titles

    return [pair for pair in lesson_titles().items() if pair[0].startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A lesson.", autocompletion=complete_lesson)
]
StepNumber = Annotated[str, typer.Option("--step", metavar="N", help="Show one step alone.")]


def command(name: Name = "", step: StepNumber = "", json: Json = False) -> int:
    """Work through an example, with every number.

    Without a name, the lessons there are.
    """
    from attnlab.lessons import find_lesson, lesson_titles
    from attnlab.render.lesson import LessonListPage, LessonPage

    if not name:
        return emit(LessonListPage(titles=lesson_titles()), json)
    lesson = find_lesson(name)
    return emit(LessonPage(lesson=lesson, only=_number(step, len(lesson.steps))), json)


def _number(step: str, count: int) -> int:
    """The step that is asked for, or 0 for all."""
    from attnlab.errors import Refused

    if not step:
        return 0
    if step.isascii() and step.isdigit() and 1 <= int(step[:9]) <= count:
        return int(step[:9])
    raise Refused(f"--step {step}: a number from 1 to {count} is needed", "leave it out to see all")
