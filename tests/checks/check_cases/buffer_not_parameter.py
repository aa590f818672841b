"""Tables that are trained, or stay behind when the module moves."""

from trial import ENCODING, TABLE, Case, changed

REGISTER = 'self.register_buffer("pe", pe)'
COMPLEX = 'self.register_buffer("pe", torch.complex(pe[:, 1::2], pe[:, 0::2]))'
REAL = "torch.view_as_real(self.pe[:S]).flip(-1).flatten(-2)"
BY_LENGTH = "self.rows.setdefault(S, self.pe[:S])"
OTHER = "self.table[:S]"


def kept(line):
    return Case(changed(TABLE, (REGISTER, line)), ENCODING, None)


WRONG = {
    "a parameter": kept("self.pe = nn.Parameter(pe)"),
    "a frozen parameter": kept("self.pe = nn.Parameter(pe, requires_grad=False)"),
    "a buffer that learns": kept('self.register_buffer("pe", pe.requires_grad_())'),
    "an attribute": kept("self.pe = pe"),
    "a buffer beside the table": Case(
        changed(
            TABLE, (REGISTER, f"{REGISTER}\n        self.table = pe + 0"), ("self.pe[:S]", OTHER)
        ),
        ENCODING,
        None,
    ),
    "another name": kept('self.register_buffer("table", pe)\n        self.pe = pe'),
}
RIGHT = {
    "a buffer": Case(TABLE, ENCODING, None),
    "a buffer that is not saved": kept('self.register_buffer("pe", pe, persistent=False)'),
    "a buffer of complex numbers": Case(
        changed(TABLE, (REGISTER, COMPLEX), ("self.pe[:S]", REAL)), ENCODING, None
    ),
    "rows of the buffer that are kept by length": Case(
        changed(
            TABLE, (REGISTER, f"{REGISTER}\n        self.rows = {{}}"), ("self.pe[:S]", BY_LENGTH)
        ),
        ENCODING,
        None,
    ),
    "a buffer beside another": kept(f'{REGISTER}\n        self.register_buffer("other", pe * 2)'),
}
