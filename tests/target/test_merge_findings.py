"""What the text of a file says of axes that a view merges."""

import pytest

from attnlab.target.source_findings import source_findings

WRONG = {
    "windows back": """
def from_windows(win, ws, h, w):
    b = win.shape[0] // (h * w // ws**2)
    x = win.view(b, h // ws, w // ws, ws, ws, -1)
    return x.contiguous().view(b, h, w, -1)
""",
    "windows": """
def windows(x, ws):
    B, H, W, C = x.shape
    x = x.view(B, H // ws, ws, W // ws, ws, C)
    return x.view(-1, ws * ws, C)
""",
    "patches of a square": """
class Net(nn.Module):
    def forward(self, x):
        x = self.head(x)
        x = torch.reshape(x, (x.shape[0], self.grid, self.grid, self.patch, self.patch, 3))
        return x.permute(0, 5, 1, 2, 3, 4).reshape(-1, 3, self.grid * self.patch, self.grid * \
self.patch)
""",
    "patches by an einsum": """
def unpatchify(self, x):
    p, h = self.p, self.grid
    x = x.reshape(x.shape[0], h, h, p, p, 3)
    x = torch.einsum("nhwpqc->nchwpq", x)
    return x.reshape(x.shape[0], 3, h * p, h * p)
""",
    "less the mean": """
def forward(self, x):
    B, T, N = x.shape
    mean = x.mean(1, keepdim=True)
    x = (x - mean) / (x.std(dim=1, keepdim=True) + 1e-5)
    return x.contiguous().view(B * N, T)
""",
    "pixels shuffled": """
def shuffle(x, r):
    b, c, h, w = x.size()
    x = x.view(b, c // (r * r), r, r, h, w)
    return x.view(b, c // (r * r), h * r, w * r)
""",
    "channels alone": """
def forward(self, x):
    batch, length, channels = x.shape
    x = self.embed(x.reshape(batch * channels, length))
""",
    "channels alone, the rest counted": """
def forward(self, x):
    batch, length, channels = x.shape
    return self.rnn(x.reshape(-1, length))
""",
    "channels put back": """
def back(y, b, c, horizon):
    y = y.view(b * c, horizon)
    return y.view(b, horizon, c)
""",
    "heads as a batch": """
def forward(self, x):
    b, t, d = x.shape
    q = self.q(x).view(b, t, self.heads, self.hd)
    q = q.reshape(b * self.heads, t, self.hd)
""",
    "heads merged": """
def merge(out):
    b, h, t, hd = out.shape
    return out.reshape(b, t, h * hd)
""",
    "a norm between": """
class Net(nn.Module):
    def __init__(self):
        self.norm = nn.LayerNorm(8)
    def forward(self, x):
        b, t, c = x.shape
        x = self.norm(x)
        return x.reshape(b * c, t)
""",
}
RIGHT = {
    "windows back": """
def from_windows(win, ws, h, w):
    x = win.view(-1, h // ws, w // ws, ws, ws, win.shape[-1])
    x = x.permute(0, 1, 3, 2, 4, 5).contiguous()
    return x.view(-1, h, w, win.shape[-1])
""",
    "a grid": """
def grid(x, g):
    b, h, w, c = x.shape
    x = x.view(b, g, h // g, g, w // g, c).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b * (h // g) * (w // g), g * g, c)
""",
    "patches by an einsum": """
def unpatchify(self, x):
    p, h = self.p, self.grid
    x = x.reshape(x.shape[0], h, h, p, p, 3)
    x = torch.einsum("nhwpqc->nchpwq", x)
    return x.reshape(x.shape[0], 3, h * p, h * p)
""",
    "less the mean": """
def forward(self, x):
    B, T, N = x.shape
    x = (x - x.mean(1, keepdim=True)).transpose(1, 2)
    return x.contiguous().view(B * N, T)
""",
    "groups go to the batch": """
def groups(x, g):
    b, c, h, w = x.shape
    return x.view(b * g, c // g, h, w).view(b, g, c // g, h * w).transpose(1, 2).reshape(b, c, h, w)
""",
    "channels first": """
def forward(self, x):
    b, l, c = x.shape
    x = x.transpose(1, 2)
    return x.reshape(b * c, l).view(b, c, l)
""",
    "a layout that may change": """
def forward(self, x):
    b, t, c = x.shape
    if self.channels_first:
        x = x.transpose(1, 2)
    return x.reshape(b * c, t)
""",
    "a layer that may move axes": """
def forward(self, x):
    b, t, c = x.shape
    x = self.to_channels(x)
    return x.reshape(b * c, t)
""",
    "a layer of two kinds": """
class One(nn.Module):
    def __init__(self):
        self.norm = nn.LayerNorm(8)
class Two(nn.Module):
    def __init__(self):
        self.norm = nn.Conv1d(8, 8, 1)
    def forward(self, x):
        b, t, c = x.shape
        x = self.norm(x)
        return x.reshape(b * c, t)
""",
    "a skew": """
def skewed(scores):
    b, h, t, s = scores.shape
    return scores.reshape(b, h, s, t)[:, :, 1:].reshape(b, h, t, t)
""",
    "sizes that change": """
def forward(self, x):
    b, h, t, d = x.shape
    x = x.transpose(1, 2)
    h, t = t, h
    return x.reshape(b * h, t, d)
""",
    "heads": """
def forward(self, x):
    b, t, d = x.shape
    qkv = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
    q, k, v = qkv.reshape(3, b * self.heads, t, -1).unbind(0)
    return (q @ v).view(b, self.heads, t, -1).transpose(1, 2).reshape(b, t, d)
""",
}


def lines(text):
    found = source_findings(text, "net.py")
    return [f.line for f in found if f.rule == "reshape-moves-axes"]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_merged_stands_side_by_side(name):
    """Without a permute, a view merges neighbours alone, whatever the sizes are called."""
    assert len(lines(WRONG[name])) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_moved_axes_may_be_merged(name):
    """Permuted axes, a split that goes to the batch, a skew, and what is not known: no alarm."""
    assert lines(RIGHT[name]) == []
