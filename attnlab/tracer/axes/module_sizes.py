"""The sizes that a module itself has names for: its heads and widths, by well-known names."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from attnlab.target.conventions import DIMENSIONS

CONFIGS = ("config", "cfg", "args", "hparams", "params")
MADE = ("D", "H", "Hkv", "hd", "F", "V")  # what a constructor decides; lengths come from the data
MORE = {
    "attention_heads": "H",
    "encoder_attention_heads": "H",
    "n_inner": "F",
    "d_kv": "hd",
    "ffn_hidden_size": "F",
    "encoder_ffn_dim": "F",
    "num_key_value_heads": "Hkv",
    "dim_out": "",
    "dim_in": "",
}


def module_sizes(root: nn.Module | None) -> dict[str, int]:
    """D, H, hd and their like: from a config, else from the attributes of its modules."""
    found: dict[str, int] = {}
    for name, value in _named(root):
        symbol = MORE.get(name, DIMENSIONS.get(name, ""))
        if symbol in MADE and type(value) is int and value > 1:
            found.setdefault(symbol, value)
    if found.get("H") and "D" in found and found["D"] % found["H"] == 0:
        found.setdefault("hd", found["D"] // found["H"])
    if found.get("Hkv") == found.get("H"):
        found.pop("Hkv", None)
    return found


def _named(root: nn.Module | None) -> Iterator[tuple[str, Any]]:
    if root is None:
        return
    configs = [vars(root).get(name) for name in CONFIGS]
    for holder in (*configs, *root.modules()):
        yield from _entries({} if holder is None else holder)


def _entries(holder: Any) -> Iterator[tuple[str, Any]]:
    """What an object or a dict holds; an object that answers in its own way is left alone."""
    try:
        entries = holder if isinstance(holder, dict) else vars(holder)
    except TypeError:
        return
    yield from [(n, v) for n, v in entries.items() if isinstance(n, str)]
    for renamed, own in getattr(type(holder), "attribute_map", {}).items():
        if own in entries:
            yield renamed, entries[own]
