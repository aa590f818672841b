"""Infer how to construct and call a module from its source, by the usual names of arguments.

The user's flags win; then well-known names decide; what stays unknown is refused with the flag to
add, ready to paste.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from attnlab.catalogue.literals import Scalar, Symbol, check_size, plain_literal
from attnlab.catalogue.schema import symbols_of
from attnlab.errors import Refused
from attnlab.records import Contract, Input
from attnlab.suggest import did_you_mean
from attnlab.target.command_line import UserOptions
from attnlab.target.config_objects import NAMES as CONFIGS
from attnlab.target.config_objects import (
    Config,
    find_config,
    flatten_signature,
    pack_config,
    placeholder,
    unpack_config,
)
from attnlab.target.conventions import DIMENSIONS, LITERALS, size_by_name, usual_value
from attnlab.target.infer_inputs import call_signatures, infer_inputs
from attnlab.target.outline import Definition, Outline, Parameter, Signature, format_signature

# Default sizes: pairwise different, and D a multiple of H. `_choose_size` depends on their order.
SIZES = {"B": 2, "S": 5, "T": 5, "L": 5, "Sq": 5, "Sk": 7, "H": 3, "D": 12, "C": 12, "E": 12}
SIZES |= {"Hkv": 1, "M": 64, "V": 50, "F": 24}
TINY = {"B": 1, "S": 4, "D": 8, "H": 2}
GROUPED = {"H": 12, "Hkv": 3, "D": 96}  # several heads for each of several: their order counts
LENGTHS = ("S", "T", "L", "Sq", "Sk")
WIDTHS = ("D", "C", "E")


class Unsized(Refused):
    """Nothing says how wide an input is; `proposed` is a size to begin with."""

    def __init__(self, message: str, hint: str, proposed: str) -> None:
        super().__init__(message, hint, "--sizes")
        self.proposed = proposed


class Unbuilt(Refused):
    """Nothing says what some arguments of a constructor are; those that are known are `found`."""

    found: Mapping[str, Scalar]

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint, "--init")

    def with_found(self, found: Mapping[str, Scalar]) -> Unbuilt:
        self.found = found
        return self


def complete_contract(
    base: Contract, said: UserOptions, seen: Definition | None, near: Outline
) -> Contract:
    """`base` with the sizes, constructor arguments and inputs that the source suggests."""
    build, forward = call_signatures(seen, said)
    config = find_config(build, near.definitions)
    if build and config:
        build = flatten_signature(build, config)
        said = replace(said, init=unpack_config(said.init, config))
    keywords, sizes = _split_init(said, build)
    sizes = {**_fixed_sizes(config), **sizes}
    fixed = [n for name, n in near.constants.items() if DIMENSIONS.get(name) == "D"]
    if fixed:
        sizes = _without_preset(sizes, said)
    sizes = _with_stated_width(sizes, said)
    named = [s for s in said.init if s in sizes and s not in ("B", *LENGTHS)]
    if build:
        build = _with_constants(_with_roles(build, seen), near.constants)
        keywords, sizes = _constructor_arguments(build, keywords, sizes, named, said)
    inputs, arguments = infer_inputs(forward, said)
    if (
        "hd" in keywords.values()
        and not fixed
        and not {"H", *WIDTHS} & {*sizes, *keywords.values()}
    ):
        inputs = _as_wide_as_a_head(inputs, said)
    bound = _has_fixed_width(seen, keywords)
    if bound:
        sizes = _without_preset(sizes, said)
    used = symbols_of(axis for entry in inputs for axis in entry.axes)
    used += symbols_of(base.output)
    if seen and not set(WIDTHS) & {*sizes, *keywords.values()}:
        keywords, sizes = _first_layer_width(seen, near, keywords, sizes, used, said)
    values = (*keywords.values(), *arguments.values())
    used += [v for v in values if isinstance(v, str) and _is_symbol(v, sizes)]
    if config:
        keywords = pack_config({k: v for k, v in keywords.items() if k not in config.fixed}, config)
    return replace(
        base,
        sizes=choose_sizes(sizes, used),
        init={key: plain_literal(value) for key, value in keywords.items() if value is not None},
        inputs=inputs,
        containers=said.containers,
        arguments={key: plain_literal(value) for key, value in arguments.items()},
        vary=_varying(
            base.vary, bound or sizes.get("D") in fixed or _has_default_width(seen, keywords, sizes)
        ),
    )


def _as_wide_as_a_head(inputs: tuple[Input, ...], said: UserOptions) -> tuple[Input, ...]:
    """The inputs of a module that is built with a head's width and with no other."""
    given = {entry.argument for entry in said.inputs}
    return tuple(
        replace(entry, axes=("B", "H", "S", "hd"))
        if entry.axes == ("B", "S", "D") and entry.argument not in given
        else entry
        for entry in inputs
    )


def _has_default_width(
    seen: Definition | None, keywords: Mapping[str, Scalar | None], sizes: Mapping[str, int]
) -> bool:
    """A width that the constructor is not given: its layers have it by a default of their own."""
    said = {str(value) for value in keywords.values() if isinstance(value, str)}
    widths = [symbol for symbol in WIDTHS if symbol in sizes]
    built = seen is not None and seen.kind == "class"
    return built and bool(widths) and not any(w in text for w in widths for text in said)


def _varying(vary: tuple[str, ...], bound: bool) -> tuple[str, ...]:
    """The symbols that may have another size: of layers that are bound to a width, not that."""
    return tuple(symbol for symbol in vary if symbol in ("B", *LENGTHS) or not bound)


def _with_stated_width(sizes: dict[str, int], said: UserOptions) -> dict[str, int]:
    """`--input "x: B S 16"` says what D is where nothing else does."""
    said_otherwise = "D" in sizes or any(DIMENSIONS.get(name) in WIDTHS for name in said.init)
    vectors = [i.axes for i in said.inputs if i.role == "data" and i.dtype == "float"]
    if said_otherwise or not vectors or len(vectors[0]) not in (2, 3):
        return sizes
    last = vectors[0][-1]
    return {**sizes, "D": int(last)} if last.isdigit() and int(last) > 1 else sizes


def _without_preset(sizes: dict[str, int], said: UserOptions) -> dict[str, int]:
    """Widths of paper and pencil do not fit layers that have one of their own."""
    preset = {s for s in (*WIDTHS, "H") if said.typed.tiny and s not in said.given_sizes}
    return {symbol: size for symbol, size in sizes.items() if symbol not in preset}


def _with_constants(build: Signature, constants: Mapping[str, int]) -> Signature:
    """`n_embd = 384` at the top of a file says what an argument of that name will be."""
    found = (
        replace(p, default=constants[p.name]) if p.required and p.name in constants else p
        for p in build.parameters
    )
    return replace(build, parameters=tuple(found))


def _with_roles(build: Signature, seen: Definition | None) -> Signature:
    """The parameters with what the class does with them."""
    roles = seen.roles if seen else {}
    found = (replace(p, role=roles.get(p.name)) for p in build.parameters)
    return replace(build, parameters=tuple(found))


def _has_fixed_width(seen: Definition | None, keywords: Mapping[str, Scalar]) -> bool:
    """The layers have a width of their own, which no argument of the constructor changes."""
    return bool(seen and seen.layers) and not {*WIDTHS, "H"} & {str(v) for v in keywords.values()}


def _fixed_sizes(config: Config | None) -> dict[str, int]:
    known = config.fixed.items() if config else ()
    return {DIMENSIONS[name]: size for name, size in known if name in DIMENSIONS and size > 0}


def _first_layer_width(
    seen: Definition,
    near: Outline,
    keywords: dict[str, Scalar],
    sizes: dict[str, int],
    used: list[str],
    said: UserOptions,
) -> tuple[dict[str, Scalar], dict[str, int]]:
    """The width that nobody said, from the first layer that the constructor makes."""
    wanted = [s for s in used if s in WIDTHS]
    if not wanted or not seen.layers:
        return keywords, sizes  # it fits any width
    symbol = wanted[0]
    defaults = {p.name: p.default for p in seen.build.parameters} if seen.build else {}
    heads = [n for n in seen.layers if DIMENSIONS.get(n, "F") in ("D", "F")]
    first = heads[0] if heads else "?"
    known = str(keywords.get(first, defaults.get(first, near.constants.get(first, first))))
    if known.isdigit() and int(known):
        sizes = {**sizes, symbol: int(known)}
    if first in keywords:
        return {**keywords, first: Symbol(symbol)}, sizes
    meant = [size for name, size in near.constants.items() if DIMENSIONS.get(name) == "D"]
    if symbol not in sizes and meant:
        sizes = {**sizes, symbol: meant[0]}
    if symbol in sizes:
        return keywords, sizes
    says = f"{said.typed.target} takes an input of width {symbol}, but {symbol} has no size"
    paste = said.typed.with_flags(sizes=f"{symbol}=12").command()
    raise Unsized(says, f"give the width of its layers, such as 12: {paste}", f"{symbol}=12")


def choose_sizes(given: Mapping[str, int], used: Iterable[str]) -> dict[str, int]:
    """`given`, and a size for every symbol in `used` that has none; raises `Refused`."""
    sizes = dict(given)
    wanted = set(used)
    if "Hkv" in wanted and not {"Hkv", "H", *WIDTHS} & set(sizes):
        sizes |= GROUPED
    if "hd" in wanted and "hd" not in sizes:
        wanted = wanted - {"hd"} | {"D", "H"}  # hd is always D / H
    for symbol in [*SIZES, *sorted(wanted - set(SIZES))]:
        if symbol in wanted and symbol not in sizes:
            sizes[symbol] = _choose_size(symbol, sizes)
    order = ("B", *LENGTHS, *WIDTHS, *SIZES, *sizes)
    return {symbol: sizes[symbol] for symbol in order if symbol in sizes}


def _choose_size(symbol: str, sizes: Mapping[str, int]) -> int:
    """A size for `symbol` that no other symbol has, so that no two axes are taken for one."""
    if symbol not in SIZES:
        hint = did_you_mean(symbol, [*sizes, *SIZES, "hd", "float", "int", "bool"])
        hint = f"{hint} Or say its size: --sizes".strip() + f' "{symbol}=12".'
        raise Refused(f"{symbol} has no size", hint)
    taken = {*sizes.values(), *(sizes[w] // sizes["H"] for w in WIDTHS if {w, "H"} <= set(sizes))}
    if symbol == "H":
        return _choose_heads(sizes, taken)
    size, step = SIZES[symbol], 1
    if symbol in WIDTHS:
        step = sizes.get("H", 4)
        size = size if size % step == 0 else 4 * step
        taken |= {step * other for other in taken}  # D / H is a size as well
    if symbol == "M":
        size = max([size, *(sizes[s] + 1 for s in LENGTHS if s in sizes)])
    while size in taken and symbol != "Hkv":
        size += step
    return size


def _choose_heads(sizes: Mapping[str, int], taken: set[int]) -> int:
    widths = [sizes[s] for s in WIDTHS if s in sizes]
    fits = [h for h in (3, 2, 4, 6, 5, 7) if all(w % h == 0 for w in widths)]
    fresh = [h for h in fits if not {h, *(w // h for w in widths)} & taken]
    return (fresh or fits or [1])[0]


def _is_symbol(name: str, sizes: Mapping[str, int]) -> bool:
    return isinstance(name, Symbol) or name in sizes or name in SIZES or name == "hd"


# ---------------------------------------------------------------- constructor


def _split_init(
    said: UserOptions, build: Signature | None
) -> tuple[dict[str, Scalar], dict[str, int]]:
    """What --init says, as constructor arguments and sizes."""
    keywords: dict[str, Scalar] = {}
    sizes = dict(said.sizes)
    for key, value in said.init.items():
        known = build is not None and key in build.names()
        if known or not re.fullmatch(r"[A-Z]\w{0,2}|hd", key):
            if build and not known and not build.keywords:
                hint = did_you_mean(key, build.names()) or f"It takes {format_signature(build)}."
                raise Refused(f"--init: the constructor takes no {key}", hint, "--init")
            keywords[key] = value
        else:
            check_size(key, value, "--init")
            sizes[key] = int(value)
    return keywords, sizes


def _constructor_arguments(
    build: Signature,
    given: dict[str, Scalar],
    sizes: dict[str, int],
    named: list[str],
    said: UserOptions,
) -> tuple[dict[str, Scalar], dict[str, int]]:
    """The constructor's arguments, and the sizes with what its defaults say."""
    found = dict(given)
    told = set(sizes)
    sizes = dict(sizes)
    symbols = _meant_sizes(build)
    defaults = {(symbols[p.name], p.default) for p in build.parameters}
    for parameter in build.parameters:
        symbol, role = symbols[parameter.name], parameter.role
        stated = given.get(parameter.name, parameter.default)
        free = symbol not in ("", "hd") and sizes.get(symbol, stated) == stated
        if free and _is_size(stated):
            sizes[symbol] = int(stated or 0)  # embed_dim=64 tells what D is; hd stays D / H
            found[parameter.name] = Symbol(symbol)
        elif (  # a told width that is the default of another argument is that one's
            symbol
            and parameter.name not in given
            and (parameter.required or (symbol in told and (symbol, sizes[symbol]) not in defaults))
        ):
            found[parameter.name] = Symbol(symbol)
        elif parameter.required:
            meant = (role if isinstance(role, Symbol) else None, LITERALS.get(parameter.name), role)
            value = next((v for v in meant if v is not None), None)
            if value is None:
                value = usual_value(parameter.name, parameter.annotation)
            if value is not None:
                found.setdefault(parameter.name, value)
    unknown = [p for p in build.parameters if p.required and p.name not in found]
    found |= _match_by_order(build, unknown, named, found)
    for parameter in (p for p in unknown if p.name not in found):
        if size := size_by_name(parameter.name, parameter.annotation):
            found[parameter.name] = size
    if missing := [p for p in unknown if p.name not in found]:
        raise _cannot_build(build, missing, said).with_found(found)
    order = [*build.names(), *given]
    return {key: found[key] for key in dict.fromkeys(order) if key in found}, sizes


def _meant_sizes(build: Signature) -> dict[str, str]:
    """The symbol that each argument stands for, by its name or its use; "" for others."""
    named = {DIMENSIONS.get(parameter.name) for parameter in build.parameters}
    found = {p.name: DIMENSIONS.get(p.name) or _role(p, named) for p in build.parameters}
    return {**found, "width": ""} if "height" in found else found  # of a picture


def _role(parameter: Parameter, named: Container[str | None]) -> str:
    """The symbol that an argument stands for by its use, where no other has it by its name."""
    taken = not parameter.required and parameter.role in named
    return parameter.role if isinstance(parameter.role, Symbol) and not taken else ""


def _is_size(value: Scalar | None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _match_by_order(
    build: Signature, unknown: list[Parameter], named: list[str], found: dict[str, Scalar]
) -> dict[str, Scalar]:
    """`--init "D=182, H=7"` for a constructor that takes two arguments of unknown names."""
    required = [p for p in build.parameters if p.required]
    if len(named) != len(required):
        return {}
    left = [symbol for symbol in named if symbol not in found.values()]
    if len(left) == len(unknown):
        return dict(zip((p.name for p in unknown), map(Symbol, left), strict=True))
    return {p.name: Symbol(s) for p, s in zip(required, named, strict=True) if p in unknown}


def _cannot_build(build: Signature, missing: list[Parameter], said: UserOptions) -> Unbuilt:
    names = ", ".join(p.name for p in missing)
    takes = f"{said.typed.target} is built with ({format_signature(build)})"
    paste = ", ".join(f"{p.name}={placeholder(p)}" for p in missing)
    made = any(p.name in CONFIGS for p in missing)
    how = "say what makes it, by your own names" if made else "say it with your own values"
    hint = f"{how}: {said.typed.with_flags(init=paste).command()}"
    if any(re.fullmatch(r"([\w.]+\.)?Module", p.annotation) for p in missing):
        place, _, name = said.typed.target.partition(":")
        end = f'end {place} with if __name__ == "__main__": and lines that build and call'
        hint = f"{end} {name or 'it'}, and that is what attnlab {said.typed.verb} {place} runs"
    return Unbuilt(f"{takes}: nothing says what {names} should be", hint)
