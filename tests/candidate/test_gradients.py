"""Gradients as a network makes them."""

import torch
from modules import made, module, randn

INIT = "self.proj = nn.Linear(width, width)"
X, OTHER = randn(2, 3, 4), randn(1, 3, 4)
ASKED = [[("x", X)], [("x", OTHER)]]
COTANGENTS = [randn(2, 3, 4) + 1, randn(1, 3, 4) - 1]


def network(forward):
    session = made(module(forward, INIT))
    return session, session.ask(
        "interleaved_gradients", inputs=ASKED, cotangents=COTANGENTS, train=True
    )


def test_gradients_of_several_calls_add_up():
    """Each call's own in its inputs; in the weights the sum, and the last call's twice."""
    session, told = network("return self.proj(x)")
    alone = [
        session.ask("gradients", inputs=given, cotangent=cotangent)
        for given, cotangent in zip(ASKED, COTANGENTS, strict=True)
    ]
    for mine, one in zip(told["inputs"], alone, strict=True):
        torch.testing.assert_close(mine["x"], one["inputs"]["x"])
    one, two = (found["weights"]["proj.weight"] for found in alone)
    torch.testing.assert_close(told["weights"]["proj.weight"], one + 2 * two)
    torch.testing.assert_close(told["frozen"]["x"], alone[0]["inputs"]["x"])
    assert [answer["output"].shape[0] for answer in told["answers"]] == [2, 1, 2]


def test_inputs_are_those_of_a_layer_amid_others():
    """Neither leaves nor contiguous, but for the last, as a first layer has them."""
    _, told = network("return x * 1.0 + float(x.is_leaf) + 2 * float(x.is_contiguous())")
    assert torch.equal(told["answers"][0]["output"], X)
    torch.testing.assert_close(told["answers"][2]["output"], X + 3)  # in eval mode, by itself


def test_parameters_learn_again_after_they_were_frozen():
    """What was frozen before stays so."""
    session, told = network("return self.proj(x) * float(self.proj.weight.requires_grad)")
    assert told["frozen"]["x"].abs().max() == 0
    assert all(w.requires_grad for w in session.target.parameters())


def test_gradients_of_copies_in_other_types():
    """Each in its type, near those of the module itself, which stays what it is."""
    session = made(module("return self.proj(x)", INIT))
    kept, asked = session.target, {"inputs": ASKED[0], "cotangent": COTANGENTS[0], "train": True}
    right = session.ask("gradients", **asked)
    told = session.ask("cast_gradients", dtypes=["float64", "bfloat16"], **asked)["answers"]
    assert [answer["dtype"] for answer in told] == ["torch.float64", "torch.bfloat16"]
    for answer in told:
        mine, expected = answer["weights"]["proj.weight"], right["weights"]["proj.weight"]
        torch.testing.assert_close(mine.float(), expected, rtol=0.05, atol=0.05)
    assert session.target is kept
    assert kept.proj.weight.dtype is torch.float32
