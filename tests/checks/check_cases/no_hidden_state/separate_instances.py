"""Layers of one class that have something in common."""

from trial import ATTENTION, ENCODING, KERNEL, TABLE, Case, changed

INIT = "self.H = num_heads"
SCALE = "/ q.shape[-1] ** 0.5"
NORM = "self.norm = nn.LayerNorm(embed_dim)"
CLASS = "class M(nn.Module):"
REGISTER = 'self.register_buffer("pe", pe)'
BY_WIDTH = "norms = {}\n\nclass M(nn.Module):"
FIRST_ONE = "self.norm = norms.setdefault(embed_dim, nn.LayerNorm(embed_dim))"
WRONG = {
    "a scale on the class": Case(
        changed(
            ATTENTION,
            (INIT, f"{INIT}\n        M.scale = (embed_dim // num_heads) ** -0.5"),
            (SCALE, "* M.scale"),
        )
    ),
    "a scale at the top of the file": Case(
        changed(
            ATTENTION,
            (INIT, f"{INIT}\n        globals()['SCALE'] = (embed_dim // num_heads) ** -0.5"),
            (SCALE, "* SCALE"),
        )
    ),
    "one norm for all of a width": Case(
        changed(ATTENTION, (CLASS, BY_WIDTH), (NORM, FIRST_ONE)),
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a table": Case(TABLE, ENCODING, None),
    "a constant on the class": Case(
        changed(ATTENTION, (CLASS, f"{CLASS}\n    power = 0.5\n"), ("** 0.5", "** self.power"))
    ),
}
