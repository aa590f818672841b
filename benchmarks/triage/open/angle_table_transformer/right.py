import numpy as np
import torch
import torch.nn as nn


def get_angles(pos, i, d_model):
    return pos / np.power(10000, 2 * (i // 2) / np.float32(d_model))


class PositionalEncoding(nn.Module):

    def __init__(self, d_hid, n_position=200):
        super(PositionalEncoding, self).__init__()
        self.register_buffer('pos_table', self._get_sinusoid_encoding_table(n_position, d_hid))

    def _get_sinusoid_encoding_table(self, n_position, d_hid):
        table = np.array([[get_angles(p, i, d_hid) for i in range(d_hid)] for p in range(n_position)])
        table[:, 0::2] = np.sin(table[:, 0::2])  # dim 2i
        table[:, 1::2] = np.cos(table[:, 1::2])  # dim 2i+1
        return torch.FloatTensor(table).unsqueeze(0)

    def forward(self, x):
        return x + self.pos_table[:, :x.size(1)].clone().detach()


class Encoder(nn.Module):

    def __init__(self, n_src_vocab=80, d_word_vec=64, n_layers=2, n_head=4, d_inner=96, pad_idx=0, dropout=0.1, n_position=60):
        super().__init__()
        self.src_word_emb = nn.Embedding(n_src_vocab, d_word_vec, padding_idx=pad_idx)
        self.position_enc = PositionalEncoding(d_word_vec, n_position=n_position)
        self.dropout = nn.Dropout(p=dropout)
        layer = nn.TransformerEncoderLayer(d_word_vec, n_head, d_inner, dropout, batch_first=True)
        self.layer_stack = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.layer_norm = nn.LayerNorm(d_word_vec, eps=1e-6)
        self.pad_idx = pad_idx

    def forward(self, src_seq):
        src_pad = src_seq == self.pad_idx
        enc_output = self.src_word_emb(src_seq)
        enc_output *= enc_output.size(-1) ** 0.5
        enc_output = self.dropout(self.position_enc(enc_output))
        enc_output = self.layer_norm(enc_output)
        return self.layer_stack(enc_output, src_key_padding_mask=src_pad)


if __name__ == '__main__':
    seq = torch.randint(1, 80, (3, 16))
    print(Encoder()(seq).size())
