"""How often `attnlab diff` names the line that cuts or changes a gradient while all values are
right: run `python -m benchmarks.gradient_diagnosis`.

Each item is a right file of the catalogue in which one assignment was changed so that its value
stays: detached, under no_grad, read into a new tensor, with a wrong backward, a hook, or a change
that autograd does not see. It stands beside the file that it was made of, and, for an alternative,
beside the solution. Items whose gradients stay right are left out. Every right file stands beside
the solution, too: there nothing may be named. Which items are kept apart, and what counts as the
line, is as in `benchmarks.diagnosis`.

    python -m benchmarks.gradient_diagnosis [--per-file N] [--only NAME] [--misses] [--write PAGE]
"""

from __future__ import annotations

import argparse
import ast
import random
import statistics
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from attnlab.catalogue.load import load
from attnlab.records import Challenge
from benchmarks.diagnosis import RIGHT, Item, Result, _changed, measure

SAME, OTHER = "same structure", "other style"
HEAD = "## Gradients"
DOUBLED = """
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


"""
# The statements in place of `name = value`.
CHANGES: dict[str, Callable[[str, str], list[str]]] = {
    "detached": lambda name, value: [f"{name} = ({value}).detach()"],
    "data": lambda name, value: [f"{name} = ({value}).data"],
    "no_grad": lambda name, value: ["with torch.no_grad():", f"    {name} = {value}"],
    "read": lambda name, value: [
        f"{name} = {value}",
        f"{name} = torch.tensor({name}.tolist(), dtype={name}.dtype)",
    ],
    "half cut": lambda name, value: [
        f"{name} = {value}",
        f"{name} = {name} / 2 + {name}.detach() / 2",
    ],
    "hooked": lambda name, value: [
        f"{name} = {value}",
        f"{name}.requires_grad and {name}.register_hook(lambda gradient: gradient * 3)",
    ],
    "unseen": lambda name, value: [
        f"{name} = {value} * 1",
        "with torch.no_grad():",
        f"    {name}.mul_(2)",
        f"{name} = {name} / 2",
    ],
    "own backward": lambda name, value: [f"{name} = Doubled.apply({value})"],
}


def items(per_file: int, only: str) -> Iterator[Item]:
    """Changes of the assignments in the forward of each right file, a fixed choice of each."""
    seen: set[str] = set()
    for challenge in load().challenges:
        if challenge.folder in seen or only not in (challenge.base or challenge.slug):
            continue
        seen.add(challenge.folder)
        right = Path(challenge.solution).read_text("utf-8")
        files = {Path(p).name: Path(p).read_text("utf-8") for p in challenge.alternatives}
        for file, text in {"solution.py": right, **files}.items():
            yield from _items_of(challenge, file, text, right, per_file)


def _items_of(
    challenge: Challenge, file: str, text: str, right: str, per_file: int
) -> Iterator[Item]:
    name = f"{challenge.base or challenge.slug}/{file}"
    if text != right:
        yield Item(RIGHT, name, challenge, text, (right,))
    found = list(_changes(text))
    random.Random(name).shuffle(found)
    for said, mine in found[:per_file]:
        lines = _changed(text, mine)
        yield Item(SAME, f"{name} {said}", challenge, mine, (text,), lines)
        if text != right:
            yield Item(OTHER, f"{name} {said} beside solution.py", challenge, mine, (right,), lines)


def _changes(text: str) -> Iterator[tuple[str, str]]:
    """The text with one assignment changed, each with what was done at which line."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        if not node.col_offset or len(node.targets) > 1:
            continue
        name, value = node.targets[0].id, ast.unparse(node.value)
        indent = " " * node.col_offset
        for said, change in CHANGES.items():
            put = [indent + line for line in change(name, value)]
            own = [*lines[: node.lineno - 1], *put, *lines[node.end_lineno or node.lineno :]]
            made = "\n".join(own) + "\n"
            made = _with_class(made) if "Doubled" in made else made
            yield f"{said} at line {node.lineno}", made


def _with_class(text: str) -> str:
    """With the class of the wrong backward before the first other one."""
    first = next(n for n in ast.parse(text).body if isinstance(n, (ast.ClassDef, ast.FunctionDef)))
    start = min([first.lineno, *(d.lineno for d in first.decorator_list)]) - 1
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:start], DOUBLED.lstrip("\n"), *lines[start:]])


def table(results: list[Result]) -> str:
    """As Markdown."""
    rows = [
        "| items | compared | line | none | wrong | confirmed, wrong | median s CPU |",
        "|---|---|---|---|---|---|---|",
    ]
    for group in (SAME, OTHER):
        told = [r for r in results if r.group == group and r.fate != "left out"]
        if not told:
            continue
        fates = [r.fate for r in told]
        counts = (fates.count("named") + fates.count("line"), fates.count("none"))
        counts = (*counts, fates.count("wrong"), sum(r.misled for r in told))
        cells = " | ".join(f"{n} ({100 * n / len(told):.1f} %)" for n in counts)
        took = statistics.median(r.seconds for r in told)
        rows.append(f"| {group} | {len(told)} | {cells} | {took:.2f} |")
    right = [r.fate for r in results if r.group == RIGHT and r.fate != "left out"]
    return "\n".join(rows) + (
        f"\n\nRight rewrites: {right.count('alarm')} of {len(right)} got a diagnosis.\n"
    )


SECTION = """
Made by `python -m benchmarks.gradient_diagnosis --per-file {per_file} --write PAGE`. In a right
file one assignment was changed so that its value stays and its gradient does not: detached, under
no_grad, read into a new tensor, half of it cut, with a hook, with a wrong backward, or changed in
place where autograd does not look. Of {total} items {many} were measured, in the order of the
catalogue; {left} of these leave all gradients right, or cannot be run, and are left out.

{opened}

Kept apart, as above:

{apart}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-file", type=int, default=2, help="changes of each right file")
    parser.add_argument("--only", default="", help="bases with this in their name")
    parser.add_argument("--misses", action="store_true", help="print what was not named")
    parser.add_argument("--write", type=Path, help="write the section to this page")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results = [measure(item, chosen.misses) for item in items(chosen.per_file, chosen.only)]
    opened = table([r for r in results if not r.apart])
    apart = table([r for r in results if r.apart])
    print(f"{opened}\nKept apart:\n\n{apart}")
    if chosen.write:
        text = chosen.write.read_text("utf-8").partition(HEAD)[0].rstrip()
        left = sum(r.fate == "left out" for r in results)
        told = {"left": left, "many": len(results), "per_file": chosen.per_file}
        told["total"] = len(results)
        section = SECTION.format(**told, opened=opened.strip(), apart=apart.strip())
        chosen.write.write_text(f"{text}\n\n{HEAD}\n{section}", encoding="utf-8")


if __name__ == "__main__":
    main()
