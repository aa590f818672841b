import math

import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, hidden_size=64, num_attention_heads=4):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = hidden_size // num_attention_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def transpose_for_scores(self, x):
        new_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        return x.view(new_shape).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.attention_head_size)
        probs = nn.functional.softmax(scores + attention_mask, dim=-1)
        context = torch.matmul(probs, value).permute(0, 2, 1, 3).contiguous()
        return self.dense(context.view(context.size()[:-2] + (-1,)))


class Layer(nn.Module):
    def __init__(self, hidden_size=64, intermediate_size=128, dropout=0.1):
        super().__init__()
        self.attention = SelfAttention(hidden_size)
        self.attention_norm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.intermediate = nn.Linear(hidden_size, intermediate_size)
        self.output = nn.Linear(intermediate_size, hidden_size)
        self.output_norm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs, attention_mask):
        attended = self.dropout(self.attention(inputs, attention_mask))
        hidden = self.attention_norm(inputs + attended)
        ffn = self.dropout(self.output(nn.functional.gelu(self.intermediate(hidden))))
        return self.output_norm(hidden + ffn)


class TinyBert(nn.Module):
    def __init__(self, vocab_size=100, hidden_size=64, layers=3):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(40, hidden_size)
        self.norm = nn.LayerNorm(hidden_size)
        self.layer = nn.ModuleList([Layer(hidden_size) for _ in range(layers)])
        self.pooler = nn.Sequential(nn.Linear(hidden_size, hidden_size), nn.Tanh())

    def forward(self, input_ids):
        attention_mask = (1.0 - (input_ids > 0)[:, None, None, :].float()) * -10000.0
        position_ids = torch.arange(input_ids.size(1), device=input_ids.device)
        hidden = self.norm(self.word_embeddings(input_ids) + self.position_embeddings(position_ids))
        for layer in self.layer:
            hidden = layer(hidden, attention_mask)
        return self.pooler(hidden[:, 0])
