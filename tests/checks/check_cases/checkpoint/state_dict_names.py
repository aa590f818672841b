"""Checkpoints that hold too much, too little or something else."""

from dataclasses import replace

from scenes import LOOKUP, TOKENS, case
from trial import ATTENTION, ENCODING, TABLE, Case, changed

HOOK = """
def turned(module, saved, *rest):
    saved["out_proj.weight"] = saved["out_proj.weight"].flip(0)


class M(nn.Module):"""
EMPTY = replace(ENCODING, state_dict=("pe",))
WRONG = {
    "another name": case(TOKENS, replace(LOOKUP, state_dict=("tokens.weight", "head.weight"))),
    "more than stated": case(TOKENS, replace(LOOKUP, state_dict=("embedding.weight",))),
    "a hook that turns what is loaded": Case(
        changed(
            ATTENTION,
            (
                "self.H = num_heads",
                "self.H = num_heads\n        self.register_load_state_dict_pre_hook(turned)",
            ),
            ("\nclass M(nn.Module):", HOOK),
        )
    ),
    "not saved": Case(changed(TABLE, ('"pe", pe)', '"pe", pe, persistent=False)')), EMPTY, None),
}
RIGHT = {
    "tokens": case(TOKENS, LOOKUP),
    "a table": Case(TABLE, EMPTY, None),
    "nothing is said of names": Case(ATTENTION),
}
