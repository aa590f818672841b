"""`attnlab cost` on models that nobody here wrote, against PyTorch's own counter."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnlab.api import parse_dims
from attnlab.records import Trace, TraceOptions
from attnlab.tracer.cost import Costs
from attnlab.tracer.counted_run import Run
from attnlab.tracer.formulas import evaluate
from attnlab.tracer.in_process import trace_call
from benchmarks.accuracy.measure import FEWER, shorter
from benchmarks.accuracy.right import Given, Model, models

MATH = torch.nn.attention.SDPBackend.MATH  # FlopCounterMode misses the fused ones of a CPU
NAMES = {
    *("GPT-2", "GPT-2, sdpa", "BERT", "Llama", "Llama, sdpa", "T5", "Gemma 2", "Qwen 3"),
    *("GPT-NeoX", "GPT-J", "OPT", "Phi", "Falcon", "MPT", "Mixtral", "StableLM", "OLMo 2"),
    *("RoBERTa", "ALBERT", "DistilBERT", "ELECTRA", "BART", "ViT", "DINOv2", "CLIP, vision"),
    *("GPT-2, cache", "Qwen 3, cache", "Falcon, cache", "Mistral, sliding window, cache"),
}
MODELS = [m for m in models() if m.name in NAMES]


def traced(given: Given) -> Trace:
    options = TraceOptions(cost=True)
    with torch.no_grad():
        return trace_call(given.module, (), given.kwargs, parse_dims(given.dims), options).trace


def run(given: Given) -> Run:
    trace = traced(given)
    return Run(trace, trace.sizes)


def counted(given: Given) -> int:
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), torch.nn.attention.sdpa_kernel(MATH), counter:
        given.module.eval()(**given.kwargs)
    return counter.get_total_flops()


@pytest.mark.parametrize("model", MODELS, ids=[m.name for m in MODELS])
def test_costs_of_released_models(model: Model):
    """Parameters and bytes are exact; FLOPs are within 1 % of FlopCounterMode's at the example's
    sizes, and so are the formulas at fewer samples and positions (spec row C13)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            given = model.build()
        except ImportError:
            pytest.skip(f"{model.library} is not installed")
        changes = [{}, *({axis: FEWER[axis]} for axis in FEWER)]
        runs = [run(shorter(model.build(), some)) for some in changes]
        costs = Costs([r for i, r in enumerate(runs) if not i or r.sizes != runs[0].sizes])
        first = {c.id: c.value for c in costs.report(runs[0], runs[0].sizes).costs}
        weights = list(given.module.parameters())
        assert first["parameters"] == sum(p.numel() for p in weights)
        assert first["weights"] == sum(p.numel() * p.element_size() for p in weights)
        assert first["flops"] == pytest.approx(counted(given), rel=0.01)
        formula, fewer = costs.formula("flops"), run(shorter(model.build()))
        if formula is None:  # keys end with the window, so that no formula of the length holds
            assert "window" in model.name
            return
        moved = evaluate(formula, fewer.sizes)
        assert moved == pytest.approx(counted(shorter(model.build())), rel=0.01)
