"""Transformer-XL: segments of one long text in order, memories carried on but detached, relative positions."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEmbedding(nn.Module):
    def __init__(self, demb):
        super().__init__()
        self.register_buffer('inv_freq', 1 / (10000 ** (torch.arange(0.0, demb, 2.0) / demb)))

    def forward(self, pos_seq):
        sinusoid_inp = torch.outer(pos_seq, self.inv_freq)
        return torch.cat([sinusoid_inp.sin(), sinusoid_inp.cos()], dim=-1)


class RelAttn(nn.Module):
    def __init__(self, n_head, d_model):
        super().__init__()
        self.n_head, self.d_head = n_head, d_model // n_head
        self.q_net = nn.Linear(d_model, d_model, bias=False)
        self.kv_net = nn.Linear(d_model, 2 * d_model, bias=False)
        self.r_net = nn.Linear(d_model, d_model, bias=False)
        self.o_net = nn.Linear(d_model, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model)
        self.r_w_bias = nn.Parameter(torch.zeros(n_head, self.d_head))
        self.r_r_bias = nn.Parameter(torch.zeros(n_head, self.d_head))

    @staticmethod
    def _rel_shift(x):
        """x: (q, k, B, H), the last column is distance zero."""
        zero_pad = x.new_zeros((x.size(0), 1, *x.size()[2:]))
        x_padded = torch.cat([zero_pad, x], dim=1)
        x_padded = x_padded.view(x.size(1) + 1, x.size(0), *x.size()[2:])
        return x_padded[1:].view_as(x)

    def forward(self, w, r, attn_mask, mems):
        qlen, bsz = w.size(0), w.size(1)
        cat = torch.cat([mems, w], 0)
        klen = cat.size(0)
        q = self.q_net(w).view(qlen, bsz, self.n_head, self.d_head)
        k, v = self.kv_net(cat).chunk(2, dim=-1)
        k = k.view(klen, bsz, self.n_head, self.d_head)
        v = v.view(klen, bsz, self.n_head, self.d_head)
        r_head_k = self.r_net(r).view(klen, self.n_head, self.d_head)
        AC = torch.einsum('ibnd,jbnd->ijbn', q + self.r_w_bias, k)
        BD = self._rel_shift(torch.einsum('ibnd,jnd->ijbn', q + self.r_r_bias, r_head_k))
        score = (AC + BD) / self.d_head ** 0.5
        score = score.masked_fill(attn_mask[:, :, None, None], -float('inf'))
        prob = F.softmax(score, dim=1)
        vec = torch.einsum('ijbn,jbnd->ibnd', prob, v).reshape(qlen, bsz, -1)
        return self.layer_norm(w + self.o_net(vec))


class PositionwiseFF(nn.Module):
    def __init__(self, d_model, d_inner):
        super().__init__()
        self.core = nn.Sequential(nn.Linear(d_model, d_inner), nn.ReLU(), nn.Linear(d_inner, d_model))
        self.layer_norm = nn.LayerNorm(d_model)

    def forward(self, inp):
        return self.layer_norm(inp + self.core(inp))


class MemTransformerLM(nn.Module):
    def __init__(self, n_token, n_layer=2, n_head=4, d_model=48, d_inner=96, mem_len=16):
        super().__init__()
        self.word_emb = nn.Embedding(n_token, d_model)
        self.pos_emb = PositionalEmbedding(d_model)
        self.attns = nn.ModuleList([RelAttn(n_head, d_model) for _ in range(n_layer)])
        self.ffs = nn.ModuleList([PositionwiseFF(d_model, d_inner) for _ in range(n_layer)])
        self.out = nn.Linear(d_model, n_token)
        self.d_model, self.mem_len, self.n_layer = d_model, mem_len, n_layer

    def init_mems(self, bsz):
        return [torch.zeros(0, bsz, self.d_model) for _ in range(self.n_layer + 1)]

    @torch.no_grad()
    def _update_mems(self, hids, mems):
        return [torch.cat([m, h], dim=0)[-self.mem_len:].detach() for m, h in zip(mems, hids)]

    def forward(self, data, target, mems):
        """data, target: (length, batch)."""
        qlen, mlen = data.size(0), mems[0].size(0)
        klen = qlen + mlen
        h = self.word_emb(data)
        mask = torch.ones(qlen, klen, dtype=torch.bool, device=data.device).triu(1 + mlen)
        pos_seq = torch.arange(klen - 1, -1, -1.0, device=data.device)
        pos = self.pos_emb(pos_seq)
        hids = [h]
        for i in range(self.n_layer):
            h = self.ffs[i](self.attns[i](h, pos, mask, mems[i]))
            hids.append(h)
        logits = self.out(h)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        return loss, self._update_mems(hids, mems)


def stream(n, seed, period=12):
    """Noise that comes again after `period` symbols nine times in ten: a memory longer than a segment pays."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 10, (n,), generator=g)
    keep = torch.rand(n, generator=g) < 0.9
    for i in range(period, n):
        if keep[i]:
            x[i] = x[i - period]
    return x


def columns(x, bsz):
    n = x.size(0) // bsz
    return x[: n * bsz].view(bsz, n).t().contiguous()


def segments(data, tgt_len):
    for i in range(0, data.size(0) - 1, tgt_len):
        n = min(tgt_len, data.size(0) - 1 - i)
        yield data[i:i + n], data[i + 1:i + 1 + n]


def evaluate(model, data, tgt_len):
    model.eval()
    mems, total, count = model.init_mems(data.size(1)), 0.0, 0
    with torch.no_grad():
        for x, y in segments(data, tgt_len):
            loss, mems = model(x, y, mems)
            total, count = total + loss.item() * y.numel(), count + y.numel()
    model.train()
    return total / count


if __name__ == '__main__':
    torch.manual_seed(1111)
    tgt_len = 8
    train, valid = columns(stream(24000, 1), 24), columns(stream(2400, 2), 8)
    model = MemTransformerLM(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * (train.size(0) // tgt_len))
    for epoch in range(2):
        mems = model.init_mems(train.size(1))
        for x, y in segments(train, tgt_len):
            loss, mems = model(x, y, mems)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()
            scheduler.step()
        print(f'epoch {epoch} train {loss.item():.3f} valid {evaluate(model, valid, tgt_len):.3f}')
