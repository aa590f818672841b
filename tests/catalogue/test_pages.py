"""The pages of attnlab explain: what they show is what PyTorch computes, and tables are checked."""

import doctest
import pkgutil
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlab.commands
from attnlab.catalogue.load import page_text, pages

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


def hidden_by_true(where: str, argument: str) -> bool:
    """Whether a True hides a key, as PyTorch computes it."""
    x = torch.eye(4)[None]
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[:, 2] = True
    if where == "F.scaled_dot_product_attention":
        return bool((F.scaled_dot_product_attention(x, x, x, attn_mask=mask)[..., 2] == 0).all())
    if where == "nn.MultiheadAttention":
        mha = nn.MultiheadAttention(4, 1, batch_first=True).eval()
        given = mask[:1] if argument == "key_padding_mask" else mask
        return bool((mha(x, x, x, **{argument: given})[1][..., 2] == 0).all())
    layer = nn.TransformerEncoderLayer(4, 1, 8, batch_first=True).eval()
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    other = x.clone()
    other[:, 2] = 5.0
    outs = [encoder(t, src_key_padding_mask=mask[:1])[:, :2] for t in (x, other)]
    return torch.allclose(*outs, atol=1e-6)


def test_the_table_of_masks():
    """What True means to PyTorch's own functions is what they do with it."""
    ours = ("F.scaled", "nn.")
    rows = [[c.replace("`", "") for c in r] for r in table("masks", "where")]
    rows = [row for row in rows if row[0].startswith(ours)]
    assert len(rows) == 4
    for where, argument, meaning in rows:
        hides = meaning != "may attend"
        assert hidden_by_true(where, argument.partition(",")[0]) is hides


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
