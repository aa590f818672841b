"""Attention as the accelerator's simulator does it: one head at a time."""
import math

import torch
import torch.nn as nn


class HeadwiseAttention(nn.Module):
    def __init__(self, hidden=64, num_attention_heads=8, num_key_value_heads=2):
        super().__init__()
        self.num_heads = num_attention_heads
        self.num_kv_heads = num_key_value_heads
        self.d = hidden // num_attention_heads
        self.q_proj = nn.Linear(hidden, hidden)
        self.kv_proj = nn.Linear(hidden, 2 * num_key_value_heads * self.d)
        self.o_proj = nn.Linear(hidden, hidden)

    def forward(self, hidden_states):
        batch, length, _ = hidden_states.shape
        queries = self.q_proj(hidden_states).split(self.d, dim=-1)
        kv = self.kv_proj(hidden_states).view(batch, length, 2, self.num_kv_heads, self.d)
        visible = torch.arange(length)[:, None] >= torch.arange(length)
        outputs = []
        for head in range(self.num_heads):
            kv_head = head // self.num_kv_heads % self.num_kv_heads
            key, value = kv[:, :, 0, kv_head], kv[:, :, 1, kv_head]
            score = queries[head] @ key.mT / math.sqrt(self.d)
            score = score.masked_fill(~visible, -torch.inf)
            outputs.append(score.softmax(-1) @ value)
        return self.o_proj(torch.cat(outputs, dim=-1))


class Layer(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.input_norm = nn.LayerNorm(hidden)
        self.self_attn = HeadwiseAttention(hidden)
        self.post_norm = nn.LayerNorm(hidden)
        self.fc1 = nn.Linear(hidden, 4 * hidden)
        self.fc2 = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        x = x + self.self_attn(self.input_norm(x))
        return x + self.fc2(torch.relu(self.fc1(self.post_norm(x))))


if __name__ == "__main__":
    print(Layer()(torch.randn(3, 10, 64)).shape)
