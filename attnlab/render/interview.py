"""Pages about an interview: its start, its clock, notes and questions, and the scorecard."""

import time
from collections.abc import Sequence

from attnlab.practice.interviews import clock_text
from attnlab.practice.trend import summarize
from attnlab.records import plain, record
from attnlab.records.patch import FollowUp
from attnlab.records.practice import (
    RATINGS,
    STAYED,
    BugCard,
    DecoyCard,
    FormatCard,
    Interview,
    QuestionCard,
    Rating,
    RoundCard,
    RoundSummary,
    Scorecard,
    StageCard,
    Trend,
)
from attnlab.records.program import Program, ProgramReport
from attnlab.render.json import Document, pick
from attnlab.render.round import count_right, grade_word, show_count, show_goals, show_head
from attnlab.render.screen import Screen, bare_table, plural
from attnlab.render.stage import clock_of, next_stage, show_stage, show_stage_card, stage_document

HELP = (
    ("run, grade, hint NAME", "as in any round; a hint lowers the rating"),
    ("triage, trace --reveal", "name causes: each that does costs as a hint does"),
    ("interview note TEXT", 'name a bug: "train.py:40 why it is wrong"'),
    ("interview ask", "what a good candidate asks, and its answer"),
    ("interview submit", "hand in: the time of the first that is right counts"),
    ("interview end", "the scorecard"),
)
COLUMNS = ("no", "date", "program", "time", "found", "fixed", "named", "hints", "stages", "rating")
FEW_COLUMNS = ("program", "found", "rating")  # on a narrow screen
WIDE = 72
REASONS = {
    "": "without a reason",
    "open": "with a reason: compare your note",
    "said": "with the right reason, as you ticked",
}
USUAL_LEVEL, HARDEST = 3, 5  # of the bugs of an interview


@record
class InterviewStartPage:
    """The round that was drawn, and what counts."""

    program: Program
    interview: Interview
    bugs: int
    decoys: bool
    kept: tuple[str, ...]

    def show(self, screen: Screen) -> None:
        program, interview = self.program, self.interview
        show_head(program, screen)
        symptom = program.symptom_of(interview.bugs)
        for heading, text in (("symptom", symptom), ("task", program.task)):
            screen.heading(heading, text)
        screen.gap()
        limit = f"{interview.minutes} minutes" if interview.minutes else "no time limit"
        screen.say(
            (f"{screen.marks.ok} ", "ok"),
            "the clock runs: ",
            (limit, "title"),
            f", {plural(self.bugs, 'bug')}" + (" and a place that only looks wrong" * self.decoys),
        )
        screen.say(f"wrote ./{interview.folder}/ (seed {interview.seed})", indent=2)
        for copy in self.kept:
            screen.say(f"the old file is kept as {copy}", indent=2)
        screen.gap()
        rows = [(command.replace("NAME", interview.name), text) for command, text in HELP]
        wide = max(len(command) for command, _ in rows) + 2
        for command, text in rows:
            screen.hang((f"  {command.ljust(wide)}", "name"), text)
        screen.do_next(f"read ./{interview.folder}/, then attnlab run {interview.name}")

    def document(self) -> Document:
        return {
            "interview": self.interview.number,
            "challenge": self.interview.slug,
            "folder": f"./{self.interview.folder}",
            **pick(self.interview, "minutes", "seed"),
            **pick(self, "bugs", "kept"),
        }


@record
class InterviewStatusPage:
    """The clock, and what was done."""

    program: Program
    interview: Interview
    folder: str
    stages: tuple[StageCard, ...]
    now: float
    gone: bool = False  # the folder

    @property
    def done(self) -> bool:
        """Whether all that was opened was handed in and is right."""
        graded = [event for event in self.interview.events if event.kind in ("grade", "submit")]
        right = bool(graded) and (graded[-1].kind, graded[-1].outcome) == ("submit", "passed")
        return right and all(stage.outcome in ("passed", "locked") for stage in self.stages)

    def show(self, screen: Screen) -> None:
        interview = self.interview
        limited = interview.minutes and not interview.opened_stage
        late = bool(limited) and interview.left(self.now) < 0
        screen.say(
            (f"interview {interview.number}: ", "title"),
            (clock_text(interview, self.now), "bad" if late else "ok"),
        )
        gone = (" is gone" * self.gone, "bad")
        screen.say((interview.slug, "name"), f"  {self.folder}", gone, indent=2)
        screen.say(", ".join(_counted(interview)), indent=2)
        screen.hang("  ", _time_that_counts(interview))
        for number, event in interview.notes.items():
            screen.hang(f"  note {number}  {clock_of(event.seconds)}  ", event.text)
        for stage in self.stages:
            if stage.outcome != "locked":
                show_stage_card(stage, screen)
        screen.do_next(self.next)

    @property
    def next(self) -> str:
        """Look at it, grade it, hand it in; then the next stage, or the end."""
        if self.gone:
            return f"attnlab reset {self.interview.name} writes its files again; the clock runs on"
        graded = [e for e in self.interview.events if e.kind in ("grade", "submit")]
        if not graded:
            grade = f"attnlab grade {self.interview.name} counts what is right"
            return f"attnlab run {self.interview.name} trains it; {grade}"
        locked = [stage.id for stage in self.stages if stage.outcome == "locked"]
        is_open = any(stage.outcome in ("open", "failed") for stage in self.stages)
        stage = ""
        if locked and not is_open and graded[-1].outcome == "passed":
            stage = f"attnlab interview stage goes on with {locked[0]}; "
        ends = "attnlab interview end shows the scorecard"
        return (
            f"{stage}{ends}" if self.done else f"{stage}attnlab interview submit hands in; {ends}"
        )

    def document(self) -> Document:
        interview = self.interview
        return {
            "interview": interview.number,
            "challenge": interview.slug,
            "folder": self.folder,
            "minutes": interview.minutes,
            "elapsed": interview.elapsed(self.now),
            "left": interview.left(self.now) if interview.minutes else None,
            "grades": len(interview.of_kind("grade")),
            "submits": len(interview.of_kind("submit")),
            "hints": len(interview.of_kind("hint")),
            "asked": [event.question for event in interview.of_kind("ask")],
            "notes": [event.text for event in interview.notes.values()],
            "stages": plain(self.stages),
        }


@record
class NotePage:
    """A note that was taken. Whether it names a bug is told at the end."""

    text: str
    places: tuple[str, ...]
    lines: tuple[str, ...]  # what stands at each place now
    right: bool  # it says that the code is right
    file: str
    late: bool  # everything was handed in right before

    def show(self, screen: Screen) -> None:
        code = [bool(line) and not line.startswith("#") for line in self.lines]
        useful = any(code) and not self.late
        mark, style = (screen.marks.ok, "ok") if useful else (screen.marks.unsure, "warn")
        screen.hang((f"{mark} ", style), f"noted: {self.text}")
        for place, line, is_code in zip(self.places, self.lines, code, strict=True):
            screen.hang(f"  {place}  ", (line, "name") if line else ("blank", "warn"))
            if not is_code:
                screen.say("  no code stands there: is it the place that you mean?")
        if self.late:
            late = "a submit has already passed, so this note does not count"
            screen.hang("  ", late)
        elif not self.places:
            example = f'"{self.file}:40 labels are not shifted", or a class or function'
            screen.hang("  ", f"it says no place, so it names no bug; as in {example}")
        elif self.right:
            screen.hang("  ", "it takes the code there for right")

    def document(self) -> Document:
        line = self.lines[0] if len(self.lines) == 1 else ""
        places = {"places": list(self.places), "line": line, "lines": list(self.lines)}
        return {"note": self.text, **places, **pick(self, "right")}


@record
class NoteDroppedPage:
    """A note that was taken back."""

    number: int
    text: str

    def show(self, screen: Screen) -> None:
        screen.hang((f"{screen.marks.ok} ", "ok"), f"dropped note {self.number}: {self.text}")

    def document(self) -> Document:
        return {"dropped": self.number, "note": self.text}


@record
class AskPage:
    """A clarifying question with its answer."""

    program: Program
    question: FollowUp | None
    left: int

    def show(self, screen: Screen) -> None:
        if self.question is None:
            screen.say("there is nothing more to ask")
            return
        screen.hang(("a good question  ", "title"), self.question.question)
        screen.hang("the answer       ", self.question.answer)
        more = f"attnlab interview ask shows the next of {self.left}" if self.left else ""
        screen.do_next(more or "there is nothing more to ask: find the bugs")

    def document(self) -> Document:
        return pick(self, "question", "left")


@record
class SubmitPage:
    """How many parts are right. Which bugs are gone is told at the end."""

    program: Program
    interview: Interview  # this hand-in among its events
    report: ProgramReport
    seconds: float

    @property
    def late(self) -> bool:
        limit = 0 if self.interview.opened_stage else 60 * self.interview.minutes
        return bool(limit) and self.seconds > limit

    @property
    def _clock(self) -> str:
        if opened := self.interview.opened_stage:
            taken = self.interview.stage_seconds(self.interview.started + self.seconds)
            return f"{clock_of(taken)} in stage {opened.question}, without a limit"
        return f"{clock_of(self.seconds)} on the clock"

    def show(self, screen: Screen) -> None:
        report, passed = self.report, self.report.passed
        mark, style = (screen.marks.ok, "bold green") if passed else (screen.marks.bad, "bad")
        screen.say((f"{mark} submitted: {grade_word(report)}, {count_right(report)}", style))
        late = (", after the time", "bad") if self.late else ""
        screen.say(self._clock, late, indent=2)
        screen.hang("  ", _time_that_counts(self.interview))
        show_goals(report.goals, screen)
        show_stage(self.program, report, screen)
        if not passed and report.parts and not report.stage:
            show_count(report, screen)
        name = self.interview.name
        again = f"attnlab grade {name} as often as you like; " if not report.passed else ""
        again = next_stage(self.program, report) or again
        screen.do_next(f"{again}attnlab interview end shows the scorecard")

    def document(self) -> Document:
        report = self.report
        return {
            "interview": self.interview.number,
            "challenge": self.interview.slug,
            **pick(report, "outcome", "parts_right"),
            "parts": len(report.parts),
            "bugs_gone": report.bugs_gone if report.bugs else None,
            "goals": plain(report.goals),
            **pick(self, "seconds", "late"),
        } | stage_document(report.stage)


@record
class ScorecardPage:
    """One page at the end: what was found and how, and why each bug is one."""

    card: Scorecard
    trend: Trend

    def show(self, screen: Screen) -> None:
        card, marks = self.card, screen.marks
        _show_result(card, screen)
        for bug in card.bugs:
            _show_bug(bug, screen)
        for decoy in card.decoys:
            _show_decoy(decoy, screen)
        for stage in card.stages:
            show_stage_card(stage, screen)
        wrong = [part for part in card.parts if part.outcome != "passed"]
        if wrong:
            screen.heading("parts that are not right")
            for part in wrong:
                text = f"{part.title}: {part.message}" if part.message else part.title
                screen.hang((f"  {marks.bad} ", "bad"), text)
        for note in card.notes:
            screen.hang((f"{marks.unsure} ", "warn"), note)
        if len(self.trend.rounds) > 1:
            show_trend(self.trend, screen)
        show = f"attnlab solution {card.slug.partition('/')[2]} shows every change"
        screen.do_next(f"{show}; {practise(self.trend, card)}")

    def document(self) -> Document:
        card = self.card
        shown: Document = plain(card)
        return shown | pick(card, "fixed", "found", "named") | pick(self, "trend")


@record
class QuestionsPage:
    """The follow-up questions of an interview, with what was said of each."""

    interview: Interview
    cards: tuple[QuestionCard, ...]

    def show(self, screen: Screen) -> None:
        for card in self.cards:
            show_question(card, 0, 0, screen)
            show_answer(card, screen)
        show_said(self.cards, screen)

    def document(self) -> Document:
        return {"interview": self.interview.number, "questions": plain(self.cards)}


@record
class AbandonPage:
    interview: Interview

    def show(self, screen: Screen) -> None:
        folder = self.interview.folder
        screen.say(f"interview {self.interview.number} is dropped; ./{folder}/ stays as it is")
        screen.do_next(f"attnlab grade {self.interview.name} goes on without a clock")

    def document(self) -> Document:
        return {"interview": self.interview.number, "folder": f"./{self.interview.folder}"}


@record
class HistoryPage:
    """All interviews, and over them the share of bugs that was found, by category."""

    interviews: tuple[Interview, ...]
    cards: tuple[Scorecard, ...]
    trend: Trend
    now: float
    formats: tuple[FormatCard, ...] = ()

    def show(self, screen: Screen) -> None:
        if not self.interviews:
            screen.say("no interview yet")
            screen.do_next("attnlab interview start begins one")
            return
        both: tuple[RoundCard, ...] = (*self.cards, *self.formats)
        cards = {card.number: card for card in both}
        rows = [_history_row(i, cards.get(i.number), self.now) for i in self.interviews]
        _show_rounds(rows, screen)
        if cards:
            _show_categories(self.trend, screen)
            screen.do_next(practise(self.trend, cards[max(cards)]))

    def document(self) -> Document:
        numbers = {card.number for card in self.cards} | {card.number for card in self.formats}
        left = [i.number for i in self.interviews if i.number not in numbers]
        shown = {"scorecards": plain(self.cards), "without_scorecard": left}
        return shown | pick(self, "trend", "formats")


# ---------------------------------------------------------------- parts of pages


def show_question(card: QuestionCard, number: int, count: int, screen: Screen) -> None:
    place = f"question {number} of {count}, " if count else ""
    subject = f"your note at {card.bug}" if card.note else f"about {card.bug}"
    screen.heading(place + subject, card.question)


def show_answer(card: QuestionCard, screen: Screen) -> None:
    screen.hang("  what is true  " if card.note else "  answer  ", card.answer)


def show_said(cards: Sequence[QuestionCard], screen: Screen) -> None:
    """How many answers and notes were right, as they were ticked."""
    notes = [card.outcome for card in cards if card.note]
    answers = [card.outcome for card in cards if not card.note]
    left = [*notes, *answers].count("open")
    counts = [f"you ticked {answers.count('said')} of {plural(len(answers), 'answer')}"]
    if notes:
        counts.append(f"{notes.count('said')} of {plural(len(notes), 'note')}")
    screen.gap()
    screen.say((", ".join(counts), "title"), f", {left} still open" * bool(left))


def _show_result(card: Scorecard, screen: Screen) -> None:
    """The head of a scorecard: what counts, in a few lines."""
    marks = screen.marks
    mark, style = (marks.unsure, "warn") if card.found else (marks.bad, "bad")
    if card.fixed == len(card.bugs) and card.outcome == "passed":
        mark, style = marks.ok, "ok"
    screen.say(
        (f"{mark} ", style),
        (f"{card.fixed} of {plural(len(card.bugs), 'bug')} fixed", "title"),
        f", {card.named} named in a note: {card.found} found",
    )
    late = ("  handed in after the time", "bad") if card.late else ""
    clock = clock_of(card.seconds, card.minutes)
    if card.again_at is not None:
        clock = f"passed at {clock}, last handed in at {clock_of(card.again_at)}"
    screen.say((card.slug, "name"), f"  {clock}", late, indent=2)
    show_rating(card.rating, screen)
    stages = any(stage.outcome != "locked" for stage in card.stages)
    screen.say(
        "before the stages: "
        * stages
        + f"{plural(card.grades, 'grade')}, {plural(card.submits, 'hand-in')}, "
        f"{plural(card.hints, 'hint')}, "
        + f"{plural(card.triages, 'triage')}, "
        * bool(card.triages)
        + f"{plural(card.changed_lines, 'changed line')}, "
        f"{len(card.asked)} of {plural(card.questions, 'question')} asked",
        indent=2,
    )
    if card.slips:
        screen.say(f"{plural(len(card.slips), 'note')} at lines without a bug", indent=2)
    for text in card.slips:
        screen.hang("    ", text)
    if card.late_notes:
        late = f"{plural(card.late_notes, 'note')} after a submit had passed"
        screen.say(f"{late}: not counted", indent=2)
    if card.new_fault:
        screen.hang(
            (f"  {marks.bad} ", "bad"),
            "something is wrong that is none of the bugs: a fix went wrong, or only half way",
        )


def show_rating(rating: Rating, screen: Screen) -> None:
    """`rating solid (strong > solid > partial > early); missing for strong: no hint`."""
    more = f"; missing for {rating.next}: {'; '.join(rating.missing)}" if rating.next else ""
    scale = " > ".join(reversed(RATINGS))
    screen.hang("  rating ", (rating.name, "title"), f" ({scale}){more}")


def show_trend(trend: Trend, screen: Screen) -> None:
    screen.heading("last rounds")
    _show_rounds([_round_row(one) for one in trend.rounds], screen)
    _show_categories(trend, screen)


def _show_rounds(rows: Sequence[Sequence[str]], screen: Screen) -> None:
    titles = COLUMNS if screen.width >= WIDE else FEW_COLUMNS
    table = bare_table(*titles)
    for row in rows:
        by_title = dict(zip(COLUMNS, row, strict=True))
        table.add_row(*(by_title[title] for title in titles))
    screen.print(table)


def _show_categories(trend: Trend, screen: Screen) -> None:
    if not trend.categories:
        return
    screen.heading("kinds of bugs, the weakest first")
    table = bare_table("kind", "found", "fixed", "named", "found lately")
    for one in trend.categories:
        marks = [screen.marks.ok if found else screen.marks.bad for found in one.lately]
        of = f"{one.found} of {one.bugs}"
        table.add_row(one.category, of, str(one.fixed), str(one.named), "".join(marks))
    screen.print(table)


def _show_bug(bug: BugCard, screen: Screen) -> None:
    marks = screen.marks
    mark, style = (marks.ok, "ok") if bug.fixed else (marks.bad, "bad")
    if bug.fixed is None:
        mark, style = marks.unsure, "warn"
    screen.gap()
    screen.say((f"{mark} ", style), (bug.id, "title"), f"  {bug.category}, level {bug.level}")
    screen.say((", ".join(bug.places), "name"), " as given" * bool(bug.places), indent=4)
    hints = f", after {plural(bug.hints, 'hint')}" if bug.hints else ""
    screen.hang("    ", _became(bug) + hints)
    for text in bug.notes:
        screen.hang("    your note: ", text)
    screen.prose(f"{bug.why}\n\n{bug.find}", indent=4)


def _show_decoy(decoy: DecoyCard, screen: Screen) -> None:
    marks = screen.marks
    mark, style = (marks.unsure, "warn") if decoy.named else (marks.ok, "ok")
    done = ["a note took it for a bug"] * decoy.named + ["you changed it"] * decoy.changed
    done += ["a note says so"] * decoy.cleared
    screen.gap()
    said = "looks wrong, and is right as it was given" + (f" ({', '.join(done)})" if done else "")
    screen.say((f"{mark} ", style), (decoy.id, "title"), f"  {said}")
    screen.prose(decoy.why, indent=4)


def _became(bug: BugCard) -> str:
    """`fixed by 12:30, named at 8:10 with a reason that you ticked`."""
    fixed = _when_fixed(bug)
    if bug.named:
        return f"{fixed}, named at {clock_of(bug.named_at or 0.0)} {REASONS[bug.reason]}"
    if bug.notes:
        says = "gives another reason" if bug.reason == STAYED else "takes it for right"
        return f"{fixed}, not named: your note {says}"
    return f"{fixed}, not named" if bug.found else f"{fixed}: missed"


def _when_fixed(bug: BugCard) -> str:
    """`fixed by 12:30`, the first grade that found it gone, and that it came back if it did."""
    first = "" if bug.fixed_at is None else clock_of(bug.fixed_at)
    back = f" (it was back, and gone again by {clock_of(bug.again_at)})" if bug.again_at else ""
    if bug.fixed:
        return f"fixed by {first}{back}" if first else "fixed"
    undone = f" (it was gone at {first})" if first else ""
    return ("not fixed" if bug.fixed is False else "whether it is gone cannot be told") + undone


def practise(trend: Trend, card: RoundCard) -> str:
    """What to do after an interview: what was missed, else something harder."""
    if trend.weakest:
        return f"attnlab interview start --about {trend.weakest} practises what was missed"
    if isinstance(card, FormatCard):
        return f"attnlab interview start {card.slug.partition('/')[2]} draws another round"
    level = max(bug.level for bug in card.bugs)
    harder = f" --level {level + 1}" if USUAL_LEVEL <= level < HARDEST else ""
    return f"attnlab interview start{harder} draws another round"


def _time_that_counts(interview: Interview) -> str:
    """Which moment the scorecard takes for the end, while the clock runs on."""
    counted = interview.counted_hand_in
    if opened := interview.of_kind("stage"):
        at = clock_of((counted or opened[0]).seconds)
        return f"the bugs took {at}; each stage has a time of its own, without a limit"
    if counted is None:
        return "the time that counts is that of the first submit that is right"
    at = clock_of(counted.seconds)
    if counted.outcome == "passed":
        return f"it passed at {at}, which is the time that counts, unless you hand in a wrong one"
    return f"handed in at {at}, which counts until a submit is right"


def _counted(interview: Interview) -> list[str]:
    return [
        plural(len(interview.of_kind("grade")), "grade"),
        plural(len(interview.of_kind("submit")), "hand-in"),
        plural(len(interview.of_kind("hint")), "hint"),
        *[plural(len(given), "triage") for given in (interview.of_kind("triage"),) if given],
        plural(len(interview.notes), "note"),
        f"{plural(len(interview.of_kind('ask')), 'question')} asked",
    ]


def _history_row(interview: Interview, card: RoundCard | None, now: float) -> Sequence[str]:
    if card is None:
        state = "dropped" if interview.closing else "going on"
        known = (str(interview.number), _date(interview.started), interview.name)
        return (*known, clock_of(interview.elapsed(now)), *[""] * 5, state)
    return _round_row(summarize(card))


def _date(seconds: float) -> str:
    """`23 Nov`, in the time of this machine."""
    return time.strftime("%d %b", time.localtime(seconds)).lstrip("0") if seconds else ""


def _round_row(one: RoundSummary) -> Sequence[str]:
    return (
        str(one.number),
        _date(one.started),
        one.slug.partition("/")[2],
        clock_of(one.seconds),
        f"{one.found} of {one.bugs}",
        "" if one.fixed is None else str(one.fixed),
        "" if one.named is None else str(one.named),
        str(one.hints),
        one.stages,
        one.rating + ", late" * one.late,
    )
