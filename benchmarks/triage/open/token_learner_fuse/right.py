import torch
import torch.nn as nn
import torch.nn.functional as F


class TokenLearner(nn.Module):
    """Pools an (B, H, W, C) feature map into S tokens."""

    def __init__(self, channels, S):
        super().__init__()
        self.S = S
        self.maps = nn.Sequential(
            nn.Conv2d(channels, S, 3, padding=1), nn.GELU(), nn.Conv2d(S, S, 3, padding=1), nn.Sigmoid()
        )

    def forward(self, x):
        a = self.maps(x.permute(0, 3, 1, 2))                 # B,S,H,W
        a = a.flatten(2)
        a = a / a.sum(-1, keepdim=True)
        return torch.bmm(a, x.flatten(1, 2))                 # B,S,C


class FuseBlock(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.mix = nn.MultiheadAttention(channels, heads)
        self.norm = nn.LayerNorm(channels)

    def forward(self, tokens):
        B, S, C = tokens.shape
        y = self.norm(tokens)
        y = y.transpose(0, 1)
        out, _ = self.mix(y, y, y, need_weights=False)
        return tokens + out.transpose(0, 1)


class VideoHead(nn.Module):
    def __init__(self, channels=32, S=8, heads=4, classes=10):
        super().__init__()
        self.learner = TokenLearner(channels, S)
        self.fuse = nn.Sequential(FuseBlock(channels, heads), FuseBlock(channels, heads))
        self.cls = nn.Linear(channels, classes)

    def forward(self, x):
        t = self.fuse(self.learner(x))
        return self.cls(F.relu(t.mean(1)))


if __name__ == "__main__":
    frames = torch.rand(3, 7, 9, 32)
    head = VideoHead()
    print("logits", head(frames).shape)
