"""What True means in a mask, where it is made and where it is used."""

import pytest

from attnlab.target.source_findings import source_findings


def lines_of(text, rule):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


ATTENDS = "F.scaled_dot_product_attention(q, k, v, attn_mask={}[:, None, None, :])"


@pytest.mark.parametrize(
    ("made", "used", "found"),
    [
        ("ids == self.pad_id", ATTENDS.format("m"), True),
        ("ids.eq(pad)", ATTENDS.format("m"), True),
        ("~(ids != PAD)", ATTENDS.format("m"), True),
        ("torch.arange(n) >= lengths[:, None]", ATTENDS.format("m"), True),
        ("ids != pad", "scores.masked_fill(m, -1e9)", True),
        ("ids != pad", "self.encoder(x, src_key_padding_mask=m)", True),
        ("ids != pad", ATTENDS.format("m"), False),
        ("ids == pad", ATTENDS.format("(~m)"), False),
        ("(ids == pad).logical_not()", ATTENDS.format("m"), False),
        ("torch.arange(n) < lengths[:, None]", ATTENDS.format("m"), False),
        ("torch.arange(n)[:, None] >= torch.arange(n)", ATTENDS.format("m"), False),
        ("(ids == pad).float() * -1e9", ATTENDS.format("m"), False),
        ("ids == pad", "scores.masked_fill(m, -1e9)", False),
        ("ids == pad", "self.encoder(x, src_key_padding_mask=m)", False),
        ("ids != pad", "labels.masked_fill(m, -100)", False),
    ],
)
def test_a_mask_means_what_it_is_taken_for(made, used, found):
    """Attention takes True for what may be seen; filling, and PyTorch's layers, for padding."""
    text = f"def forward(self, ids, lengths):\n    m = {made}\n    return {used}\n"
    assert lines_of(text, "mask-inverted") == [3] * found


CLASS = '''
class Cross(nn.Module):
    def forward(self, q, k, v, padding_mask=None):
        """padding_mask: (B, S), {said}"""
        mask = None
        if padding_mask is not None:
            mask = {mask}
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

class Net(nn.Module):
    def forward(self, ids):
        pad = {made}
        return self.cross(x, x, x, padding_mask=pad)
'''


@pytest.mark.parametrize(
    ("said", "mask", "made", "found"),
    [
        ("True where it is padding", "padding_mask[:, None, None]", "given", True),
        ("of the keys", "padding_mask[:, None, None]", "ids.eq(0)", False),
        ("of the keys", "padding_mask[:, None, None]", "ids.eq(self.pad)", True),
        ("of the keys", "padding_mask[:, None, None]", "ids.ne(self.pad)", False),
        ("True where it is no padding", "padding_mask[:, None, None]", "given", False),
        ("True where it is padding", "~padding_mask[:, None, None]", "ids.eq(self.pad)", False),
    ],
)
def test_an_argument_means_what_is_said_or_given(said, mask, made, found):
    """By its docstring, or by what the same file gives it."""
    text = CLASS.format(said=said, mask=mask, made=made)
    assert lines_of(text, "mask-inverted") == [8] * found
