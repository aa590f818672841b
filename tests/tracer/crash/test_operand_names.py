"""What the operands of a call are called in the source."""

import pytest
from modules import module, traced


def explained(forward, init=""):
    return traced(module(forward, init)).crash.explanation


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        ("k = x\nreturn x @ k", "with k.transpose"),
        ("k = x\nreturn torch.matmul(x, k)", "with k.transpose"),
        ("k = x\nreturn x.matmul(k)", "with k.transpose"),
        ("k = x\nreturn x @ k, x", "with k.transpose"),
        ("k = x\nreturn [a @ k for a in (x,)]", "with k.transpose"),
        ("k = x\ny = (\n    x @ x.mT\n    @ x.mT\n)\nreturn y @ k.mT", "with x.mT.transpose"),
        ("k = x\nreturn x @ (k * 2)", "with (k * 2).transpose"),
        ("k = x\nreturn self.go(x, k)", "the operand.transpose"),
        ("y = x.mT\nx += y\nreturn x", "with y.transpose"),
        (
            "return x @ (x.relu() * x.sigmoid() + x.tanh() * x.exp() - 3)",
            "with the operand.transpose",
        ),
    ],
)
def test_an_operand_is_called_as_the_author_called_it(forward, name):
    """Operators, functions, methods, several on one line, and lines of several."""
    init = "self.go = torch.matmul"
    assert name in explained(forward, init)


def test_a_layer_calls_its_input_by_the_argument():
    """The operation is inside the layer, the name stands where the layer is called."""
    said = explained("h = x.unflatten(-1, (2, 4))\nreturn self.p(h)", "self.p = nn.Linear(8, 8)")
    assert "It runs with h.flatten(-2)" in said


def test_pieces_of_a_list_are_called_by_their_own_names():
    """Each operand of cat or stack."""
    said = explained("a, b = x, x[:, :, None]\nreturn torch.stack([a, b])")
    assert "It runs with a[:, :, None] or with b.squeeze(2)" in said


def test_a_source_that_cannot_be_read_gives_no_name():
    """Code made by exec has no lines."""
    forward = "space = {}\nexec('def f(a, b): return a @ b', space)\nreturn space['f'](x, x)"
    assert "with the operand.transpose(-2, -1)" in explained(forward)
