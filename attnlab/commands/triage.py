from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    NOT_COMPARED,
    Json,
    Timeout,
    complete_slug,
    limits,
    note,
    note_reveal,
    run_job,
    whole_number,
)
from attnlab.commands.output import Format, Html, emit_also
from attnlab.commands.target_flags import (
    OWN_TIME,
    NamedTarget,
    Reveal,
    next_of_puzzle,
    takes_target,
)

if TYPE_CHECKING:
    from attnlab.records import Job

PLACE = 105
LAYERS = ("trace", "unused", "property", "training")


def complete_symptom(incomplete: str) -> list[str]:
    from attnlab.ranked_suspicions import SYMPTOMS

    return [name for name in SYMPTOMS if name.startswith(incomplete)]


Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A script that trains, file.py, file.py:Class, package.module:Class, or the name of a "
        "challenge or program.",
        autocompletion=complete_slug,
    ),
]
Symptom = Annotated[
    str,
    typer.Option(
        "--symptom",
        metavar="NAME",
        help="What you see: loss-does-not-fall, nan, val-too-good, repeats-itself, slow, "
        "alone-fine-batched-not, crash or worse-than-paper.",
        autocompletion=complete_symptom,
    ),
]
Only = Annotated[
    str, typer.Option("--only", metavar="LAYER", help="trace, unused, property or training.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="RULE", help="Leave out this rule; once for each."),
]
Steps = Annotated[
    str, typer.Option("--steps", metavar="N", help="Optimizer steps of a script to watch (20).")
]
Args = Annotated[
    str,
    typer.Option("--args", metavar="ARGS", help='What the script is started with: "--data x.txt".'),
]
Overfit = Annotated[
    bool, typer.Option("--overfit", help="Learn one batch again and again: can it be learned?")
]
Seconds = Annotated[
    str, typer.Option("--seconds", metavar="N", help="For --overfit, how long at most (10).")
]
Evaluate = Annotated[
    list[str] | None,
    typer.Option(
        "--eval",
        metavar="NAME",
        help='Calls this function after the steps: evaluate, "test(net, data)"; is it sound?',
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Show notes in full as well.")]


@partial(takes_target, argument=Target)
def command(
    *,
    symptom: Symptom = "",
    only: Only = "",
    ignore: Ignore = None,
    steps: Steps = "",
    named: NamedTarget,
    args: Args = "",
    overfit: Overfit = False,
    seconds: Seconds = "",
    evaluate: Evaluate = None,
    timeout: Timeout = "",
    everything: Everything = False,
    reveal: Reveal = False,
    html: Html = "",
    form: Format = "",
    json: Json = False,
) -> int:
    """Say what is likely wrong with code that runs and does not work.

    Traces a module, checks its properties, or watches the first optimizer steps of a script. What
    was found stands in order, with its evidence and the experiment that would settle it.
    """
    from dataclasses import replace

    from attnlab.commands.rounds import note_triage, price_of_triage
    from attnlab.errors import Refused
    from attnlab.ranked_suspicions import SYMPTOMS
    from attnlab.render.triage import TriagePage
    from attnlab.suspicions import Wishes, make_triage
    from attnlab.target.trace_advice import guessed_inputs, unstated_inputs, untried_inputs
    from attnlab.target.triage_target import (
        STEPS,
        example_flags,
        ignored_lines,
        look_at,
        read_alone,
        script_arguments,
        triage_job,
    )
    from attnlab.verdict import hide_suspicions

    _must_be_one_of("--symptom", symptom, tuple(SYMPTOMS))
    _must_be_one_of("--only", only, LAYERS)
    _must_be_rules(ignore or [])
    many = whole_number("--steps", steps, 1, 10_000, "as in 50") if steps else STEPS
    named = named.repeating(*(("--args", args) if args else ()))
    target, typed, chosen = named.name, named.typed, named.chosen
    bounds = limits(timeout or OWN_TIME, "")
    learning = _seconds(overfit, seconds)
    words = script_arguments(args)
    try:
        job = triage_job(typed, bounds, many, words, learning, named.answer)
        job = _with_evaluation(job, target, evaluate)
        doing = f"watching {many} optimizer steps of" if "training" in job.stages else "looking at"
        named.announce(doing, job)
        if price := price_of_triage(named.ctx, typed.target):
            note(price)
        report = look_at(typed, job, run_job, note)
    except Refused as refused:
        alone = None if evaluate or words else read_alone(typed, refused, bounds)
        if alone is None:
            raise
        job, report = alone
    wishes = Wishes(
        symptom=symptom,
        only=only,
        ignored=tuple(ignore or ()),
        guessed=unstated_inputs(typed, job),
        retry=typed.with_flags(inputs=tuple(guessed_inputs(typed, job))).command(),
        flags=example_flags(job),
    )
    first = make_triage(target, report, wishes)
    files = frozenset(suspicion.file for suspicion in first.suspicions if suspicion.file)
    lines = ignored_lines(files)
    found = make_triage(target, report, wishes, lines) if lines else first
    found = replace(found, not_looked_at=(*untried_inputs(job), *found.not_looked_at))
    page = TriagePage(triage=found, report=report, everything=everything)
    if chosen:
        solved = note_reveal(chosen, found.suspicions, reveal)
        shown = found if solved or reveal else hide_suspicions(found)
        hidden = len(found.suspicions) - len(shown.suspicions)
        fine = found.outcome == "nothing-found"
        advice = "" if shown.suspicions else next_of_puzzle(chosen, fine, solved)
        page = replace(page, triage=shown, hidden=hidden, next=advice)
    if page.triage.suspicions:
        note_triage(named.ctx, typed.target, page.triage.suspicions)
    unseen = found.outcome == "error" and not found.looked_at
    code = NOT_COMPARED if unseen else int(found.outcome != "nothing-found")
    return emit_also(page, json, code, html, form)


def _with_evaluation(job: Job, target: str, names: list[str] | None) -> Job:
    """The job that also calls these functions of a script; raises `Refused` for another target."""
    from dataclasses import replace

    if not names:
        return job
    _must_train(target, job.stages)
    return replace(job, evaluate=tuple(names))


def _must_train(target: str, stages: tuple[str, ...]) -> None:
    from attnlab.errors import Refused

    if "training" not in stages:
        hint = "--eval calls a function of a script that trains, after its steps"
        raise Refused(f"--eval: {target} is no script that trains", hint, "--eval")


def _seconds(overfit: bool, seconds: str) -> float:
    """How long one batch is learned."""
    from attnlab.errors import Refused

    if seconds and not overfit:
        raise Refused("--seconds says how long --overfit takes", "add --overfit", "--seconds")
    if not overfit:
        return 0.0
    return float(whole_number("--seconds", seconds, 1, 600, "as in 30") if seconds else 10)


def _must_be_one_of(flag: str, given: str, known: tuple[str, ...]) -> None:
    from attnlab.errors import Refused
    from attnlab.suggest import did_you_mean

    if given and given not in known:
        hint = did_you_mean(given, known) or f"one of {', '.join(known)}"
        raise Refused(f'{flag} {given}: there is no "{given}"', hint, flag)


def _must_be_rules(given: list[str]) -> None:
    from attnlab.catalogue.finding_rules import RULES
    from attnlab.checks.base import load_checks

    known = (*RULES, *(check.id for check in load_checks()), "crash")
    for rule in given:
        _must_be_one_of("--ignore", rule, known)
