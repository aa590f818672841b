"""Masked autoencoder: three quarters of the patches are hidden, the encoder sees only the rest, loss on the hidden."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def hills(n, seed):
    """A slope and one broad hill on 24 x 24 pixels: what is hidden follows from what is seen."""
    g = torch.Generator().manual_seed(seed)
    tilt = torch.randn(n, 2, 1, 1, generator=g)
    top = 6 + 12 * torch.rand(n, 2, 1, 1, generator=g)
    height = 2 * torch.randn(n, 1, 1, generator=g)
    row, col = torch.arange(24.0)[None, :, None], torch.arange(24.0)[None, None, :]
    slope = tilt[:, 0] * (row - 11.5) / 12 + tilt[:, 1] * (col - 11.5) / 12
    hill = height * torch.exp(-((row - top[:, 0]) ** 2 + (col - top[:, 1]) ** 2) / 72)
    return (slope + hill).unsqueeze(1) + 0.05 * torch.randn(n, 1, 24, 24, generator=g)


def get_1d_sincos_pos_embed(embed_dim, pos):
    omega = 1.0 / 10000 ** (np.arange(embed_dim // 2, dtype=np.float64) / (embed_dim / 2.0))
    out = np.einsum("m,d->md", pos.reshape(-1), omega)
    return np.concatenate([np.sin(out), np.cos(out)], axis=1)


def get_2d_sincos_pos_embed(embed_dim, grid_size, cls_token):
    w, h = np.meshgrid(np.arange(grid_size, dtype=np.float32), np.arange(grid_size, dtype=np.float32))
    emb = np.concatenate([get_1d_sincos_pos_embed(embed_dim // 2, w), get_1d_sincos_pos_embed(embed_dim // 2, h)], 1)
    if cls_token:
        emb = np.concatenate([np.zeros([1, embed_dim]), emb], axis=0)
    return torch.from_numpy(emb).float().unsqueeze(0)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class MaskedAutoencoderViT(nn.Module):
    def __init__(self, img=24, patch=4, dim=64, depth=2, dec_dim=48, dec_depth=1, heads=4):
        super().__init__()
        self.p, self.grid = patch, img // patch
        self.num_patches = self.grid ** 2
        self.patch_embed = nn.Conv2d(1, dim, patch, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(get_2d_sincos_pos_embed(dim, self.grid, True), requires_grad=False)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.decoder_embed = nn.Linear(dim, dec_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dec_dim))
        self.decoder_pos_embed = nn.Parameter(get_2d_sincos_pos_embed(dec_dim, self.grid, True), requires_grad=False)
        self.decoder_blocks = nn.ModuleList([Block(dec_dim, heads) for _ in range(dec_depth)])
        self.decoder_norm = nn.LayerNorm(dec_dim)
        self.decoder_pred = nn.Linear(dec_dim, patch ** 2)
        nn.init.normal_(self.cls_token, std=0.02)
        nn.init.normal_(self.mask_token, std=0.02)

    def patchify(self, imgs):
        h, p = self.grid, self.p
        x = imgs.reshape(imgs.shape[0], 1, h, p, h, p)
        return torch.einsum("nchpwq->nhwpqc", x).reshape(imgs.shape[0], h * h, p ** 2)

    def random_masking(self, x, mask_ratio):
        N, L, D = x.shape
        len_keep = int(L * (1 - mask_ratio))
        ids_shuffle = torch.argsort(torch.rand(N, L, device=x.device), dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        x_masked = torch.gather(x, dim=1, index=ids_shuffle[:, :len_keep].unsqueeze(-1).repeat(1, 1, D))
        mask = torch.ones([N, L], device=x.device)
        mask[:, :len_keep] = 0
        return x_masked, torch.gather(mask, dim=1, index=ids_restore), ids_restore

    def forward(self, imgs, mask_ratio=0.75):
        x = self.patch_embed(imgs).flatten(2).transpose(1, 2) + self.pos_embed[:, 1:, :]
        x, mask, ids_restore = self.random_masking(x, mask_ratio)
        cls = (self.cls_token + self.pos_embed[:, :1, :]).expand(x.shape[0], -1, -1)
        x = torch.cat((cls, x), dim=1)
        for blk in self.blocks:
            x = blk(x)
        x = self.decoder_embed(self.norm(x))
        mask_tokens = self.mask_token.repeat(x.shape[0], ids_restore.shape[1] + 1 - x.shape[1], 1)
        x_ = torch.cat([x[:, 1:, :], mask_tokens], dim=1)
        x_ = torch.gather(x_, dim=1, index=ids_restore.unsqueeze(-1).repeat(1, 1, x.shape[2]))
        x = torch.cat([x[:, :1, :], x_], dim=1) + self.decoder_pos_embed
        for blk in self.decoder_blocks:
            x = blk(x)
        pred = self.decoder_pred(self.decoder_norm(x))[:, 1:, :]
        loss = ((pred - self.patchify(imgs)) ** 2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum(), pred, mask


def main():
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(hills(1600, 1)), batch_size=64, shuffle=True)
    valid = hills(200, 2)
    model = MaskedAutoencoderViT()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.05)
    epochs = 6
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, epochs=epochs, steps_per_epoch=len(train))
    for epoch in range(epochs):
        model.train()
        for (imgs,) in train:
            loss, _, _ = model(imgs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} train {loss.item():.3f} valid {model(valid)[0].item():.3f}")


if __name__ == "__main__":
    main()
