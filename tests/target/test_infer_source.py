"""What is guessed from a source that hides its sizes: configs, layers, constants."""

import pytest
from own_target import own_job

from attnlab.errors import Refused


def fed(contract):
    return {entry.name: " ".join(entry.axes) for entry in contract.inputs}


# ---------------------------------------------------------------- what the source hides

BASE = "class A(nn.Module):\n"
FORWARD = " def forward(s, x): ...\n"


@pytest.mark.parametrize(
    ("text", "init", "inputs"),
    [
        (f"{BASE} def __init__(s, dim): ...\n{FORWARD}class Net(A): ...\n",
         {"dim": "D"}, {"x": "B S D"}),
        (f"{BASE}{FORWARD}class Net(A):\n def __init__(s, heads): ...\n",
         {"heads": "H"}, {"x": "B S D"}),
        ("from lib import A\nclass Net(A):\n def forward(s, x): ...\n", {}, {"x": "B S D"}),
        ("class Net(nn.LayerNorm): ...\n", {}, {}),
        ("@dataclass\nclass Net(nn.Module):\n dim: int\n def forward(s, x): ...\n",
         {"dim": "D"}, {"x": "B S D"}),
        ("@register\nclass Net(nn.Module):\n def forward(s, x): ...\n", {}, {"x": "B S D"}),
        ("class Net:\n def __call__(s, x): ...\n", {}, {"x": "B S D"}),
        ("class Net(nn.Module, Generic[T]):\n @staticmethod\n def forward(x): ...\n",
         {}, {"x": "B S D"}),
        ("class A(B): ...\nclass B(A): ...\nclass Net(A):\n def forward(s, x): ...\n",
         {}, {"x": "B S D"}),
        ("def Net(dim): ...\n", {"dim": "D"}, {"x": "B S D"}),
    ],
)  # fmt: skip
def test_what_can_be_seen_is_used(tmp_path, monkeypatch, text, init, inputs):
    """Base classes in the file are followed; what lies elsewhere is left to the lab."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(text)
    flags = {"inputs": ["x: B S D"]} if text.startswith("def") else {}
    contract = own_job("net.py:Net", **flags).contract
    assert (contract.init, fed(contract)) == (init, inputs)


CONFIG = """
@dataclass
class Config(Base):
    n_embd: int = 16
    n_head: int = 4
    act: str = "gelu"
class Net(nn.Module):
    def __init__(self, config: "Config"): ...
    def forward(self, x): ...
"""


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """The contract of a module that takes a config object."""
    monkeypatch.chdir(tmp_path)

    def contract(text, **flags):
        (tmp_path / "net.py").write_text(text)
        return own_job("net.py:Net", **flags).contract

    return contract


@pytest.mark.parametrize(
    ("text", "init"),
    [
        (CONFIG.replace("(Base)", ""), "Config(n_embd=D, n_head=H)"),
        (CONFIG.replace("(Base)", "").replace(': "Config"', ""), "Config(n_embd=D, n_head=H)"),
        (
            "class Config:\n def __init__(self, n_embd, n_head=4): ...\n"
            + CONFIG[CONFIG.index("class Net") :],
            "Config(n_embd=D, n_head=H)",
        ),
        (
            "class Config:\n n_embd = 16\n n_head = 4\n" + CONFIG[CONFIG.index("class Net") :],
            "Config()",
        ),
        (
            "class InnerConfig(nn.Module):\n def __init__(self, n_embd, n_head=4): ...\n"
            + CONFIG[CONFIG.index("class Net") :].replace(': "Config"', ""),
            "InnerConfig(n_embd=D, n_head=H)",
        ),
    ],
    ids=["dataclass", "by name", "constructor", "attributes", "a module of the file"],
)
def test_a_config_of_the_same_file_is_made(configured, text, init):
    """Its settings are arguments like any other, and its defaults say the sizes."""
    contract = configured(text)
    assert contract.init == {"config": init}
    assert contract.sizes["H"] == 4
    assert contract.sizes["D"] % 4 == 0


@pytest.mark.parametrize("init", ["n_embd=12, n_head=3", "config=Config(n_embd=12, n_head=3)"])
def test_settings_are_said_inside_or_outside_the_config(configured, init):
    """Both reach the object, and the input fits."""
    contract = configured(CONFIG.replace("(Base)", ""), init=init)
    assert contract.init == {"config": "Config(n_embd=D, n_head=H)"}
    assert (contract.sizes["D"], contract.sizes["H"]) == (12, 3)


def test_a_config_whose_fields_lie_elsewhere_is_asked_for(configured):
    """A dataclass with a base in another file may have more fields than can be seen."""
    with pytest.raises(Refused) as caught:
        configured(CONFIG)
    assert "config=Config()" in caught.value.hint


@pytest.mark.parametrize(
    "how", ["from mine.settings import", "from .settings import", "from . import"]
)
def test_a_config_of_the_own_package_is_made(how, tmp_path, monkeypatch):
    """Its class is read where it lies, also where the package's __init__ hands it on."""
    home = tmp_path / "src" / "mine"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("from .settings import Config\n")
    config, net = CONFIG.replace("(Base)", "").split("class Net")
    (home / "settings.py").write_text(config)
    head = f"from torch import nn\n{how} Config as Settings\n"
    (home / "net.py").write_text(head + "class Net" + net.replace("Config", "Settings"))
    monkeypatch.chdir(tmp_path)
    assert own_job("src/mine/net.py:Net").contract.init == {
        "config": "Settings(n_embd=D, n_head=H)"
    }


def test_a_module_that_a_constructor_takes_is_not_asked_for_as_a_number(configured):
    """The hint says where such a module can be built."""
    with pytest.raises(Refused) as caught:
        configured(
            "from torch import nn\nclass Net(nn.Module):\n"
            "    def __init__(self, size, self_attn: nn.Module): ...\n"
            "    def forward(self, x): ...\n"
        )
    assert "=12" not in caught.value.hint
    assert 'if __name__ == "__main__": and lines that build and call Net' in caught.value.hint


def test_ids_of_special_tokens_are_ids(configured):
    """Padding is the first row of a table, whatever its prefix."""
    contract = configured(
        "from torch import nn\nclass Net(nn.Module):\n"
        "    def __init__(self, dim, src_pad_idx, trg_pad_idx, trg_sos_idx): ...\n"
        "    def forward(self, x): ...\n"
    )
    assert contract.init == {"dim": "D", "src_pad_idx": 0, "trg_pad_idx": 0, "trg_sos_idx": 1}


# ---------------------------------------------------------------- widths that nobody said


@pytest.mark.parametrize(
    ("made", "width"),
    [
        ("nn.Linear(48, 7)", 48),
        ("nn.LayerNorm(normalized_shape=40)", 40),
        ("nn.Embedding(99, wide)", 36),
        ("nn.MultiheadAttention(24, 2)", 24),
        ("nn.Dropout(0.5)", 12),
        ("Parameter(torch.ones(3))", 12),
    ],
)
def test_the_width_of_the_first_layer_is_read(configured, made, width):
    """A guess of 12 would show right code as crashed; where any width fits, 12 is as good."""
    text = f"wide = 36\nclass Net(nn.Module):\n def __init__(self):\n  self.a = {made}\n{FORWARD}"
    contract = configured(text)
    assert contract.sizes["D"] == width
    assert ("D" in contract.vary) == (width == 12)


def test_an_argument_that_is_the_width_is_called_so(configured):
    """`hidden_dim` is the input's width where the first layer takes it."""
    text = "class Net(nn.Module):\n def __init__(self, hidden_dim):\n"
    contract = configured(f"{text}  self.a = nn.Linear(hidden_dim, 9)\n{FORWARD}")
    assert contract.init == {"hidden_dim": "D"}


@pytest.mark.parametrize(
    ("built", "sizes"),
    [
        ("n_embd, n_head", {"D": 384, "H": 6}),
        ("num_heads, head_size", {"D": 384, "H": 3}),
        ("head_size", {"D": 384, "H": 3}),
    ],
)
def test_constants_of_the_file_say_sizes(configured, built, sizes):
    """Scripts keep their settings at the top; inner layers may use them without being told."""
    text = "n_embd = 384\nn_head = 6\nclass Net(nn.Module):\n"
    text += f" def __init__(self, {built}):\n  self.a = Inner(head_size)\n"
    for tiny in (False, True):
        found = configured(text + FORWARD, tiny=tiny)
        assert {symbol: found.sizes[symbol] for symbol in sizes} == sizes
        assert "D" not in found.vary


def test_constants_as_defaults_of_arguments(configured):
    """`d_model=WIDTH` is as plain as `d_model=48`, also where WIDTH is a product."""
    text = "HEADS = 6\nWIDTH = HEADS * 8\nclass Net(nn.Module):\n"
    text += " def __init__(self, d_model=WIDTH, n_heads=HEADS):\n  self.a = nn.Linear(d_model, 9)\n"
    found = configured(text + FORWARD)
    assert (found.sizes["D"], found.sizes["H"]) == (48, 6)
    assert found.init == {"d_model": "D", "n_heads": "H"}


def test_an_input_of_a_number_says_the_width(configured):
    """`--input "x: B S 16"`: a layer of another width would crash, and it would be our doing."""
    text = "class Net(nn.Module):\n def __init__(self, embed_dim):\n"
    text += f"  self.a = nn.Linear(embed_dim, 9)\n{FORWARD}"
    assert configured(text, inputs=["x: B S 16"]).sizes["D"] == 16
    said = configured(text, inputs=["x: B S 16"], init="embed_dim=12")
    assert said.init == {"embed_dim": "D"}
    assert said.sizes["D"] == 12


def test_a_width_that_is_computed_is_asked_for(configured):
    """What cannot be known is refused with a command, and not guessed."""
    text = "class Net(nn.Module):\n def __init__(self, n=3):\n  self.a = nn.Linear(n * 5, 9)\n"
    with pytest.raises(Refused) as caught:
        configured(text + FORWARD)
    assert caught.value.message == "net.py:Net takes an input of width D, but D has no size"
    assert caught.value.hint.endswith("attnlab trace net.py:Net --sizes D=12")
    assert configured(text + FORWARD, sizes="D=15").sizes["D"] == 15


def test_a_preset_gives_way_to_layers_that_are_made(configured):
    """D=8 of `--preset tiny` does not fit a layer of 48."""
    text = f"class Net(nn.Module):\n def __init__(s):\n  s.a = nn.Linear(48, 7)\n{FORWARD}"
    assert configured(text, tiny=True).sizes == {"B": 1, "S": 4, "D": 48}
