"""Why an operation raised, in the words of its operands' axes: one test for each kind of crash."""

from dataclasses import replace

import pytest
from modules import ATTENTION, FLAGSHIP, PLAIN, line_of, module, traced
from sample_records import OPS

from attnlab.records import Contract, Input
from attnlab.tracer.crash.operand_origins import place_of


def crash(forward, init="", contract=PLAIN, head="self, x"):
    """The crash of a module at B=2, S=4, D=8, where x is (B, S, D)."""
    trace = traced(module(forward, init=init, head=head), contract)
    assert trace.crash is not None, "it ran"
    return trace.crash


def test_a_row_of_another_file_is_named_with_it():
    """Its line number alone would be looked for in the file that raised."""
    made = replace(OPS[0], file="shop/model.py", line=63)
    assert place_of(made, "shop/model.py") == "on line 63"
    assert place_of(made, "shop/train.py") == "at model.py:63"


LAYER = "self.proj = nn.Linear(width, width)"


def test_linear_of_the_wrong_width():
    """The layer by name, what it maps, what it got, and by how much that is too wide."""
    got = crash("return self.proj(torch.cat([x, x], -1))", LAYER)
    assert got.explanation == (
        "proj maps 8 features to 8, but the last axis of its input (B, S, 2*D) = (2, 4, 16) has "
        "16, 2 times too wide. The first operand was made by cat on line 10."
    )
    assert (got.op, got.module, got.line) == ("linear", "proj", 10)
    assert [o.shape for o in got.operands] == [(2, 4, 16), (8, 8), (8,)]


def test_linear_that_is_too_narrow_is_not_called_too_wide():
    """Also of a layer without features, which nothing can be a multiple of."""
    assert "too wide" not in crash("return self.proj(x[..., :3])", LAYER).explanation
    assert "too wide" not in crash("return F.linear(x, torch.ones(5, 0))").explanation
    assert "too wide" not in crash("return self.proj(x[..., :0])", LAYER).explanation


def test_the_flagship_is_explained_at_its_last_line():
    """Four times too wide: the number of sequences and heads that got in between."""
    got = traced(FLAGSHIP, ATTENTION).crash
    assert "out_proj maps 8 features to 8" in got.explanation
    assert "has 32, 4 times too wide. The first operand was made by flatten" in got.explanation
    chunk, crash = line_of(FLAGSHIP, "CHUNK"), line_of(FLAGSHIP, "CRASH")
    assert got.explanation.endswith(
        f"on line {crash}. It went wrong earlier, at chunk on line {chunk} (leftover-axis)."
    )


def test_inputs_that_reach_a_crash_nearly_as_they_came_are_named():
    """A weight, a product with one or a long way from the input make it no suspect."""
    assert crash("return x @ x").inputs == ("x",)
    assert crash("return (x * 2).transpose(1, 2) @ x.mT").inputs == ("x",)
    assert crash("return self.proj(x).relu().tanh().sin() @ torch.ones(3)", LAYER).inputs == ()


def test_matmul_that_needs_a_transpose():
    """Two feature axes against each other, and the transpose that would fit."""
    got = crash("return x @ x")
    assert got.explanation == (
        "matmul sums the last axis of (B, S, D) (8) against axis -2 of (B, S, D) (4), which must "
        "be equal. It runs with x.transpose(-2, -1)."
    )


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        ("return x @ x[0].mT[:3]", "(3), which must be equal."),
        ("return x @ x[0, :, 0]", "against axis -1 of (S) (4), which must be equal."),
        ("return torch.mv(x[0], x[0, :, 0])", "mv sums the last axis of (S, D) (8)"),
        ("return torch.mm(x[0], x[0])", "It runs with x[0].transpose(-2, -1)"),
        ("return torch.bmm(x, x)", "bmm sums the last axis of (B, S, D) (8)"),
    ],
)
def test_matmul_in_its_other_forms(forward, says):
    """Other names, vectors, and operands that no transpose helps."""
    assert says in crash(forward).explanation


def test_matmul_with_batch_axes_that_do_not_line_up():
    """The contracted axes are equal; what stands before them is not."""
    got = crash("return x.expand(3, 2, 4, 8) @ x.mT.repeat(2, 1, 1)")
    assert got.explanation.startswith("The leading axes (3, 2) and (4) do not line up.")


@pytest.mark.parametrize(
    ("forward", "axes"),
    [
        ("return x + x.mT", "axis -1 of (B, S, D) = (2, 4, 8) is 8 and of (B, D, S) = (2, 8, 4)"),
        ("return x * x[:, :3]", "axis -2 of (B, S, D) = (2, 4, 8) is 4 and of (B, S[:3], D)"),
        ("return x.masked_fill(torch.ones(3, 4) > 0, 0.0)", "is 8 and of (3, 4) = (3, 4) is 4"),
        ("return torch.where(x > 0, x, torch.ones(5))", "is 8 and of (5) = (5) is 5"),
        ("x[0] = torch.ones(3)", "is 8 and of (3) = (3) is 3"),
    ],
)
def test_elementwise_operands_that_do_not_broadcast(forward, axes):
    """Lined up from the right: the first axis where neither is 1 nor both are equal."""
    assert axes in crash(forward).explanation
    assert "they must be equal, or 1." in crash(forward).explanation


@pytest.mark.parametrize(
    "forward",
    [
        "return torch.einsum('bsd,btd->bst', x, x[:, :, :3])",
        "return F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(3, 3) > 0)",
        "return F.layer_norm(x, (5,))",
        "return x.gather(-1, torch.ones(2, 4, 1))",
        "return x[torch.tensor([9])]",
    ],
)
def test_operations_with_rules_of_their_own_are_not_explained_as_broadcasting(forward):
    """Where operands do not meet axis by axis, PyTorch's own message is the better one."""
    got = crash(forward)
    assert "Lined up" not in got.explanation
    assert got.message


def test_view_of_a_tensor_in_another_order():
    """No view of a transposed tensor; reshape runs, and keeps whole axes together."""
    got = crash("return x.mT.view(2, -1)")
    assert got.explanation == (
        "The tensor (B, D, S) is not laid out in this order in memory (a transpose or permute "
        "came before), so no view of it has that shape. It runs with "
        "x.mT.reshape(...) in place of view. That operand was made by mT on line 9."
    )


TABLE = "self.wpe = nn.Parameter(torch.ones(1, 64, width))"


@pytest.mark.parametrize(
    ("forward", "by"),
    [
        ("return x * 2 + self.wpe[:, : x.shape[0]]", "getitem on line 10; its axis B was cut from"),
        (
            "p = self.wpe[:, : len(x)]\np = p * 2\nreturn x + p",
            "mul on line 11; its axis B was cut from one of 64 by getitem on line 10, where S is",
        ),
    ],
)
def test_a_slice_by_the_wrong_size_is_followed(forward, by):
    """A table cut by B where the other operand has S: the slice is named, not the sum alone."""
    assert f"The second operand was made by {by}" in crash(forward, TABLE).explanation


def test_the_odd_axis_of_either_operand_is_followed():
    """It may be the second operand that came from a join."""
    got = crash("k = torch.cat([x, x], 1)\nk = k * 2\nw = (x @ x.mT).softmax(-1)\nreturn w @ k")
    assert "second operand was made by mul on line 10; its axis S+S comes from cat on line 9" in (
        got.explanation
    )


@pytest.mark.parametrize("forward", ["x.reshape(2, 4, 3, 2)", "x.view(2, 5, -1)"])
def test_reshape_to_another_count(forward):
    """How many elements there are, beside what was asked for in PyTorch's message."""
    got = crash(f"return {forward}")
    assert got.explanation.endswith("= (2, 4, 8) has 64 elements.")
    assert "invalid for input of size 64" in got.message


def test_unflatten_to_another_count():
    """The same for the axis that unflatten cuts."""
    assert "has 64 elements" in crash("return x.unflatten(-1, (3, 2))").explanation


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (
            "return torch.cat([x, x[:, :2]], -1)",
            "Pieces must agree in every axis but the one they are joined along: {}. It runs {}",
        ),
        (
            "return torch.stack([x, x[:, :2]])",
            "Pieces must agree in every axis: {}.",
        ),
    ],
)
def test_pieces_that_do_not_join(forward, says):
    """cat leaves one axis free, stack none."""
    shapes = "(B, S, D) = (2, 4, 8) and (B, S[:2], D) = (2, 2, 8)"
    assert crash(forward).explanation == says.format(shapes, "with dim=1.")


def test_embedding_beyond_its_table():
    """How many rows the table has."""
    ids = Input(name="x", axes=("B", "S"), dtype="int")
    contract = Contract(sizes={"B": 4, "S": 9, "D": 8}, init={"width": "D"}, inputs=(ids,))
    got = crash("return self.table(x)", "self.table = nn.Embedding(2, width)", contract)
    assert got.explanation == "The table has 2 rows, so indices run from 0 to one less."


@pytest.mark.parametrize(
    ("forward", "kinds"),
    [
        ("return self.proj(x.double())", "float64, float32, float32"),
        ("return x.double() @ x.mT", "float64, float32"),
        ("return F.linear(x, torch.ones(3, 8).bfloat16())", "float32, bfloat16"),
    ],
)
def test_operands_of_different_types(forward, kinds):
    """All dtypes, in the order of the operands."""
    assert f"The operands have different dtypes: {kinds}." in crash(forward, LAYER).explanation


def test_embedding_of_numbers_that_are_no_indices():
    """Which dtype they have, and what makes them whole."""
    got = crash("return self.table(x)", "self.table = nn.Embedding(9, width)")
    assert got.explanation.startswith("Indices must be whole numbers, and these are float32")


def test_the_row_in_which_an_axis_was_born_is_named():
    """Several views later, the axis that does not fit still comes from the split."""
    forward = (
        "q = x.unflatten(-1, (4, 2))\nq = q.transpose(1, 2)\nq = q * 2\nreturn q @ torch.ones(3, 3)"
    )
    said = crash(forward).explanation
    assert "The first operand was made by mul on line 11; its axis " in said
    assert " comes from unflatten on line 9. " in said


def test_an_axis_of_an_input_was_born_nowhere():
    """It is given: the row that made the operand is enough."""
    said = crash("y = x * 2\nreturn y @ torch.ones(3, 3)").explanation
    assert "The first operand was made by mul on line 9. " in said


@pytest.mark.parametrize(
    ("forward", "error"),
    [
        ("raise ValueError('odd')", "ValueError"),
        ("assert x.shape[0] == 3, 'three'", "AssertionError"),
        ("return self.missing(x)", "AttributeError"),
        ("a, b = x.chunk(3, -1)", "ValueError"),
        ("return F.linear(x)", "TypeError"),
    ],
)
def test_an_exception_of_python(forward, error):
    """No operation raised, and that is said."""
    got = crash(forward)
    assert (got.op, got.error, got.line, got.operands) == ("", error, 9, ())
    assert got.explanation == "It was raised here, outside the operations that were recorded."


def test_an_exception_that_was_retold():
    """`raise ValueError(...) from error` keeps the operation, its operands and both messages."""
    got = crash("try:\n    x @ x\nexcept RuntimeError as e:\n    raise ValueError('shapes') from e")
    assert (got.op, got.error, got.line) == ("matmul", "ValueError", 10)
    assert got.message.startswith("shapes (from RuntimeError: ")
    assert "It runs with x.transpose(-2, -1)" in got.explanation


def test_a_first_operand_that_is_a_weight_has_no_birth():
    """The row that made the second operand is not said to have made the first."""
    got = crash("return self.w @ (x + 1)", "self.w = nn.Parameter(torch.ones(3, 3))")
    assert "The first operand was made by" not in got.explanation
    assert [o.axes for o in got.operands] == [("3", "3"), ("B", "S", "D")]


@pytest.mark.parametrize("forward", ["x @ 3", "x.transpose(1, 5)", "x[:, :, 9]", "x['a']"])
def test_what_is_not_explained_is_left_to_pytorch(forward):
    """No explanation is better than a wrong one: the message stands."""
    got = crash(f"return {forward}")
    assert (got.message != "", "None" in got.explanation) == (True, False)


def test_an_operation_without_operands_is_not_explained():
    """A factory that raises has no axes to speak of."""
    got = crash("return torch.arange(3, 1)")
    assert (got.op, got.operands, got.explanation) == ("arange", (), "")


def test_a_value_that_the_dtype_cannot_hold_is_named():
    """The mask is a boolean beside float16, and is not at fault."""
    said = crash("return x.half().masked_fill(x > 9, -1e9)").explanation
    assert said.startswith("The value -1e9 does not fit float16, whose largest is 65504")
    assert "dtypes" not in said
    assert "It runs with" not in said
