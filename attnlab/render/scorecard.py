"""The scorecard of an interview, its follow-up questions, and the trend over several."""

import time
from collections.abc import Sequence

from attnlab.practice.trend import summarize
from attnlab.records import plain, record
from attnlab.records.practice import STAYED, Interview, RoundSummary, Trend
from attnlab.records.scorecard import (
    RATINGS,
    BugCard,
    DecoyCard,
    FormatCard,
    QuestionCard,
    Rating,
    RoundCard,
    Scorecard,
)
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, bare_table, plural, ticks
from attnlab.render.stage import clock_of, show_stage_cards

COLUMNS = ("no", "date", "round", "time", "found", "fixed", "named", "hints", "stages", "rating")
LEFT_OUT = ("hints", "no", "named", "fixed", "date", "stages", "time")  # in this order
REASONS = {
    "": "without a reason",
    "open": "with a reason: compare your note",
    "said": "with the right reason, as you ticked",
}
USUAL_LEVEL, HARDEST = 3, 5  # of the bugs of an interview


@record
class ScorecardPage:
    """One page at the end: what was found and how, and why each bug is one."""

    card: Scorecard
    trend: Trend
    asks: bool = False  # follow-up questions stand between the page and what to do next

    def show(self, screen: Screen) -> None:
        card, marks = self.card, screen.marks
        _show_result(card, screen)
        for bug in card.bugs:
            _show_bug(bug, screen)
        for decoy in card.decoys:
            _show_decoy(decoy, screen)
        show_stage_cards(card.stages, screen)
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
        self.show_next(screen)

    def show_next(self, screen: Screen, after_questions: bool = False) -> None:
        """What to do after the round, at the end of the page or after the questions."""
        if after_questions != self.asks:
            return
        show = f"attnlab solution {self.card.slug.partition('/')[2]} shows every change"
        screen.do_next(f"{show}; {practise(self.trend, self.card)}")

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
    counts = [f"you said {answers.count('said')} of {plural(len(answers), 'answer')}"]
    if notes:
        counts.append(f"{notes.count('said')} of {plural(len(notes), 'note')} said why")
    screen.gap()
    screen.say((", ".join(counts), "title"), f"; {left} to be ticked" * bool(left))


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
    clock = clock_of(card.seconds, card.minutes)
    if card.again_at is not None:
        clock = f"passed at {clock}, last handed in at {clock_of(card.again_at)}"
    late = "  handed in after the time" * card.late
    screen.say((card.slug, "name"), f"  {clock}", (late, "bad"), indent=2)
    show_rating(card.rating, screen)
    stages = any(stage.outcome != "locked" for stage in card.stages)
    kinds = ("grade", "submit", "hint", *["triage"] * bool(card.triages))
    counts = ", ".join(plural(getattr(card, f"{kind}s"), kind) for kind in kinds)
    changed = f"{plural(card.changed_lines, 'line')} changed (a replaced one is one)"
    asked = f"{len(card.asked)} of {plural(card.questions, 'question')} asked"
    screen.say(f"{'before the stages: ' * stages}{counts}, {changed}, {asked}", indent=2)
    for texts, where in (
        (card.slips, "at lines without a bug"),
        (card.placeless, "without a place, so of no bug"),
    ):
        if texts:
            screen.say(f"{plural(len(texts), 'note')} {where}", indent=2)
        for text in texts:
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
    """`rating solid (strong > solid > partial > early); strong also takes: no hint`."""
    more = f"; {rating.next} also takes: {'; '.join(rating.missing)}" if rating.next else ""
    scale = " > ".join(reversed(RATINGS))
    screen.hang("  rating ", (rating.name, "title"), f" ({scale}){more}")


def show_trend(trend: Trend, screen: Screen) -> None:
    screen.heading("last rounds")
    _show_rounds([_round_row(one) for one in trend.rounds], screen)
    _show_categories(trend, screen)


def _show_rounds(rows: Sequence[Sequence[str]], screen: Screen) -> None:
    """As many columns as fit; those that say least are left out first."""
    columns = {title: cells for title, *cells in zip(COLUMNS, *rows, strict=True)}
    for title in LEFT_OUT:
        wide = sum(2 + max(map(len, (name, *cells))) for name, cells in columns.items())
        if wide - 2 > screen.width:
            del columns[title]
    table = bare_table(*columns)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    screen.print(table)


def _show_categories(trend: Trend, screen: Screen) -> None:
    if not trend.categories:
        return
    screen.heading("kinds of bugs, what is weakest in all answers first")
    table = bare_table("kind", "found", "fixed", "named", "found lately")
    for one in trend.categories:
        of = f"{one.found} of {one.bugs}"
        counts = ((one.fixed, one.to_fix), (one.named, one.to_name))
        done = [f"{count} of {most}" if most else "" for count, most in counts]
        table.add_row(one.category, of, *done, ticks(one.lately, screen.marks))
    screen.print(table)


def _show_bug(bug: BugCard, screen: Screen) -> None:
    marks = screen.marks
    mark, style = (marks.ok, "ok") if bug.fixed else (marks.bad, "bad")
    if bug.fixed is None:
        mark, style = marks.unsure, "warn"
    screen.gap()
    screen.say((f"{mark} ", style), (bug.id, "title"), f"  {bug.category}, level {bug.level}")
    if bug.places:
        screen.say((", ".join(bug.places), "name"), " in the files as given", indent=4)
    helped = [plural(n, what) for n, what in ((bug.hints, "hint"), (bug.triages, "triage")) if n]
    screen.hang("    ", _became(bug) + f", after {' and '.join(helped)}" * bool(helped))
    for text in bug.notes:
        screen.hang("    your note: ", text)
    screen.prose(f"{bug.why}\n\nTo find it: {bug.find}", indent=4)


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
        missed = any(b.category == trend.weakest and not b.found for b in card.bugs)
        why = "practises what was missed" if missed else "practises what is weakest in all answers"
        return f"attnlab interview start --about {trend.weakest} {why}"
    if isinstance(card, FormatCard):
        return f"attnlab interview start {card.slug.partition('/')[2]} draws another round"
    level = max(bug.level for bug in card.bugs)
    harder = f" --level {level + 1}" if USUAL_LEVEL <= level < HARDEST else ""
    return f"attnlab interview start{harder} draws another round"


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
