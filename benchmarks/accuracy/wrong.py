"""Wrong modules, each a file of variants/FAMILY/, and the right twin that each file holds too.

A line that ends with `# WRONG` is the mistake; `# RIGHT: ...` below it is what it should be, and
putting that in its place makes the twin. Where the mistake is not in an operation (a table cut to
the wrong size) or only shows when another tensor is met, the lines that can show it end with
`# SHOWS`. The docstring tells what is wrong and names the real bug that was made again.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

HERE = Path(__file__).parent / "variants"
WRONG, RIGHT, SHOWS = "# WRONG", "# RIGHT: ", "# SHOWS"
APART = "not-expected"  # mistakes that axes cannot tell: kept apart, with the reason
KINDS = {"bool": torch.bool, "int": torch.int64}


class Variant(NamedTuple):
    """One text, wrong or right."""

    family: str
    name: str
    file: str  # what its code says it is
    text: str
    title: str
    atlas: str  # the real bug
    why_not: str  # what makes it invisible to axes, for those that are
    wrong: tuple[int, ...]  # lines with the mistake
    shows: tuple[int, ...]  # lines on which it can be seen


class Call(NamedTuple):
    """A module with what it is called with, and the names of its inputs' axes."""

    module: nn.Module
    inputs: dict[str, Tensor]
    dims: str


def variants(apart: bool = False) -> Iterator[Variant]:
    """The wrong ones; with `apart`, those that axes cannot tell."""
    for path in sorted(HERE.glob("*/*.py")):
        if (path.parent.name == APART) is apart:
            yield read(path)


def read(path: Path) -> Variant:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    doc = text.split('"""')[1]
    said = dict(line.split(": ", 1) for line in doc.splitlines()[1:] if ": " in line)
    return Variant(
        family=path.parent.name,
        name=path.stem,
        file=f"{path.parent.name}/{path.name}",
        text=text,
        title=doc.splitlines()[0],
        atlas=said["Atlas"],
        why_not=said.get("Why not", ""),
        wrong=tuple(i for i, line in enumerate(lines, 1) if line.endswith(WRONG)),
        shows=tuple(i for i, line in enumerate(lines, 1) if line.endswith(SHOWS)),
    )


def twin(variant: Variant) -> Variant:
    """The right one: the mistake's line is empty, the right line stands below it."""
    lines = []
    for line in variant.text.splitlines():
        bare = line.lstrip()
        kept = "" if line.endswith(WRONG) else line
        indent = line[: len(line) - len(bare)]
        lines.append(indent + bare.removeprefix(RIGHT) if bare.startswith(RIGHT) else kept)
    file = variant.file.replace(".py", " (right).py")
    return variant._replace(file=file, text="\n".join(lines) + "\n", wrong=(), shows=())


def build(variant: Variant, sizes: Mapping[str, int] | None = None) -> Call:
    """The module with random weights and inputs of the sizes that its file names, or of others."""
    torch.manual_seed(0)
    room: dict[str, Any] = {"__name__": variant.name}
    # Known to linecache, so that a trace can show the lines of what is in no file.
    lines = variant.text.splitlines(keepends=True)
    linecache.cache[variant.file] = (len(variant.text), None, lines, variant.file)
    exec(compile(variant.text, variant.file, "exec"), room)
    room |= {name: size for name, size in (sizes or {}).items() if name in room}
    dims, inputs = [], {}
    for spec in room["DIMS"].split(", "):
        name, _, words = spec.partition(": ")
        axes = [w for w in words.split() if w not in KINDS]
        kind = next((w for w in words.split() if w in KINDS), "float")
        inputs[name] = draw([room[a] for a in axes], kind, room)
        dims.append(f"{name}: {' '.join(axes)}")
    return Call(room["Net"]().eval(), inputs, ", ".join(dims))


def draw(shape: list[int], kind: str, room: dict[str, Any]) -> Tensor:
    if kind == "int":
        return torch.randint(room["V"], shape)
    if kind == "bool":
        mask = torch.rand(shape) < 0.3
        mask[..., 0] = False  # no row is empty
        return mask
    return torch.randn(shape)
