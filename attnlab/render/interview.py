"""Pages about an interview that is going on: its start, its clock, notes, questions, hand-ins."""

from itertools import takewhile

from attnlab.practice.interviews import clock_text
from attnlab.records import plain, record
from attnlab.records.patch import FollowUp
from attnlab.records.practice import EventKind, Interview
from attnlab.records.program import Program, ProgramReport
from attnlab.records.scorecard import StageCard
from attnlab.render.json import Document, pick
from attnlab.render.round import count_right, grade_word, show_count, show_goals, show_task
from attnlab.render.screen import Screen, plural
from attnlab.render.stage import clock_of, next_stage, show_stage, show_stage_cards, stage_document

HELP = (
    ("run NAME", "trains it: its loss and goals, or where it stops"),
    ("grade NAME", "counts the bugs that are gone, as often as you like"),
    ("hint NAME", "says where to look; a hint lowers the rating"),
    ("triage, trace --reveal", "each cause that they name costs as a hint does"),
    ("interview note TEXT", 'name a bug: "train.py:40 why it is wrong"'),
    ("interview ask", "what a good candidate asks, and its answer"),
    ("interview submit", "hand in; your time is that of the first right grade"),
    ("interview end", "the scorecard"),
)
COUNTED: tuple[EventKind, ...] = ("grade", "submit", "hint")


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
        show_task(program, interview.bugs, screen)
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
        screen.heading("attnlab")
        rows = [(command.replace("NAME", interview.name), text) for command, text in HELP]
        wide = max(len(command) for command, _ in rows) + 2
        for command, text in rows:
            screen.hang((f"  {command.ljust(wide)}", "name"), text)
        run = f"attnlab run {interview.name} shows what it does now"
        screen.do_next(f"{run}; then read ./{interview.folder}/")

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

    interview: Interview
    folder: str
    stages: tuple[StageCard, ...]
    now: float
    gone: bool = False  # the folder
    questions: int = 0  # of its program

    def show(self, screen: Screen) -> None:
        interview = self.interview
        late = interview.limit and interview.left(self.now) < 0
        screen.say(
            (f"interview {interview.number}: ", "title"),
            (clock_text(interview, self.now), "bad" if late else "ok"),
        )
        gone = " is gone" * self.gone
        screen.say((interview.slug, "name"), f"  {self.folder}", (gone, "bad"), indent=2)
        counts = [plural(len(interview.of_kind(kind)), kind) for kind in COUNTED]
        counts += [plural(n, "triage") for n in (len(interview.of_kind("triage")),) if n]
        counts += [plural(len(interview.notes), "note")]
        asked = f"{len(interview.of_kind('ask'))} of {plural(self.questions, 'question')} asked"
        screen.say(f"{', '.join(counts)}, {asked}", indent=2)
        screen.hang("  ", _time_that_counts(interview))
        for number, event in interview.notes.items():
            screen.hang(f"  note {number}  {clock_of(event.seconds)}  ", event.text)
        show_stage_cards(self.stages, screen)
        screen.do_next(self.next)

    @property
    def next(self) -> str:
        """Look at it, grade it, hand it in; then the next stage, or the end."""
        if self.gone:
            return f"attnlab reset {self.interview.name} writes its files again; the clock runs on"
        graded = [e for e in self.interview.events if e.kind in ("grade", "submit")]
        name = self.interview.name
        grade = f"attnlab grade {name}"
        if not graded:
            return f"attnlab run {name} shows what it does; {grade} counts what is right"
        ends = "attnlab interview end shows the scorecard"
        outcomes = [stage.outcome for stage in self.stages]
        if graded[-1].outcome != "passed" or "failed" in outcomes:
            return f"{grade}, once you changed something; {ends}"
        if "open" in outcomes:
            return f"{grade} grades it with the stage; {ends}"
        if "locked" in outcomes:
            following = self.stages[outcomes.index("locked")]
            ends = f"attnlab interview stage goes on with {following.id}; {ends}"
        handed_in = graded[-1].kind == "submit"
        return ends if handed_in else f"attnlab interview submit hands in; {ends}"

    def document(self) -> Document:
        interview = self.interview
        graded = [e for e in interview.events if e.kind in ("grade", "submit")]
        return {
            "interview": interview.number,
            "challenge": interview.slug,
            "folder": self.folder,
            "minutes": interview.minutes,
            "elapsed": interview.elapsed(self.now),
            "left": interview.left(self.now) if interview.limit else None,
            **{f"{kind}s": len(interview.of_kind(kind)) for kind in COUNTED},
            "asked": [event.question for event in interview.of_kind("ask")],
            "triages": len(interview.of_kind("triage")),
            "questions_left": self.questions - len(interview.of_kind("ask")),
            "notes": [event.text for event in interview.notes.values()],
            "numbered_notes": [
                {"number": number, "seconds": event.seconds, "text": event.text}
                for number, event in interview.notes.items()
            ],
            "passed_at": next((e.seconds for e in graded if e.outcome == "passed"), None),
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
    outside: str = ""  # what it speaks of by name, where its lines stand elsewhere
    reason: bool = True  # it is long enough to give one

    def show(self, screen: Screen) -> None:
        code = [bool(line) and not line.startswith("#") for line in self.lines]
        useful = any(code) and not self.late and not self.outside
        mark = ("", "") if useful else (f"{screen.marks.unsure} ", "warn")
        screen.hang(mark, "noted: ", self.text)  # without a tick: it is judged at the end
        for place, line, is_code in zip(self.places, self.lines, code, strict=True):
            screen.hang(f"  {place}  ", (line, "name") if line else ("blank", "warn"))
            if not is_code:
                screen.say("  no code stands there: is it the place that you mean?")
        if self.late:
            screen.hang("  ", "a submit has already passed, so this note does not count")
        elif not self.places:
            example = f'"{self.file}:40 labels are not shifted", or name a class or function'
            screen.hang(
                "  ", f"it counts for no bug, as it says no place: say one, as in {example}"
            )
        elif self.right:
            screen.hang("  ", "it takes the code there for right")
        elif self.outside:
            screen.hang("  ", f"it speaks of {self.outside}: is that the line that you mean?")
            screen.do_next("attnlab interview note --drop N takes a note back; status numbers them")
        elif not self.reason:
            screen.hang("  ", "it gives no reason: say what is wrong there, and what comes of it")

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

    question: FollowUp | None
    left: int

    def show(self, screen: Screen) -> None:
        if self.question is None:
            screen.say("there is nothing more to ask")
            return
        screen.hang(("a good question  ", "title"), self.question.question)
        screen.hang("the answer       ", self.question.answer)
        more = f"attnlab interview ask shows the next of {self.left} left" if self.left else ""
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
        return 0 < self.interview.limit < self.seconds

    def show(self, screen: Screen) -> None:
        report, passed = self.report, self.report.passed
        words = f"submitted: {grade_word(report)}, {count_right(report)}"
        screen.say(screen.verdict(passed, words))
        screen.hang(
            "  ", ("after the time: " * self.late, "bad"), _time_that_counts(self.interview)
        )
        show_goals(report.goals, screen)
        show_stage(self.program, report, screen)
        if not passed and report.parts and not report.stage:
            show_count(report, screen)
        again = f"attnlab grade {self.interview.name} as often as you like; " * (not passed)
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
class AbandonPage:
    interview: Interview

    def show(self, screen: Screen) -> None:
        one = self.interview
        stays = "" if one.tasks else f"; ./{one.folder}/ stays as it is"
        screen.say(f"interview {one.number} is dropped{stays}")
        goes_on = f"attnlab grade {one.name} goes on without a clock"
        screen.do_next("attnlab interview start begins another" if one.tasks else goes_on)

    def document(self) -> Document:
        return {"interview": self.interview.number, "folder": f"./{self.interview.folder}"}


# ---------------------------------------------------------------- parts of pages


def _time_that_counts(interview: Interview) -> str:
    """Which moment the scorecard takes for the end, while the clock runs on."""
    counted = interview.counted_hand_in
    if opened := interview.of_kind("stage"):
        at = clock_of((counted or opened[0]).seconds)
        return f"the bugs took {at}; each stage has a time of its own, without a limit"
    since = takewhile(lambda event: event.kind != "submit", reversed(interview.events))
    right = [e for e in since if (e.kind, e.outcome) == ("grade", "passed")]
    if right and not (counted and counted.outcome == "passed"):
        at = clock_of(right[-1].seconds)
        return f"a grade passed at {at}: that time counts once you submit, or open a stage"
    if counted is None:
        return "the time that counts is that of the first grade or submit that passes"
    at = clock_of(counted.seconds)
    if counted.outcome == "passed":
        return f"it passed at {at}: that time counts, unless a later hand-in fails"
    return f"handed in at {at}, which counts until a grade or submit passes"
