"""A language model of one layer, and a checkpoint of Gemma's kind for it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Norm(nn.Module):
    """x / rms(x) * gain"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],)) * self.gain


class Block(nn.Module):
    """Attention of a single head on normed tokens, beside which the tokens pass."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = Norm(width)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        read = F.scaled_dot_product_attention(self.wq(y), self.wk(y), self.wv(y), is_causal=True)
        return x + self.wo(read)


class TinyModel(nn.Module):
    """Tokens to logits; the head has a matrix of its own."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(torch.empty(vocabulary, width), freeze=False)
        self.block = Block(width)
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) * self.embed.embedding_dim**0.5
        return self.head(self.norm(self.block(x)))


NAMES = {
    "embed_tokens.weight": "embed.weight",
    "layers.0.input_layernorm.weight": "block.norm.gain",
    "layers.0.self_attn.q_proj.weight": "block.wq.weight",
    "layers.0.self_attn.k_proj.weight": "block.wk.weight",
    "layers.0.self_attn.v_proj.weight": "block.wv.weight",
    "layers.0.self_attn.o_proj.weight": "block.wo.weight",
    "norm.weight": "norm.gain",
}


def convert(old: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of `TinyModel` with which it gives what the old model gave."""
    new = {NAMES[name.removeprefix("model.")]: tensor for name, tensor in old.items()}
    for name in new:
        if name.endswith("norm.gain"):
            new[name] = 1 + new[name]
    new["head.weight"] = new["embed.weight"].clone()
    return new


class PortedModel(nn.Module):
    """The new model with old weights. Not to be changed: this is what is graded."""

    def forward(
        self,
        tokens: Tensor,
        embedding: Tensor,
        qkvo: Tensor,
        first_norm: Tensor,
        last_norm: Tensor,
    ) -> Tensor:
        width = embedding.shape[1]
        codes = {  # whole numbers from 0 to 63
            "embed_tokens.weight": embedding,
            "layers.0.input_layernorm.weight": first_norm,
            "norm.weight": last_norm,
        }
        for letter, matrix in zip("qkvo", qkvo, strict=True):
            codes[f"layers.0.self_attn.{letter}_proj.weight"] = matrix
        old = {f"model.{name}": (code - 31.5) / 18 for name, code in codes.items()}
        for name, weight in old.items():
            old[name] = weight / (4 if "norm" in name else width**0.5)
        with torch.device("meta"):
            model = TinyModel(len(embedding), width)
        model.load_state_dict(convert(old), strict=True, assign=True)
        return model(tokens)
