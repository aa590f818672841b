"""The widths of a module's layers, read from its constructor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Layers by the argument that is the width of what they are given, or give.
WIDTH = {
    **dict.fromkeys(("Linear", "LayerNorm", "RMSNorm", "MultiheadAttention", "GRU", "LSTM"), 0),
    **dict.fromkeys(("TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"), 0),
    "Embedding": 1,
}
NAMES = ("in_features", "normalized_shape", "embed_dim", "embedding_dim", "d_model", "input_size")
# Classes that fit any width.
_ANY = """
    Dropout Softmax ReLU GELU SiLU Tanh Sigmoid Identity ModuleList ModuleDict Sequential Flatten
    Parameter ParameterList ValueError TypeError RuntimeError NotImplementedError
"""
ANY = {*_ANY.split()}


def layer_widths(constructor: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """The width of each layer in the order of the source: a number, a name, "?" for the rest."""
    nodes = [node for statement in constructor.body for node in ast.walk(statement)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    return tuple(said for call in calls for said in _width(call))


def _width(call: ast.Call) -> Iterator[str]:
    name = _last_name(call.func)
    if not name[:1].isupper() or name in ANY:
        return
    named = {k.arg: k.value for k in call.keywords}
    given = next((named[n] for n in NAMES if n in named), None)
    place = WIDTH.get(name, 0)
    if given is None and place < len(call.args):
        given = call.args[place]
    if given is not None:
        yield _width_text(given)
    elif call.args or call.keywords:
        yield "?"


def _width_text(node: ast.expr) -> str:
    """`16`, `dim`, `self.dim` and `config.dim` as they are called; "?" for what is computed."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value)
    return _last_name(node) or "?"


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
