import torch
from torch import nn
from collections import OrderedDict


class ResidualAttentionBlock(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_head)
        self.ln_1 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(OrderedDict([
            ("c_fc", nn.Linear(d_model, d_model * 4)),
            ("gelu", nn.GELU()),
            ("c_proj", nn.Linear(d_model * 4, d_model)),
        ]))
        self.ln_2 = nn.LayerNorm(d_model)
        self.n_head = n_head

    def attention(self, x, attn_mask):
        attn_mask = attn_mask.repeat(self.n_head, 1, 1)
        return self.attn(x, x, x, need_weights=False, attn_mask=attn_mask)[0]

    def forward(self, para):
        x, attn_mask = para
        x = x + self.attention(self.ln_1(x), attn_mask)
        x = x + self.mlp(self.ln_2(x))
        return (x, attn_mask)


class FrameAggregator(nn.Module):
    """Frames of several clips, padded to the longest one, become one vector per clip."""

    def __init__(self, width=64, layers=2, heads=4, max_frames=12):
        super().__init__()
        self.frame_position_embeddings = nn.Embedding(max_frames, width)
        self.resblocks = nn.Sequential(*[ResidualAttentionBlock(width, heads) for _ in range(layers)])

    def forward(self, visual_output, video_mask):
        seq_length = visual_output.size(1)
        position_ids = torch.arange(seq_length, device=visual_output.device)
        x = visual_output + self.frame_position_embeddings(position_ids)

        extended = (1.0 - video_mask.unsqueeze(1)) * -1000000.0
        extended = extended.expand(-1, seq_length, -1)
        x = x.permute(1, 0, 2)  # NLD -> LND
        x = self.resblocks((x, extended))[0]
        x = x.permute(1, 0, 2)  # LND -> NLD
        x = x + visual_output

        weight = video_mask.unsqueeze(-1)
        return (x * weight).sum(1) / weight.sum(1)


if __name__ == "__main__":
    frames = torch.randn(3, 12, 64)
    mask = torch.ones(3, 12)
    mask[1, 8:] = 0
    mask[2, 5:] = 0
    print(FrameAggregator()(frames, mask).shape)
