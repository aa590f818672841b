"""What the files of a program may say: program.toml, units, bugs and decoys."""

from typing import get_args

from attnlab.catalogue import schema
from attnlab.catalogue.categories import CATEGORIES
from attnlab.catalogue.challenge_schema import FOLLOW_UP, ID, TEXTS, verbatim
from attnlab.catalogue.toml_rules import (
    Rule,
    fields_of,
    line,
    listing,
    mapping,
    matching,
    name,
    number,
    one_of,
    table,
    text,
    whole,
)
from attnlab.records import FORMAT
from attnlab.records.program import ENTRIES, FORWARD, PARTS, Effect, Goal, StageCheck

FILE = matching(r"[a-z_][a-z0-9_]*\.py", "the name of a Python file, such as model.py")
NAME_IN = matching(r"[a-z_][a-z0-9_]*\.[A-Za-z_]\w*", "MODULE.NAME, such as train.STEPS")
EDIT = table({"file": FILE, **TEXTS}, required=("file", *TEXTS))
DECOY: dict[str, Rule] = {"edits": listing(EDIT, least=1), "why": text}
BUG: dict[str, Rule] = {
    **DECOY,
    "category": one_of(*CATEGORIES),
    "level": whole(1, 5),
    "symptom": text,
    "effect": one_of(*get_args(Effect)),
    "seen_by": listing(matching(ID, "the id of a part or goal"), least=1),
    "hints": listing(text, least=3, most=3),
    "find": text,
    "source": line,
    "follow_ups": listing(FOLLOW_UP, least=2, most=3),
}
FIXES: dict[str, Rule] = {
    "fixes": listing(table({"edits": listing(EDIT, least=1)}, required=("edits",)))
}
UNIT = table(
    {"title": line, "class": NAME_IN, **schema.TABLES},
    required=("title", "class", "sizes", "inputs", "output"),
)
GOAL = fields_of(
    Goal,
    {
        "id": matching(ID, "an id such as memorises"),
        "title": line,
        "kind": one_of("loss", "accuracy", "generate"),
        "batch": line,
        "bound": number,
        "prompt": line,
        "expected": line,
        "count": whole(1),
    },
    required=("id", "title", "kind"),
)
TRAINING = table(
    {
        **dict.fromkeys((*ENTRIES, FORWARD, *PARTS.values(), "steps"), NAME_IN),
        "classes": line,
        "sample": line,
        **dict.fromkeys(("prompts", "items"), listing(line, least=1)),
        "unit": name,
        "sizes": schema.SIZES,
        "constants": listing(NAME_IN),
        **dict.fromkeys(("settings", "loose"), mapping(r"[a-z_]\w*\.\w+", "MODULE.NAME", whole(1))),
    },
    required=(*ENTRIES, "steps", "classes", "sample"),
)
SUMMARY: dict[str, Rule] = {
    "format": whole(FORMAT, FORMAT),
    "title": line,
    "level": whole(1, 5),
    "minutes": whole(5, 240),
    "source": line,
    "symptom": text,
    "task": text,
    "edit": listing(FILE, least=1, most=3),
    "given": listing(FILE),
    "round": listing(matching(ID, "the id of a bug or decoy"), least=1),
    "training": TRAINING,
    "goals": listing(GOAL, least=1),
}
QUESTIONS: dict[str, Rule] = {"questions": listing(FOLLOW_UP)}
PROGRAM = table(SUMMARY | QUESTIONS, required=tuple(SUMMARY))
STAGE_CHECK = fields_of(
    StageCheck,
    {
        "id": matching(ID, "an id such as decode"),
        "title": line,
        "setup": verbatim,
        "value": line,
        "right": line,
        "tolerance": number,
        "rows": whole(1),
        "largest": whole(1),
    },
    required=("id", "title", "value"),
)
_STAGE: dict[str, Rule] = {
    "title": line,
    "minutes": whole(5, 240),
    "order": whole(1),
    "task": text,
    "hints": listing(text, least=2, most=3),
    "follow_ups": listing(FOLLOW_UP, least=2, most=3),
    "checks": listing(STAGE_CHECK, least=1),
}
STAGE = table(_STAGE | {"setup": text}, required=tuple(_STAGE))
SLIP = table(
    {"edits": listing(EDIT, least=1), "seen_by": BUG["seen_by"], "why": text},
    required=("edits", "seen_by", "why"),
)
