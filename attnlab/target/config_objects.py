"""Constructors that take one config object: `Net(config)`.

Its fields are treated like arguments of the constructor itself, so that `--init "n_embd=12"` sets
them; in the contract they stand as `Config(n_embd=D)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attnlab.catalogue.literals import Call, Scalar, Symbol
from attnlab.catalogue.schema import parse_init
from attnlab.records import record
from attnlab.target.conventions import names_part
from attnlab.target.outline import Definition, Parameter, Signature

NAMES = ("config", "cfg", "conf", "args", "hparams", "settings", "options")


@record
class Config:
    """A constructor argument that is a config object, and the class of that object."""

    argument: str
    maker: str
    fields: Signature
    fixed: dict[str, int]  # what the class says without being asked


def find_config(build: Signature | None, near: Mapping[str, Definition]) -> Config | None:
    """The config object that a constructor takes, if its class is defined in the same file."""
    for parameter in build.parameters if build else ():
        maker = _maker(parameter, near)
        if not maker or parameter.none or maker.build is None:
            continue
        if parameter.required or not any(p.required for p in maker.build.parameters):
            return Config(
                argument=parameter.name,
                maker=maker.name,
                fields=maker.build,
                fixed=maker.attributes if not maker.build.parameters else {},
            )
    return None


def _maker(parameter: Parameter, near: Mapping[str, Definition]) -> Definition | None:
    """The class by its annotation, else the only class of the file with the name of a config, or
    of the part that is asked for."""
    if parameter.required and parameter.annotation in ("", "nn.Module", "Module"):
        parts = [d for n, d in near.items() if d.module and names_part(parameter.name, n)]
        if len(parts) == 1:
            return parts[0]
    makers = {n: d for n, d in near.items() if d.kind == "class" and not d.module}
    noted = re.findall(r"\w+", parameter.annotation)
    if noted:
        return next((makers[n] for n in noted if n in makers), None)
    if parameter.name not in NAMES:
        return None
    alike = [d for n, d in makers.items() if names_config(n)]
    return alike[0] if len(alike) == 1 else None


def names_config(class_name: str) -> bool:
    """Whether a class of this name is, by it, that of a config."""
    return class_name.lower().endswith(NAMES)


def flatten_signature(build: Signature, config: Config) -> Signature:
    """The signature with the fields of the config object as arguments."""
    own = [p for p in build.parameters if p.name != config.argument]
    taken = {p.name for p in own}
    more = [p for p in config.fields.parameters if p.name not in taken]
    return Signature(parameters=(*own, *more), keywords=build.keywords)


def unpack_config(init: Mapping[str, Scalar], config: Config) -> dict[str, Scalar]:
    """The values of --init, with those inside `config=Config(...)` as values of their own."""
    found: dict[str, Scalar] = {}
    for key, value in init.items():
        if key == config.argument and isinstance(value, Call):
            found |= parse_init(value.partition("(")[2].rpartition(")")[0])
        else:
            found[key] = value
    return found


def pack_config(init: Mapping[str, Scalar], config: Config) -> dict[str, Scalar]:
    """The reverse of `unpack_config`: the fields as one config object again."""
    names = set(config.fields.names())
    inner = ", ".join(f"{k}={_as_text(v)}" for k, v in init.items() if k in names)
    outer = {k: v for k, v in init.items() if k not in names}
    return {config.argument: Call(f"{config.maker}({inner})"), **outer}


def placeholder(parameter: Parameter) -> str:
    """What stands for an argument in a command that the user completes."""
    if parameter.name in NAMES:
        words = re.findall(r"\w+", parameter.annotation) or ["Config"]
        return f"{words[0]}()"
    return "'text'" if parameter.annotation == "str" else "12"


def _as_text(value: Scalar) -> str:
    return str(value) if isinstance(value, Symbol) else repr(value)
