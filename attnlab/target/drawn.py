"""Challenges made for one user: bases of their own, in the folder of the user's data."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.catalogue.bases import SABOTAGED, SOLUTION
from attnlab.catalogue.contract_facts import PROMISES
from attnlab.catalogue.folders import BASE_FILE
from attnlab.catalogue.load import drawn_folder
from attnlab.errors import Refused
from attnlab.files import write_whole
from attnlab.records import Challenge, Contract, Job, Report, record
from attnlab.records.patch import FollowUp
from attnlab.target.command_line import input_flag

NUMBERS = 10_000  # of challenges that are drawn without a seed


@record
class DrawnBug:
    """A bug as the file of a base tells it."""

    title: str
    level: int
    category: str
    symptom: str
    expected: tuple[str, ...]  # the checks that fail
    hints: tuple[str, ...]
    why: str
    find: str
    edits: tuple[tuple[str, str], ...]  # the right lines, each found once, and what replaces them
    follow_ups: tuple[FollowUp, ...]


def drawn_seed(seed: int | None) -> int:
    return random.randrange(NUMBERS) if seed is None else seed


def write_drawn(slug: str, description: str, files: Mapping[str, str], bug: DrawnBug) -> Path:
    """Write a base with this description, these files and one bug; the challenge is called `slug`.

    What stood there is replaced. Raises `Refused` where the folder cannot be written.
    """
    topic, _, name = slug.partition("/")
    try:
        folder = drawn_folder() / topic / f"{name}-base"
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("bugs", "alternatives"):
            (folder / part).mkdir(parents=True)
        for file, text in files.items():
            write_whole(folder / file, text)
        write_whole(folder / BASE_FILE, description)
        write_whole(folder / "bugs" / f"{name}.toml", _bug_text(bug))
    except (OSError, RuntimeError) as error:
        hint = "set ATTNLAB_HOME to a folder that can be written"
        raise Refused(f"the challenge cannot be kept: {error}", hint) from None
    return folder


def base_text(challenge: Challenge) -> str:
    """The base.toml of a challenge whose reference is its own solution."""
    contract = challenge.contract
    head = {
        "format": 1,
        "title": challenge.title,
        "class": challenge.class_name,
        "reference": SOLUTION,
        "task": challenge.task,
    }
    fed = {entry.name: input_flag(entry).partition(": ")[2] for entry in contract.inputs}
    more = {"promises": contract.promises, "vary": contract.vary}
    tables: dict[str, Mapping[str, Any]] = {
        "sizes": contract.sizes,
        "init": contract.init,
        "inputs": fed,
        "output": {"axes": " ".join(contract.output)},
        "contract": more,
    }
    return "\n".join([_lines(head), *(f"[{name}]\n{_lines(t)}" for name, t in tables.items())])


def _bug_text(bug: DrawnBug) -> str:
    keys = ("title", "level", "category", "symptom", "expected", "hints", "why", "find")
    head = {key: getattr(bug, key) for key in keys} | {"source": "constructed"}
    edits = [f"[[edits]]\n{_lines({'old': old, 'new': new})}" for old, new in bug.edits]
    asked = [
        f"[[follow_ups]]\n{_lines({'question': each.question, 'answer': each.answer})}"
        for each in bug.follow_ups
    ]
    return "\n".join([_lines(head), *edits, *asked])


def _lines(values: Mapping[str, Any]) -> str:
    """Keys and values as TOML writes them: its texts, numbers and lists are those of JSON."""
    return "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items()
    )


def own_challenge(job: Job, report: Report, seed: int) -> Challenge:
    """A user's own module as the right file of a challenge."""
    path = Path(job.candidate.path)
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "module"
    seems = tuple(p.name for p in report.promises if p.name in PROMISES)
    contract = replace(job.contract or Contract(), promises=seems)
    return Challenge(
        slug=f"{SABOTAGED}/{name}-{seed}",
        title=path.name,
        kind="debug",
        level=1,
        symptom="",
        task=f"Find the bug in {job.candidate.name}: it should do what your own file does.",
        class_name=job.candidate.name or "",
        contract=replace(contract, output=_output_axes(contract, report)),
        reference=SOLUTION,
        expected=(),
        source="constructed",
        hints=(),
        folder=str(path.parent),
        file=str(path),
        solution=str(path),
        alternatives=(),
        mutants=(),
        notes="",
    )


def _output_axes(contract: Contract, report: Report) -> tuple[str, ...]:
    """The axes of what the last operation gives; numbers where no size of the module is meant."""
    last = report.trace.ops[-1] if report.trace and report.trace.ops else None
    if last is None:
        return ("1",)
    pairs = zip(last.axes, last.shape, strict=True)
    return tuple(a if a in contract.sizes else str(size) for a, size in pairs)
