"""What the text of a file does with data before it is trained on: windows that overlap and are
split at random, pairs that are shuffled one by one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Told, called, scopes

SPLITS = {"random_split", "train_test_split"}
SHUFFLED = {"randperm", "permutation", "shuffle"}


def overlapping_windows(tree: ast.Module) -> Iterator[Told]:
    """Windows of a series, one for each place, that are split at random."""
    kinds = {n.name for n in tree.body if isinstance(n, ast.ClassDef) and _slides(n)}
    for _, nodes in scopes(tree):
        windows: dict[str, int] = {}
        shuffled: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Assign):
                name, value = ast.unparse(node.targets[0]), ast.unparse(node.value)
                if called(node.value) in kinds or re.search(r"\.unfold\(0, [^,]+, 1\)", value):
                    windows[name] = node.lineno
                elif called(node.value) in SHUFFLED:
                    shuffled.add(name)
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            given = [ast.unparse(a) for a in node.args]
            if not given or given[0] not in windows:
                continue
            picked = called(node) == "Subset" and {w.partition("[")[0] for w in given[1:]}
            if called(node) in SPLITS or (picked and picked & shuffled):
                yield Told(
                    node.lineno,
                    "rows-shared",
                    f"{given[0]} holds a window for each place of a series, and neighbours share "
                    "all but one value: split at random, what is validated on was trained on. "
                    "Split the series by time, with a gap of a window",
                )
                return


def _slides(kind: ast.ClassDef) -> bool:
    """Whether a data set gives slices that begin at the index itself."""
    for method in (n for n in kind.body if isinstance(n, ast.FunctionDef)):
        if method.name != "__getitem__" or len(method.args.args) < 2:
            continue
        index = method.args.args[1].arg
        begins = (
            ast.unparse(n.slice.lower)
            for n in ast.walk(method)
            if isinstance(n, ast.Subscript)
            and isinstance(n.slice, ast.Slice)
            and n.slice.lower
            and n.slice.upper
        )
        return index in begins
    return False


def _meet(loop: ast.For) -> bool:
    """Whether what two loaders give meets in one call, one of the two by the name of labels."""
    targets = getattr(loop.target, "elts", [])
    names = [t.elts[0] if isinstance(t, ast.Tuple) and len(t.elts) == 1 else t for t in targets]
    words = [n.id for n in names if isinstance(n, ast.Name)]
    if len(words) != len(targets):
        return False
    if len(words) == 2 and _is_judged(loop, *words):
        return True
    if not any(LABELS.search(word) for word in words):
        return False
    calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call))
    return any(
        set(words) <= {n.id for a in call.args for n in ast.walk(a) if isinstance(n, ast.Name)}
        for call in calls
    )


def _is_judged(loop: ast.For, given: str, wanted: str) -> bool:
    """Whether a model takes the one alone, and a loss what it made of that beside the other."""
    made = {
        ast.unparse(n.targets[0])
        for n in ast.walk(loop)
        if isinstance(n, ast.Assign)
        and isinstance(n.value, ast.Call)
        and [ast.unparse(a) for a in n.value.args] == [given]
    }
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)]
    pairs = ([ast.unparse(a) for a in call.args] for call in calls)
    alone = any([ast.unparse(a) for a in call.args] == [wanted] for call in calls)
    return not alone and any(p[1:] == [wanted] and p[0] in made for p in pairs)


def _numbers_pairs(tree: ast.AST) -> bool:
    """Whether row i of scores is to choose column i: `cross_entropy(scores, torch.arange(n))`."""
    nodes = list(ast.walk(tree))
    numbers = {
        ast.unparse(n.targets[0])
        for n in nodes
        if isinstance(n, ast.Assign) and called(n.value) == "arange"
    }
    losses = (n for n in nodes if isinstance(n, ast.Call) and called(n) == "cross_entropy")
    given = (n.args[1] for n in losses if len(n.args) > 1)
    return any(called(g) == "arange" or ast.unparse(g) in numbers for g in given)


LABELS = re.compile(r"label|target|^ys?(_|$)|_ys?$|answer|cls", re.IGNORECASE)


def separate_shuffles(tree: ast.Module) -> Iterator[Told]:
    """`zip(questions, answers)` of two loaders that shuffle, whose rows are taken for pairs."""
    for _, nodes in scopes(tree):
        loaders = {
            ast.unparse(n.targets[0]): n.lineno
            for n in nodes
            if isinstance(n, ast.Assign)
            and called(n.value) == "DataLoader"
            and "shuffle=True" in ast.unparse(n.value)
        }
        for node in (n for n in nodes if isinstance(n, ast.For) and called(n.iter) == "zip"):
            zipped = [ast.unparse(a) for a in getattr(node.iter, "args", ())]
            apart = [name for name in zipped if name in loaders]
            paired = _meet(node) or _numbers_pairs(node) or _numbers_pairs(tree)
            if len(apart) > 1 and paired:
                yield Told(
                    loaders[apart[0]],
                    "orders-differ",
                    f"{apart[0]} and {apart[1]} shuffle one by one, and line {node.lineno} takes "
                    "their rows for pairs: row i of one has nothing to do with row i of the "
                    "other. Put both into one data set",
                )
