"""Arguments at other places than the task's, and ones that should have a default."""

from dataclasses import replace

from trial import ATTENTION, ENCODING, SELF, TABLE, Case, changed

STATED = replace(SELF, promises=("averaging", "signature"))
TABLED = replace(ENCODING, promises=("signature",))
INIT, FORWARD = "self, embed_dim, num_heads", "self, x, mask=None"
LONGEST = replace(TABLED, init={"d_model": "D", "max_len": "M"}, defaults={"max_len": 300})


def until(default: str) -> Case:
    return Case(
        changed(TABLE, ("self, max_len, d_model", f"self, d_model, max_len{default}")),
        LONGEST,
        None,
    )


WRONG = {
    "a smaller default": until("=256"),
    "no default": until(""),
    "a mask that must be given": Case(changed(ATTENTION, (FORWARD, "self, x, mask")), STATED),
    "a mask by name alone": Case(changed(ATTENTION, (FORWARD, "self, x, *, mask=None")), STATED),
    "an input by name alone": Case(changed(ATTENTION, (FORWARD, "self, *, x, mask=None")), STATED),
    "the other way around": Case(changed(ATTENTION, (FORWARD, "self, mask=None, x=None")), STATED),
    "sizes the other way around": Case(
        changed(ATTENTION, (INIT, "self, num_heads, embed_dim")), STATED
    ),
    "sizes by name alone": Case(
        changed(ATTENTION, (INIT, "self, *, embed_dim, num_heads")), STATED
    ),
    "a table of another width": Case(
        changed(TABLE, ("self, max_len, d_model", "self, d_model, max_len")), TABLED, None
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION, STATED),
    "other names in forward": Case(
        changed(
            ATTENTION,
            (FORWARD, "self, hidden, hide=None, *others"),
            ("B, S, D = x.shape", "x, mask = hidden, hide\n        B, S, D = x.shape"),
        ),
        STATED,
    ),
    "the default that is stated": until("=300"),
    "a default that is made later": Case(
        changed(
            TABLE,
            ("self, max_len, d_model", "self, d_model, max_len=None"),
            ("super().__init__()", "super().__init__()\n        max_len = max_len or 300"),
        ),
        LONGEST,
        None,
    ),
    "a table": Case(TABLE, TABLED, None),
}
