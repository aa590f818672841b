"""Released models under the trace and the properties.

    python -m benchmarks.wild                 all of them, and writes docs/in-the-wild.md
    python -m benchmarks.wild WORD ...        families whose names hold a word; writes nothing

Exits 1 where a warning stands that `benchmarks/examined.py` says nothing of.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported
os.environ["OMP_NUM_THREADS"] = "1"

import torch

from benchmarks.examined import verdict_of
from benchmarks.wild.families import families
from benchmarks.wild.measure import Wild, apart
from benchmarks.wild.pages import page

PAGE = Path(__file__).parents[2] / "docs" / "in-the-wild.md"


def main(*words: str) -> int:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    found = []
    for family, build in families().items():
        if not words or any(word in family for word in words):
            found.append(apart(family, build))
            _say(found[-1])
    if not words:
        PAGE.write_text(page(found))
    return int(any(verdict_of(*alarm) is None for wild in found for alarm in wild.alarms))


def _say(wild: Wild) -> None:
    share = f"{100 * wild.named / wild.axes:.1f} %" if wild.axes else ""
    print(
        f"{wild.family}: {wild.problem or f'{wild.rows} rows, {share} of axes named'}", flush=True
    )
    for finding in wild.findings:
        known = verdict_of(finding.file, finding.rule)
        print(f"  {known.verdict if known else '?'} {finding.rule} {finding.file}:{finding.line}")
        print(f"    {finding.message}")
    for name, told in wild.broken:
        print(f"  property {name}: {told}", flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
