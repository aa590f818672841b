"""A layer that takes one config object, as those of transformers do, as a reference for a module
that takes sizes: its config, positions and mask by what the module takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template

from attnlab.catalogue.literals import Scalar
from attnlab.records import Code, Contract
from attnlab.target.conventions import DIMENSIONS
from attnlab.target.find_target import Target
from attnlab.target.outline import Parameter

TEMPLATE = Template(Path(__file__).with_name("config_reference.txt").read_text("utf-8"))
CAUSAL = re.compile(r"\b(tril|triu|is_causal\s*=\s*True|causal)\b")
POSITIONS = ("cos", "sin")


def takes_config(found: Target) -> bool:
    """Whether a class of a package is built of a config object that its annotation names."""
    return bool(found.own.module and _config(found))


def _config(found: Target) -> Parameter | None:
    build = found.seen.build if found.seen else None
    parameters = build.parameters if build else ()
    return next((p for p in parameters if re.search(r"\w*Config\b", p.annotation)), None)


def adapt_to_config(found: Target, mine: Contract, text: str) -> tuple[Code, str]:
    """The class of a package so that it is built and fed like a module of this contract and text;
    and what was guessed."""
    config, seen = _config(found), found.seen
    assert config is not None
    assert seen is not None
    assert seen.build is not None
    kind = re.findall(r"\w*Config\b", config.annotation)[0]
    fields = _fields(found, config.name, mine, text)
    more = {
        p.name: 0 for p in seen.build.parameters if p.required and p.name != config.name
    }  # as layer_idx
    causal = bool(CAUSAL.search(text))
    masks = [i for i in mine.inputs if i.role == "mask"]
    names = [i.name for i in mine.inputs]
    first = next((i.name for i in mine.inputs if i.role == "data"), names[0])
    turned = "self.turns(x, places) if self.turns else None"
    built = ", ".join(f"{n}={v}" for n, v in (*fields.items(), *more.items()))
    says = f"guessed: {kind}({built}), {'causal' if causal else 'not causal'}"
    code = TEMPLATE.substitute(
        says=says,
        module=found.own.module,
        name=found.code.name,
        config=kind,
        arguments=", ".join(f"{n}=None" for n in mine.init),
        fields=", ".join(f"{n}={v}" for n, v in fields.items()),
        more="".join(f", {n}={v}" for n, v in more.items()),
        causal=causal,
        inputs=", ".join(f"{i.name}=None" for i in mine.inputs),
        first=first,
        turned="(cos, sin)" if set(POSITIONS) <= {*names} else turned,
        masks="".join(f"({i.name}, {i.forbids}), " for i in masks),
        takes=tuple(seen.forward.names()) if seen.forward else (),
    )
    file = f"{(found.own.module or '').replace('.', '/')}:{found.code.name}"
    return replace(found.code, file=file, path="", text=code), says


def _fields(found: Target, config: str, mine: Contract, text: str) -> dict[str, str]:
    """The fields that the class reads and that are sizes of mine, by what mine calls these."""
    tree = ast.parse(found.code.text)
    classes = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == found.code.name)
    body = ast.unparse(next(classes))
    read = re.findall(rf"\b{config}\.(\w+)|getattr\({config}, '(\w+)'", body)
    known = _sizes(mine)
    if "D" in known and "H" in known:
        known = {"Hkv": known["H"], "hd": f"{known['D']} // {known['H']}", **known}
    names = dict.fromkeys(name for pair in read for name in pair if name)
    fields = {n: known[DIMENSIONS[n]] for n in names if DIMENSIONS.get(n) in known}
    biased = "bias=False" not in text.replace(" ", "")
    return fields | {n: str(biased) for n in names if re.search(r"(^|_)bias$", n)}


def _sizes(mine: Contract) -> dict[str, str]:
    """What mine calls its sizes, else their numbers."""
    init: Mapping[str, Scalar] = mine.init
    fixed = {s: str(n) for s, n in mine.sizes.items()}
    return fixed | {str(symbol): name for name, symbol in init.items() if isinstance(symbol, str)}
