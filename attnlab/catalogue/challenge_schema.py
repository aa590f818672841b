"""What the files of challenges may say: challenge.toml, and base.toml with its bugs and decoys."""

from typing import Any, get_args

from attnlab.catalogue import schema
from attnlab.catalogue.categories import CATEGORIES
from attnlab.catalogue.contract_facts import PROMISES
from attnlab.catalogue.folders import SLUG
from attnlab.catalogue.toml_rules import (
    Document,
    InvalidValue,
    Rule,
    describe,
    expected,
    fields_of,
    line,
    listing,
    matching,
    name,
    one_of,
    table,
    text,
    whole,
)
from attnlab.records import FORMAT, Bug, ChallengeKind, Contract
from attnlab.records.patch import FollowUp

ID = SLUG
FILES = {"debug": "buggy.py", "implement": "starter.py"}
TASK_LINES = 20


def _task(value: Any) -> str:
    said = text(value)
    if (count := said.count("\n") + 1) > TASK_LINES:
        raise expected(value, f"at most {TASK_LINES} lines, it has {count}")
    return said


def verbatim(value: Any) -> str:
    """A text as it is, empty or not."""
    if not isinstance(value, str):
        raise expected(value, "source text")
    return value


TEXTS: dict[str, Rule] = {"old": verbatim, "new": verbatim}
EDIT_TEXTS = table(TEXTS, required=tuple(TEXTS))
FOLLOW_UP = fields_of(FollowUp, {"question": text, "answer": text}, required=("question", "answer"))


def _reference(value: Any) -> str:
    if value == "solution.py":
        return "solution.py"
    try:
        return name(value)
    except InvalidValue:
        what = 'the name of a unit of attnlab/references/, or "solution.py"'
        raise expected(value, what) from None


KEYS: dict[str, Rule] = {
    "format": whole(FORMAT, FORMAT),
    "title": line,
    "kind": one_of(*FILES),
    "level": whole(1, 5),
    "class": name,
    "reference": _reference,
    "source": line,
    "symptom": text,
    "task": _task,
    "expected": listing(matching(SLUG, "the id of a check"), least=1),
    "hints": listing(text, least=3, most=3),
}
BUG = fields_of(
    Bug,
    {
        "id": matching(SLUG, "a name such as mask-inverted"),
        "checks": listing(matching(SLUG, "the id of a check"), least=1),
        "weight": whole(1, 100),
    },
    required=("id", "checks"),
)


def _bugs(value: Any) -> tuple[Bug, ...]:
    found: tuple[Bug, ...] = listing(BUG, least=2)(value)
    for index, bug in enumerate(found):
        if bug.id in (other.id for other in found[:index]):
            raise InvalidValue(
                f' = "{bug.id}": two bugs have this id', (index, "id"), "Rename one."
            )
    return found


TABLES = {**KEYS, "bugs": _bugs, "category": one_of(*CATEGORIES), **schema.TABLES}
CHALLENGE = table(TABLES, required=(*KEYS, "sizes", "inputs", "output"))
BASE_KEYS = ("format", "title", "class", "reference", "task")
BASE_TABLES: dict[str, Rule] = {
    **{key: KEYS[key] for key in BASE_KEYS},
    "given": listing(name, least=1),
    **schema.TABLES,
}
BASE = table(BASE_TABLES, required=(*BASE_KEYS, "sizes", "inputs", "output"))
_SHARED: dict[str, Rule] = {
    **{key: KEYS[key] for key in ("title", "level", "source", "symptom", "expected", "hints")},
    "category": one_of(*CATEGORIES),
    "follow_ups": listing(FOLLOW_UP, least=2, most=3),
    "edits": listing(EDIT_TEXTS, least=1),
}
_BUG: dict[str, Rule] = {**_SHARED, "why": text, "find": text}
_TASK: dict[str, Rule] = {
    **_SHARED,
    "kind": one_of(*(kind for kind in get_args(ChallengeKind) if kind != "debug")),
    "how": text,
    "test": text,
}
_MORE: dict[str, Rule] = {
    "task": _task,
    "then": matching(SLUG, "the name of a challenge"),
    "decoys": listing(matching(SLUG, "the name of a file in decoys/, without .toml")),
    "promises": listing(one_of(*PROMISES)),
}
BASE_BUG = table(_BUG | _MORE, required=tuple(_BUG))
BASE_TASK = table(_TASK | _MORE, required=tuple(_TASK))
_DECOY: dict[str, Rule] = {"edits": listing(EDIT_TEXTS, least=1), "why": text}
BASE_DECOY = table(_DECOY, required=tuple(_DECOY))


def check_format(document: Document) -> None:
    """Check this first: in another format, the other keys may mean other things."""
    says = f"this attnlab reads format {FORMAT}"
    found = document.data.get("format")
    if found is None:
        raise document.error(("format",), f": missing; {says}", f"Add format = {FORMAT}.")
    if found != FORMAT or isinstance(found, bool):
        newer = isinstance(found, int) and found > FORMAT
        hint = "Update attnlab." if newer else f"Write format = {FORMAT}."
        raise document.error(("format",), f" = {describe(found)}: {says}", hint)


def read_contract(document: Document, found: dict[str, Any]) -> Contract:
    """The contract of the tables of a description; raises `Unreadable`."""
    contract = schema.build_contract(found)
    schema.check_consistency(document, contract)
    for argument in (*contract.arguments, *(held.name for held in contract.containers)):
        hint = "Give it a default in forward, or leave it out: the grader feeds tensors."
        raise document.error(("inputs", argument), ": a challenge is fed with tensors alone", hint)
    return contract
