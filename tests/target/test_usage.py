"""What classes do with their arguments, read off their source."""

import ast
from textwrap import dedent

import pytest

from attnlab.target.outline import read_comments, read_outline
from attnlab.target.usage import ClassUsage

GPT = """
class Attention(nn.Module):
    def __init__(self, width, n):
        self.split = width // n
        self.qkv = nn.Linear(width, 3 * width)
    def forward(self, x, mask):
        scores = self.qkv(x)
        return scores.masked_fill(mask == 0, -1e9)

class GPT(nn.Module):
    def __init__(self, vocab, size, block, layers, drop_rate):
        self.tok = nn.Embedding(vocab, size)
        self.pos = nn.Embedding(block, size)
        self.blocks = nn.ModuleList([Attention(size, 4) for _ in range(layers)])
        self.drop = nn.Dropout(drop_rate)
        self.head = nn.Linear(size, vocab)
    def forward(self, stuff, allowed_mask):
        h = self.tok(stuff)
        for block in self.blocks:
            h = block(h, allowed_mask)
        return self.head(h)
"""


def outline(text):
    return read_outline(ast.parse(dedent(text)), read_comments(dedent(text)))


def forward(text, name):
    return {p.name: p.feed for p in outline(text).definitions[name].forward.parameters}


def test_layers_tell_what_arguments_of_any_name_mean():
    """An embedding's first is a vocabulary or a number of positions; a range counts layers."""
    assert outline(GPT).definitions["GPT"].roles == {
        "vocab": "V",
        "size": "D",
        "block": "M",
        "layers": 2,
        "drop_rate": 0.0,
    }


def test_the_root_is_the_module_that_no_other_uses():
    """Blocks are used by their model."""
    assert outline(GPT).roots == ("GPT",)


PARTS = """
class Layer(nn.Module):
    def __init__(self, d_model=16):
        self.norm = nn.LayerNorm(d_model)
    def forward(self, tgt, memory, memory_key_padding_mask=None):
        return self.norm(tgt)

class Decoder(nn.Module):
    def __init__(self, layer, depth):
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(depth)])
    def forward(self, memory, pad):
        bs = memory.shape[1]
        for layer in self.layers:
            memory = layer(memory, memory, memory_key_padding_mask=pad)
        return memory
"""


def test_a_part_is_an_argument_of_what_it_is_part_of():
    """So it is no root, its batch stands second where that is read off, and its mask is over
    keys."""
    assert outline(PARTS).roots == ("Decoder",)
    assert forward(PARTS, "Decoder") == {"memory": "S B D", "pad": "B S bool forbids"}


def test_a_length_called_n_and_a_width_that_is_a_number_are_read_as_that():
    """`n = ids.size(1)` says nothing of a batch; a first layer of 3 features takes 3."""
    text = """
    class Net(nn.Module):
        def __init__(self, dim):
            self.enc = nn.Linear(3, dim)
        def forward(self, points):
            n = points.size(1)
            return self.enc(points)[:, :n]
    """
    assert forward(text, "Net") == {"points": "B S 3"}


def test_a_diffusion_model_has_one_class_for_each_sample():
    """Not one for each position; the table may have rows besides those of the classes."""
    text = """
    class DiT(nn.Module):
        def __init__(self, dim, kinds):
            self.label = nn.Embedding(kinds + 1, dim)
        def forward(self, x, t, y):
            return x + self.label(y)
    """
    assert forward(text, "DiT")["y"] == "B int"
    assert outline(text).definitions["DiT"].roles["kinds"] == "V"


def test_inputs_are_known_by_where_they_go():
    """Ids go into an embedding; a mask that is compared with 0 allows, also inside a block."""
    assert forward(GPT, "GPT") == {"stuff": "B S int", "allowed_mask": "S S bool allows"}


ANNOTATED = """
def attention(q, mask=None):
    return q.masked_fill(mask == 0, -1e9)

class Heads(nn.Module):
    def forward(self, x, mask=None):
        mask = mask.unsqueeze(1)
        return attention(x, mask=mask)

class Layer(nn.Module):
    def __init__(self, size):
        self.heads = Heads()
    def forward(self, x, mask):
        return self.heads(x, mask)

class Encoder(nn.Module):
    def __init__(self, size, N):
        self.layers = clones(Layer(size), N)
    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x
"""


def test_a_mask_is_followed_through_copies_of_a_layer_and_a_function():
    """The annotated transformer's habits: without its polarity causality seemed broken. The axis
    that is added on the way counts."""
    assert forward(ANNOTATED, "Encoder")["mask"] == "B S S bool allows"


@pytest.mark.parametrize(
    ("line", "feed"),
    [
        ("x = nn.functional.embedding(x, self.weight)", "B S int"),
        ("b, c, h, w = x.shape", "B 3 32 32"),
        ("b, s, d = x.size()", "B S D"),
        ("x = self.patch(x)", "B 1 28 28"),
        ("x = x + 1", ""),
    ],
)
def test_a_picture_has_the_size_that_the_constructor_says(line, feed):
    """Four axes, or a convolution, make a picture; two ids; what says nothing stays unknown."""
    image = "image_size=28" if "patch" in line else "dim=3"
    text = f"""
    class Net(nn.Module):
        def __init__(self, {image}):
            self.patch = nn.Conv2d(1, 8, 4) if 0 else nn.Identity()
            self.patch = nn.Conv2d(1, 8, 4)
        def forward(self, x):
            {line}
            return x
    """
    if "shape" in line:
        text = text.replace("nn.Conv2d(1, 8, 4)", "nn.Identity()")
    assert forward(text, "Net")["x"] == feed


@pytest.mark.parametrize(
    ("use", "axes"),
    [
        ("s.masked_fill(mask, -1e9)", "S S bool forbids"),
        ("s.masked_fill(~mask[:, None, None], -1e9)", "B S bool allows"),
        ("s.masked_fill(mask.unsqueeze(1), -1e9)", "B S S bool forbids"),
        ("s + mask", "S S bool forbids additive"),
        ("s.where(~mask, -torch.inf)", "S S bool forbids"),
        ("torch.where(mask, s, -torch.inf)", "S S bool allows"),
        ("torch.where(mask, torch.finfo(s.dtype).min, s)", "S S bool forbids"),
        ("F.scaled_dot_product_attention(s, s, s, attn_mask=~mask)", "S S bool forbids"),
        ("F.scaled_dot_product_attention(s, s, s, mask)", "S S bool allows"),
        ("s", ""),
    ],
)
def test_a_mask_has_the_polarity_and_axes_of_its_use(use, axes):
    """By comparison, inversion or fill, and by the axes that are added to it."""
    text = f"""
    class Net(nn.Module):
        def forward(self, s, mask):
            return {use}
    """
    usage = ClassUsage({"Net": ast.parse(dedent(text)).body[0]})
    assert usage.mask_axes("Net", "mask") == axes


@pytest.mark.parametrize(
    ("use", "feed"),
    [
        ("s.masked_fill(left_out[:, None, None, :], -1e9)", "B S bool forbids"),
        ("s.masked_fill(~left_out[:, None, None, :], -1e9)", "B S bool allows"),
        ("s + (left_out.to(s.dtype) * NEG)[:, None, None]", "S S bool forbids"),
        ("s.where(torch.logical_not(left_out)[:, None, None, :], -1e9)", "B S bool forbids"),
        ("s * torch.exp(-left_out)", ""),
        ("s * (left_out * -1)", ""),
        ("s * left_out", ""),
        ("s + left_out", ""),
    ],
)
def test_a_mask_of_any_name_is_known_by_its_use(use, feed):
    """By what it fills, closes or inverts; a factor or a term may be anything."""
    text = f"""
    class Net(nn.Module):
        def forward(self, s, left_out):
            hidden = {use}
            return hidden
    """
    assert forward(text, "Net")["left_out"] == feed


@pytest.mark.parametrize(
    ("argument", "line"),
    [("src_pad", "seen = ~src_pad[:, None, None, :]"), ("m", "keep = (~m).unsqueeze(1)")],
)
def test_what_is_kept_where_a_mask_is_not_true_is_padding(argument, line):
    """By the name of the mask, or of its opposite, where nothing else says it."""
    text = f"""
    class Net(nn.Module):
        def forward(self, x, {argument}):
            {line}
            return self.layers["own"](x, {line.split()[0]})
    """
    assert "forbids" in forward(text, "Net")[argument]


def test_a_mask_may_be_called_as_the_id_of_padding_is():
    """`pad` is a number in a constructor, and a mask over keys where forward uses it as one."""
    text = """
    class Net(nn.Module):
        def forward(self, x, pad):
            keep = ~pad[:, None, None, :]
            return x.masked_fill(~keep, -torch.inf)
    """
    assert forward(text, "Net")["pad"] == "B S bool forbids"


def test_a_picture_has_the_rows_and_columns_that_are_cut_in_patches():
    """`height` and `width` of the constructor, of which the latter is no width of vectors then."""
    text = """
    class Net(nn.Module):
        def __init__(self, height=8, width=12, patch=4, dim=20):
            self.cut = nn.Conv2d(3, dim, patch, patch)
            self.table = nn.Parameter(torch.zeros((height // patch) * (width // patch), dim))
        def forward(self, img):
            return self.cut(img).flatten(2).mT + self.table
    """
    assert forward(text, "Net")["img"] == "B 3 8 12"


@pytest.mark.parametrize(
    ("flag", "before", "first"),
    [
        ("", "", "S B int"),
        (", batch_first=True", "", "B S int"),
        ("", ".transpose(0, 1)", "B S int"),
    ],
)
def test_pytorch_layers_without_batch_first_take_time_first(flag, before, first):
    """Unless forward turns the axes itself."""
    text = f"""
    class Net(nn.Module):
        def __init__(self, ntoken, d_model):
            self.emb = nn.Embedding(ntoken, d_model)
            self.layer = nn.TransformerEncoderLayer(d_model, 2{flag})
        def forward(self, src):
            return self.layer(self.emb(src){before})
    """
    assert forward(text, "Net") == {"src": first}


@pytest.mark.parametrize(
    ("table", "first"),
    [
        ("pe.unsqueeze(1)", "S B D"),
        ("pe.unsqueeze(0).transpose(0, 1)", "S B D"),
        ("pe", ""),
    ],
)
def test_a_table_with_the_batch_in_the_middle_says_that_positions_come_first(table, first):
    """`unsqueeze(1)` of something else, as of the positions, says nothing."""
    text = f"""
    class Net(nn.Module):
        def __init__(self, d_model):
            self.layer = nn.Linear(d_model, d_model)
            at = torch.arange(99).unsqueeze(1)
            pe = torch.sin(at / torch.arange(d_model))
            self.register_buffer("pe", {table})
        def forward(self, x):
            return self.layer(x + self.pe[: x.size(0)])
    """
    assert forward(text, "Net") == {"x": first}


@pytest.mark.parametrize(("default", "first"), [("False", "S B D"), ("True", "B S D")])
def test_an_own_batch_first_says_which_axis_comes_first(default, first):
    """As in a class that takes the place of nn.MultiheadAttention."""
    text = f"""
    class Net(nn.Module):
        def __init__(self, d_model, batch_first: bool = {default}):
            self.layer = nn.Linear(d_model, d_model)
            self.batch_first = batch_first
        def forward(self, x):
            return self.layer(x)
    """
    assert forward(text, "Net") == {"x": first}


def test_a_mask_is_followed_through_variables():
    """What is inverted on the way to the attention says the contrary, also under the same name."""
    text = """
    class Net(nn.Module):
        def forward(self, s, mask):
            mask = ~mask[:, None]
            some = mask.any(-1)
            return F.scaled_dot_product_attention(s, s, s, attn_mask=mask | ~some)
    """
    usage = ClassUsage({"Net": ast.parse(dedent(text)).body[0]})
    assert usage.mask_axes("Net", "mask") == "B S S bool forbids"


SEEN_OTHERWISE = """
class Bert(nn.Module):
    def forward(self, x, attention_mask):
        weight = attention_mask.to(x.dtype)
        return self.attend(x, (1.0 - weight[:, None, None, :]) * -10000.0)

class Tables(nn.Module):
    def mix(self, h, i, real):
        seen = real[:, None, None, :].expand(-1, 1, h.shape[1], -1)
        return F.scaled_dot_product_attention(h, h, h, attn_mask=seen)

    def forward(self, ids, kinds, mask):
        real = mask.bool()
        return self.mix(self.words[ids] + self.sorts[kinds], 0, real)
"""


def test_a_mask_is_followed_through_other_names_and_methods_of_the_class():
    """A mask in another dtype is still the mask; what looks up rows of a table are ids."""
    classes = {node.name: node for node in ast.parse(SEEN_OTHERWISE).body}
    usage = ClassUsage(classes)
    assert usage.mask_axes("Bert", "attention_mask") == "B S bool allows"
    assert usage.mask_axes("Tables", "mask") == "B S bool allows"
    assert [usage.fed("Tables", name) for name in ("ids", "kinds")] == ["ids", "ids"]


def test_what_is_filled_in_may_have_a_name():
    """`where` takes it in either place, and says which side is hidden."""
    text = """
    class Net(nn.Module):
        def forward(self, s, mask):
            lowest = torch.finfo(s.dtype).min
            return torch.where(mask.unsqueeze(1), lowest, s)
    """
    usage = ClassUsage({"Net": ast.parse(dedent(text)).body[0]})
    assert usage.mask_axes("Net", "mask") == "B S S bool forbids"


METHODS = """
class Net(nn.Module):
    def __init__(self, width):
        self.letters = nn.Embedding(99, width)
        self.mix = nn.Linear(width, width)

    def embed(self, given):
        return self.letters(given)

    def encode(self, source, keep):
        return self.mix(self.embed(source))

    def forward(self, first, second, third):
        return self.encode(first, second != data.PAD) + self.mix(third)
"""


def test_inputs_are_followed_into_methods_of_the_class():
    """Ids reach an embedding in a method of a method, or are compared with padding."""
    usage = ClassUsage({"Net": ast.parse(METHODS).body[0]}, {})
    fed = {name: usage.fed("Net", name) for name in ("first", "second", "third")}
    assert fed == {"first": "ids", "second": "ids", "third": "vectors"}


NESTED = """
class Graph(nn.Module):
    def __init__(self, in_ch, out_ch):
        self.lin = nn.Linear(in_ch, out_ch)
    def forward(self, x, adj):
        return self.lin(x)

class Net(nn.Module):
    def __init__(self, in_ch=16, hidden=32):
        self.conv = Graph(in_ch, hidden)
    def forward(self, x, adj):
        return self.conv(x, adj)

class Speech(nn.Module):
    def __init__(self, bins=40, d=96):
        self.front = nn.Conv1d(bins, d, 3)
    def forward(self, mels, lengths):
        return self.front(mels.transpose(1, 2))

class Window(nn.Module):
    def __init__(self, dim=48, resolution=16):
        self.norm = nn.LayerNorm(dim)
    def forward(self, x):
        B, H, W, C = x.shape
        return self.norm(x)
"""


def test_an_input_is_as_wide_as_the_layer_it_reaches():
    """Through a class of the same file, and with the axes of a convolution turned; a picture whose
    channels come last is unpacked so."""
    assert forward(NESTED, "Net")["x"] == "B S 16"
    assert forward(NESTED, "Speech")["mels"] == "B S 40"
    assert forward(NESTED, "Window")["x"] == "B 16 16 D"


def test_a_named_tuple_is_a_config():
    """As a dataclass is: its fields are what its constructor takes."""
    text = """
    class Config(NamedTuple):
        width: int = 32
        heads: int = 4
    """
    build = outline(text).definitions["Config"].build
    assert {p.name: p.default for p in build.parameters} == {"width": 32, "heads": 4}


@pytest.mark.parametrize(
    ("comment", "first"),
    [("x: (T, B, D)", "S B D"), ("input: (batch, 128 samples, D)", "B S D"), ("layers", "S B D")],
)
def test_comments_say_which_axis_comes_first(comment, first):
    """They weigh more than what PyTorch's layers without batch_first would have."""
    text = f"""
    class Net(nn.Module):
        # {comment}
        def __init__(self, d_model):
            self.inp = nn.Linear(d_model, d_model)
            self.layer = nn.TransformerEncoderLayer(d_model, 2)
        def forward(self, x):
            return self.layer(self.inp(x))
    """
    assert forward(text, "Net") == {"x": first}
