"""A question of a quiz, the verdict on an answer, and what came of several."""

from collections.abc import Sequence

from rich.text import Text

from attnlab.records import record
from attnlab.records.practice import Mark
from attnlab.records.quiz import Measurement, Question, QuizVerdict
from attnlab.render.code import highlight_python
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, escape_control, plural

DEEPER = 4  # cells by which a line of code goes on further in than it begins
LETTERS = "abcdefghijklmnop"
STYLES = {"right": "ok", "partly": "warn", "wrong": "bad"}


@record
class QuestionPage:
    question: Question

    def show(self, screen: Screen) -> None:
        show_question(self.question, screen)
        answer = f"attnlab quiz --answer {self.question.id}=ANSWER"
        screen.do_next(f"{answer} judges an answer")

    def document(self) -> Document:
        names = ("id", "kind", "seed", "prompt", "code", "choices")
        more = ("first", "line", "sizes", "file", "log", "expects", "measurements")
        return pick(self.question, *names, *more)


@record
class KindsPage:
    """What there is to ask, where there is no terminal to ask it at."""

    kinds: dict[str, str]  # titles by name

    def show(self, screen: Screen) -> None:
        screen.say(("quiz  ", "title"), "one question after another, each under two minutes")
        screen.gap()
        wide = max(map(len, self.kinds))
        for name, title in self.kinds.items():
            screen.hang((f"  {name:<{wide}}  ", "name"), title)
        screen.do_next(f"attnlab quiz {next(iter(self.kinds))}")

    def document(self) -> Document:
        return {"kinds": [{"id": name, "title": title} for name, title in self.kinds.items()]}


@record
class MeasurementPage:
    measurement: Measurement
    answer: str = ""  # the command that answers the question

    def show(self, screen: Screen) -> None:
        show_measurement(self.measurement, screen)
        answer = self.answer or f"attnlab quiz --answer {self.measurement.id}=ANSWER"
        screen.do_next(f"{answer} answers it")

    def document(self) -> Document:
        return pick(self.measurement, "id", "name", "value")


@record
class QuizVerdictPage:
    verdict: QuizVerdict

    def show(self, screen: Screen) -> None:
        show_verdict(self.verdict, screen)
        if self.verdict.next:
            screen.do_next(f"attnlab quiz {self.verdict.next} shows what is asked next")

    def document(self) -> Document:
        names = ("id", "kind", "outcome", "score", "answer", "right", "message", "why")
        return pick(self.verdict, *names, "rows", "next", "seconds", "measured")


def show_question(question: Question, screen: Screen, again: bool = False, place: str = "") -> None:
    """The code, unless it was shown for the part before, and what is asked about it. `place`: which
    of how many questions it is."""
    if again:
        screen.gap()
    else:
        _show_head(question, place, screen)
        if question.code:
            screen.gap()
            _show_code(question, screen)
        items = [line for line in question.log if line.startswith("* ")]
        if len(items) < len(question.log):
            screen.gap()
        for line in (line for line in question.log if line not in items):
            style = {"-": "bad", "+": "ok"}.get(line[:1], "")
            _show_deeper(Text("  "), Text(escape_control(line), style), screen)
        if items:
            screen.prose("\n".join(items), indent=1)
        screen.gap()
    for number, name in enumerate(question.measurements, 1):
        screen.hang((f"  {number:>2}  ", "name"), name)
    if question.measurements:
        screen.gap()
    screen.say((question.prompt, "title"))
    for letter, each in zip(LETTERS, question.choices, strict=False):
        screen.hang((f"  {letter}  ", "name"), each)


def _show_head(question: Question, place: str, screen: Screen) -> None:
    sizes = " ".join(f"{name}={size}" for name, size in question.sizes.items())
    head = f"{place}  " if place else ""
    parts = [(head, "title"), (f"{question.id}  ", "name"), (question.file, "aside")]
    screen.say(*parts, (f"  {sizes}" if sizes else "", "name"))


def _show_code(question: Question, screen: Screen) -> None:
    """Numbered lines; one that is too long goes on below, deeper than it begins."""
    lines = highlight_python(escape_control(question.code)).split("\n", allow_blank=True)
    if lines and not lines[-1].plain:
        lines.pop()
    wide = len(str(question.first + len(lines) - 1))
    for number, line in enumerate(lines, question.first):
        marked = number == question.line
        head = Text(f"{'>' if marked else ' '} {number:>{wide}} ", "" if marked else "dim")
        _show_deeper(head, line, screen, "bold" if marked else "")


def _show_deeper(head: Text, line: Text, screen: Screen, style: str = "") -> None:
    """A line of code, or of a change of it, behind its head."""
    deep = len(line.plain) - len(line.plain.lstrip("+- "))
    room = max(screen.width - len(head) - deep, 1)
    pieces = line[deep:].wrap(screen, room if line.cell_len - deep <= room else room - DEEPER)
    margin = Text("\n" + " " * (len(head) + deep + DEEPER))
    text = head + line[:deep] + margin.join(pieces)
    text.stylize(style)
    screen.print(text, soft_wrap=True)


def show_measurement(found: Measurement, screen: Screen) -> None:
    if "\n" not in found.value:
        screen.hang((f"  {found.name}: ", "name"), found.value)
        return
    screen.say((f"{found.name}:", "name"), indent=2)
    screen.prose(found.value, indent=4)


def show_verdict(verdict: QuizVerdict, screen: Screen, seen: bool = False) -> None:
    """`seen`: the right answer was looked up, and stands above."""
    screen.gap()
    show_judged(verdict.outcome, verdict.message, "" if seen else verdict.right, screen)
    if verdict.rows:
        from attnlab.records import Trace
        from attnlab.render.steps import show_table

        screen.gap()
        show_table(Trace(ops=verdict.rows), screen)
    if verdict.why:
        screen.gap()
        screen.prose(verdict.why, indent=2)


def show_judged(mark: Mark, message: str, right: str, screen: Screen) -> None:
    """What an answer is worth and why, then the right one."""
    marks = {"right": screen.marks.ok, "partly": screen.marks.unsure, "wrong": screen.marks.bad}
    screen.hang((f"{marks[mark]} {mark}", STYLES[mark]), f": {message}" if message else "")
    if "\n" in right:
        screen.say(("answer", "title"), indent=2)
        screen.prose(right, indent=2)
    elif right:
        screen.hang(("  answer  ", "title"), (right, "bold"))


def show_session(verdicts: Sequence[QuizVerdict], kind: str, screen: Screen) -> None:
    """What came of the answers of one sitting."""
    screen.gap()
    if not verdicts:
        screen.say(("nothing was answered, nothing is recorded", "aside"))
        return
    points = sum(verdict.score for verdict in verdicts)
    counted = f"{points:g} of {plural(len(verdicts), 'answer')} right"
    screen.say((counted, "title"), ", recorded")
    screen.do_next(f"{f'attnlab quiz {kind}'.strip()} goes on; attnlab stats shows how you do")
