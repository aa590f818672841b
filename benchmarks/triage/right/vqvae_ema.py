"""VQ-VAE on small textures: straight-through estimator, codebook by exponential moving averages (buffers)."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def textures(n, seed):
    """16 x 16 mosaics of 4 x 4 tiles drawn from six motifs."""
    g = torch.Generator().manual_seed(seed)
    motif_g = torch.Generator().manual_seed(77)
    motifs = (torch.rand(6, 4, 4, generator=motif_g) > 0.5).float()
    which = torch.randint(0, 6, (n, 4, 4), generator=g)
    tiles = motifs[which]
    return tiles.permute(0, 1, 3, 2, 4).reshape(n, 1, 16, 16) + 0.05 * torch.randn(n, 1, 16, 16, generator=g)


class VectorQuantizerEMA(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost=0.25, decay=0.95, epsilon=1e-5):
        super().__init__()
        self.K, self.D = num_embeddings, embedding_dim
        self.commitment_cost, self.decay, self.epsilon = commitment_cost, decay, epsilon
        embed = torch.randn(num_embeddings, embedding_dim)
        self.register_buffer("embedding", embed)
        self.register_buffer("cluster_size", torch.ones(num_embeddings))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, inputs):
        x = inputs.permute(0, 2, 3, 1).contiguous()
        flat = x.view(-1, self.D)
        distances = (flat.pow(2).sum(1, keepdim=True) + self.embedding.pow(2).sum(1)
                     - 2 * flat @ self.embedding.t())
        indices = distances.argmin(1)
        quantized = F.embedding(indices, self.embedding).view(x.shape)

        if self.training:
            with torch.no_grad():
                onehot = F.one_hot(indices, self.K).type(flat.dtype)
                self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                smoothed = (self.cluster_size + self.epsilon) / (n + self.K * self.epsilon) * n
                self.embedding.copy_(self.embed_avg / smoothed.unsqueeze(1))
                self.revive(flat)

        loss = self.commitment_cost * F.mse_loss(x, quantized.detach())
        quantized = x + (quantized - x).detach()
        probs = torch.bincount(indices, minlength=self.K).float() / indices.numel()
        perplexity = torch.exp(-(probs * torch.log(probs + 1e-10)).sum())
        return quantized.permute(0, 3, 1, 2).contiguous(), loss, perplexity

    def revive(self, flat):
        """Codes that nothing uses start again from what the encoder says."""
        dead = self.cluster_size < 0.5
        if dead.any():
            pick = flat[torch.randint(0, flat.size(0), (int(dead.sum()),))]
            self.embedding[dead], self.embed_avg[dead] = pick, pick
            self.cluster_size[dead] = 1.0


class Model(nn.Module):
    def __init__(self, hidden=48, codes=16, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, hidden, 4, 4), nn.ReLU(), nn.Conv2d(hidden, hidden, 1), nn.ReLU(),
                                     nn.Conv2d(hidden, dim, 1))
        self.vq = VectorQuantizerEMA(codes, dim)
        self.decoder = nn.Sequential(nn.Conv2d(dim, hidden, 1), nn.ReLU(), nn.Conv2d(hidden, hidden, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(hidden, 1, 4, 4))

    def forward(self, x):
        quantized, vq_loss, perplexity = self.vq(self.encoder(x))
        return self.decoder(quantized), vq_loss, perplexity


torch.manual_seed(0)
data, valid = textures(1024, 1), textures(128, 2)
variance = data.var()
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for i in range(240):
    model.train()
    batch = data[torch.randint(0, len(data), (64,))]
    recon, vq_loss, perplexity = model(batch)
    recon_error = F.mse_loss(recon, batch) / variance
    loss = recon_error + vq_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (i + 1) % 40 == 0:
        model.eval()
        with torch.no_grad():
            out, _, _ = model(valid)
        print(f"{i + 1} reconstruction {recon_error.item():.3f} codes {perplexity.item():.1f} "
              f"valid {(F.mse_loss(out, valid) / variance).item():.3f}")
