"""What a contract says of a module: the facts that checks need, and which axis is which.

Each fact and each promise is declared once, in `contract_facts.toml`. `[contract] promises` is
validated by it, `attnlab grade` takes from it why a check was skipped, and docs/make.py the table
of promises.

A query axis is `S`, or `Sq` where keys have a length of their own; that length is `Sk`.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from attnlab.records import Contract, Input, Position


class ContractFact(NamedTuple):
    """A fact that a check can need. A promise holds where the contract lists it."""

    name: str
    missing: str = ""  # why a check that needs it is skipped; "": no check needs it
    holds: Callable[[Contract], bool] | None = None  # where the contract does not list it
    promise: str = ""  # what listing it promises, in Markdown; "": it cannot be listed
    requires: str = ""  # the promise that must be listed with it


def known_facts(contract: Contract) -> set[str]:
    """The names of the facts that hold for a contract."""
    found = (fact.name for fact in FACTS.values() if fact.holds and fact.holds(contract))
    return {*contract.promises, *found}


# ---------------------------------------------------------------- inputs and axes


def has_query_axis(spec: Input) -> bool:
    """Whether a mask has an axis of queries before that of the keys, so that it can be causal."""
    return spec.role == "mask" and len(spec.axes) > 1 and spec.axes[-2] not in ("B", "H", "1")


def data_inputs(contract: Contract, axis: str) -> list[Input]:
    """The inputs that carry data along `axis`."""
    return [i for i in contract.inputs if i.role == "data" and axis in i.axes]


def mask_input(contract: Contract) -> Input:
    """The input that is the attention mask."""
    return next(i for i in contract.inputs if i.role == "mask")


def query_axis(contract: Contract) -> str:
    """The axis of the queries."""
    return "Sq" if "Sq" in contract.output else "S"


def key_axis(contract: Contract) -> str:
    """The axis of the inputs that keys come from: a context's, or the queries' own."""
    return "Sk" if data_inputs(contract, "Sk") else query_axis(contract)


# ---------------------------------------------------------------- when a fact holds


def _has_role(contract: Contract, role: str) -> bool:
    return any(i.role == role for i in contract.inputs)


def _keeps_axis(contract: Contract, axis: str) -> bool:
    """Whether an input and the output have this axis."""
    return axis in contract.output and bool(data_inputs(contract, axis))


def _attends(contract: Contract) -> bool:
    promised = not {"causal", "averaging"}.isdisjoint(contract.promises)
    one_sequence = query_axis(contract) in contract.output and not _has_role(contract, "segments")
    return (_has_role(contract, "mask") or promised) and one_sequence


def _can_reorder_cache(contract: Contract) -> bool:
    cache = contract.cache
    return cache is not None and (cache.form == "returned" or bool(cache.reorder))


def _position(
    kinds: tuple[str, ...] = (), forms: tuple[str, ...] = (), grid: bool = True
) -> Callable[[Contract], bool]:
    """Holds for positions of these kinds and forms; `grid=False` leaves out those of a grid."""

    def holds(contract: Contract) -> bool:
        position: Position | None = contract.position
        return (
            position is not None
            and (not kinds or position.kind in kinds)
            and (not forms or position.form in forms)
            and (grid or not position.grid)
        )

    return holds


_LONG = _position(("sinusoidal", "rotary"))
_TURNED = _position(forms=("rotated",))
# When a fact holds that a contract does not list.
HOLDS: dict[str, Callable[[Contract], bool]] = {
    "causal": lambda c: any(map(has_query_axis, c.inputs)),
    "ordered": _position(),
    "relative": _position(("rotary", "alibi", "t5")),
    "output": lambda c: bool(c.output),
    "batch": lambda c: _keeps_axis(c, "B"),
    "sequence": lambda c: _keeps_axis(c, "S"),
    "positions": lambda c: _keeps_axis(c, query_axis(c)),
    "floats": lambda c: any(i.role == "data" and i.dtype == "float" for i in c.inputs),
    "refusals": lambda c: bool(c.refusals),
    "mask": lambda c: _has_role(c, "mask"),
    "keys": lambda c: _has_role(c, "mask") and bool(data_inputs(c, key_axis(c))),
    "additive": lambda c: any(i.role == "mask" and i.additive for i in c.inputs),
    "attention": _attends,
    "scores": lambda c: _attends(c) or ("H" in c.sizes and c.position is None),
    "all-keys": lambda c: "local" not in c.promises,
    "heads": lambda c: "H" in c.sizes,
    "groups": lambda c: "Hkv" in c.sizes and "Hkv" in c.init.values(),
    "context": lambda c: key_axis(c) == "Sk" and query_axis(c) in c.output,
    "packing": lambda c: _has_role(c, "segments"),
    "cache": lambda c: c.cache is not None and "S" in c.output,
    "cache-memory": lambda c: c.cache is not None and bool(c.cache.most or c.cache.in_place),
    "returned-cache": lambda c: bool(
        c.cache and c.cache.form == "returned" and not c.cache.in_place
    ),
    "beams": _can_reorder_cache,
    "position": _position(("sinusoidal", "rotary", "alibi"), grid=False),
    "table": _position(forms=("returned", "added")),
    "rotated": _position(forms=("rotated",)),
    "places": _position(forms=("returned", "added", "rotated")),
    "bias": _position(forms=("bias",)),
    "monotone": _position(("alibi",)),
    "bucketed": _position(("t5",)),
    "grid": lambda c: bool(c.position and c.position.grid),
    "long": lambda c: (_LONG(c) or _TURNED(c)) and "S" in c.vary,
    "beyond": lambda c: bool(c.position and c.position.beyond),
    "dtypes": lambda c: bool(c.dtypes),
    "padding": lambda c: c.padding_idx is not None,
    "tied": lambda c: bool(c.tied),
    "forbidden": lambda c: bool(c.forbidden),
    "buffers": lambda c: bool(c.buffers),
}
_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
FACTS = {name: ContractFact(name, holds=HOLDS.get(name), **told) for name, told in _TEXTS.items()}
PROMISES = {name: fact for name, fact in FACTS.items() if fact.promise}
