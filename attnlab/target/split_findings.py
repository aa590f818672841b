"""What the text of a file does with its parts of data: classes that are numbered in each part by
itself, copies on both sides of a split, file names in the order of letters, and steps in a phase of
validation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Function, Told, called, line_of, scopes

NUMBERING = re.compile(r"\benumerate\((sorted\(|list\(set\(|set\(|(?P<name>\w+))")
DISTINCT = re.compile(r"sorted\((list\()?(set\(|\{|\w+\.unique\()|set\(|\.unique\(\)|Counter\(")
CODES = re.compile(r"\.cat\.codes|factorize\(|unique\([^\n]*return_inverse=True")
TRAIN = re.compile(
    r"(?<![a-z])(train|tr|fit)(ing)?(_?(set|ds|dl|data|loader)\w*)?(?![a-z])", re.IGNORECASE
)
HELD = re.compile(
    r"(?<![a-z])(va|te|val|valid|validate|validation|evaluate|test|held|holdout|dev|eval)(_?(set|ds|dl|data|loader)\w*)?"
    r"(?![a-z])",
    re.IGNORECASE,
)
GIVEN = re.compile(r"vocab|classes|class_to|label_map|mapping|stoi|to_idx|encoder|lookup")
COPIES = re.compile(
    r"replace=True|repeat_interleave\(|np\.repeat\(|np\.tile\(|RandomOverSampler|SMOTE|"
    r"\bcat\(\[(\w+), (augment|flip|jitter|noisy?)\w*\(|torch\.cat\(\[(\w+)(, \3)+"
)
SPLITS = {"random_split", "train_test_split"}
LISTED = re.compile(r"listdir|glob|iterdir|scandir|folder|files|names|paths|keys\(\)")
NUMBERED = re.compile(r"\.(png|jpe?g|npy|npz|pt|pth|wav|txt|csv|json|tiff?|bmp|mp3|flac)$")


def numbered_apart(tree: ast.Module) -> Iterator[Told]:
    """Classes or words that each part of the data numbers by itself."""
    places: dict[str, int] = {}
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else []
        init = next((n for n in inside if getattr(n, "name", "") == "__init__"), node)
        line = _numbers_its_own(init) if isinstance(init, Function) else 0
        if line and isinstance(node, ast.ClassDef | Function):
            places[node.name] = line
    for name, line in places.items():
        if _serves_both_parts(name, tree):
            yield Told(
                line,
                "numbered-apart",
                f"{name} numbers what it finds in the data that it is given, and it is used for "
                "several parts: where one lacks a class or a word, all later ones have another "
                "number there. Number them once, over all data or a fixed list, and hand that on",
            )
    yield from _fitted_anew(tree)


def _fitted_anew(tree: ast.Module) -> Iterator[Told]:
    """`encoder.fit_transform(test)` after the same of what is trained on."""
    fits: dict[str, list[ast.Call]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) == "fit_transform" and node.args:
            fits.setdefault(ast.unparse(node.func), []).append(node)
    for function, calls in fits.items():
        first, *more = sorted(calls, key=line_of)
        for call in more:
            if HELD.search(text := ast.unparse(call.args[0])) and not TRAIN.search(text):
                owner = function.rpartition(".")[0]
                yield Told(
                    call.lineno,
                    "numbered-apart",
                    f"{ast.unparse(call)} fits {owner} anew, on what is held out: its numbers mean "
                    f"something else than those of line {first.lineno}. Use {owner}.transform",
                )


def _numbers_its_own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line at which a function numbers the distinct values of its argument; 0 for none."""
    own = {a.arg for a in function.args.args} - {"self"}
    distinct: dict[str, int] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign | ast.Return) or node.value is None:
            continue
        text, given = ast.unparse(node.value), own & _names(node.value)
        if given and CODES.search(text):
            return node.lineno
        if isinstance(node.value, ast.DictComp):
            found = NUMBERING.search(text)
            if found and found["name"] in distinct:
                return distinct[found["name"]]
            if found and given and DISTINCT.search(text):
                return node.lineno
        elif isinstance(node, ast.Assign) and given and DISTINCT.search(text):
            distinct[ast.unparse(node.targets[0])] = node.lineno
    return 0


def _serves_both_parts(name: str, tree: ast.Module) -> bool:
    """Whether something is called for what is trained on and for what is held out, and is given
    no numbering."""
    made = (n for n in ast.walk(tree) if isinstance(n, ast.Assign))
    made = (n for n in made if any(called(c) == name for c in ast.walk(n.value)))
    words = [f"{ast.unparse(n.targets[0])} = {ast.unparse(n.value)}" for n in made]
    shared = any(GIVEN.search(w.partition("(")[2]) for w in words)
    train = any(TRAIN.search(w) and not HELD.search(w.partition(" ")[0]) for w in words)
    held = any(HELD.search(w.partition(" ")[0]) for w in words)
    return len(words) > 1 and train and held and not shared


def copied_before_split(tree: ast.Module) -> Iterator[Told]:
    """Rows that are repeated, to balance or to augment, and then split at random."""
    copying = {
        n.name for n in tree.body if isinstance(n, Function) and COPIES.search(ast.unparse(n))
    }
    for _, nodes in scopes(tree):
        made: dict[str, tuple[int, str]] = {}
        for node in nodes:
            if not isinstance(node, ast.Assign):
                continue
            text, names = ast.unparse(node.value), _names(node.targets[0])
            used = made.keys() & _names(node.value)
            splits = called(node.value) in SPLITS or any(HELD.search(n) for n in names)
            if used and splits:
                line, how = made[min(used)]
                yield Told(
                    line,
                    "rows-shared",
                    f"{how} repeats rows before line {node.lineno} splits them at random: copies "
                    "of one row end up on both sides, and what is validated on was trained on. "
                    "Split first, then repeat the rows of training alone",
                )
                return
            if called(node.value) in copying or (COPIES.search(text) and not HELD.search(text)):
                trained = all(TRAIN.search(n) for n in names)
                made |= {} if trained else dict.fromkeys(names, (node.lineno, text[:60]))
            elif used and not splits:
                made |= dict.fromkeys(names, made[min(used)])


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def letters_order(tree: ast.Module) -> Iterator[Told]:
    """`sorted(folder)` of names such as frame_10.png, whose numbers have no leading zeros."""
    names = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) and _is_numbered(n)]
    if not names:
        return
    for node in ast.walk(tree):
        if called(node) == "sorted" and isinstance(node, ast.Call) and not node.keywords:
            given = ast.unparse(node.args[0]) if node.args else ""
            if LISTED.search(given):
                shown = ast.unparse(names[0])
                yield Told(
                    node.lineno,
                    "orders-differ",
                    f"{ast.unparse(node)} puts names in the order of letters, and {shown} (line "
                    f"{names[0].lineno}) has no leading zeros: 10 comes before 2, and what is "
                    "paired by its place belongs to another. Sort by the number, with key=, or "
                    "write it as {...:05d}",
                )


def _is_numbered(name: ast.JoinedStr) -> bool:
    """Whether a file name ends in a plain number before its extension."""
    parts = name.values
    last = parts[-1] if parts else None
    ends = isinstance(last, ast.Constant) and NUMBERED.search(str(last.value))
    before = parts[-2] if len(parts) > 1 else None
    plain = isinstance(before, ast.FormattedValue) and before.format_spec is None
    return bool(ends) and plain and isinstance(getattr(before, "value", None), ast.Name)


def steps_in_all_phases(tree: ast.Module) -> Iterator[Told]:
    """`for phase in ["train", "val"]` with steps in both."""
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        texts = [e.value for e in getattr(loop.iter, "elts", ()) if isinstance(e, ast.Constant)]
        words = [w for w in texts if isinstance(w, str)]
        if not any(HELD.search(w) for w in words) or not any(TRAIN.search(w) for w in words):
            continue
        phase = ast.unparse(loop.target)
        for node in _unguarded(loop.body, phase):
            if called(node) == "step" and re.search(r"opt", ast.unparse(node)):
                yield Told(
                    line_of(node),
                    "evaluation-learns",
                    f"{ast.unparse(node)} runs for every {phase} of {ast.unparse(loop.iter)}: in "
                    "validation the model learns what it is measured on. Do backward() and step() "
                    f'only if {phase} == "{words[0]}"',
                )
                return


def _unguarded(body: list[ast.stmt], phase: str) -> Iterator[ast.AST]:
    """The nodes below no `if` that asks for the phase, and below no `continue` of one."""
    for statement in body:
        if isinstance(statement, ast.If) and phase in _names(statement.test):
            if any(isinstance(n, ast.Continue) for n in ast.walk(statement)):
                return
            continue
        held = [*getattr(statement, "body", ()), *getattr(statement, "orelse", ())]
        if held:
            yield from _unguarded(held, phase)
        else:
            yield from ast.walk(statement)


LOSSES = re.compile(r"criterion|loss|cross_entropy|mse")


def unsigned_differences(tree: ast.Module) -> Iterator[Told]:
    """`(last - first).astype(float32)` of pictures in uint8: below 0 they begin again at 255."""
    if "uint8" not in ast.unparse(tree):
        return
    for node in ast.walk(tree):
        if called(node) not in ("astype", "float", "to") or not isinstance(node, ast.Call):
            continue
        owner = getattr(node.func, "value", None)
        made = isinstance(owner, ast.BinOp) and isinstance(owner.op, ast.Sub)
        floats = called(node) == "float" or "float" in ast.unparse(node)
        text = ast.unparse(owner) if isinstance(owner, ast.BinOp) else ""
        whole = isinstance(owner, ast.BinOp) and all(
            isinstance(side, ast.Name | ast.Subscript) for side in (owner.left, owner.right)
        )
        if made and floats and whole and not re.search(r"float|int16|int32", text):
            yield Told(
                node.lineno,
                "unsigned-difference",
                f"{ast.unparse(node)} subtracts first: of uint8, 3 - 5 is 254. Make both floats, "
                "and then subtract",
            )


def graphs_of_validation(tree: ast.Module) -> Iterator[Told]:
    """`total += criterion(...)` in a function that evaluates and keeps its gradients."""
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function) or not HELD.search(scope.name.replace("_", " ")):
            continue
        text = ast.unparse(scope)
        quiet = re.search(r"no_grad|inference_mode|set_grad_enabled|backward\(", text)
        for node in nodes if not quiet and ".eval()" in text else ():
            added = ast.unparse(node.value) if isinstance(node, ast.AugAssign) else ""
            kept = re.search(r"item\(|detach|float\(|numpy|len\(", added)
            if LOSSES.search(added) and not kept and isinstance(node, ast.AugAssign):
                yield Told(
                    node.lineno,
                    "graph-kept",
                    f"{ast.unparse(node)[:70]} in {scope.name}, which has no torch.no_grad(): each "
                    "batch's graph stays alive until the sum goes. Add @torch.no_grad(), and "
                    ".item()",
                )
                break


def labels_left_behind(tree: ast.Module) -> Iterator[Told]:
    """`tokens[order]` in the order of lengths, and labels in the order that they came in."""
    for scope, nodes in scopes(tree):
        for order in _orders(nodes) if isinstance(scope, Function) else ():
            text = ast.unparse(scope)
            for node in nodes:
                values = getattr(getattr(node, "value", None), "elts", ())
                if not isinstance(node, ast.Return):
                    continue
                words = [ast.unparse(v) for v in values]
                sorted_ = [w for w in words if w.endswith(f"[{order}]")]
                left = [w for w in words if LABELLED.search(w) and order not in w]
                for word in left if sorted_ else ():
                    name = re.findall(r"\w+", word)[-1]
                    if not re.search(rf"\b{name}\b[^\n]*\[{order}\]|{name}\.index_select", text):
                        yield Told(
                            line_of(node),
                            "orders-differ",
                            f"{sorted_[0]} stands in the order of lengths, and {word} as it came: "
                            f"each row has the label of another. Use {word}[{order}]",
                        )


LABELLED = re.compile(r"label|target|\bys?\b|answer|intent|class", re.IGNORECASE)


def _orders(nodes: list[ast.AST]) -> Iterator[str]:
    """The names of orders of lengths: `lengths, order = lengths.sort()`, `argsort(lengths)`."""
    for node in nodes:
        if not isinstance(node, ast.Assign) or called(node.value) not in ("sort", "argsort"):
            continue
        target = node.targets[0]
        both = isinstance(target, ast.Tuple) and len(target.elts) == 2
        if "len" in ast.unparse(node.value):
            yield ast.unparse(target.elts[1] if both and isinstance(target, ast.Tuple) else target)


RULES = (
    copied_before_split,
    letters_order,
    numbered_apart,
    steps_in_all_phases,
    unsigned_differences,
    graphs_of_validation,
    labels_left_behind,
)
