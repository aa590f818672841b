"""What names say of weights, and which ways of filling a parameter they leave."""

import pytest

from attnlab.probe.weights.roles import (
    all_options,
    layer_name,
    options,
    parse_name,
    pieces,
    slots,
    without_lost_letters,
)

SIZES = {"B": 3, "S": 7, "H": 6, "hd": 5, "Hkv": 2, "D": 30}
FUSED = {"qkv_proj.weight": (90, 30), "qkv_proj.bias": (90,), "out_proj.weight": (30, 30)}


@pytest.mark.parametrize(
    ("name", "role", "kind"),
    [
        ("q_proj.weight", "q", "weight"),
        ("attn.W_K", "k", "weight"),
        ("wv", "v", "weight"),
        ("bq", "q", "bias"),
        ("bO", "out", "bias"),
        ("to_qkv.weight", "qkv", "weight"),
        ("Wqkv.bias", "qkv", "bias"),
        ("query_key_value.weight", "qkv", "weight"),
        ("kqv", "kqv", ""),
        ("attn.c_attn.weight", "qkv", "weight"),
        ("attn.c_proj.weight", "out", "weight"),
        ("self_attn.in_proj_bias", "qkv", "bias"),
        ("to_out.0.weight", "out", "weight"),
        ("ln_1.bias", "norm", "bias"),
        ("q_norm.weight", "normq", "weight"),
        ("gamma", "norm", "weight"),
        ("beta", "norm", "bias"),
        ("mlp.up.weight", "up", "weight"),
        ("linears.2.weight", "", "weight"),
        ("kernel_a", "", "weight"),
        ("", "", ""),
    ],
)
def test_a_name_says_its_role(name, role, kind):
    """The names that attention layers of many libraries use."""
    parsed = parse_name(name)
    assert (parsed.role, parsed.kind) == (role, kind)


def test_fused_weights_are_cut_into_pieces():
    """Queries, keys and values can then go to layers of their own."""
    found = pieces(FUSED)
    assert [(p.expression, p.shape, p.parsed.role) for p in found[:2]] == [
        ("part(qkv_proj.weight, 0, 3)", (30, 30), "q"),
        ("part(qkv_proj.weight, 1, 3)", (30, 30), "k"),
    ]
    assert [p.expression for p in found[6:]] == ["out_proj.weight"]


def test_fused_weights_may_have_one_block_for_each_head():
    """As in BLOOM: the queries of head 0, its keys, its values, then those of head 1."""
    found = pieces(FUSED, SIZES, "H")
    assert found[1].expression == "part(qkv_proj.weight, 1, 3, H)"


def test_a_letter_that_no_parameter_can_hold_says_nothing():
    """The v of `pos_bias_v` is no value: it may be what is added to queries."""
    theirs = {"q.weight": (30, 30), "pos_bias_v": (6, 5)}
    places = slots({"wq.weight": (30, 30), "place_query": (6, 5)}, SIZES)
    parts = without_lost_letters(pieces(theirs), places, SIZES)
    assert [p.parsed.role for p in parts] == ["q", ""]


def test_a_layer_that_was_split_by_its_name_is_whole_where_nothing_holds_a_third():
    """The `in_proj` of a scan holds what is filtered and its gate, no queries, keys and values."""
    theirs = {"in_proj.weight": (60, 30), "out_proj.weight": (30, 22)}
    places = slots(
        {"enter.weight": (30, 30), "gate.weight": (30, 30), "leave.weight": (30, 22)}, SIZES
    )
    parts = without_lost_letters(pieces(theirs), places, SIZES)
    assert [(p.expression, p.shape) for p in parts] == list(theirs.items())


def test_taps_of_a_filter_may_lie_the_other_way_round():
    """(D, 1, K) as (K, D), where the module shifts its input and the reference slides a kernel."""
    assert ways("taps", (3, 30), {"conv.weight": (30, 1, 3)}) == [
        "t(squeeze(conv.weight))",
        "t(squeeze(flip(conv.weight, 2)))",
    ]


def ways(name, shape, theirs=FUSED, sizes=SIZES, lists=0):
    (slot,) = slots({name: shape}, sizes)
    return [o.expression for o in options(slot, pieces(theirs), sizes, lists)]


def test_heads_with_layers_of_their_own_are_a_family():
    """As many members as there are heads, all of one shape."""
    mine = {f"heads.{i}.key.weight": (5, 30) for i in range(6)}
    (slot,) = slots(mine, SIZES)
    assert (slot.name, slot.per, slot.shape) == ("heads.#.key.weight", "H", (5, 30))
    kinds = [o.expression for o in options(slot, pieces(FUSED), SIZES)]
    assert kinds[0] == "part(part(qkv_proj.weight, 1, 3), #, H)"
    assert len(slots({**mine, "heads.6.key.weight": (5, 30)}, SIZES)) == 7


def test_a_list_of_layers_may_itself_be_what_says_the_role():
    """`queries.3.weight`, and key heads that are fewer than query heads."""
    mine = {f"queries.{i}.weight": (5, 30) for i in range(6)}
    mine |= {f"keys.{i}.bias": (5,) for i in range(2)}
    found = slots(mine, {**SIZES, "Hkv": 2})
    assert [(s.name, s.per) for s in found] == [("queries.#.weight", "H"), ("keys.#.bias", "Hkv")]


@pytest.mark.parametrize(
    ("name", "shape", "first"),
    [
        ("value.weight", (30, 30), "part(qkv_proj.weight, 2, 3)"),
        ("W_V", (30, 30), "t(part(qkv_proj.weight, 2, 3))"),
        ("W_V", (6, 30, 5), "permute(split(part(qkv_proj.weight, 2, 3), 0, H), 0, 2, 1)"),
        ("W_O", (6, 5, 30), "permute(split(out_proj.weight, 1, H), 1, 2, 0)"),
        ("b_K", (6, 1, 5), "unsqueeze(split(part(qkv_proj.bias, 1, 3), 0, H), 1)"),
        ("qkv_proj.weight", (90, 30), "qkv_proj.weight"),
        (
            "kqv.bias",
            (90,),
            "cat(part(qkv_proj.bias, 1, 3), part(qkv_proj.bias, 0, 3), part(qkv_proj.bias, 2, 3))",
        ),
    ],
)
def test_the_likely_way_comes_first(name, shape, first):
    """What `Linear` keeps is not transposed, a bare matrix is."""
    assert ways(name, shape)[0] == first


@pytest.mark.parametrize(
    ("name", "shape", "never"),
    [
        ("value.weight", (30, 30), "qkv_proj.weight, 1"),
        ("norm.weight", (30,), "bias"),
        ("key.bias", (30,), "weight"),
    ],
)
def test_a_name_binds(name, shape, never):
    """What is called values never takes keys, whatever would make the output right."""
    assert not any(never in way for way in ways(name, shape))


@pytest.mark.parametrize("name", ["out.weight", "to_out.1.weight", "beta", "c_proj.weight"])
def test_other_names_only_order_the_ways(name):
    """`out` first holds what the reference calls so, yet may be any matrix that fits."""
    found = ways(name, (30, 30))
    assert len(found) == 8
    assert "out_proj" in found[0] or name == "beta"


def test_a_layer_whose_shape_contradicts_its_name_is_anonymous():
    """A layer called `q` that is as wide as q, k and v cannot be the queries alone."""
    open_slots = slots({"q.weight": (90, 30), "q.bias": (90,), "k.weight": (30, 30)}, SIZES)
    found = all_options(open_slots, pieces(FUSED), SIZES)
    assert found["q.weight"][0].expression.startswith("cat(part(qkv_proj.weight, 0, 3)")
    assert all(
        "qkv_proj.weight, 1" in o.expression for o in found["k.weight"] if "qkv" in o.expression
    )


def test_a_name_that_says_nothing_may_be_all_that_fits():
    """Four square matrices, each as it is or transposed."""
    assert len(ways("a", (30, 30))) == 8


def test_no_way_where_nothing_fits():
    """Another shape has no place, nor has a tensor of many axes."""
    assert ways("q.weight", (30, 29)) == []
    assert ways("q", (1, 2) * 6) == []


EXPERTS = {f"experts.{i}.up.weight": (7, 30) for i in range(4)} | {"shared.up.weight": (7, 30)}


@pytest.mark.parametrize(
    ("name", "shape", "theirs", "way"),
    [
        (  # one tensor for the layers of a list
            "up",
            (4, 30, 7),
            EXPERTS,
            ", ".join(f"experts.{i}.up.weight" for i in range(4)).join(
                ("permute(stack(", "), 0, 2, 1)")
            ),
        ),
        ("ls", (2, 30), {"gamma1": (30,), "gamma2": (30,), "x": (5,)}, "stack(gamma1, gamma2)"),
        (  # layers of several widths, one after the other
            "inp.weight",
            (21, 30),
            {"a.weight": (5, 30), "b.weight": (9, 30), "c.weight": (7, 30)},
            "cat(a.weight, b.weight, c.weight)",
        ),
        ("embed.weight", (30, 48), {"cut.weight": (30, 3, 4, 4)}, "flatten(cut.weight, 1)"),
        (
            "embed.weight",
            (30, 48),
            {"cut.weight": (30, 3, 4, 4)},
            "flatten(permute(cut.weight, 0, 2, 3, 1), 1)",
        ),
        ("cls", (30,), {"cls_token": (1, 1, 30)}, "squeeze(cls_token)"),
        (  # rows of heads, of four parts each
            "wq",
            (4, 31, 6, 5),
            {"q.weight": (120, 31)},
            "permute(split(split(q.weight, 0, H), 1, 4), 1, 3, 0, 2)",
        ),
    ],
)
def test_layers_may_be_kept_in_one_tensor(name, shape, theirs, way):
    """Stacked, joined, folded or without axes of size one; among the ways is the right one."""
    assert way in ways(name, shape, theirs, lists=1)


EXPERTS = {f"experts.{i}.{n}.weight": (9, 5) for i in range(3) for n in ("gate", "up")}
IN_ORDER = ", ".join(EXPERTS)


@pytest.mark.parametrize(
    ("shape", "way"),
    [
        ((3, 2, 9, 5), f"split(stack({IN_ORDER}), 0, 3)"),
        ((3, 18, 5), f"split(cat({IN_ORDER}), 0, 3)"),
        ((3, 5, 18), f"permute(split(cat({IN_ORDER}), 0, 3), 0, 2, 1)"),
    ],
)
def test_several_parameters_of_each_layer_may_be_kept_in_one_tensor(shape, way):
    """The gates of all experts and what they open, expert by expert."""
    sizes = {"B": 2, "S": 7, "D": 5}
    assert way in ways("w_in", shape, EXPERTS, sizes, lists=2)


def test_one_number_is_no_list_of_layers():
    """A temperature without an axis, beside a weight of one number."""
    assert ways("temperature", (), {"layers.0.alpha": (1,)}, lists=1) == ["squeeze(layers.0.alpha)"]


def test_the_gains_of_all_norms_are_likelier_than_any_vectors():
    """One tensor for all of them; that each has a number of its own speaks for none."""
    theirs = {f"{n}.{k}": (30,) for n in ("norm1", "norm2", "norm") for k in ("weight", "bias")}
    theirs |= {f"{n}.bias": (30,) for n in ("embed", "up", "down")}
    for name, kind in (("gains", "weight"), ("shifts", "bias")):
        stacked = ", ".join(f"{n}.{kind}" for n in ("norm1", "norm2", "norm"))
        assert ways(name, (3, 30), theirs, lists=2)[0] == f"stack({stacked})"


@pytest.mark.parametrize(
    ("name", "layer"),
    [("ln.weight", "ln"), ("ln_a.gain", "ln_a"), ("norm.beta", "norm"), ("gain", ""), ("a.wq", "")],
)
def test_the_gain_and_the_shift_of_a_norm_by_hand_are_those_of_one_layer(name, layer):
    """They go together, as the weight and the bias of a layer of PyTorch do."""
    assert layer_name(name) == layer


def test_parameters_of_layers_are_stacked_in_their_order_and_by_their_letters():
    """Keys of all layers, not the keys and values of one; norms in the order they are defined."""
    names = ("attn.k_proj", "attn.v_proj", "pre_a", "post_a", "pre_f", "post_f")
    theirs = {
        f"layers.{i}.{n}.weight": (12, 30) if "attn" in n else (30,)
        for i in range(2)
        for n in names
    }
    mine = {"params.k": (2, 30, 12), "params.v": (2, 30, 12), "norms": (2, 4, 30)}
    places = slots(mine, SIZES)
    parts = without_lost_letters(pieces(theirs), places, SIZES)
    first = {s.name: options(s, parts, SIZES, lists=2)[0].expression for s in places}
    keys = ", ".join(f"layers.{i}.attn.k_proj.weight" for i in range(2))
    norms = ", ".join(f"layers.{i}.{n}.weight" for i in range(2) for n in names[2:])
    assert first["params.k"] == f"permute(stack({keys}), 0, 2, 1)"
    assert first["norms"] == f"split(stack({norms}), 0, Hkv)"


def test_numbers_are_compared_by_their_order():
    """The first of three norms is `norms.0` in one file and `norm1` in another."""
    mine = slots({f"norms.{i}.weight": (8,) for i in range(3)}, SIZES)
    found = all_options(mine, pieces({f"norm{i}.weight": (8,) for i in (1, 2, 3)}), SIZES)
    likeliest = {name: ways[0].expression for name, ways in found.items()}
    assert likeliest == {f"norms.{i}.weight": f"norm{i + 1}.weight" for i in range(3)}


def test_words_and_room_tell_layers_of_one_shape_apart():
    """`cross` is said by few names, and one fused layer takes the room of three."""
    width = {"weight": (30, 30)}
    theirs = {
        f"{part}_attn.W_{letter}.{kind}": shape
        for part in ("enc", "dec", "cross")
        for letter in "qkvo"
        for kind, shape in width.items()
    }
    mine = {}
    for part in ("encoder.attn", "decoder.attn"):
        mine |= {f"{part}.in_proj.weight": (90, 30), f"{part}.out_proj.weight": (30, 30)}
    mine |= {"decoder.cross.q_proj.weight": (30, 30), "decoder.cross.kv_proj.weight": (60, 30)}
    mine |= {"decoder.cross.out_proj.weight": (30, 30)}
    found = all_options(slots(mine, SIZES), pieces(theirs), SIZES)
    said = {name: ways[0].expression for name, ways in found.items()}
    assert said["decoder.cross.q_proj.weight"] == "cross_attn.W_q.weight"
    assert "cross" in said["decoder.cross.kv_proj.weight"]
    assert "dec_attn" in said["decoder.attn.in_proj.weight"]
    assert "enc_attn" in said["encoder.attn.in_proj.weight"]


def test_one_parameter_holds_one_of_a_list_of_layers_or_all():
    """Never two matrices of half of the experts."""
    theirs = {f"experts.{i}.w{n}.weight": (4, 6) for i in range(6) for n in (1, 3)}
    mine = {"w_gate": (6, 4, 6), "w_up": (6, 4, 6)}
    found = all_options(slots(mine, SIZES), pieces(theirs), SIZES, lists=2)
    assert found["w_gate"]
    for way in found["w_gate"]:
        firsts = way.expression.count("w1.weight")
        assert firsts in (0, 6), way.expression


def test_layers_that_all_stand_elsewhere_keep_their_order():
    """Norms that one file makes before its layers and the other behind them."""
    theirs = {**{f"w.{i}.weight": (8, 8) for i in range(4)}, "a.gain": (8,), "b.gain": (8,)}
    mine = slots(
        {"one.gain": (8,), "two.gain": (8,), **{f"w.{i}.weight": (8, 8) for i in range(4)}}, SIZES
    )
    found = all_options(mine, pieces(theirs), SIZES)

    def cost(name, expression):
        return next(o.cost for o in found[name] if o.expression == expression)

    kept = cost("one.gain", "a.gain") + cost("two.gain", "b.gain")
    assert kept < cost("one.gain", "b.gain") + cost("two.gain", "a.gain")
