"""What the text of a file says of masks and norms that are given to what another is made for."""

import pytest

from attnlab.target.source_findings import source_findings

PAIR = """
class Pair(nn.Module):
    def forward(self, question, caption, question_mask, caption_mask):
        x = self.emb(question) + self.pos[: question.shape[1]]
        context = self.emb(caption) + self.pos[: question.shape[1]]
        for attn, cross in self.layers:
            x = attn(x, mask=question_mask) + x
            {cross}
        return (x * question_mask[..., None]).sum(1)
"""


@pytest.mark.parametrize(
    ("cross", "line"),
    [
        ("x = cross(x, context=context, mask=question_mask) + x", 8),
        ("x = cross(x, context, question_mask[:, None]) + x", 8),
        ("x = self.mha(x, context, context, key_padding_mask=~question_mask)[0]", 8),
        ("x = cross(query=x, key=context, value=context, attn_mask=question_mask)", 8),
        ("x = cross(x, context=self.enc(context, question_mask), mask=caption_mask)", 0),
        ("x = cross(x, context=context, mask=caption_mask) + x", 0),
        ("x = cross(x, context=context, mask=question_mask & caption_mask) + x", 0),
        ("x = cross(x, context=torch.cat([x, context], 1), mask=question_mask) + x", 0),
        ("x = self.decode(x, context, tgt_mask=question_mask) + x", 0),
        ("m = self.pair_mask(x, context, question_mask)", 0),
    ],
)
def test_keys_get_the_mask_of_their_input(cross, line):
    """A mask of the queries is meant where keys hold them too, or where it is named for them."""
    found = source_findings(PAIR.format(cross=cross), "net.py")
    assert [f.line for f in found if f.rule == "mask-of-other"] == [line] * bool(line)


def test_a_mask_without_a_name_is_that_of_the_first_input():
    """`mask` beside `context_mask` belongs to x; PyTorch's key_padding_mask is sure of the keys
    even where the other mask is read elsewhere."""
    text = PAIR.replace("question", "x").replace("caption", "context").replace("x_mask", "mask")
    wrong = text.format(cross="x = cross(x, context, mask=mask); n = context_mask.sum()")
    assert not any(f.rule == "mask-of-other" for f in source_findings(wrong, "net.py"))
    for cross in (
        "x = cross(x, context, mask=mask)",
        "n = context_mask.sum(); x = cross(x, context, context, key_padding_mask=~mask)",
    ):
        told = source_findings(text.format(cross=cross), "net.py")
        assert [f.line for f in told if f.rule == "mask-of-other"] == [8]


HEADS = """
class Attention(nn.Module):
    def forward(self, x, context):
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        {normed}
        return F.scaled_dot_product_attention(q, k, v)
"""


@pytest.mark.parametrize(
    ("normed", "told"),
    [
        ("k, v = self.q_norm(k), self.k_norm(v)", True),
        ("q = self.q_norm(q); k = self.q_norm(k.transpose(1, 2)); v = self.k_norm(v)", True),
        ("q, k = self.norm_q(self.to_k(x)), self.norm_k(k)", True),
        ("q = query_layernorm(q); key_states = key_layernorm(query_states)", True),
        ("q, k = self.q_norm(q), self.k_norm(self.to_k(context))", False),
        ("q, k, v = self.q_norm(q), self.k_norm(k), self.v_norm(v)", False),
        ("q, k = self.q_norm(q), self.q_norm(k)", False),
        ("q, k, v = self.norm_q(x), self.norm_k(context), self.norm_kv(v)", False),
    ],
)
def test_a_norm_is_given_what_it_is_named_for(normed, told):
    """One norm that both share is meant; so is a norm of values, and of what has no such name."""
    found = source_findings(HEADS.format(normed=normed), "net.py")
    assert [f.line for f in found if f.rule == "norm-of-other"] == [5] * told
