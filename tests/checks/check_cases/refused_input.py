"""Input that must be refused, and is not, or with another exception."""

from dataclasses import replace

from trial import ENCODING, TABLE, Case, changed

from attnlab.records import Refusal

LONG = replace(ENCODING, refusals=(Refusal(sizes={"S": 21}, error="ValueError"),))
ODD = replace(ENCODING, refusals=(Refusal(sizes={"D": 7}),))
GUARD = 'raise ValueError(f"{S} is too long")'
WRONG = {
    "cut in silence": Case(changed(TABLE, (GUARD, "pass")), LONG, None),
    "refused the first time only": Case(
        changed(
            TABLE,
            ("def forward(self, x):", "warned = 0\n\n    def forward(self, x):"),
            ("if S > len(self.pe):", "if S > len(self.pe) > self.warned:"),
            (GUARD, f"self.warned = len(self.pe)\n            {GUARD}"),
        ),
        LONG,
        None,
    ),
    "cut in silence while it trains": Case(
        changed(TABLE, ("if S > len(self.pe):", "if S > len(self.pe) and not self.training:")),
        LONG,
        None,
    ),
    "not refused after a good call": Case(
        changed(
            TABLE,
            ("def forward(self, x):", "good = False\n\n    def forward(self, x):"),
            ("if S > len(self.pe):", "if S > len(self.pe) and not self.good:"),
            ("return self.pe", "self.good = S <= len(self.pe)\n        return self.pe"),
        ),
        LONG,
        None,
    ),
    "cut in silence while it learns": Case(
        changed(
            TABLE,
            ("if S > len(self.pe):", "if S > len(self.pe) and not torch.is_grad_enabled():"),
        ),
        LONG,
        None,
    ),
    "another exception": Case(changed(TABLE, ("ValueError", "IndexError")), LONG, None),
    "one too late": Case(changed(TABLE, ("S > len(self.pe)", "S > len(self.pe) + 1")), LONG, None),
    "an odd width padded": Case(
        changed(
            TABLE,
            ("def __init__(self, max_len, d_model):",
             "def __init__(self, max_len, d_model):\n        d_model += d_model % 2"),
        ),
        ODD,
        None,
    ),
}  # fmt: skip
RIGHT = {
    "refused": Case(TABLE, LONG, None),
    "a kind of ValueError": Case(
        changed(TABLE, ("ValueError(", "type('TooLong', (ValueError,), {})(")), LONG, None
    ),
    "any exception": Case(TABLE, ODD, None),
}
