from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    Json,
    catalogue,
    complete_slug,
    emit,
    progress,
    run_job,
    select_file,
)  # fmt: skip

if TYPE_CHECKING:
    from attnlab.commands.base import Selection
    from attnlab.records import Challenge
    from attnlab.render.explain import Evidence, ExplainPage

PLACE = 115
DIFF_TIME = 20.0  # seconds that comparing with the solution may take


def complete_id(incomplete: str) -> list[tuple[str, str]]:
    """Pages, checks and challenges that begin with this word."""
    try:
        from attnlab.catalogue.finding_rules import RULES as FINDINGS
        from attnlab.catalogue.load import pages
        from attnlab.checks.base import load_checks

        known = [*pages().items(), *((c.id, c.title) for c in load_checks())]
        known += [(rule, told.title) for rule, told in FINDINGS.items()]
    except Exception:  # completion must never print an error
        return []
    return [pair for pair in known if pair[0].startswith(incomplete)] + complete_slug(incomplete)


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="positions, masks, dtypes, shapes, debugging, a check, a finding; none lists all.",
        autocompletion=complete_id,
    ),
]


def command(ctx: typer.Context, id_: Id = "", json: Json = False) -> int:
    """Explain masks, dtypes, a check, a finding, a solved challenge.

    "rules" lists what challenges require; pages on a subject show numbers with the Python that
    computes them.
    """
    from attnlab.catalogue.load import pages

    if not id_:
        return emit(_index(), json)
    if id_ in pages():
        return emit(_page(id_), json)
    from attnlab.checks.base import load_checks

    ids = [check.id for check in load_checks()]
    return emit(_check(id_) or _finding(id_) or _mutation(id_) or _challenge(ctx, id_, ids), json)


def _page(name: str) -> ExplainPage:
    """What every challenge asks, or a subject."""
    from attnlab.catalogue.load import page_text
    from attnlab.render.explain import ExplainPage

    title, _, text = page_text(name).partition("\n")
    return ExplainPage(id=name, kind="page", title=title.lstrip("# "), text=text.strip())


def _check(id_: str) -> ExplainPage | None:
    """A check, by the id that it has or had."""
    from attnlab.catalogue.renamed_checks import RENAMED
    from attnlab.checks.base import load_checks
    from attnlab.render.explain import ExplainPage

    check = {check.id: check for check in load_checks()}.get(RENAMED.get(id_, id_))
    if check is None:
        return None
    text = check.explanation
    if id_ in RENAMED:
        text = f"`{id_}` is a part of `{check.id}` now.\n\n{text}"
    return ExplainPage(id=check.id, kind="check", title=check.title, text=text, advice=check.advice)


def _index() -> ExplainPage:
    """What there is to be explained, by name."""
    from attnlab.catalogue.finding_rules import RULES as FINDINGS
    from attnlab.catalogue.load import pages
    from attnlab.checks.base import load_checks
    from attnlab.render.explain import ExplainPage

    checks = ", ".join(sorted(check.id for check in load_checks()))
    subjects = "\n".join(f"* **{name}**: {title}" for name, title in pages().items())
    text = (
        f"{subjects}\n\n"
        f"**Checks** of a grade: {checks}.\n\n"
        f"**Findings** of a trace: {', '.join(FINDINGS)}.\n\n"
        "**Challenges**: the notes of one that you solved, by its name."
    )
    return ExplainPage(id="index", kind="page", title="What attnlab explain knows", text=text)


def _finding(rule: str) -> ExplainPage | None:
    """A finding of a trace, by the rule that stands beside it."""
    from attnlab.catalogue.finding_rules import RULES as FINDINGS
    from attnlab.render.explain import ExplainPage

    if rule not in FINDINGS:
        return None
    found = FINDINGS[rule]
    text = f"{found.text}\n\n{found.experiment}".strip()
    return ExplainPage(id=rule, kind="finding", title=found.title, text=text)


def _mutation(id_: str) -> ExplainPage | None:
    """A bug that `attnlab check --strength` inserts, by its name there."""
    from attnlab.mutation_testing.operators.base import load_mutations
    from attnlab.render.explain import ExplainPage

    docs = {mutation.id: mutation.doc for mutation in load_mutations()}
    if id_ not in docs:
        return None
    title, _, text = docs[id_].strip().partition("\n")
    return ExplainPage(id=id_, kind="mutation", title=title.rstrip("."), text=text.strip())


def _challenge(ctx: typer.Context, what: str, checks: list[str]) -> ExplainPage:
    """The notes of a challenge that is solved, or whose solution was shown."""
    from attnlab.catalogue.finding_rules import RULES as FINDINGS
    from attnlab.catalogue.load import pages
    from attnlab.errors import Refused
    from attnlab.render.explain import ExplainPage
    from attnlab.suggest import did_you_mean

    found = catalogue(ctx)
    if program := found.find_program(what):
        hint = f"attnlab start {program.name} writes it; grade {program.name} --reveal explains it"
        raise Refused(f"{program.name} is a program with {program.bugs} bugs", hint)
    names = [*checks, *(c.name for c in found.challenges), *(c.slug for c in found.challenges)]
    if what not in names and what not in [slug.rpartition("/")[2] for slug in found.broken_slugs]:
        guess = (
            did_you_mean(what, [*pages(), *FINDINGS, *names])
            or "attnlab explain lists what there is"
        )
        raise Refused(f'"{what}" is no check, finding or challenge', guess)
    from attnlab.catalogue.texts import notes_text

    challenge = found.find(what)
    with progress() as store:
        standing = store.challenge_progress(challenge.slug)
    if standing.status != "solved" and not standing.solution_seen:
        hint = f"attnlab hint {challenge.name} helps; attnlab solution {challenge.name} shows all"
        raise Refused(f"the notes of {challenge.slug} open once it is solved", hint)
    return ExplainPage(
        id=challenge.slug,
        kind="challenge",
        title=challenge.title,
        text=notes_text(challenge),
        evidence=show_how_it_fails(challenge, head_of(select_file(ctx, challenge.slug))),
    )


def head_of(chosen: Selection) -> str:
    """The line that attnlab start writes above the file, so that lines are named as they stand
    there; "" where yours has it no more."""
    from attnlab.catalogue.starter import mark_of
    from attnlab.commands.base import selected_code
    from attnlab.errors import Unreadable

    try:
        return mark_of(chosen.challenge, selected_code(chosen).text)
    except Unreadable:
        return ""


def show_how_it_fails(challenge: Challenge, head: str) -> Evidence | None:
    """Where the shipped file parts from the solution, traced anew; what a grade says of it where no
    plain call shows it. None of a file that is still to be written. `head` stands above both, as
    in the file that was started, so that lines have the same numbers."""
    from dataclasses import replace

    from attnlab.catalogue.texts import shipped_code, shipped_text, solution_text
    from attnlab.errors import AttnlabError
    from attnlab.records import Code, Limits
    from attnlab.render.explain import Evidence
    from attnlab.target.challenge_job import challenge_job

    if challenge.kind in ("implement", "port"):
        return None
    name, path = challenge.class_name, challenge.solution
    right = Code(file="solution.py", text=head + solution_text(challenge), path=path, name=name)
    bounds = Limits(seconds=DIFF_TIME)
    shipped = replace(shipped_code(challenge), text=head + shipped_text(challenge))
    job = challenge_job(challenge, shipped, stages=("diff",), limits=bounds, seed=0)
    try:
        diff = run_job(replace(job, reference=right)).diff
        if diff and diff.outcome == "different":
            return Evidence(parting=diff)
        checks = run_job(replace(job, stages=("check",), until="reason")).checks
    except AttnlabError:  # the notes are there without it
        return None
    return Evidence(parting=diff, failure=next((c for c in checks if c.outcome == "failed"), None))
