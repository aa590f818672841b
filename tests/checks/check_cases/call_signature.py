"""Arguments at other places than the task's, and ones that should have a default."""

from dataclasses import replace

from trial import ATTENTION, ENCODING, SELF, TABLE, Case, changed

STATED = replace(SELF, promises=("averaging", "signature"))
TABLED = replace(ENCODING, promises=("signature",))
INIT, FORWARD = "self, embed_dim, num_heads", "self, x, mask=None"
WRONG = {
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
    "a table": Case(TABLE, TABLED, None),
}
