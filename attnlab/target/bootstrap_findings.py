"""What the text of a file says of targets that go on from a value: they do so where an episode
goes on, and not where it is done."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.return_findings import DISCOUNT, factors
from attnlab.target.source_walk import Told, base, line_of, pairs_of, scopes, words

FLAG = (
    r"(is_|batch_|b_|next_)?(dones?|d|terminals?|terminated|terminations?|ended|game_over)"
    r"(_?(batch|b|t|s|flags?|tensor|masks?))?"
)
DONE = re.compile(FLAG, re.IGNORECASE)
# Anywhere but in a condition of what runs next; names may mean the opposite from there on.
TURNED = re.compile(
    rf"^(?!\s*(while|if|elif) ).*((~|\bnot |1(\.0)? - |logical_not\()((\w|\.)*[(.])?{FLAG}\b|"
    rf"\b{FLAG}(\[\w+\])?( ?== ?0|\.eq\(|\.logical_not| == False)|"
    rf"0(\.0)? if ((\w|\.)*[(.])?{FLAG}\)? else 1)",
    re.IGNORECASE | re.MULTILINE,
)


def bootstraps_of_what_is_done(tree: ast.Module) -> Iterator[Told]:
    """`r + gamma * done * best`, which leaves out what comes next where there is a next step."""
    text = ast.unparse(tree) if any(map(DISCOUNT.search, words(tree))) else ""
    if not re.search(r"rew|done|termin", text) or TURNED.search(text):
        return
    for _, nodes in scopes(tree):
        products = [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
        whole = [n for n in products if any(DISCOUNT.search(base(f)) for f in factors(n))]
        used = {ast.unparse(f) for n in whole for f in factors(n)}
        pairs = (pair for node in nodes for pair in pairs_of(node))
        before = [value for target, value in pairs if ast.unparse(target) in used]
        for node in (*whole, *(p for p in products if p in before)):
            bases = [base(f) for f in factors(node)]
            for flag in bases:  # a terminal value is another thing
                named = DONE.fullmatch(flag.rpartition(".")[2])
                if named and (len(bases) > 2 or "done" in flag):
                    yield Told(
                        line_of(node),
                        "bootstrap-at-the-end",
                        f"`{ast.unparse(node)[:60]}` goes on with a value where {flag} is 1, and "
                        "drops it at ordinary steps. Nothing follows a step that is done: the "
                        f"factor is (1 - {flag})",
                    )


RULES = (bootstraps_of_what_is_done,)
