"""Sizes that a module has names for."""

from types import SimpleNamespace

import pytest
from torch import nn

from attnlab.tracer.axes.module_sizes import module_sizes


def module(**attributes):
    made = nn.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("attributes", "sizes"),
    [
        ({"embed_dim": 12, "num_heads": 3}, {"D": 12, "H": 3, "hd": 4}),
        ({"d_model": 12, "nhead": 5}, {"D": 12, "H": 5}),
        ({"n_head": 4, "n_kv_heads": 2, "head_dim": 6}, {"H": 4, "Hkv": 2, "hd": 6}),
        ({"num_heads": 4, "num_kv_heads": 4}, {"H": 4}),
        ({"config": SimpleNamespace(hidden_size=12, num_attention_heads=5)}, {"D": 12, "H": 5}),
        ({"cfg": {"dim": 12}}, {"D": 12}),
        ({"num_heads": True, "dim": "12", "vocab_size": 1}, {}),
        ({"block_size": 64, "anything": 7}, {}),
    ],
)  # fmt: skip
def test_well_known_names(attributes, sizes):
    """Of attributes and configs; lengths come from the data, and one of something is no size."""
    assert module_sizes(module(**attributes)) == sizes


def test_the_outermost_module_is_heard_first():
    """A rotary embedding inside has a `dim` of its own."""
    outer = module(dim=12)
    outer.rotary = module(dim=4)
    assert module_sizes(outer) == {"D": 12}


def test_no_module_has_no_sizes():
    """A plain function is traced as well."""
    assert module_sizes(None) == {}
