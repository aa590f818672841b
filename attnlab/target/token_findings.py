"""What the text of a file does with special tokens: an id of 0 taken for none, ends that the loss
ignores, a class token that is put at one end and read at the other, a head that is given a copy of
the embedding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, called, line_of, scopes

IDS = re.compile(r"(^|[._])(pad|padding|bos|cls|mask|blank)(_token)?_(id|idx|index)$")
END = re.compile(r"(^|[._])(eos|end|eot|stop)(_?(token|id|idx|index))*$", re.IGNORECASE)
PAD = re.compile(r"(^|[._])pad(ding)?(_?(token|id|idx|index))*$", re.IGNORECASE)

# The weight of a head that is given a copy of an embedding's.
COPIED = re.compile(
    r"(?P<head>[\w.]*(head|decoder|out|proj|generator|fc|logits)\w*)\.weight(\.data)?"
    r"( = (nn\.Parameter|torch\.tensor|copy\.deepcopy)?\(?|\.copy_\()"
    r"(?P<table>[\w.]*(emb|tok|wte|shared|vocab)\w*)\.weight(?P<how>.*)$"
)


def lost_ties(tree: ast.Module) -> Iterator[Told]:
    """`head.weight = nn.Parameter(embedding.weight.clone())`: a copy is not tied."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.Expr):
            continue
        text = ast.unparse(node)
        match = COPIED.match(text)
        if match and re.search(r"clone|copy|Parameter|tensor", match[4] + match["how"]):
            head, table = match["head"], match["table"]
            yield Told(
                node.lineno,
                "tying-lost",
                f"{text[:70]} copies the weights once: {head} and {table} are two parameters, and "
                f"part with the first step. Tied they are by {head}.weight = {table}.weight",
            )


def ids_of_zero(tree: ast.Module) -> Iterator[Told]:
    """`config.pad_token_id or config.eos_token_id`: the id 0 counts as none."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
            continue
        first, other = ast.unparse(node.values[0]), node.values[-1]
        if IDS.search(first) and not (isinstance(other, ast.Constant) and not other.value):
            yield Told(
                node.lineno,
                "zero-is-none",
                f"{ast.unparse(node)}: an id of 0 counts as false, so {ast.unparse(other)} is "
                f"taken instead. Compare with None: {first} if {first} is not None else ...",
            )


def ignored_ends(tree: ast.Module) -> Iterator[Told]:
    """`PAD = EOS` beside `ignore_index=PAD`: the loss never asks for the end token."""
    same: dict[str, int] = {}  # names of padding that are the end token, with their lines
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and END.search(ast.unparse(node.value)):
            same |= {t: node.lineno for t in map(ast.unparse, node.targets) if PAD.search(t)}
        if isinstance(node, ast.Assign) and PAD.search(ast.unparse(node.value)):
            ends = [t for t in map(ast.unparse, node.targets) if END.search(t)]
            same |= {ast.unparse(node.value): node.lineno for _ in ends}
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) or node.arg != "ignore_index":
            continue
        ignored = ast.unparse(node.value)
        if ignored in same or END.search(ignored):
            line = same.get(ignored, node.value.lineno)
            yield Told(
                line,
                "ends-ignored",
                f"the loss ignores {ignored} (line {node.value.lineno}), which is the end token as "
                "well: no target ever is the end, so generation never stops. Give padding an id of "
                "its own, or label padding -100 and keep the first end",
            )


def pooled_tokens(tree: ast.Module) -> Iterator[Told]:
    """`cat([x, cls], dim=1)` and then `x[:, 0]`: what is read is another token."""
    for scope in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        text = ast.unparse(scope)
        made = set(re.findall(r"self\.(\w+) = nn\.Parameter", text))
        for function, nodes in scopes(ast.Module(body=list(scope.body), type_ignores=[])):
            if getattr(function, "name", "") != "forward" or not made:
                continue
            read = re.search(r"\[:, (0|-1)(, :)?\]", ast.unparse(function))
            for node in nodes:
                place = _token_place(node, made)
                if not place or not read or (place == "first") == (read[1] == "0"):
                    continue
                reader = next(n for n in nodes if ast.unparse(n).endswith(read[0]))
                yield Told(
                    line_of(reader),
                    "result-unread",
                    f"{ast.unparse(reader)} reads the {'first' if read[1] == '0' else 'last'} "
                    f"token, and line {line_of(node)} puts the learned token "
                    f"{'in front' if place == 'first' else 'at the end'}: what is read is an "
                    "ordinary one",
                )


def _token_place(node: ast.AST, made: set[str]) -> str:
    """Where a learned token is joined to a sequence along axis 1: "first", "last" or ""."""
    if called(node) not in ("cat", "concat", "hstack") or not isinstance(node, ast.Call):
        return ""
    parts = getattr(node.args[0], "elts", []) if node.args else []
    learned = [
        any(re.search(rf"self\.{name}\b.*(expand|repeat|tile)", ast.unparse(part)) for name in made)
        for part in parts
    ]
    if len(parts) != 2 or sum(learned) != 1:
        return ""
    return "first" if learned[0] else "last"
