"""How to build and feed a module of which only the source is known: by the names people use.

What a user says wins; what nobody says is taken from well-known names; what stays unknown is
refused with the flag that would say it, ready to paste.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from attnlab.case import Scalar, Symbol, must_be_size, parse_input, symbols_of
from attnlab.errors import Refused
from attnlab.near import did_you_mean
from attnlab.outline import Definition, Parameter, Signature
from attnlab.records import Contract, Input, record

# Constructor arguments by the size they mean.
_DIMENSIONS = {
    "D": "embed_dim d_model dim hidden_size n_embd embed_size model_dim embedding_dim emb_dim "
    "emb_size n_embed width hidden embed_dims model_size d_in d_out dim_model",
    "H": "num_heads n_heads heads nhead n_head h num_attention_heads head_count nheads",
    "Hkv": "num_kv_heads n_kv_heads num_key_value_heads kv_heads n_kv_head",
    "M": "max_seq_len max_len max_length block_size seq_len max_position_embeddings "
    "max_seq_length seq_length context_length n_positions max_positions ctx_len",
    "V": "vocab_size num_embeddings n_vocab",
    "hd": "head_dim d_k d_head d_v dim_head head_size",
    "F": "d_ff hidden_dim ffn_dim intermediate_size mlp_dim dim_feedforward ff_dim d_hidden",
}
DIMENSIONS = {name: symbol for symbol, names in _DIMENSIONS.items() for name in names.split()}
DIMENSIONS |= {symbol: symbol for symbol in ("B", "S", "T", "L", *_DIMENSIONS)}
DIMENSIONS |= {"C": "D", "E": "D"}
# Constructor arguments whose value hardly matters to a trace.
LITERALS: dict[str, Scalar] = {
    **dict.fromkeys(("dropout", "p", "dropout_p", "dropout_rate", "attn_dropout", "drop"), 0.0),
    **dict.fromkeys(("num_layers", "n_layers", "n_layer", "depth"), 2),
    **dict.fromkeys(("bias", "qkv_bias"), True),
    "eps": 1e-5,
    "base": 10000.0,
}
_FEEDS = {
    "B S D": "x hidden_states inputs input src tgt query q key k value v queries keys values "
    "hidden embeddings memory context encoder_hidden_states",
    "B S int": "input_ids ids tokens token_ids idx positions position_ids",
    "B S S bool forbids": "mask attn_mask attention_mask src_mask causal_mask",
    "B S bool forbids": "key_padding_mask padding_mask pad_mask",
}
FEEDS = {name: said for said, names in _FEEDS.items() for name in names.split()}

# Sizes that nobody gave: pairwise different, and D a multiple of H. Order matters: see `_choose`.
SIZES = {"B": 2, "S": 5, "T": 5, "L": 5, "Sq": 5, "Sk": 7, "H": 3, "D": 12, "C": 12, "E": 12}
SIZES |= {"Hkv": 1, "M": 64, "V": 50, "F": 24}
TINY = {"B": 1, "S": 4, "D": 8, "H": 2}
LENGTHS = ("S", "T", "L", "Sq", "Sk")
WIDTHS = ("D", "C", "E")
DEMO = 'Add an `if __name__ == "__main__":`'


@record
class Said:
    """What the user said, from --case and flags together."""

    init: dict[str, Scalar]
    sizes: dict[str, int]
    inputs: tuple[Input, ...] = ()


def complete(base: Contract, said: Said, target: str, seen: Definition | None) -> Contract:
    """`base` with sizes, constructor arguments and inputs filled in for `target`."""
    build, forward = (seen.build, seen.forward) if seen else (None, None)
    keywords, sizes = _split(said, build)
    named = [s for s in said.init if s in sizes and s not in ("B", *LENGTHS)]
    if build:
        keywords, sizes = _constructor(build, keywords, sizes, named, target)
    inputs = _inputs(forward, said.inputs, target) if forward else said.inputs
    used = symbols_of(axis for entry in inputs for axis in entry.axes)
    used += symbols_of(base.output)
    used += [v for v in keywords.values() if isinstance(v, str) and _is_symbol(v, sizes)]
    init = {key: _settled(value) for key, value in keywords.items()}
    return replace(base, sizes=settle(sizes, used), init=init, inputs=inputs)


def settle(given: Mapping[str, int], used: Iterable[str]) -> dict[str, int]:
    """`given`, and a size for every symbol in `used` that has none; raises `Refused`."""
    sizes = dict(given)
    wanted = set(used)
    if "hd" in wanted and "hd" not in sizes:
        wanted = wanted - {"hd"} | {"D", "H"}  # hd is always D / H
    for symbol in [*SIZES, *sorted(wanted - set(SIZES))]:
        if symbol in wanted and symbol not in sizes:
            sizes[symbol] = _choose(symbol, sizes)
    return dict(sorted(sizes.items(), key=lambda item: _place(item[0])))


# ---------------------------------------------------------------- sizes


def _place(symbol: str) -> int:
    order = ("B", *LENGTHS, *WIDTHS, *SIZES)
    return order.index(symbol) if symbol in order else len(order)


def _choose(symbol: str, sizes: Mapping[str, int]) -> int:
    """A size for `symbol` that no other symbol has, so that no two axes are taken for one."""
    if symbol not in SIZES:
        hint = did_you_mean(symbol, [*sizes, *SIZES, "hd", "float", "int", "bool"])
        hint = f"{hint} Or say its size: --sizes".strip() + f' "{symbol}=12".'
        raise Refused(f"{symbol} has no size", hint)
    taken = {*sizes.values(), *(sizes[w] // sizes["H"] for w in WIDTHS if {w, "H"} <= set(sizes))}
    if symbol == "H":
        return _heads(sizes, taken)
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


def _heads(sizes: Mapping[str, int], taken: set[int]) -> int:
    widths = [sizes[s] for s in WIDTHS if s in sizes]
    fits = [h for h in (3, 2, 4, 6, 5, 7) if all(w % h == 0 for w in widths)]
    fresh = [h for h in fits if not {h, *(w // h for w in widths)} & taken]
    return (fresh or fits or [1])[0]


def _is_symbol(name: str, sizes: Mapping[str, int]) -> bool:
    return isinstance(name, Symbol) or name in sizes or name in SIZES or name == "hd"


def _settled(value: Scalar) -> Scalar:
    return str(value) if isinstance(value, Symbol) else value


# ---------------------------------------------------------------- constructor


def _split(said: Said, build: Signature | None) -> tuple[dict[str, Scalar], dict[str, int]]:
    """What --init says, as constructor arguments and sizes."""
    keywords: dict[str, Scalar] = {}
    sizes = dict(said.sizes)
    for key, value in said.init.items():
        known = build is not None and key in build.names()
        if known or not re.fullmatch(r"[A-Z]\w{0,2}|hd", key):
            if build and not known and not build.keywords:
                hint = did_you_mean(key, build.names()) or f"It takes {_listed(build)}."
                raise Refused(f"--init: the constructor takes no {key}", hint, "--init")
            keywords[key] = value
        else:
            must_be_size(key, value, "--init")
            sizes[key] = int(value)
    return keywords, sizes


def _constructor(
    build: Signature,
    given: dict[str, Scalar],
    sizes: dict[str, int],
    named: list[str],
    target: str,
) -> tuple[dict[str, Scalar], dict[str, int]]:
    """The constructor's arguments, and the sizes with what its defaults say."""
    found = dict(given)
    said = set(sizes)
    sizes = dict(sizes)
    for parameter in build.parameters:
        symbol = DIMENSIONS.get(parameter.name, "")
        stated = given.get(parameter.name, parameter.default)
        free = symbol not in ("", "hd") and sizes.get(symbol, stated) == stated
        if free and _is_size(stated):
            sizes[symbol] = int(stated or 0)  # embed_dim=64 tells what D is; hd stays D / H
            found[parameter.name] = symbol
        elif symbol and parameter.name not in given and (parameter.required or symbol in said):
            found[parameter.name] = symbol
        elif parameter.required and parameter.name in LITERALS:
            found.setdefault(parameter.name, LITERALS[parameter.name])
    unknown = [p for p in build.parameters if p.required and p.name not in found]
    found |= _in_order(build, unknown, named, found)
    if missing := [p for p in unknown if p.name not in found]:
        raise _cannot_build(target, build, missing)
    order = [*build.names(), *given]
    return {key: found[key] for key in dict.fromkeys(order) if key in found}, sizes


def _is_size(value: Scalar | None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _in_order(
    build: Signature, unknown: list[Parameter], named: list[str], found: dict[str, Scalar]
) -> dict[str, Scalar]:
    """`--init "D=182, H=7"` for a constructor that takes two arguments of unknown names."""
    required = [p for p in build.parameters if p.required]
    if len(named) != len(required):
        return {}
    left = [symbol for symbol in named if symbol not in found.values()]
    if len(left) == len(unknown):
        return dict(zip((p.name for p in unknown), left, strict=True))
    return {p.name: s for p, s in zip(required, named, strict=True) if p in unknown}


def _cannot_build(target: str, build: Signature, missing: list[Parameter]) -> Refused:
    names = ", ".join(p.name for p in missing)
    says = f"{target} is built with ({_listed(build)}): nothing says what {names} should be"
    paste = ", ".join(f"{p.name}={_placeholder(p)}" for p in missing)
    hint = f'Say it with your own values: --init "{paste}"'
    if any(p.name in ("config", "cfg", "args", "conf") for p in missing):
        hint = f"{DEMO} that builds and calls it; then name the file alone."
    return Refused(says, hint, "--init")


def _placeholder(parameter: Parameter) -> str:
    kinds = {"bool": "True", "float": "0.1", "str": "'text'"}
    return kinds.get(parameter.annotation, "12")


def _listed(signature: Signature) -> str:
    return ", ".join(signature.names()) or "no arguments"


# ---------------------------------------------------------------- inputs


def _inputs(forward: Signature, given: tuple[Input, ...], target: str) -> tuple[Input, ...]:
    """The inputs in the order of `forward`; arguments with a default are fed only when given."""
    said = {entry.name: entry for entry in given}
    found: list[Input] = []
    missing: list[Parameter] = []
    for parameter in forward.parameters:
        if parameter.name in said:
            found.append(said.pop(parameter.name))
        elif parameter.required and parameter.name in FEEDS:
            found.append(parse_input(f"{parameter.name}: {FEEDS[parameter.name]}"))
        elif parameter.required:
            missing.append(parameter)
    if said and not forward.keywords:
        raise _no_such_input(next(iter(said)), forward)
    if missing:
        raise _cannot_feed(target, forward, missing)
    return (*found, *said.values())


def _no_such_input(name: str, forward: Signature) -> Refused:
    hint = did_you_mean(name, forward.names()) or f"It takes {_listed(forward)}."
    return Refused(f"--input: forward takes no {name}", hint, "--input")


def _cannot_feed(target: str, forward: Signature, missing: list[Parameter]) -> Refused:
    names = ", ".join(p.name for p in missing)
    says = f"{target}: forward takes ({_listed(forward)}), and nothing says what {names} should be"
    paste = " ".join(f'--input "{p.name}: B S D"' for p in missing)
    hint = f"Say the axes of each, with your own symbols: {paste}"
    if any(p.annotation in ("int", "bool", "str", "float") for p in missing):
        hint = f"{DEMO} that calls it; then name the file alone."
    return Refused(says, hint, "--input")
