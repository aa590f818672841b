import torch
import torch.nn as nn


class AugmentedConv(nn.Module):
    """A convolution some of whose output channels come from attention over all pixels."""

    def __init__(self, in_channels, out_channels, kernel_size=3, dk=24, dv=8, Nh=4):
        super(AugmentedConv, self).__init__()
        assert dk % Nh == 0 and dv % Nh == 0
        self.dk, self.dv, self.Nh = dk, dv, Nh
        self.conv_out = nn.Conv2d(in_channels, out_channels - dv, kernel_size, padding=kernel_size // 2)
        self.qkv_conv = nn.Conv2d(in_channels, 2 * dk + dv, 1)
        self.attn_out = nn.Conv2d(dv, dv, 1)

    def split_heads_2d(self, x):
        batch, channels, height, width = x.size()
        return x.reshape(batch, self.Nh, channels // self.Nh, height, width)

    def forward(self, x):
        batch, _, height, width = x.size()
        conv_out = self.conv_out(x)
        q, k, v = torch.split(self.qkv_conv(x), [self.dk, self.dk, self.dv], dim=1)
        q = self.split_heads_2d(q) * (self.dk // self.Nh) ** -0.5
        k, v = self.split_heads_2d(k), self.split_heads_2d(v)
        flat_q, flat_k, flat_v = q.flatten(3), k.flatten(3), v.flatten(3)

        logits = torch.matmul(flat_q.transpose(2, 3), flat_k)
        weights = torch.softmax(logits, dim=-1)
        attn_out = torch.matmul(weights, flat_v.transpose(2, 3))
        attn_out = attn_out.reshape(batch, self.Nh, self.dv // self.Nh, height, width)
        attn_out = attn_out.reshape(batch, self.dv, height, width)
        return torch.cat((conv_out, self.attn_out(attn_out)), dim=1)


if __name__ == "__main__":
    tmp = torch.randn((2, 3, 12, 10))
    augmented = AugmentedConv(in_channels=3, out_channels=20)
    print(augmented(tmp).shape)
