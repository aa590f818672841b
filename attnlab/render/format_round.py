"""Pages of a round of another format: its start, its tasks one by one, and its scorecard."""

from collections.abc import Sequence
from dataclasses import replace

from attnlab.practice.interviews import clock_text
from attnlab.records import plain, record
from attnlab.records.practice import Interview, Trend
from attnlab.records.quiz import COST, Question, QuizVerdict
from attnlab.records.scorecard import FormatCard, TaskCard
from attnlab.render.challenge import show_hints
from attnlab.render.json import Document, pick
from attnlab.render.quiz import STYLES, show_question
from attnlab.render.scorecard import practise, show_rating, show_trend
from attnlab.render.screen import Screen, plural
from attnlab.render.stage import clock_of

ENDS = "attnlab interview end shows the scorecard"


@record
class TaskPage:
    """The task that is open. Nothing says where it is from."""

    question: Question
    part: int  # of the question, from 1
    file: str = ""  # that it asks for

    def show(self, screen: Screen, again: bool = False) -> None:
        """`again`: its code stands above."""
        if not self.file:
            show_question(self.question, screen, again)
            return
        screen.say((self.question.id, "name"), f"  {self.question.kind}  ", (self.file, "title"))
        screen.gap()
        screen.prose(self.question.prompt, indent=2)

    @property
    def next(self) -> str:
        if self.file:
            return f"edit {self.file}, then attnlab interview submit; ask gives a hint"
        known = len(self.question.measurements)
        price = f"ask N measures, each for {COST:g} of the point"
        more = f"; {price}" if known > 1 else "; ask 1 shows what is true" * known
        return f"attnlab interview answer ANSWER, or skip{more}"

    def document(self) -> Document:
        names = ("prompt", "code", "choices", "first", "line", "sizes", "log", "expects")
        shown = pick(self.question, "kind", *names, "measurements")
        return {"task": self.question.id, **pick(self, "part", "file"), **shown}


@record
class RoundPage:
    """The clock of a round, what was just done, and the task that is open."""

    interview: Interview
    task: TaskPage | None
    now: float
    title: str = ""  # of a round that begins
    cards: tuple[TaskCard, ...] = ()  # where all is told that was done
    number: int = 0  # of the task that was answered
    verdict: QuizVerdict | None = None
    asks: bool = False  # for the answer, at a terminal
    file: bool = False  # it was answered with a file, of which is told whether it is right

    def show(self, screen: Screen) -> None:
        if self.title:
            self._show_start(screen)
        if self.cards:
            self._show_status(screen)
        if self.verdict and self.file and self.verdict.next:
            screen.hang((f"{screen.marks.bad} task {self.number} ", "bad"), self.verdict.message)
            ahead = self.task.next if self.task else ENDS
            screen.do_next(f"{ahead}; answer skip leaves it out")
            return
        if self.verdict:
            said = (
                "passed"
                if self.file and self.verdict.outcome == "right"
                else f"noted: {self.verdict.answer}"
            )
            screen.hang((f"{screen.marks.ok} ", "ok"), f"task {self.number} {said}")
        if self.task:
            screen.gap()
            self.task.show(screen)
        if self.task is None or self.task.file or not self.asks:
            screen.do_next(self.task.next if self.task else f"every task is done: {ENDS}")

    def _show_start(self, screen: Screen) -> None:
        interview = self.interview
        limit = f"{interview.minutes} minutes" if interview.minutes else "no time limit"
        count = f", {plural(len(interview.tasks), 'task')} (seed {interview.seed})"
        screen.hang((f"{interview.name}  ", "title"), self.title)
        screen.say((f"{screen.marks.ok} ", "ok"), "the clock runs: ", (limit, "title"), count)
        if any(task.kind == "incident" for task in interview.tasks):
            screen.say(f"an incident gives 1 point, less {COST:g} for each measurement", indent=2)

    def _show_status(self, screen: Screen) -> None:
        interview, hints = self.interview, sum(card.hints for card in self.cards)
        late = interview.minutes and interview.left(self.now) < 0
        head = (f"interview {interview.number}, {interview.name}: ", "title")
        screen.say(head, (clock_text(interview, self.now), "bad" if late else "ok"))
        done = sum(card.done for card in self.cards)
        counts = f"{done} of {plural(len(self.cards), 'task')} done"
        screen.say(counts, f", {plural(hints, 'hint')}" * bool(hints), indent=2)

    def document(self) -> Document:
        interview, verdict = self.interview, self.verdict
        shown: Document = {
            "interview": interview.number,
            "format_of_round": interview.name,
            **pick(interview, "minutes", "seed"),
            "elapsed": interview.elapsed(self.now),
            "left": interview.left(self.now) if interview.minutes else None,
            "folder": f"./{interview.folder}",
            "tasks": [pick(card, "number", "done", "hints") for card in self.cards],
        }
        if verdict:
            shown |= {"task_answered": self.number, "noted": verdict.answer}
            shown |= pick(verdict, "outcome", "message") if self.file else {}
        return shown | {"task": self.task.document() if self.task else None}


@record
class RoundHintPage:
    """The hints for a file so far."""

    hints: tuple[str, ...]
    of: int
    new: bool

    def show(self, screen: Screen) -> None:
        named = [(f"hint {n} of {self.of}", text) for n, text in enumerate(self.hints, 1)]
        show_hints(named, self.new, screen)
        screen.do_next("each hint costs a fifth of the task's points; attnlab interview submit")

    def document(self) -> Document:
        return {"hints": list(self.hints), "total": self.of}


@record
class FormatCardPage:
    """The scorecard: each task, what was answered, what is right and why."""

    card: FormatCard
    trend: Trend

    def show(self, screen: Screen) -> None:
        card, marks = self.card, screen.marks
        share = card.points / len(card.tasks)
        mark, style = (marks.ok, "ok") if share == 1 else (marks.unsure, "warn")
        if not card.points:
            mark, style = marks.bad, "bad"
        points = f"{card.points:.3g} of {plural(len(card.tasks), 'point')}"
        screen.say((f"{mark} ", style), (points, "title"))
        late = ("  done after the time", "bad") if card.late else ""
        clock = clock_of(card.seconds, card.minutes)
        screen.say((card.slug, "name"), f"  {clock}", late, indent=2)
        show_rating(card.rating, screen)
        for task in card.tasks:
            _show_card(task, screen)
        if len(self.trend.rounds) > 1:
            show_trend(self.trend, screen)
        screen.do_next(practise(self.trend, card))

    def document(self) -> Document:
        tasks = [plain(t) | pick(t, "outcome", "points", "seconds") for t in self.card.tasks]
        shown: Document = plain(self.card) | pick(self.card, "points", "found", "hints")
        return shown | {"tasks": tasks} | pick(self, "trend")


def _show_card(card: TaskCard, screen: Screen) -> None:
    marks, outcome = screen.marks, card.outcome
    found = {"right": marks.ok, "partly": marks.unsure, "wrong": marks.bad, "open": marks.bad}
    screen.gap()
    head = f"{found[outcome]} {card.number}  {outcome if card.done else 'not done'}"
    more = f", {plural(card.hints, 'hint')}" if card.hints else ""
    about = f"  {card.category}" if card.category and card.category != card.task.kind else ""
    screen.say(
        (head, STYLES.get(outcome, "bad")),
        (f"  {card.task.kind}", "title"),
        f"{about}  {card.points:.3g} of 1 point  {clock_of(card.seconds)}{more}  ",
        (card.task.id, "name"),
    )
    if card.task.is_file:
        _show_verdicts([replace(verdict, prompt="") for verdict in card.verdicts[-1:]], screen)
    else:
        _show_verdicts(card.verdicts, screen)


def _show_verdicts(verdicts: Sequence[QuizVerdict], screen: Screen) -> None:
    """What was said to each question beside what is right, then why, once."""
    for number, verdict in enumerate(verdicts):
        if verdict.prompt:
            screen.hang("    asked  ", verdict.prompt)
        measured = f" ({plural(verdict.measured, 'measurement')})" if verdict.measured else ""
        screen.hang("    you    ", verdict.answer + measured)
        if "\n" in verdict.right:
            screen.prose(verdict.right, indent=4)
        elif verdict.outcome != "right":
            screen.hang("    right  ", (verdict.right, "bold"))
        if verdict.message and verdict.message != f"you said: {verdict.answer}":
            screen.hang("           ", verdict.message)
        if verdict.why not in ("", *(other.why for other in verdicts[:number])):
            screen.prose(verdict.why, indent=11)
