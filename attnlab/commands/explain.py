from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, complete_slug, emit, progress

if TYPE_CHECKING:
    from attnlab.render.explain import ExplainPage

PLACE = 70
RULES = "rules"  # the page that tells what every challenge asks


def complete_id(incomplete: str) -> list[tuple[str, str]]:
    """Rules, checks and challenges that begin with this word."""
    try:
        from attnlab.checks.base import load_checks

        known = [(RULES, "what every challenge asks"), *((c.id, c.title) for c in load_checks())]
    except Exception:  # completion must never print an error
        return []
    return [pair for pair in known if pair[0].startswith(incomplete)] + complete_slug(incomplete)


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="A check, rules, a challenge that you solved, or a mutation.",
        autocompletion=complete_id,
    ),
]


def command(ctx: typer.Context, id_: Id, json: Json = False) -> int:
    """Explain a check, the house rules ("rules"), a challenge that you solved, or a mutation."""
    if id_ == RULES:
        return emit(_rules(), json)
    from attnlab.checks.base import load_checks

    ids = [check.id for check in load_checks()]
    return emit(_check(id_) or _mutation(id_) or _challenge(ctx, id_, ids), json)


def _rules() -> ExplainPage:
    """What every challenge asks."""
    from attnlab.catalogue.load import house_rules
    from attnlab.render.explain import ExplainPage

    title, _, text = house_rules().partition("\n")
    return ExplainPage(id=RULES, kind="page", title=title.lstrip("# "), text=text.strip())


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
    from attnlab.errors import Refused
    from attnlab.render.explain import ExplainPage
    from attnlab.suggest import did_you_mean

    found = catalogue(ctx)
    names = [*checks, *(c.name for c in found.challenges), *(c.slug for c in found.challenges)]
    if what not in names and what not in [slug.rpartition("/")[2] for slug in found.broken_slugs]:
        guess = (
            did_you_mean(what, [RULES, *names]) or f"checks are {', '.join(checks)}; or a challenge"
        )
        raise Refused(f'"{what}" is neither a check nor a challenge', guess)
    challenge = found.find(what)
    with progress() as kept:
        standing = kept.challenge_progress(challenge.slug)
    if standing.status != "solved" and not standing.solution_seen:
        hint = f"attnlab hint {challenge.name} helps; attnlab solution {challenge.name} shows all"
        raise Refused(f"the notes of {challenge.slug} open once it is solved", hint)
    notes = Path(challenge.notes).read_text("utf-8")
    return ExplainPage(id=challenge.slug, kind="challenge", title=challenge.title, text=notes)
