"""Layers of PyTorch as references: what takes the arguments that a user's own module takes."""

from __future__ import annotations

from pathlib import Path
from string import Template

from attnlab.records import Code, Contract

# Samples first, no dropout, and of several results the first: what one's own code does.
BATCH_FIRST = Template("""\
from torch import nn


class $name(nn.$name):
    def __init__(self, *args, **options):
        super().__init__(*args, **{"batch_first": True, "dropout": 0.0, **options})
""")
ATTENTION = Template(Path(__file__).with_name("torch_attention.txt").read_text("utf-8"))
LAYERS = ("TransformerEncoderLayer", "TransformerDecoderLayer")


def adapt_layer(found: Code, mine: Contract) -> tuple[Code, dict[str, str]]:
    """A layer of `torch.nn` that can be built and fed like a module of this contract, and its
    constructor's arguments by mine."""
    if found.name in LAYERS:
        return _source(found, BATCH_FIRST.substitute(name=found.name)), {}
    if found.name != "MultiheadAttention":
        return found, {}
    floats = [i.name for i in mine.inputs if i.role == "data"][:3]
    masks = [i for i in mine.inputs if i.role == "mask"]
    query, key, value = (*floats, *floats[-1:] * 3)[:3]
    text = ATTENTION.substitute(
        arguments=", ".join(f"{i.name}=None" if i.optional else i.name for i in mine.inputs),
        masks="".join(f"{_forbidding(i.name, i.forbids, i.optional)}, " for i in masks),
        query=query,
        key=key,
        value=value,
    )
    sizes = {"D": "embed_dim", "H": "num_heads"}
    return _source(found, text), {n: sizes[v] for n, v in mine.init.items() if v in sizes}


def _forbidding(name: str, forbids: bool, optional: bool) -> str:
    turned = name if forbids else f"~{name}"
    return f"None if {name} is None else {turned}" if optional else turned


def _source(found: Code, text: str) -> Code:
    return Code(file=f"torch.nn:{found.name}", text=text, name=found.name)
