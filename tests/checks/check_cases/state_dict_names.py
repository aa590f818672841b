"""Checkpoints that hold too much, too little or something else."""

from dataclasses import replace

from scenes import LOOKUP, TOKENS, case
from trial import ENCODING, TABLE, Case, changed

EMPTY = replace(ENCODING, state_dict=("pe",))
WRONG = {
    "another name": case(TOKENS, replace(LOOKUP, state_dict=("tokens.weight", "head.weight"))),
    "more than stated": case(TOKENS, replace(LOOKUP, state_dict=("embedding.weight",))),
    "not saved": Case(changed(TABLE, ('"pe", pe)', '"pe", pe, persistent=False)')), EMPTY, None),
}
RIGHT = {
    "tokens": case(TOKENS, LOOKUP),
    "a table": Case(TABLE, EMPTY, None),
}
