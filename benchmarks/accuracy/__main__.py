"""How often the tracer is right, on code that nobody here wrote and on bugs made again.

    python -m benchmarks.accuracy            all, and writes docs/tracer-accuracy.md
    python -m benchmarks.accuracy WORD       what holds WORD in its name, and writes nothing

Exits 1 when a right model raises a finding or is named below the aim, when a wrong variant is not
found, or when its right twin is.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.accuracy import pages
from benchmarks.accuracy.measure import Found, Right, coincidences, right, wrong
from benchmarks.accuracy.right import models
from benchmarks.accuracy.wrong import variants

PAGE = Path(__file__).parents[2] / "docs" / "tracer-accuracy.md"


def main(word: str = "") -> int:
    warnings.filterwarnings("ignore")  # of the other libraries, about their own parts
    torch.set_num_threads(1)
    console, missing = Console(), []
    rights = []
    for model in models(word):
        torch.manual_seed(0)
        try:
            rights.append(right(model))
        except ImportError:
            missing.append(f"{model.library}: {model.name}")
    founds = [wrong(v) for v in variants() if word in v.file]
    chance = [(v, *found) for v in variants() if word in v.file for found in coincidences(v)]
    console.print(pages.models(rights))
    console.print(pages.variants(founds))
    said = list(complaints(rights, founds))
    said += [f"{v.file}, right, at {s}: {f.line} {f.rule}: {f.message}" for v, s, f in chance]
    for line in (*said, *pages.totals(rights, founds, len(chance))):
        console.print(line, highlight=False, markup=False)
    for name in missing:
        console.print(f"not installed: {name} (make test-peers installs it)", markup=False)
    if not word:
        apart = [wrong(v) for v in variants(apart=True)]
        PAGE.write_text(pages.page((rights, founds, apart), missing, len(chance)), encoding="utf-8")
    return int(bool(said))


def complaints(rights: list[Right], founds: list[Found]) -> Iterator[str]:
    """What is not as it should be, a line for each."""
    for r in rights:
        if r.crash:
            yield f"{r.name}: {r.crash}"
        for f in r.findings:
            yield f"{r.name}: {f.file}:{f.line} {f.rule}: {f.message}"
        if r.axes.percent < pages.AIM:
            yield f"{r.name}: {r.axes.all - r.axes.named} of {r.axes.all} axes have no name"
    for found in founds:
        name, elsewhere = found.variant.file, [f"{f.line} {f.rule}" for f in found.others]
        if found.at is None:
            yield f"{name}: not found at {found.variant.wrong}; elsewhere: {elsewhere or 'nothing'}"
        for f in found.twins:
            yield f"{name}, right: {f.line} {f.rule}: {f.message}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
