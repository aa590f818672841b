"""How one's own module is built and fed: flags, case files, well-known names, and refusals."""

import pytest
from own_target import own_job

from attnlab.errors import Refused, Unreadable
from attnlab.records import Container


@pytest.fixture
def net(tmp_path, monkeypatch):
    """Writes net.py with a module of these signatures; gives the contract of its job."""
    monkeypatch.chdir(tmp_path)

    def contract(built="self, embed_dim, num_heads", called="self, x", **flags):
        (tmp_path / "net.py").write_text(
            f"class Net(nn.Module):\n    def __init__({built}): ...\n"
            f"    def forward({called}): ...\n"
        )
        return own_job("net.py:Net", **flags).contract

    return contract


def refused(net, *args, **flags):
    with pytest.raises(Refused) as caught:
        net(*args, **flags)
    return caught.value


def fed(contract):
    return {entry.name: " ".join(entry.axes) for entry in contract.inputs}


# ---------------------------------------------------------------- the constructor


def test_well_known_names_are_sizes(net):
    """Most attention modules are built with no flag at all."""
    contract = net()
    assert contract.init == {"embed_dim": "D", "num_heads": "H"}
    assert contract.sizes == {"B": 2, "S": 5, "D": 12, "H": 3}
    assert fed(contract) == {"x": "B S D"}


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("self, d_model, nhead, dropout", {"d_model": "D", "nhead": "H", "dropout": 0.0}),
        ("self, dim, heads, dim_head", {"dim": "D", "heads": "H", "dim_head": "hd"}),
        ("self, d_model, max_len=5000", {"d_model": "D", "max_len": "M"}),
        ("self, vocab_size, n_embd", {"vocab_size": "V", "n_embd": "D"}),
        ("self, hidden_size, n_kv_heads", {"hidden_size": "D", "n_kv_heads": "Hkv"}),
        ("self, d_model, d_ff, p", {"d_model": "D", "d_ff": "F", "p": 0.0}),
        ("self, d, window, kv_dim", {"d": "D", "window": 3, "kv_dim": "D"}),
        ("self, d_kv, num_buckets", {"d_kv": "hd", "num_buckets": 8}),
        ("self, mlp_ratio, resid_pdrop", {"mlp_ratio": 4, "resid_pdrop": 0.0}),
        ("self, dim, spread: int, use_flash", {"dim": "D", "spread": 4, "use_flash": True}),
        ("self, dim, *, heads", {"dim": "D", "heads": "H"}),
        ("self, dim, num_kv_heads=None, bias=True, act='gelu'", {"dim": "D"}),
        ("self", {}),
        ("self, *args, **kwargs", {}),
        ("self, D, H", {"D": "D", "H": "H"}),
    ],
)
def test_constructors_of_the_wild_are_understood(net, init, expected):
    """Names of real code bases; defaults that are no sizes are left as they are."""
    assert net(init).init == expected


def test_defaults_tell_the_sizes(net):
    """`embed_dim=64` means that x has 64 features: feeding another width would be our mistake."""
    contract = net("self, embed_dim=64, num_heads=8, eps=1e-6")
    assert contract.init == {"embed_dim": "D", "num_heads": "H"}
    assert (contract.sizes["D"], contract.sizes["H"]) == (64, 8)


def test_symbols_win_over_defaults(net):
    """--init "D=10" builds the module with 10, whatever its default is."""
    contract = net("self, embed_dim=64, num_heads=8", init="D=10, H=2")
    assert contract.init == {"embed_dim": "D", "num_heads": "H"}
    assert contract.sizes == {"B": 3, "S": 6, "D": 10, "H": 2}  # B, S differ from H and D / H


def test_a_second_width_keeps_its_default(net):
    """Two different defaults cannot both be D."""
    contract = net("self, embed_dim=64, hidden_size=128")
    assert contract.init == {"embed_dim": "D"}
    assert contract.sizes["D"] == 64


def test_parameters_may_be_given_by_name(net):
    """embed_dim=182 says what D is, so the input fits."""
    contract = net(init="embed_dim=182, num_heads=7")
    assert contract.init == {"embed_dim": "D", "num_heads": "H"}
    assert contract.sizes == {"B": 2, "S": 5, "D": 182, "H": 7}


def test_a_width_of_its_own_stays_a_number(net):
    """Where D is given and differs, the argument is passed as it was typed."""
    contract = net("self, dim, width", init="D=8, width=32")
    assert contract.init == {"dim": "D", "width": 32}


def test_values_that_are_no_sizes_are_passed_on(net):
    """Numbers, truths and text reach the constructor; a bare symbol stands for its size."""
    contract = net("self, embed_dim, act, causal, k", init="act='gelu', causal=True, k=D, D=8")
    assert contract.init == {"embed_dim": "D", "act": "gelu", "causal": True, "k": "D"}


def test_unknown_names_take_the_symbols_in_order(net):
    """--init "D=182, H=7" is enough for (units, parts)."""
    contract = net("self, units, parts", init="D=182, H=7")
    assert contract.init == {"units": "D", "parts": "H"}
    assert net("self, parts, d_model", init="D=182, H=7").init == {"parts": "H", "d_model": "D"}


def test_batch_and_length_are_no_constructor_arguments(net):
    """B and S in --init are sizes of the input, and count for no argument."""
    contract = net("self, units", init="B=3, S=9, D=8")
    assert contract.init == {"units": "D"}
    assert contract.sizes == {"B": 3, "S": 9, "D": 8}


def test_unknown_arguments_are_refused_ready_to_paste(net):
    """The message lists the constructor, the hint is a flag that would do."""
    error = refused(net, "self, dim, parts, kind: str, causal: bool")
    assert error.message == (
        "net.py:Net is built with (dim, parts, kind: str, causal: bool): "
        "nothing says what parts, kind should be"
    )
    assert error.hint.endswith("""--init "parts=12, kind='text'\"""")
    flag = error.hint.partition('--init "')[2].rstrip('"')
    assert net("self, dim, parts, kind: str, causal: bool", init=flag).init["parts"] == 12


def test_a_config_from_elsewhere_is_asked_for(net):
    """Where its class cannot be seen, the command shows how an object is said."""
    hint = refused(net, "self, config: GPTConfig").hint
    assert hint.endswith('attnlab trace net.py:Net --init "config=GPTConfig()"')
    contract = net("self, config: GPTConfig", init="config=GPTConfig(n_embd=8)")
    assert contract.init == {"config": "GPTConfig(n_embd=8)"}


def test_a_mistyped_argument_gets_the_near_name(net):
    """--init embed_dmi=12 is neither passed nor ignored."""
    error = refused(net, init="embed_dmi=12")
    assert error.message == "--init: the constructor takes no embed_dmi"
    assert error.hint == "Did you mean embed_dim?"


def test_open_constructors_take_any_argument(net):
    """**kwargs may well know it."""
    assert net("self, dim, **kwargs", init="flavour='x'").init == {"dim": "D", "flavour": "x"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"init": "D=1.5"}, "--init: D=1.5 is not a size"),
        ({"init": "D=True"}, "--init: D=True is not a size"),
        ({"init": "embed_dim=Q"}, "Q has no size"),
        ({"inputs": ["x: B S wide"]}, "wide has no size"),
        ({"inputs": ["x: B S flot"]}, "flot has no size"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(net, flags, message):
    """Each with what to type instead."""
    error = refused(net, **flags)
    assert error.message == message
    assert error.hint


# ---------------------------------------------------------------- the inputs


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("self, hidden_states", {"hidden_states": "B S D"}),
        ("self, query, key, value, mask=None", dict.fromkeys(("query", "key", "value"), "B S D")),
        ("self, x, mask", {"x": "B S D", "mask": "B S S"}),
        ("self, x, key_padding_mask", {"x": "B S D", "key_padding_mask": "B S"}),
        ("self, input_ids, positions", {"input_ids": "B S", "positions": "B S"}),
        ("self, x, scale=2.0, *, cache=None", {"x": "B S D"}),
        ("self, x, *rest, **more", {"x": "B S D"}),
        ("self", {}),
        ("self, past=None, input_ids=None, mask=None", {"input_ids": "B S"}),
        ("self, how=None", {}),
    ],
)
def test_inputs_are_guessed_by_their_names(net, forward, expected):
    """Arguments with a default are left out: the module knows what to do without them."""
    assert fed(net(called=forward)) == expected


def test_guessed_kinds_are_right(net):
    """Token ids are whole numbers, a required mask is a boolean one that forbids."""
    ids, mask = net(called="self, ids, attention_mask").inputs
    assert (ids.dtype, ids.role) == ("int", "data")
    assert (mask.dtype, mask.role, mask.forbids) == ("bool", "mask", True)


def test_a_module_that_is_built_with_a_heads_width_takes_heads(net):
    """A rotary embedding that knows no other width is not fed whole vectors."""
    assert fed(net(built="self, head_dim, max_len", called="self, x")) == {"x": "B H S hd"}
    assert fed(net(built="self, dim, head_dim", called="self, x")) == {"x": "B S D"}


def test_a_given_input_joins_the_guessed_ones(net):
    """--input "pad: B S bool" needs no second flag for x, and keeps forward's order."""
    contract = net(called="self, x, mask=None, pad=None", inputs=["pad: B S bool"])
    assert fed(contract) == {"x": "B S D", "pad": "B S"}
    assert fed(net(called="self, a, x", inputs=["a: B D"])) == {"a": "B D", "x": "B S D"}


def test_unknown_inputs_are_refused_ready_to_paste(net):
    """The hint can be pasted, and then works."""
    error = refused(net, called="self, x, stuff, thing")
    assert "nothing says what stuff, thing should be" in error.message
    assert error.hint.endswith('--input "stuff: B S D" --input "thing: B S D"')
    contract = net(called="self, x, stuff", inputs=["stuff: B S D"])
    assert fed(contract) == {"x": "B S D", "stuff": "B S D"}


def test_an_argument_that_is_no_tensor_gets_a_value(net):
    """`forward(self, x, rate: float)` cannot be fed by axes: the command shows the other form."""
    error = refused(net, called="self, x, rate: float")
    assert error.hint.endswith('attnlab trace net.py:Net --input "rate = 0.5"')
    assert net(called="self, x, rate: float", inputs=["rate = 0.5"]).arguments == {"rate": 0.5}


@pytest.mark.parametrize(
    ("said", "value"),
    [("3", 3), ("True", True), ("None", None), ("'fast'", "fast"), ("S", "S"), ("-1", -1)],
)
def test_plain_arguments_of_forward(net, said, value):
    """Numbers, truths, None, text, and the symbol of a size."""
    contract = net(called="self, x, how", inputs=[f"how = {said}"])
    assert (contract.arguments, fed(contract)) == ({"how": value}, {"x": "B S D"})


def test_a_picture_is_no_number(net):
    """`img` is a size of a constructor, and a tensor of forward."""
    assert fed(net(called="self, img")) == {"img": "B 3 32 32"}


def test_a_picture_has_the_channels_of_the_constructor(net):
    """Patches by a reshape have no convolution that tells how many there are."""
    made = net(built="self, in_chans=4", called="self, img")
    assert fed(made) == {"img": "B 4 32 32"}


def test_plain_arguments_are_guessed_by_their_names(net):
    """The length is S, an offset is nought; what has a default is left alone."""
    contract = net(called="self, x, seq_len, offset: int, training=True")
    assert contract.arguments == {"seq_len": "S", "offset": 0}


def test_a_plain_argument_that_forward_lacks_is_refused(net):
    """A slip is told, like one in the name of a tensor."""
    error = refused(net, called="self, x, offset=0", inputs=["ofset = 3"])
    assert error.hint == "Did you mean offset?"


def test_what_is_said_last_of_an_argument_counts(net, tmp_path):
    """A flag turns a plain argument of the case into a tensor, and the other way round."""
    case = tmp_path / "case.toml"
    case.write_text('[inputs]\nx = "B S D"\noffset = 3\nmode = "= \'fast\'"\nn = "= S"\n')
    contract = net(called="self, x, offset, mode, n", case=case)
    assert contract.arguments == {"offset": 3, "mode": "fast", "n": "S"}
    contract = net(called="self, x, offset, mode, n", case=case, inputs=["offset: B S", "x = 1"])
    assert fed(contract) == {"offset": "B S"}
    assert contract.arguments == {"mode": "fast", "n": "S", "x": 1}


def test_an_input_that_forward_lacks_is_refused(net):
    """A slip in --input gets the near name."""
    error = refused(net, called="self, x, mask=None", inputs=["maks: B S S bool forbids"])
    assert error.message == "--input: forward takes no maks"
    assert error.hint == "Did you mean mask?"
    assert fed(net(called="self, x, **kw", inputs=["y: B D"])) == {"x": "B S D", "y": "B D"}


# ---------------------------------------------------------------- the sizes


def test_default_sizes_are_pairwise_different(net):
    """Equal sizes hide which axis is which."""
    contract = net(
        "self, dim, heads, n_kv_heads, head_dim, max_len, vocab_size, d_ff", "self, x, memory, ids"
    )
    sizes = contract.sizes
    assert sizes == {"B": 2, "S": 5, "D": 96, "H": 12, "Hkv": 3, "M": 64, "V": 50, "F": 24}
    assert len({*sizes.values(), sizes["D"] // sizes["H"]}) == 9


@pytest.mark.parametrize(
    "given", ["H=2", "H=4", "H=5", "D=30", "D=7", "S=3", "B=5", "S=12", "H=12"]
)
def test_the_rest_fits_to_what_is_given(net, given):
    """D is a multiple of H, and nothing coincides with what the user chose."""
    sizes = net(sizes=given).sizes
    assert sizes["D"] % sizes["H"] == 0
    values = [*sizes.values(), sizes["D"] // sizes["H"]]
    assert len(set(values)) == 5 or given == "D=7"


def test_a_table_is_longer_than_the_sequence(net):
    """M is an upper limit of S."""
    assert net("self, d_model, max_len", sizes="S=100").sizes["M"] > 100


def test_other_letters_are_sizes_too(net):
    """B T C is B S D in other hands; whatever else is said with --sizes."""
    contract = net(
        "self, n_embd=C, n_head=H"[:4] + ", n_embd, n_head", inputs=["x: B T C"], init="n_embd=C"
    )
    assert contract.sizes["C"] % contract.sizes["H"] == 0
    assert net(inputs=["x: B S wide D"], sizes="wide=9").sizes["wide"] == 9


def test_the_tiny_preset_is_the_one_of_the_paper_and_pencil(net):
    """B=1, S=4, D=8, H=2: small enough to follow by hand."""
    assert net(tiny=True).sizes == {"B": 1, "S": 4, "D": 8, "H": 2}
    assert net(tiny=True, sizes="S=6").sizes["S"] == 6


# ---------------------------------------------------------------- --case


def test_a_case_file_says_all_three(net, tmp_path):
    """The tables of a challenge.toml; flags win over them."""
    case = tmp_path / "case.toml"
    case.write_text(
        '[sizes]\nD = 10\nH = 5\n[init]\nunits = "D"\nact = "gelu"\n[inputs]\nz = "B S D"\n'
        '[output]\naxes = "B S D"\n[contract]\nmask = "random"\n'
    )
    contract = net("self, units, act", "self, z", case=case, sizes="D=20", init="act='relu'")
    assert contract.init == {"units": "D", "act": "relu"}
    assert contract.sizes == {"B": 2, "S": 6, "D": 20, "H": 5}
    assert fed(contract) == {"z": "B S D"}
    assert (contract.output, contract.example_mask) == (("B", "S", "D"), "random")


def test_a_container_is_one_argument(net, tmp_path):
    """Its parts stand where it stands in forward; a flag that names it anew replaces all of it."""
    case = tmp_path / "case.toml"
    case.write_text('[inputs]\ncache = "dict(k=B H T hd, v=B H T hd)"\n')
    contract = net(called="self, x, cache, mask", case=case, inputs=("mask: B S bool forbids",))
    assert list(fed(contract)) == ["x", "cache.k", "cache.v", "mask"]
    assert contract.containers == (Container(name="cache", kind="dict", keys=("k", "v")),)
    assert contract.sizes["T"] not in (contract.sizes["S"], contract.sizes["D"])
    for other in ("cache = None", "cache: B T D"):
        plain = net(called="self, x, cache", case=case, inputs=(other,))
        assert (plain.containers, "cache.k" in fed(plain)) == ((), False)


def test_a_challenge_toml_serves_as_a_case(net, tmp_path):
    """What it says beyond the case is left aside."""
    case = tmp_path / "challenge.toml"
    case.write_text('format = 1\ntitle = "t"\nlevel = 3\n[sizes]\nD = 10\n')
    assert net(case=case).sizes["D"] == 10


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("[sizes]\nD = 0\n", "sizes.D = 0: expected a whole number", ":2"),
        ("[sises]\nD = 1\n", "sises: unknown key", ":1"),
        ("[sizes\n", "no valid TOML", ":1"),
    ],
)
def test_a_wrong_case_file_is_unreadable(net, tmp_path, text, message, line):
    """The same messages as for a challenge, with file, line and key."""
    case = tmp_path / "case.toml"
    case.write_text(text)
    with pytest.raises(Unreadable) as caught:
        net(case=case)
    assert message in caught.value.message
    assert caught.value.where == f"case.toml{line}"


def test_a_missing_case_file_is_unreadable(net, tmp_path):
    """--case is read before anything is guessed."""
    with pytest.raises(Unreadable, match="no such file"):
        net(case=tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("called", "axes", "dtype"),
    [
        ("what: torch.LongTensor", "B S", "int"),
        ("what: torch.BoolTensor", "B S", "bool"),
        ("document", "B S", "int"),
        ("wq", "D D", "float"),
        ("keep", "B S", "bool"),
    ],
)
def test_the_annotation_and_the_name_tell_what_is_fed(net, called, axes, dtype):
    """Whole numbers for ids and documents, a square for a projection's weights."""
    (entry,) = net(called=f"self, {called}").inputs
    assert (" ".join(entry.axes), entry.dtype) == (axes, dtype)
