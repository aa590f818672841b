"""Forward passes of the references beside other libraries': B=4, S=512, D=512, H=8, float32.

    python benchmarks/references.py [WORD]       only lines whose name holds WORD

One process, one thread, no gradients, causal masks. The passes of a line take turns, so that noise
hits all alike; a time is the median of its turns, the ratio that of ours over the fastest other.
Aim: at most 2, or the docstring says why not (UNFUSED). Exits 1 when another line is beyond it.
The other libraries are the `peers` extra; what is not installed is left out.

A line is a name, a function that builds our pass, and those that build the others' (others.py).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import others
import torch
from others import HD, HKV, B, D, H, Pass, S, V, causal, context, ids, k, q, scores, x
from rich.console import Console
from rich.table import Table
from torch import nn

from attnlab.references.alibi import ALiBi
from attnlab.references.attention import MultiHeadSelfAttention
from attnlab.references.block import BERT, LLAMA, BlockStyle, CrossBlock, TransformerBlock
from attnlab.references.cross import CrossAttention
from attnlab.references.decoder import DecoderLM
from attnlab.references.feed_forward import FeedForward, SwiGLU
from attnlab.references.grouped import GroupedQueryAttention, MultiQueryAttention
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.norms import LayerNorm, RMSNorm
from attnlab.references.positional import SinusoidalPositionalEncoding
from attnlab.references.relative import T5RelativeBias
from attnlab.references.rotary import RotaryEmbedding
from attnlab.references.variants import QKNormAttention, SinkAttention, SoftCapAttention

ROUNDS, AIM = 9, 2.0
# Against a fused kernel, by a body that reads like the formula: their docstrings say so.
UNFUSED = ("GroupedQueryAttention", "MultiQueryAttention", "QKNormAttention", "LayerNorm")


def run(module: nn.Module, *arguments: Any) -> Callable[[], Pass]:
    return lambda: lambda: module(*arguments)


post_norm = BlockStyle(norm_first=False)
LINES: list[tuple[str, Callable[[], Pass], dict[str, Callable[[], Pass]]]] = [
    (
        "MultiHeadSelfAttention",
        run(MultiHeadSelfAttention(D, H), x, causal[:, 0].expand(B, S, S)),
        {"nn.MultiheadAttention": others.multihead_norm_residual},
    ),
    (
        "GroupedQueryAttention, H",
        run(GroupedQueryAttention(D, H), x, causal),
        {
            "nn.MultiheadAttention": others.multihead,
            "x-transformers": others.x_transformers(flash=True),
        },
    ),
    (
        "GroupedQueryAttention, 2",
        run(GroupedQueryAttention(D, H, HKV, bias=False), x, causal),
        {
            "Llama": others.hugging("llama", "Llama"),
            "x-transformers": others.x_transformers(kv_heads=HKV, flash=True),
        },
    ),
    (
        "MultiQueryAttention",
        run(MultiQueryAttention(D, H, bias=False), x, causal),
        {
            "Llama": others.hugging("llama", "Llama", num_key_value_heads=1),
            "x-transformers": others.x_transformers(one_kv_head=True, flash=True),
        },
    ),
    (
        "QKNormAttention",
        run(QKNormAttention(D, H, HKV, bias=False), x, causal),
        {"Qwen3": others.hugging("qwen3", "Qwen3"), "Gemma 3": others.hugging("gemma3", "Gemma3")},
    ),
    (
        "SoftCapAttention",
        run(SoftCapAttention(D, H, HKV, bias=False), x, causal),
        {
            "Gemma 2": others.hugging("gemma2", "Gemma2"),
            "x-transformers": others.x_transformers(kv_heads=HKV, softclamp_logits=True),
        },
    ),
    (
        "SinkAttention",
        run(SinkAttention(D, H, HKV), x, causal),
        {
            "gpt-oss": others.hugging("gpt_oss", "GptOss"),
            "x-transformers": others.x_transformers(kv_heads=HKV, head_learned_sink=True),
        },
    ),
    (
        "CrossAttention",
        run(CrossAttention(D, H), x, context),
        {"nn.MultiheadAttention": others.multihead_cross},
    ),
    (
        "TransformerBlock, pre-norm",
        run(TransformerBlock(D, H, BlockStyle()), x, causal),
        {"nn.TransformerEncoderLayer": others.torch_encoder(norm_first=True)},
    ),
    (
        "TransformerBlock, post-norm",
        run(TransformerBlock(D, H, BERT), x, causal),
        {"nn.TransformerEncoderLayer": others.torch_encoder(norm_first=False)},
    ),
    (
        "TransformerBlock, Llama",
        run(TransformerBlock(D, H, LLAMA), x, causal),
        {"Llama": others.llama_layer},
    ),
    (
        "CrossBlock",
        run(CrossBlock(D, H, post_norm), x, context, causal),
        {"nn.TransformerDecoderLayer": others.torch_decoder},
    ),
    (
        "DecoderLM, 2 blocks",
        run(DecoderLM(V, D, H, 2, S), ids),
        {"GPT-2": others.hugging_model("GPT2", n_embd=D, n_head=H, n_layer=2, n_positions=S)},
    ),
    ("LayerNorm", run(LayerNorm(D), x), {"nn.LayerNorm": run(nn.LayerNorm(D), x)}),
    (
        "RMSNorm",
        run(RMSNorm(D), x),
        {
            "nn.RMSNorm": run(nn.RMSNorm(D), x),
            "Llama": others.hugging_part("llama.modeling_llama", "LlamaRMSNorm", D),
        },
    ),
    (
        "RotaryEmbedding",
        run(RotaryEmbedding(HD, layout="half"), q, k),
        {"Llama": others.llama_rotation, "rotary-embedding-torch": others.rotary_torch},
    ),
    (
        "SinusoidalPositionalEncoding",
        run(SinusoidalPositionalEncoding(D, S), x),
        {"positional-encodings": others.positional_encodings},
    ),
    (
        "LearnedPositionalEncoding",
        run(LearnedPositionalEncoding(D, S), x),
        {"nn.Embedding": others.learned_table},
    ),
    ("T5RelativeBias", run(T5RelativeBias(H), scores), {"T5": others.t5_bias}),
    ("ALiBi", run(ALiBi(H), scores), {"x-transformers": others.x_alibi}),
    ("FeedForward", run(FeedForward(D, 4 * D), x), {"nn.Sequential": others.plain_layers}),
    ("SwiGLU", run(SwiGLU(D, 4 * D), x), {"Llama": others.llama_mlp}),
]


def main(word: str = "") -> int:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.filterwarnings("ignore")  # of the other libraries, about their own parts
    torch.set_num_threads(1)
    table = Table("reference", "ms", "fastest other", "ms", "ratio", "within 2x")
    beyond = 0
    with torch.no_grad():  # inference_mode keeps PyTorch's attention from its fused kernel
        for name, own, theirs in LINES:
            if word.lower() not in name.lower():
                continue
            times = measure({"": own, **theirs})
            mine = times.pop("")
            if not times:
                table.add_row(name, f"{mine * 1e3:.2f}", "none installed", "", "", "")
                continue
            fastest = min(times, key=times.__getitem__)
            ratio = mine / times[fastest]
            row = [f"{mine * 1e3:.2f}", fastest, f"{times[fastest] * 1e3:.2f}", f"{ratio:.2f}"]
            within = "yes" if ratio <= AIM else "unfused" if name.startswith(UNFUSED) else "NO"
            beyond += within == "NO"
            table.add_row(name, *row, within)
    Console(width=100).print(table)
    return int(beyond > 0)


def measure(builders: dict[str, Callable[[], Pass]]) -> dict[str, float]:
    """Median CPU seconds of each pass; a library that cannot be imported is left out."""
    passes: dict[str, Pass] = {}
    for name, build in builders.items():
        try:
            passes[name] = build()
        except ImportError:
            continue
        passes[name]()
    times: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(ROUNDS):
        for name, run in passes.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(found) for name, found in times.items()}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
