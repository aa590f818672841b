"""Outputs of another shape or kind, and calls that raise."""

from dataclasses import replace

from scenes import LOOKUP, TOKENS, case
from trial import ATTENTION, ENCODING, KERNEL, LAST, TABLE, Case, changed

FLOAT32 = replace(ENCODING, promises=("float32-output",))
WRONG = {
    "two axes flattened": Case(changed(ATTENTION, (LAST, f"return ({LAST[7:]}).flatten(1)"))),
    "one axis more": Case(changed(ATTENTION, (LAST, f"return ({LAST[7:]})[:, None]"))),
    "the weights as well": Case(changed(ATTENTION, (LAST, f"{LAST}, weights"))),
    "whole numbers": Case(changed(ATTENTION, (LAST, f"return ({LAST[7:]}).long()"))),
    "no module at all": Case("class M:\n    def __init__(self, **kwargs): pass\n"),
    "a mask that is not optional": Case(
        changed(ATTENTION, ("if mask is not None:", "if True:")),
    ),
    "a table added where it is returned": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "x + self.pe[:S]")), ENCODING, None
    ),
    "a table in the dtype of x, which is to be in float32": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "self.pe[:S].unsqueeze(0).to(x.dtype)")),
        FLOAT32,
        None,
    ),
    "a table in float16 for float16": Case(
        changed(
            TABLE,
            (
                "self.pe[:S].unsqueeze(0)",
                "self.pe[None, :S].to(x.dtype if x.dtype == torch.float16 else self.pe.dtype)",
            ),
        ),
        FLOAT32,
        None,
    ),
    "a table of nothing for a bool": Case(
        changed(
            TABLE,
            (
                "self.pe[:S].unsqueeze(0)",
                "self.pe[None, :S].to(x.dtype if x.dtype == torch.bool else self.pe.dtype)",
            ),
        ),
        FLOAT32,
        None,
    ),
    "no table for whole numbers": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "self.pe[None, :S] + 0 * x.mean()")),
        FLOAT32,
        None,
    ),
    "ids in, float64 out": case(
        TOKENS,
        LOOKUP,
        ("embedding_dim ** 0.5", "embedding_dim ** 0.5).double()"),
        ("return self", "return (self"),
    ),
    "in float64": Case(changed(ATTENTION, (LAST, f"return ({LAST[7:]}).double()"))),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a table in float32": Case(TABLE, FLOAT32, None),
    "a table in float32 whatever it is asked for in": Case(
        changed(TABLE, ("self.pe[:S].unsqueeze(0)", "self.pe[:S].unsqueeze(0).float()")),
        FLOAT32,
        None,
    ),
    "without a reference": Case(ATTENTION, reference=None),
}
