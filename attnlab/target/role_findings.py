"""What the text of a file says of masks and norms that are given to what another is made for: the
mask of the questions to keys of the captions, the norm of queries to keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from attnlab.target.source_walk import Function, Told, arguments, called, line_of, names_in, scopes

MASK = re.compile(r"(^|_)(mask|masks|padding|pad|lengths|lens|valid)(_|$)")
HOW = r"key_padding|padding|pad|attention|attn|attend|mask|masks|lengths|lens|valid|key"
KEYS = re.compile(
    r"^(context|ctx|mem(ory)?|kv|keys?|values?|source|src|cond|encoder_hidden_states|k|v|y)$"
)
PROJECTION = re.compile(r"(^|_|w|to)(?P<role>q|k|v|query|key|value)s?(_?(proj|linear|layer))?$")
HOLDS = re.compile(r"^x?(?P<role>q|k|v|query|queries|keys?|values?)(_(states?|layer))?$")
NORM = r"(?:layer_?norm|rms_?norm|l2_?norm|norm|ln|rms)"
ROLES = r"(q|k|v|query|queries|keys?|values?)"
NORMS = re.compile(rf"^(?:{ROLES}_?{NORM}|{NORM}_{ROLES})$")
NAMES = {"q": "queries", "k": "keys", "v": "values"}


def masks_of_others(tree: ast.Module) -> Iterator[Told]:
    """`cross(x, context=caption, mask=question_mask)` where `caption_mask` is never read."""
    for function, nodes in scopes(tree):
        if not isinstance(function, Function):
            continue
        given = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
        given = [name for name in given if name != "self"]
        owners = {m: o for m in given if MASK.search(m) and (o := _owner(m, given))}
        read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        made = {name: {name} for name in given}
        for node in nodes if len(owners) > 1 else ():
            if isinstance(node, ast.stmt) and not hasattr(node, "body"):
                calls = (n for n in ast.walk(node) if isinstance(n, ast.Call) and _attends(n))
                yield from (told for c in calls for told in _misled(c, owners, read, made))
                _follow(node, made)


def _attends(call: ast.Call) -> bool:
    """Whether a call may attend: one named for a mask makes it, of whatever."""
    return "mask" not in called(call) and called(call) not in ("where", "zip", "cat")


def _owner(mask: str, given: Sequence[str]) -> str:
    """The one argument that a mask belongs to, by its name: `caption_ids` for `caption_mask`."""
    inputs = [name for name in given if not MASK.search(name)]
    stem = _stem(mask)
    found = [n for n in inputs if re.match(rf"{stem}(s|_|$|\d|oder)", n)] if stem else inputs[:1]
    return found[0] if len(found) == 1 else ""


def _stem(mask: str) -> str:
    """What a mask is named after, `caption` of `caption_padding_mask`."""
    return "_".join(filter(None, re.sub(rf"(^|_)({HOW})(?=_|$)", "_", mask).split("_")))


def _follow(node: ast.AST, made: dict[str, set[str]]) -> None:
    """Note what arguments the names that a statement sets are made of."""
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) or value is None:
        return
    sources = _sources(value, made)
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        for name in names_in(target):
            old = made.get(name, set()) if isinstance(node, ast.AugAssign) else set()
            made[name] = sources | old


def _sources(node: ast.AST, made: Mapping[str, set[str]]) -> set[str]:
    """The arguments that a value is made of; of sizes and devices nothing is."""
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "device", "dtype"):
        return set()
    if isinstance(node, ast.Name):
        return made.get(node.id, set())
    return {name for child in ast.iter_child_nodes(node) for name in _sources(child, made)}


def _misled(
    call: ast.Call, owners: dict[str, str], read: set[str], made: Mapping[str, set[str]]
) -> Iterator[Told]:
    """What a call shows that has keys of one input, and the mask of another."""
    given = [("", value) for value in call.args] + [(k.arg or "", k.value) for k in call.keywords]
    of = [(name, value, _sources(value, made)) for name, value in given]
    used = [found for found in of if found[2] and found[2] <= {*owners}]
    plain = [found for found in of if found not in used and not found[0]]
    keys = [found for found in of if found not in used and KEYS.search(found[0])]
    of_keys = [sources & {*owners.values()} for _, _, sources in (keys or plain[1:] or plain)]
    if len(used) != 1 or len(used[0][2]) != 1:
        return
    name, value, (other,) = used[0]
    if (stem := _stem(name)) and not KEYS.search(stem):
        return  # `tgt_mask=`: given as what it is
    for mask, owner in owners.items():
        sure = mask not in read or name == "key_padding_mask"
        if not sure or {owner} not in of_keys or {owners[other]} in of_keys:
            continue
        unread = "" if mask in read else ", and is never read"
        yield Told(
            line_of(value),
            "mask-of-other",
            f"{ast.unparse(call.func)} gets keys that are made of {owner}, and {other}, which is "
            f"that of {owners[other]}: places of one hide those of the other. Give it {mask}, "
            f"which belongs to {owner}{unread}",
        )


def norms_of_others(tree: ast.Module) -> Iterator[Told]:
    """`k, v = q_norm(k), k_norm(v)`: keys get the norm of queries, and queries none."""
    calls = [
        (n, (m[1] or m[2])[0])
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and (m := NORMS.match(called(n)))
    ]
    for call, role in calls if {"q", "k"} <= {role for _, role in calls} else ():
        holds = _role(call.args[0]) if call.args else ""
        if holds not in ("", role):
            yield Told(
                line_of(call),
                "norm-of-other",
                f"{ast.unparse(call)[:70]} is the norm of {NAMES[role]} by its name, and takes "
                f"{NAMES[holds]}: scores stay bounded where queries and keys are normalised, each "
                "by its own",
            )


def _role(node: ast.AST) -> str:
    """Whether a value holds queries, keys or values, by its name or by the layer that made it."""
    while not isinstance(node, ast.Name | ast.Attribute):
        if isinstance(node, ast.Call) and (made := PROJECTION.search(called(node))):
            return made["role"][0]
        given = [g for g in arguments(node) if ast.unparse(g) != "self"]
        inner = node.value if isinstance(node, ast.Subscript) else next(iter(given), None)
        if inner is None:
            return ""
        node = inner
    held = HOLDS.match(getattr(node, "attr", getattr(node, "id", "")))
    return held["role"][0] if held else ""


RULES = (masks_of_others, norms_of_others)
