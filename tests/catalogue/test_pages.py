"""The pages of attnlab explain: what they show is what PyTorch computes, and tables are checked."""

import doctest
import pkgutil
import re
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import attnlab.commands
from attnlab.catalogue.load import page_text, pages
from attnlab.references.alibi import ALiBi
from attnlab.references.attention import masked_softmax
from attnlab.references.learned import LearnedPositionalEncoding
from attnlab.references.positional import SinusoidalPositionalEncoding
from attnlab.references.relative import T5RelativeBias, t5_buckets
from attnlab.references.rotary import RotaryEmbedding
from attnlab.references.transformer_xl import TransformerXLAttention
from attnlab.references.xpos import XPos, xpos_table

SUBJECTS = [name for name in pages() if name != "rules"]
LARGEST = 76  # columns of code on a screen of 80
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def table(page: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column has this head."""
    for block in re.findall(r"(?:^\|.*\n)+", page_text(page), re.MULTILINE):
        rows = [[c.strip() for c in line.strip("|\n").split("|")] for line in block.splitlines()]
        if rows[0][0] == first:
            return rows[2:]
    raise LookupError(first)


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_number_on_a_page_is_what_its_python_prints(name):
    """The blocks of code show results, and running them gives these."""
    blocks = CODE.findall(page_text(name))
    torch.set_printoptions(profile="default")  # what ran in this process before may have changed it
    parts = doctest.DocTestParser().get_examples("\n\n".join(blocks))
    found = doctest.DocTest(parts, {}, name, f"{name}.md", 0, None)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=said.append)
    assert result.failed == 0, "".join(said)
    assert sum(bool(example.want) for example in parts) >= len(blocks) - 1
    for block in blocks:
        assert max(map(len, block.splitlines())) <= LARGEST


def test_the_table_of_number_types():
    """Bits, the largest number, the step after 1, and the last of the exact integers."""
    rows = table("dtypes", "type")
    assert len(rows) == 4
    for name, bits, largest, eps, exact in rows:
        dtype = getattr(torch, name)
        info = torch.finfo(dtype)
        last = eval(exact.replace("^", "**"))
        assert info.bits == int(bits)
        assert info.max == pytest.approx(float(largest), rel=0.03)
        assert info.eps == pytest.approx(float(eps), rel=0.03)
        counted = torch.tensor([last - 1, last, last + 1]).to(dtype)
        assert counted.long().tolist()[:2] == [last - 1, last]
        assert counted[2] in (last, last + 2)  # the one in between does not exist


def attend(x, mask):
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def by_mha(x, mask, argument="attn_mask"):
    mha = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    return mha(x, x, x, **{argument: mask})[1]


def by_encoder(x, mask):
    """Where the others' outputs do not change with key 2."""
    layer = nn.TransformerEncoderLayer(4, 1, 8, batch_first=True).eval()
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    other = x.clone()
    other[:, 2] = 5.0
    first, second = (encoder(t, src_key_padding_mask=mask[:1]) for t in (x, other))
    return (first - second)[:, :2].abs().round(decimals=5).sum(-1, keepdim=True).expand(-1, -1, 4)


def by_flex(x, mask):
    blocks = create_block_mask(lambda b, h, q, k: mask[q, k], None, None, 4, 4, device="cpu")
    with warnings.catch_warnings(action="ignore"):  # it is slow where it is not compiled
        return flex_attention(x[None], x[None], x[None], block_mask=blocks)


# What each row does with x = eye(4) and a mask that is True at key 2: weights, or outputs.
MASKS = {
    "F.scaled_dot_product_attention": attend,
    "nn.MultiheadAttention attn_mask": by_mha,
    "nn.MultiheadAttention key_padding_mask": lambda x, m: by_mha(x, m[:1], "key_padding_mask"),
    "nn.TransformerEncoder": by_encoder,
    "flex_attention": by_flex,
    "the references of attnlab": lambda x, m: masked_softmax(x @ x.mT, m),
}
ELSEWHERE = ("transformers", "JAX", "Keras")  # in tests/catalogue/peers, or a source on the page


def test_the_table_of_masks():
    """What True means is what PyTorch's functions and our references do with it; of libraries
    that are not looked at, the page names the source."""
    known = dict(MASKS)
    text = page_text("masks")
    for where, argument, meaning in table("masks", "where"):
        name, flag = where.replace("`", ""), argument.replace("`", "").partition(",")[0]
        if name.startswith(ELSEWHERE):
            continue
        mask = torch.zeros(4, 4, dtype=torch.bool)
        mask[:, 2] = True
        compute = known.pop(name, None) or known.pop(f"{name} {flag}")
        seen = compute(torch.eye(4)[None], mask).reshape(-1, 4)[:2, 2]
        assert bool((seen == 0).all()) is (meaning != "may attend"), where
    assert not known
    bias, x = torch.randn(4, 4), torch.eye(4)[None]  # "a float mask is added to the scores"
    assert torch.allclose(attend(x, bias), (x / 2 + bias).softmax(-1))
    for source in ("jax.nn.dot_product_attention", "flax.linen", "keras.layers"):
        assert source in text.partition("Sources")[2]


def parameters_of(scheme: str, heads: int = 6, dim: int = 24, length: int = 40) -> list[int]:
    """How many numbers each parameter of our reference of a scheme has."""
    made = {
        "sinusoidal": lambda: SinusoidalPositionalEncoding(dim, length),
        "learned": lambda: LearnedPositionalEncoding(dim, length),
        "RoPE": lambda: RotaryEmbedding(dim),
        "ALiBi": lambda: ALiBi(heads),
        "T5 bias": lambda: T5RelativeBias(heads, 32, 128),
        "xPos": lambda: XPos(dim),
        "Transformer-XL": lambda: TransformerXLAttention(dim, heads),
    }[scheme]()
    own = [(name, p.numel()) for name, p in made.named_parameters()]
    if scheme == "Transformer-XL":  # those that attention without positions has, too
        own = [(name, n) for name, n in own if not re.match(r"(q|k|v|qkv|out)_proj", name)]
    return [n for _, n in own]


def test_the_tables_of_positions():
    """Parameters are those of our references, which others confirm; what a page says of papers
    has its source, and what it says of models is in tests/catalogue/peers."""
    D, H, M = 24, 6, 40
    said = {
        "none": [],
        "M * D": [M * D],
        "buckets * H": [32 * H],
        "one projection, two vectors a head": sorted([D * D, D, D]),
    }
    rows = table("positions", "scheme")
    assert len(rows) == 7
    for scheme, _, parameters in rows:
        assert sorted(parameters_of(scheme)) == said[parameters], scheme
    with pytest.raises(ValueError, match="max_seq_len"):
        LearnedPositionalEncoding(D, M)(torch.zeros(1, M + 1, D))
    assert t5_buckets(torch.tensor([-128, -500, -9999])).unique().numel() == 1
    fade = (xpos_table(2000, D) @ xpos_table(2000, D, key=True).T)[-1].flip(0)  # by distance
    assert fade[1000:].abs().max() < 0.5 * fade[0]
    for number in re.findall(r"\d{4}\.\d{5}", page_text("positions")):
        assert number in page_text("positions").partition("Sources")[2].partition("\n\n")[0]


def test_what_the_page_on_debugging_says_of_detect_anomaly():
    """Its warning holds the line of the forward pass that made the NaN of a gradient."""
    x = torch.zeros(3, requires_grad=True)
    watched = warnings.catch_warnings(record=True, action="always")
    with watched as said, torch.autograd.detect_anomaly():
        loss = torch.where(x > 0, x.sqrt(), x).sum()
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
            loss.backward()
    assert any("loss = torch.where(x > 0, x.sqrt(), x).sum()" in str(w.message) for w in said)


def test_a_quantised_embedding_only_reads():
    """It has a scale for each row, and nothing that an optimizer would find."""
    with warnings.catch_warnings(action="ignore"):
        weight = torch.ao.nn.quantized.Embedding(4, 8).weight()
        assert list(torch.ao.nn.quantized.Embedding(4, 8).parameters()) == []
    assert weight.q_per_channel_scales().numel() == 4
    assert weight.q_per_channel_axis() == 0


BATCH = torch.zeros(2, 6, 4)
OPERATIONS = {
    "view": lambda t: t.view(2, 24),
    "unflatten": lambda t: t.unflatten(1, (2, 3)),
    "transpose": lambda t: t.transpose(1, 2),
    "permute": lambda t: t.permute(2, 0, 1),
    "movedim": lambda t: t.movedim(0, 1),
    ".mT": lambda t: t.mT,
    ".T": lambda t: t[0].T,
    "unsqueeze": lambda t: t.unsqueeze(1),
    "x[:, None]": lambda t: t[:, None],
    "squeeze(i)": lambda t: t[:1].squeeze(0),
    "expand": lambda t: t[:1].expand(3, 6, 4),
    "repeat": lambda t: t.repeat(1, 2, 1),
    "repeat_interleave": lambda t: t.repeat_interleave(2, 1),
    "chunk": lambda t: t.chunk(2, 1)[0],
    "split": lambda t: t.split(2, 1)[0],
    "unbind": lambda t: t.unbind(1)[0],
    "cat": lambda t: torch.cat((t, t)),
    "stack": lambda t: torch.stack((t, t)),
}


def test_the_table_of_operations():
    """What shares memory shares it, and what copies does not."""
    known = dict(OPERATIONS)
    for names, _, memory in table("shapes", "operation"):
        for name in re.findall(r"`(.+?)`", names):
            if name in ("reshape", "flatten", "contiguous"):  # as strides have it
                continue
            shares = known.pop(name)(BATCH).untyped_storage()._cdata
            same = shares == BATCH.untyped_storage()._cdata
            assert same is memory.startswith("shares"), name
    assert not known


def test_commands_named_on_pages_exist():
    """A page sends nobody to a command that there is not."""
    known = {module.name for module in pkgutil.iter_modules(attnlab.commands.__path__)}
    for name in SUBJECTS:
        for verb in re.findall(r"`attnlab (\w+)", page_text(name)):
            assert verb in known, (name, verb)
