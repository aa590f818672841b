"""What a contract says of a module: which needs of checks it meets, and which axis is which.

A query axis is `S`, or `Sq` where keys have a length of their own; that length is `Sk`.
"""

from __future__ import annotations

from attnlab.records import Contract, Input

# Each need, and why a check that has it is skipped without it.
NEEDS_TEXT = {
    "reference": "there is no reference for this module",
    "output": "the shape of the output is not known",
    "batch": "input and output have no batch axis B in common",
    "sequence": "input and output have no sequence axis S in common",
    "positions": "input and output have no axis of positions in common",
    "mask": "the module takes no attention mask",
    "keys": "no input runs along the axis of the mask's keys",
    "additive": "the contract does not say that the mask may be additive",
    "attention": "the module takes no mask and promises neither causality nor averaging",
    "all-keys": "a query of this module need not look at every key that it may attend to",
    "heads": "the module has no heads H",
    "groups": "the module has no number of key heads Hkv to be built with",
    "scaled": "the module does not promise scores of unit variance",
    "context": "the module takes no context of its own length Sk",
    "packing": "several sequences in one row are not part of its contract",
    "cache": "the module keeps no keys and values from one call to the next",
    "beams": "its cache is not reordered",
    "nan-safe": "the module does not promise to survive NaN at masked keys",
    "floats": "the module takes no floating-point input to differentiate",
    "causal": "the module neither takes a mask nor promises to be causal",
    "averaging": "the module does not promise to average values without positions",
    "empty-rows": "fully masked rows are not part of its contract",
    "position": "the module does not promise a positional encoding formula",
    "table": "the module neither returns nor adds a row per position",
    "rotated": "the module does not turn vectors by their positions",
    "places": "the module gives no position a row or an angle of its own",
    "bias": "the module does not add a bias to scores",
    "ordered": "the module does not promise to tell positions apart",
    "relative": "the module does not promise that only distances matter",
    "monotone": "the module does not promise a bias that falls with distance",
    "bucketed": "the module does not put distances into buckets",
    "grid": "the positions of this module form no grid",
    "long": "the module promises no formula for any number of positions",
    "beyond": "the contract does not say what happens beyond the longest sequence",
    "signature": "the contract does not say in which order arguments stand",
    "dtypes": "the contract names no dtypes beside float32",
    "any-device": "the module does not promise to run on any device",
    "dropout": "the module does not promise dropout",
    "unbiased-dropout": "the module does not promise a mean that dropout leaves as it is",
    "same-dropout": "the module does not promise to drop what the reference drops",
    "padding": "the contract names no padding token",
    "tied": "the contract names no parameters that are one",
    "state-dict": "the contract does not say what a checkpoint holds",
    "forbidden": "the contract forbids no operation",
    "buffers": "the contract names no buffers",
    "refusals": "the contract names no input to refuse",
}


def abilities(contract: Contract) -> set[str]:
    """The needs that a contract meets."""
    facts = _facts(contract) | _attention(contract) | _stateful(contract)
    facts |= _positions(contract) | _module(contract)
    return {*contract.promises, *(name for name, holds in facts.items() if holds)}


def _facts(contract: Contract) -> dict[str, bool]:
    return {
        "output": bool(contract.output),
        "batch": "B" in contract.output and bool(data_inputs(contract, "B")),
        "sequence": "S" in contract.output and bool(data_inputs(contract, "S")),
        "positions": query_axis(contract) in contract.output
        and bool(data_inputs(contract, query_axis(contract))),
        "floats": any(i.dtype == "float" for i in contract.inputs if i.role == "data"),
        "buffers": bool(contract.buffers),
        "refusals": bool(contract.refusals),
    }


def _attention(contract: Contract) -> dict[str, bool]:
    masks = [i for i in contract.inputs if i.role == "mask"]
    queries = query_axis(contract)
    attends = bool(masks) or not {"causal", "averaging"}.isdisjoint(contract.promises)
    return {
        "mask": bool(masks),
        "keys": bool(masks) and bool(data_inputs(contract, key_axis(contract))),
        "additive": any(mask.additive for mask in masks),
        "attention": attends and queries in contract.output and not _segmented(contract),
        "all-keys": "local" not in contract.promises,
        "causal": any(by_query(i) for i in contract.inputs),
        "heads": "H" in contract.sizes,
        "groups": "Hkv" in contract.sizes and "Hkv" in contract.init.values(),
        "context": key_axis(contract) == "Sk" and queries in contract.output,
    }


def _stateful(contract: Contract) -> dict[str, bool]:
    cache = contract.cache
    return {
        "packing": _segmented(contract),
        "cache": cache is not None and "S" in contract.output,
        "beams": cache is not None and (cache.form == "returned" or bool(cache.reorder)),
    }


def _positions(contract: Contract) -> dict[str, bool]:
    position = contract.position
    kind, form = (position.kind, position.form) if position else ("", "")
    return {
        "position": kind in ("sinusoidal", "rotary", "alibi") and not (position and position.grid),
        "table": form in ("returned", "added"),
        "rotated": form == "rotated",
        "places": form in ("returned", "added", "rotated"),
        "bias": form == "bias",
        "ordered": position is not None or "ordered" in contract.promises,
        "relative": kind in ("rotary", "alibi", "t5") or "relative" in contract.promises,
        "monotone": kind == "alibi",
        "bucketed": kind == "t5",
        "grid": bool(position and position.grid),
        "long": kind in ("sinusoidal", "rotary") and "S" in contract.vary,
        "beyond": bool(position and position.beyond),
    }


def _module(contract: Contract) -> dict[str, bool]:
    return {
        "signature": "signature" in contract.promises,
        "dtypes": bool(contract.dtypes),
        "padding": contract.padding_idx is not None,
        "tied": bool(contract.tied),
        "state-dict": bool(contract.state_dict),
        "forbidden": bool(contract.forbidden),
    }


def _segmented(contract: Contract) -> bool:
    return any(i.role == "segments" for i in contract.inputs)


def by_query(spec: Input) -> bool:
    """A mask that can be causal has an axis of queries before that of the keys."""
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
