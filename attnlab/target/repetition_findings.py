"""What the text of a file does again and again: one layer for all depths, experts in a loop, heads
that are repeated, schedules and samplers that go through their steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from attnlab.target.source_walk import Function, Told, called, line_of, scopes

SHARING = re.compile(r"shar|\btie|tied|albert|universal|recurr|same (layer|weights)", re.IGNORECASE)
KEYS = re.compile(r"^(k|v|kv|keys?|values?|t|x|states?)(_|$)|^(k|v)\w?$|hidden")
STEPS = re.compile(r"\blen\(|\w*(steps|iters|iterations|batches)\w*")
SCHEDULES = re.compile(r"(LR|Scheduler|schedule\w*|warm_?up\w*)$")
# Layers without weights of their own: one of them in many places is one many times over.
_WEIGHTLESS = """
    ReLU ReLU6 LeakyReLU ELU GELU SiLU Mish Tanh Sigmoid Softplus Softmax Hardswish Identity Flatten
    Dropout Dropout1d Dropout2d AlphaDropout MaxPool1d MaxPool2d AvgPool1d AvgPool2d Upsample
"""
WEIGHTLESS = frozenset(_WEIGHTLESS.split())
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "deque", "DynamicCache"}
ASCENDING = re.compile(r"range\((0, )?[^,]+\)|enumerate\(.*\)")
STATED = re.compile(  # that a window counts the query itself
    r"window`?\s*-\s*1\W+(\w+ )?(tokens|keys|positions)|(last|latest|most recent) \W?window\W? "
    r"(\w+ )?(tokens|keys|positions)|window\W[^.]{0,40}(itself|(the )?query) includ|"
    r"window\W[^.]{0,40}includ(es|ing) (itself|the (query|current))",
    re.IGNORECASE,
)


def repeated_layers(tree: ast.Module) -> Iterator[Told]:
    """`ModuleList([layer for _ in range(n)])`: one object, n times."""
    for scope in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | Function)):
        if SHARING.search(ast.unparse(scope)):
            continue
        for call in _calls(scope, "ModuleList", "Sequential"):
            for made in (n for given in call.args for n in ast.walk(given)):
                if _is_one_times(made):
                    yield Told(
                        made.lineno,
                        "layer-shared",
                        f"{ast.unparse(made)[:70]} holds one layer, again and again: all depths "
                        "share its weights. Build one in each round of a comprehension",
                    )
                if not isinstance(made, ast.ListComp | ast.GeneratorExp):
                    continue
                bound = {n for g in made.generators for n in _names(g.target)}
                copied = ast.unparse(made.elt).startswith("copy.copy(")
                if copied or (isinstance(made.elt, ast.Name) and made.elt.id not in bound):
                    yield Told(
                        made.lineno,
                        "layer-shared",
                        f"{ast.unparse(made)} puts one object into the list again and again"
                        f"{', as a shallow copy has the same parameters' * copied}: all depths "
                        "share their weights. Build one in each round, or use copy.deepcopy",
                    )


def repeated_containers(tree: ast.Module) -> Iterator[Told]:
    """`[{}] * n`: one dict, n times."""
    text = ast.unparse(tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            continue
        held = node.left if isinstance(node.left, ast.List) else node.right
        one = held.elts[0] if isinstance(held, ast.List) and len(held.elts) == 1 else None
        if one is not None and _is_filled_later(one, node, text):
            yield Told(
                node.lineno,
                "container-shared",
                f"{ast.unparse(node)} holds one {ast.unparse(one)} many times over: what is put "
                "into one place is found in all of them, as the keys of one layer by the next. "
                f"Make each its own: [{ast.unparse(one)} for _ in range(...)]",
            )


def _is_filled_later(one: ast.expr, repeated: ast.BinOp, text: str) -> bool:
    """Whether an element is an empty container that something will be put into: ids in lists are
    made into a tensor as they are."""
    if isinstance(one, ast.List) and not one.elts:
        name = re.search(rf"(\w+) = {re.escape(ast.unparse(repeated))}", text)
        return bool(name and re.search(rf"\b{name[1]}\[[^\n]+?\](\.append|\.extend| \+=)", text))
    empty = isinstance(one, ast.Dict) and not one.keys
    return empty or (called(one) in CONTAINERS and not getattr(one, "args", ()))


def _is_one_times(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """`[Layer(...)] * n`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    held = node.left if isinstance(node.left, ast.List) else node.right
    if not isinstance(held, ast.List):
        return False
    made = [called(e) for e in held.elts]
    return any(name[:1].isupper() and name not in WEIGHTLESS for name in made)


def overwritten_experts(tree: ast.Module) -> Iterator[Told]:
    """`out[chosen] = expert(x[chosen])` where a token has several experts."""
    for scope, nodes in scopes(tree):
        calls = [n for n in [*nodes, *_of_methods(scope, tree)] if called(n) == "topk"]
        several = [c for c in calls if isinstance(c, ast.Call) and _k(c) != "1"]
        text = ast.unparse(scope) if several else ""
        made = set(
            re.findall(
                r"(\w+) = (?:torch|\w+)\.(?:zeros_like\(|empty_like\(|zeros\(|new_zeros\()", text
            )
        )
        for loop in (n for n in nodes if isinstance(n, ast.For) and several):
            for node in ast.walk(loop):
                if not isinstance(node, ast.Assign) or not isinstance(
                    node.targets[0], ast.Subscript
                ):
                    continue
                target = node.targets[0]
                held, value = ast.unparse(target.value), ast.unparse(node.value)
                if isinstance(node.value, ast.Name):  # `update = expert(x[chosen])` above it
                    value = _resolved([node.value], _definitions(ast.walk(loop)), 1)
                asked = re.search(r"expert\w*(\[\w+\])?\(", value)
                if held in made and asked and not re.search(rf"\b{held}\b", value):
                    if re.search(rf"repeat_interleave|expand\(|\b{held}\b[^\n]*\.sum\(", text):
                        continue
                    yield Told(
                        node.lineno,
                        "experts-overwritten",
                        f"{ast.unparse(target)} is set anew by each expert, and a token has "
                        f"several ({ast.unparse(several[0])}): of those only the last counts. Add "
                        "them up, with +=",
                    )


def _of_methods(scope: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of the methods of its own class that a method calls, as `self.route(x)`."""
    own = next((c for c in tree.body if isinstance(c, ast.ClassDef) and scope in c.body), None)
    names = set(re.findall(r"self\.(\w+)\(", ast.unparse(scope))) if own else set()
    for method in own.body if own else ():
        if isinstance(method, Function) and method.name in names and method is not scope:
            yield from ast.walk(method)


def _k(call: ast.Call) -> str:
    """How many `topk` asks for, as a text."""
    named = [k.value for k in call.keywords if k.arg == "k"]
    given = call.args[1:] if ast.unparse(call.func).startswith("torch.") else call.args
    return "".join(map(ast.unparse, named or given[:1]))


def mixed_head_orders(tree: ast.Module) -> Iterator[Told]:
    """`k.repeat(1, n, 1, 1)` in a file that elsewhere repeats each head beside itself."""
    beside = [k for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg == "enable_gqa"]
    if not beside and not any(_calls(tree, "repeat_interleave")):
        return
    for call in _calls(tree, "repeat"):
        owner = ast.unparse(getattr(call.func, "value", call))
        given = [ast.unparse(a) for a in call.args]
        grouped = given[:1] + given[2:] == ["1", "1", "1"] and re.search(r"rep|group|//", given[1])
        if grouped and KEYS.search(owner):
            yield Told(
                call.lineno,
                "head-order",
                f"{ast.unparse(call)} lays heads out as 0, 1, 0, 1, and elsewhere here they are "
                "repeated one beside the other, 0, 0, 1, 1: queries then meet other heads on "
                "the two ways. Use repeat_interleave on both",
            )


def wide_windows(tree: ast.Module) -> Iterator[Told]:
    """`row - col <= window` where the text says that the window counts the query itself."""
    for scope in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | Function)):
        if not STATED.search(ast.get_docstring(scope) or ""):
            continue
        for node in ast.walk(scope):
            text = ast.unparse(node) if isinstance(node, ast.Compare | ast.Call) else ""
            if re.fullmatch(
                r"[\w\[\], :]+ - [\w\[\], :]+ (<=|>) (self\.)?window(_size)?", text
            ) or (re.fullmatch(r".*(triu|tril)\(.*-(self\.)?window(_size)?\)", text)):
                yield Told(
                    line_of(node),
                    "window-size",
                    f"{text} leaves window + 1 keys, the query itself and window others; what is "
                    "said of it counts the query as one of them",
                )


def turned_samplers(tree: ast.Module) -> Iterator[Told]:
    """Noise that is taken away from the first, least noisy step on."""
    if not any(_calls(tree, "cumprod")):
        return
    for _, nodes in scopes(tree):
        noise = {
            ast.unparse(n.targets[0])
            for n in nodes
            if isinstance(n, ast.Assign) and called(n.value) in ("randn", "randn_like")
        }
        trains = any(called(n) in ("backward", "randint") for n in nodes)
        for loop in (n for n in nodes if isinstance(n, ast.For) and not trains):
            step = ast.unparse(loop.target)
            body = ast.Module(body=loop.body, type_ignores=[])
            turned = re.search(rf"- {step}\b|- 1 - {step}|\[{step}\]\s*$", ast.unparse(body))
            if not ASCENDING.fullmatch(ast.unparse(loop.iter)) or not step.isidentifier() or turned:
                continue
            again = [
                n
                for n in ast.walk(body)
                if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) in noise
            ]
            if any(step in _names(n.value) and noise & _names(n.value) for n in again):
                yield Told(
                    loop.lineno,
                    "sampling",
                    f"for {step} in {ast.unparse(loop.iter)} takes the noise away from the least "
                    "noisy step on: sampling begins with pure noise, at the last one. Use "
                    f"reversed({ast.unparse(loop.iter)})",
                )


def schedules_of_other_units(tree: ast.Module) -> Iterator[Told]:
    """A schedule that is planned in steps and moves with each epoch, or the reverse."""
    functions = [n for n in ast.walk(tree) if isinstance(n, Function)]
    updates = [f.name for f in functions if any(_steps(f, "opt", "scaler"))]
    of_objects = {k: v for k, v in _plans(ast.walk(tree)).items() if k.startswith("self.")}
    for _, nodes in scopes(tree):
        plans = of_objects | _plans(nodes)
        if not plans:
            continue
        known = _definitions(ast.walk(tree)) | _definitions(nodes)
        for outer in (n for n in nodes if isinstance(n, ast.For)):
            inner = [n for n in ast.walk(outer) if isinstance(n, ast.For) and n is not outer]
            batches = [
                n for n in inner if any(_steps(n, "opt", "scaler")) or any(_calls(n, *updates))
            ]
            for name, plan in plans.items():
                moves = list(_steps(outer, name))
                within = {id(c) for n in batches for c in _steps(n, name)}
                often = [c for c in moves if id(c) in within]
                if not batches or not moves or (often and len(often) < len(moves)):
                    continue
                text = _resolved(plan.args[1:] + [k.value for k in plan.keywords], known)
                in_steps = bool(STEPS.search(text))
                asked = re.fullmatch(r"range\(([A-Za-z_][\w.]*)\)", ast.unparse(outer.iter))
                given = {
                    ast.unparse(v) for v in (*plan.args[1:], *(k.value for k in plan.keywords))
                }
                in_epochs = not in_steps and asked is not None and asked[1] in given
                if in_steps and not often:
                    yield Told(
                        moves[0].lineno,
                        "schedule-slow",
                        f"{name} is planned in steps ({ast.unparse(plan)}, line {plan.lineno}) and "
                        "moves once in an epoch here: it never gets beyond its beginning. Move it "
                        "behind optimizer.step()",
                    )
                elif in_epochs and often:
                    yield Told(
                        moves[0].lineno,
                        "schedule-short",
                        f"{name} is planned in epochs ({ast.unparse(plan)}, line {plan.lineno}), "
                        "and moves with every batch here: it is over within the first ones. Step "
                        "it once per epoch, or plan it in batches",
                    )


def _plans(nodes: Iterable[ast.AST]) -> dict[str, ast.Call]:
    """The schedules that are made, by the names that they get."""
    return {
        ast.unparse(n.targets[0]): n.value
        for n in nodes
        if isinstance(n, ast.Assign)
        and isinstance(n.value, ast.Call)
        and SCHEDULES.search(ast.unparse(n.value.func))
    }


def _steps(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    """Calls of `step` of what is called so, or by one of these beginnings."""
    for call in _calls(node, "step"):
        owner = ast.unparse(getattr(call.func, "value", call))
        if any(owner == name or owner.rpartition(".")[2].startswith(name) for name in names):
            yield call


def _definitions(nodes: Iterable[ast.AST]) -> dict[str, ast.AST]:
    """What each name is assigned once, and each function."""
    found: dict[str, ast.AST] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            found |= {ast.unparse(t): node.value for t in node.targets}
        elif isinstance(node, Function):
            found[node.name] = node
    return found


def _resolved(nodes: Iterable[ast.AST], known: dict[str, ast.AST], deep: int = 3) -> str:
    """A text with the definition of each name in it for the name; those of numbers stay."""
    texts = []
    for node in nodes:
        texts.append("" if isinstance(node, ast.Name) and node.id in known else ast.unparse(node))
        looked_up = {  # of a dict only the key counts, which its text has
            ast.unparse(n.value) for n in ast.walk(node) if isinstance(n, ast.Subscript)
        }
        names = [n for n in _names(node) - looked_up if n in known and deep]
        for name in names:
            plain = isinstance(known[name], ast.Constant)
            texts.append(name if plain else _resolved([known[name]], known, deep - 1))
    return " ".join(texts)


def _calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    yield from (n for n in ast.walk(node) if isinstance(n, ast.Call) and called(n) in names)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


RULES = (
    mixed_head_orders,
    overwritten_experts,
    repeated_containers,
    repeated_layers,
    schedules_of_other_units,
    turned_samplers,
    wide_windows,
)
