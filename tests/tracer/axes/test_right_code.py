# ruff: noqa: E501
"""Right code in the styles people use: no line of it may raise a warning."""

import pytest
from followed import followed

CODE = {
    "experts": (
        "e = torch.stack([W.qkv(x).chunk(3,-1)[0][..., :14], W.qkv(x).chunk(3,-1)[1][..., :14]], 2).view(B, S, -1, hd).transpose(1, 2)\n"
        "k2 = torch.randn(B, 2, S, hd)\n"
        "e @ kv.repeat(1, 2, 1, 1)[:, :4].mT"
    ),
    "interp": ("t = F.interpolate(W.table.T[None, :, :60], size=S).transpose(1, 2)\nx + t"),
    "moe": (
        "w = W.up(x)[..., :4].softmax(-1)\n"
        "e = torch.stack([W.up(x)] * 4)\n"
        "(e * w.permute(2,0,1)[..., None]).transpose(2, 3) @ x"
    ),
    "glu": ("a = W.qkv(x)[..., :84]\nF.glu(a, -1) + x"),
    "glu2": ("a, b = W.qkv(x)[..., :84].chunk(2, -1)\na * b.sigmoid() + x"),
    "resplit": ("z = torch.cat([x, x * 2], 0)\na, b = z.split(B)\na + b + x"),
    "resplit view": (
        "z = torch.cat([x, x * 2], 0)\nz = W.qkv(z)[..., :42]\na, b = z.view(2, B, S, D)\na + b + x"
    ),
    "resplit half": ("z = torch.cat([x, x * 2], 0)\nz = W.qkv(z)[..., :42]\nz[:B] + z[B:] + x"),
    "beams": ("z = x.repeat_interleave(4, 0)\nz.view(B, 4, S, D).mean(1) + x"),
    "beams2": (
        "z = x[:, None].expand(B, 4, S, D).reshape(B * 4, S, D)\nz.view(B, 4, S, D)[:, 0] + x"
    ),
    "window": (
        "z = picture.permute(0, 2, 3, 1)\n"
        "z = z.view(B, 2, 4, 3, 4, 5).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 5)\n"
        "z = z.view(B, 2, 3, 4, 4, 5).permute(0, 1, 3, 2, 4, 5).reshape(B, 8, 12, 5)\n"
        "z + picture.permute(0, 2, 3, 1)"
    ),
    "pixshuf": "F.pixel_shuffle(torch.randn(B, 20, 8, 12) + picture[:, :1], 2)",
    "patchify": ("picture.reshape(B, 5, 2, 4, 3, 4).permute(0, 2, 4, 3, 5, 1).reshape(B, 6, 80)"),
    "patchify einops": (
        "z = picture.unfold(2, 4, 4).unfold(3, 4, 4)\nz.permute(0, 2, 3, 1, 4, 5).reshape(B, 6, -1)"
    ),
    "channel attention": (
        "z = x.view(B, S, H, hd).permute(0, 2, 3, 1)\nF.scaled_dot_product_attention(z, z, z)"
    ),
    "channel attention 2": ("z = x.mT\nF.scaled_dot_product_attention(z, z, z)"),
    "head attention": ("z = x.view(B, S, H, hd)\n((z @ z.mT).softmax(-1) @ z).reshape(B, S, D)"),
    "talking heads": (
        "s = (q @ k.mT)\ns = torch.einsum('bhij,hg->bgij', s, torch.randn(H, H))\ns.softmax(-1) @ v"
    ),
    "alibi": (
        "b = W.slopes[:, None, None] * (torch.arange(S)[None, :] - torch.arange(S)[:, None])\n"
        "(q @ k.mT + b).softmax(-1) @ v"
    ),
    "xl shift": (
        "s = q @ k.mT\n"
        "z = F.pad(s, (1, 0)).view(B, H, S + 1, S)[:, :, 1:].view_as(s)\n"
        "(s + z).softmax(-1) @ v"
    ),
    "relative 2": (
        "r = torch.einsum('bhid,jd->bhij', q, torch.randn(2 * S - 1, hd))\n"
        "r = F.pad(r, (0, 1)).flatten(2)\n"
        "r = F.pad(r, (0, S - 1)).view(B, H, S + 1, 2 * S - 1)[:, :, :S, S - 1:]\n"
        "((q @ k.mT) + r).softmax(-1) @ v"
    ),
    "mean pool": ("m = (~pad).float()\n(x * m[..., None]).sum(1) / m.sum(1, keepdim=True)"),
    "in batch loss": (
        "z = F.normalize(x.mean(1), dim=-1)\nF.cross_entropy(z @ z.t(), torch.arange(B))"
    ),
    "ce": "F.cross_entropy((x @ W.tokens.weight.T).transpose(1, 2), ids)",
    "ce shifted": (
        "l = x @ W.tokens.weight.T\n"
        "F.cross_entropy(l[:, :-1].reshape(-1, V), ids[:, 1:].reshape(-1))"
    ),
    "bn2d": ("m = picture.mean((0, 2, 3), keepdim=True)\npicture - m"),
    "grouped": (
        "z = q.view(B, Hkv, 3, S, hd)\n"
        "((z @ kv[:, :, None].mT).softmax(-1) @ kv[:, :, None]).view(B, H, S, hd)"
    ),
    "seq2batch": (
        "z = x.transpose(0, 1)\nz.reshape(S, B * H, hd).transpose(0, 1).view(B, H, S, hd)"
    ),
    "rotate gptj": ("a, b = q[..., :6:2], q[..., 1:6:2]\ntorch.stack([-b, a], -1).flatten(-2)"),
    "ssm chunk": ("z = F.pad(x, (0, 0, 0, 1)).view(B, 3, 4, D)\n(z @ z.mT).cumsum(-1) @ z"),
    "fold": "F.fold(F.unfold(picture, 4, stride=4), (8, 12), 4, stride=4) + picture",
    "state": (
        "s = torch.zeros(B, H, hd, hd)\n"
        "for t in range(3):\n"
        "    s = s + q[:, :, t, :, None] * v[:, :, t, None, :]\n"
        "    o = (k[:, :, t, None, :] @ s).squeeze(2)"
    ),
    "shift": "F.pad(x, (0, 0, 1, -1)) + x",
    "roll": "torch.cat([x[:, -1:], x[:, :-1]], 1) + x",
    "sort gather": ("i = x[..., 0].argsort(1)\nx.gather(1, i[..., None].expand(-1, -1, D)) + x"),
    "topk tokens": ("i = x[..., 0].topk(4, 1).indices\nx[torch.arange(B)[:, None], i] @ x.mT"),
    "packed": ("t = x[~pad]\nt @ W.tokens.weight.T"),
    "outer mean": "torch.einsum('bsi,bsj->bij', x, x)",
    "linear attention kv": (
        "c = torch.einsum('bhsd,bhse->bhde', k.softmax(-2), v)\nq.softmax(-1) @ c"
    ),
    "nystrom": (
        "l = q[:, :, :10].reshape(B, H, 5, 2, hd).mean(3)\n"
        "m = k[:, :, :10].reshape(B, H, 5, 2, hd).mean(3)\n"
        "((q @ m.mT).softmax(-1) @ (l @ m.mT).softmax(-1)) @ ((l @ k.mT).softmax(-1) @ v)"
    ),
    "perceiver": ("l = W.table[:9].expand(B, -1, -1)\n(l @ x.mT).softmax(-1) @ x"),
    "slot": (
        "l = W.table[:9].expand(B, -1, -1)\n"
        "a = (x @ l.mT).softmax(-1)\n"
        "a = a / a.sum(1, keepdim=True)\n"
        "a.mT @ x"
    ),
    "lstm like": (
        "h = torch.zeros(B, D)\n"
        "for t in range(3):\n"
        "    g = W.qkv(x[:, t] + h).chunk(3, -1)\n"
        "    h = g[0].sigmoid() * h + g[1].tanh()\n"
        "h + x[:, 0]"
    ),
    "ema": ("m = x.mean((0, 1))\nm * 0.9 + 0.1 * m"),
    "film": (
        "g, b = W.qkv(x.mean(1))[..., :10].chunk(2, -1)\n"
        "picture * g[..., None, None] + b[..., None, None]"
    ),
    "bias by head pair": (
        "t = torch.randn(2 * S - 1, H)\n"
        "i = torch.arange(S)[:, None] - torch.arange(S)[None] + S - 1\n"
        "(q @ k.mT + t[i].permute(2, 0, 1)).softmax(-1) @ v"
    ),
    "bias 2d": (
        "t = torch.randn(21, H)\n"
        "i = torch.arange(S)[:, None] - torch.arange(S)[None] + S - 1\n"
        "(q @ k.mT + t[i.view(-1)].view(S, S, -1).permute(2, 0, 1)[None]).softmax(-1) @ v"
    ),
    "chunked loss": (
        "l = (x @ W.tokens.weight.T).view(-1, V)\n"
        "F.cross_entropy(l, ids.view(-1), reduction='none').view(B, S).mean(0)"
    ),
    "gram": ("f = picture.flatten(2)\nf @ f.mT"),
    "non local": ("t = picture.flatten(2)\n(t.mT @ t).softmax(-1) @ t.mT"),
    "squeeze": "picture * picture.mean((2, 3)).sigmoid()[:, :, None, None]",
    "barlow": ("z = (x.mean(1) - x.mean((0, 1))) / x.std((0, 1))\nz.t() @ z / B"),
    "dice": ("p = picture.sigmoid()\n(p * picture).sum((0, 2, 3)) / p.sum((0, 2, 3))"),
    "balance": (
        "p = W.up(x).softmax(-1)\n"
        "f = F.one_hot(p.argmax(-1), 51).float().mean((0, 1))\n"
        "(p.mean((0, 1)) * f).sum()"
    ),
    "capacity": (
        "p = W.up(x).flatten(0, 1).softmax(-1)\n"
        "m = F.one_hot(p.argmax(-1), 51)\n"
        "(m.cumsum(0) * m).sum(-1)"
    ),
    "einops moe": ("p = W.up(x).softmax(-1)\nd = torch.einsum('bse,bsd->ebd', p, x)\nd.sum()"),
    "batch mixup": ("i = torch.randperm(B)\n0.3 * x + 0.7 * x[i]"),
    "drop path": "x * (torch.rand(B, 1, 1) > 0.1) + x",
    "group norm": (
        "g = picture.view(B, 5, -1)\n(g - g.mean((1, 2), keepdim=True)).view_as(picture)"
    ),
    "segment mean": (
        "s = torch.zeros(B, 4, D).scatter_add(1, (ids % 4)[..., None].expand(-1, -1, D), x)\n"
        "s.sum(1)"
    ),
    "conv time": "F.conv1d(x.mT, torch.randn(D, D, 3), padding=1).mT + x",
    "depthwise": "F.conv1d(x.mT, torch.randn(D, 1, 3), padding=2, groups=D)[..., :S].mT * x",
    "concat heads list": "torch.cat([q[:, i] for i in range(H)], -1) + x",
    "stack heads": "torch.stack([q[:, i] for i in range(H)], 1) @ k.mT",
    "cls": (
        "c = W.table[:1].expand(B, -1, -1)\nz = torch.cat([c, x], 1) + W.table[:S + 1]\nz[:, 0]"
    ),
    "patch merge": (
        "z = picture.permute(0, 2, 3, 1)\n"
        "torch.cat([z[:, 0::2, 0::2], z[:, 1::2, 0::2], z[:, 0::2, 1::2], z[:, 1::2, 1::2]], -1).view(B, -1, 20)"
    ),
    "s2d": "picture.view(B, 5, 4, 2, 6, 2).permute(0, 1, 3, 5, 2, 4).reshape(B, 20, 4, 6)",
    "two views": ("z = torch.stack([x, x * 2], 1).flatten(0, 1)\nz.view(B, 2, S, D)[:, 0] + x"),
    "sentences": (
        "z = x[:, :10].reshape(B * 2, 5, D)\nz.mean(1).view(B, 2, D).mean(1) + x.mean(1)"
    ),
    "video": (
        "z = torch.randn(B, 4, 5, 8, 12) + picture[:, None]\n"
        "z.flatten(0, 1).view(B, 4, 5, 8, 12).mean(1) + picture"
    ),
    "space time": (
        "z = torch.randn(B, 4, S, D) + x[:, None]\n"
        "t = z.transpose(1, 2).reshape(B * S, 4, D)\n"
        "((t @ t.mT).softmax(-1) @ t).view(B, S, 4, D).transpose(1, 2) + x[:, None]"
    ),
    "memory bank": "((x.flatten(0, 1) @ torch.randn(D, 100)) / 0.1).softmax(-1)",
    "crf": (
        "a = x[:, 0, :5]\n"
        "t = torch.randn(5, 5)\n"
        "for i in range(1, 3):\n"
        "    a = torch.logsumexp(a[:, :, None] + t[None] + x[:, i, None, :5], 1)"
    ),
    "hungarian": "torch.cdist(x.flatten(0, 1), y.flatten(0, 1)).view(B, S, -1)",
    "axial": (
        "z = picture.permute(0, 2, 3, 1)\n"
        "a = (z @ z.mT).softmax(-1) @ z\n"
        "w = z.transpose(1, 2)\n"
        "b = ((w @ w.mT).softmax(-1) @ w).transpose(1, 2)\n"
        "a + b"
    ),
    "rope 2d": (
        "f = torch.cat([torch.arange(8)[:, None, None].expand(8, 12, 3), torch.arange(12)[None, :, None].expand(8, 12, 2)], -1)\n"
        "picture.permute(0, 2, 3, 1) * f"
    ),
    "fourier": "torch.fft.fft(torch.fft.fft(x, dim=-1), dim=1).real + x",
    "fft batch": "torch.fft.rfft(x, dim=1).abs()",
    "label smoothing": (
        "l = (x @ W.tokens.weight.T).log_softmax(-1)\n"
        "-(l.gather(-1, ids[..., None]).squeeze(-1)).masked_select(~pad).mean()"
    ),
    "mixture of softmax": (
        "p = W.up(x)[..., :3].softmax(-1)\n"
        "l = (W.qkv(x).view(B, S, 3, D) @ W.tokens.weight.T).softmax(-1)\n"
        "(p[..., None] * l).sum(2)"
    ),
    "attention pool": ("w = x[..., :1].softmax(1)\n(w * x).sum(1)"),
    "attention pool mm": ("w = x[..., :1].softmax(1)\n(w.mT @ x).squeeze(1)"),
    "sinkhorn": (
        "p = (x @ y.mT).softmax(-1)\n"
        "for _ in range(2):\n"
        "    p = p / p.sum(1, keepdim=True)\n"
        "    p = p / p.sum(2, keepdim=True)\n"
        "p @ y"
    ),
    "dual softmax": ("s = x @ y.mT\np = s.softmax(1) * s.softmax(2)\np.max(2).values"),
    "capsule": (
        "u = torch.randn(S, 4, D, 6)\n"
        "h = torch.einsum('bsd,scde->bsce', x, u)\n"
        "b = torch.zeros(B, S, 4)\n"
        "c = b.softmax(2)\n"
        "s = (c[..., None] * h).sum(1)"
    ),
    "bilinear pool": "torch.einsum('bsd,bse->bde', x, x).flatten(1)",
    "triangle": (
        "z = x[:, :, None] * x[:, None]\na, b = z * 2, z * 3\ntorch.einsum('bikc,bjkc->bijc', a, b)"
    ),
    "msa row": (
        "m = torch.randn(B, 4, S, D) + x[:, None]\n"
        "w = m.view(B, 4, S, H, hd)\n"
        "torch.einsum('brihd,brjhd->bhij', w, w).softmax(-1)"
    ),
    "outer product mean": (
        "m = torch.randn(B, 4, S, D) + x[:, None]\n"
        "torch.einsum('brid,brje->bijde', m[..., :3], m[..., :3]).flatten(-2)"
    ),
    "ctc": (
        "F.ctc_loss((x @ W.tokens.weight.T).log_softmax(-1).transpose(0, 1), ids[:, :3].clamp(min=1), torch.full((B,), S), torch.full((B,), 3))"
    ),
    "batch std feature": (
        "s = picture.std(0, keepdim=True).mean().expand(B, 1, 8, 12)\ntorch.cat([picture, s], 1)"
    ),
    "whiten": ("z = x.flatten(0, 1)\nz = z - z.mean(0)\nc = z.t() @ z / len(z)\nz @ c"),
    "decorrelate": ("z = x.mean(1)\nz = z - z.mean(0, keepdim=True)\nz / z.norm(dim=0)"),
    "center batch": ("z = x.mean(1)\nz = z - z.mean(0)\nz @ z.t()"),
    "kmeans": (
        "d = torch.cdist(x.flatten(0, 1), W.table)\n"
        "a = F.one_hot(d.argmin(1), 64).float()\n"
        "(a.t() @ x.flatten(0, 1)) / a.sum(0)[:, None].clamp(min=1)"
    ),
    "advantage": ("a = x[..., 0]\n(a - a.mean()) / a.std()"),
    "gae": (
        "r = x[..., 0]\n"
        "a = torch.zeros(B)\n"
        "o = []\n"
        "for t in reversed(range(S)):\n"
        "    a = r[:, t] + 0.9 * a\n"
        "    o.append(a)\n"
        "torch.stack(o, 1) + r"
    ),
    "group relative": ("r = x[:, 0, 0]\n(r - r.mean(0)) / r.std(0) + r"),
}


@pytest.mark.parametrize("case", CODE)
def test_right_code_raises_no_warning(case):
    """Losses, norms, windows, experts, losses over the batch: unusual, and right."""
    raw = followed(CODE[case])
    assert [f.message for f in raw.findings if f.severity != "note"] == []
