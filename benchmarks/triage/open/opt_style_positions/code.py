import torch
from torch import nn


class OffsetPositions(nn.Embedding):
    """Learned positions; two slots at the front are kept free."""

    def __init__(self, num_embeddings, embedding_dim):
        self.offset = 2
        super().__init__(num_embeddings + self.offset, embedding_dim)
        self.last = -1

    def forward(self, attention_mask):
        attention_mask = attention_mask.long()
        positions = torch.cumsum(attention_mask, dim=1) * attention_mask - 1
        positions = positions + self.last + 1
        self.last = int(positions.max())
        return super().forward(positions + self.offset)


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.self_attn_layer_norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)
        self.final_layer_norm = nn.LayerNorm(dim)

    def forward(self, x, future, pad):
        h = self.self_attn_layer_norm(x)
        h, _ = self.self_attn(h, h, h, attn_mask=future, key_padding_mask=pad, need_weights=False)
        x = x + h
        return x + self.fc2(torch.relu(self.fc1(self.final_layer_norm(x))))


class OPTDecoder(nn.Module):
    def __init__(self, vocab=128, dim=48, heads=3, layers=2, max_positions=256):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim, padding_idx=1)
        self.embed_positions = OffsetPositions(max_positions, dim)
        self.layers = nn.ModuleList([DecoderLayer(dim, heads) for _ in range(layers)])
        self.final_norm = nn.LayerNorm(dim)

    def forward(self, input_ids):
        mask = input_ids.ne(1)
        n = input_ids.shape[1]
        x = self.embed_tokens(input_ids) + self.embed_positions(mask)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        for layer in self.layers:
            x = layer(x, future, ~mask)
        return self.final_norm(x) @ self.embed_tokens.weight.t()


if __name__ == "__main__":
    ids = torch.randint(2, 128, (3, 14))
    ids[2, 10:] = 1
    print(OPTDecoder()(ids).shape)
