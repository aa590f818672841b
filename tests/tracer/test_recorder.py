"""One row per operation as the user wrote it: place, shape, descent, submodule."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from modules import names, randn, recorded
from torch import nn

from attnlab.tracer import raw_trace, recorder
from attnlab.tracer.recorder import Recorder


def here() -> int:
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


# ---------------------------------------------------------------- one row per operation


def test_one_row_per_operation_in_order():
    """Softmax, division and the two products of attention are four rows, not a dozen kernels."""
    q = randn(2, 3, 4)
    got = recorded(lambda q: F.softmax(q @ q.mT / 2.0, dim=-1) @ q, q)
    assert names(got) == ["mT", "matmul", "div", "softmax", "matmul"]


def test_row_has_the_line_of_the_users_code():
    """The line, its file and its source are those of the statement that computes."""

    def f(x):
        first = here() + 1
        y = x * 2
        z = (
            y
            + 1
        )  # fmt: skip
        return first, z

    got = recorded(f, randn(2))
    first = f(randn(2))[0]
    assert [op.line for op in got.ops] == [first, first + 2]
    assert got.ops[0].source == "y = x * 2"
    assert got.ops[0].file.endswith("test_recorder.py")


def test_row_inside_a_torch_module_is_the_users_call():
    """nn.Linear's F.linear stands at the line that calls the layer, not in PyTorch's file."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(3, 4)

        def forward(self, x):
            self.line = here() + 1
            return self.proj(x)

    net = Net()
    (op,) = recorded(net, randn(2, 3)).ops
    assert (op.op, op.line, op.module) == ("linear", net.line, "proj")


def test_row_of_einops_is_the_users_call(monkeypatch, tmp_path):
    """A notation library is no user code: the row stands at the line that calls rearrange."""
    monkeypatch.setattr(recorder, "EINOPS", f"{tmp_path}/einops/")
    code = compile("def split(x): return x.reshape(2, -1)", f"{tmp_path}/einops/einops.py", "exec")
    space = {}
    exec(code, space)

    def f(x):
        f.line = here() + 1
        return space["split"](x)

    (op,) = recorded(f, randn(6)).ops
    assert op.line == f.line


def test_a_package_whose_name_begins_with_torch_is_user_code(monkeypatch):
    """`torchvision` lies beside `torch` and is not PyTorch: its lines are shown."""
    file = recorder.TORCH.rstrip("/") + "stuff/net.py"
    space = {}
    exec(compile("\n\ndef f(x): return x + 1", file, "exec"), space)
    (op,) = recorded(space["f"], randn(2)).ops
    assert (op.file, op.line) == (raw_trace.display_path(file), 3)


def test_attribute_access_makes_no_row_but_a_transposing_getter_does():
    """shape, dtype, device, grad, requires_grad are no operations; T, mT and real are."""

    def f(x):
        f.seen = x.shape, x.dtype, x.device, x.grad, x.requires_grad, x.ndim, x.is_cuda
        f.seen += x.grad, x.grad_fn, x._base
        f.seen += x.size(), x.dim(), x.numel(), x.stride(), x.is_contiguous(), x.tolist()
        return x.T, x.mT, torch.view_as_complex(x).real

    x = randn(3, 2)
    x.grad = torch.ones(3, 2)
    assert names(recorded(f, x)) == ["T", "mT", "view_as_complex", "real"]


def test_operators_lose_their_underscores():
    """`x[0]`, `-x` and `1 - x` are shown as getitem, neg and rsub."""
    got = recorded(lambda x: (x[0], -x, 1 - x, x // 2, ~(x > 0)), randn(3))
    assert names(got) == ["getitem", "neg", "rsub", "floordiv", "gt", "invert"]


def test_every_output_of_an_operation_is_a_row():
    """chunk gives three rows with the same parents, and max gives values and indices."""
    got = recorded(lambda x: (x.chunk(3), x.max(0)), randn(6, 2))
    assert names(got) == ["chunk", "chunk", "chunk", "max", "max"]
    assert [op.shape for op in got.ops[:3]] == [(2, 2)] * 3
    assert {op.parents for op in got.ops} == {(-1,)}
    assert got.ops[4].dtype == "int64"


def test_iterating_a_tensor_is_an_unbind():
    """`q, k, v = qkv` is shown as the unbind that it is, at the user's line."""

    def f(x):
        f.line = here() + 1
        a, b = x
        return a, b

    got = recorded(f, randn(2, 3))
    assert [(op.op, op.line, op.shape) for op in got.ops] == [("unbind", f.line, (3,))] * 2


def test_factories_are_rows_without_parents():
    """A table that forward builds is shown, and descends from nothing."""
    got = recorded(lambda: torch.arange(4).unsqueeze(0))
    assert names(got) == ["arange", "unsqueeze"]
    assert [op.parents for op in got.ops] == [(), (0,)]


def test_nothing_is_recorded_outside_the_block():
    """The recorder leaves no hook and no mode behind, also after an exception."""
    net = nn.Linear(2, 2)
    rec = Recorder(net)
    with pytest.raises(RuntimeError), rec:
        net(randn(3))
    count = len(rec.log)
    net(randn(1, 2))
    assert len(rec.log) == count
    assert not nn.modules.module._global_forward_hooks
    assert not nn.modules.module._global_forward_pre_hooks


def test_the_result_is_the_plain_result():
    """Recording changes no value, in eval mode with dropout and a residual."""
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = randn(2, 4, 8)
    plain = net(x)
    with Recorder(net):
        again = net(x)
    torch.testing.assert_close(again, plain)


# ---------------------------------------------------------------- descent


def test_parents_are_rows_and_inputs():
    """A parent of -1 - i is input i; the others are rows."""

    def f(x, y):
        a = x + 1
        return torch.cat([a, y, a])

    got = recorded(f, randn(2), randn(2))
    assert [op.parents for op in got.ops] == [(-1,), (0, -2, 0)]


def test_weights_are_operands_without_being_parents():
    """Nobody computed a weight in this run: its shape is known, its row is not."""
    got = recorded(nn.Linear(3, 4), randn(2, 3))
    assert got.ops[0].parents == (-1,)
    assert got.operands[0] == ((2, 3), (4, 3), (4,))


def test_a_tensor_that_bears_the_id_of_a_dead_one_is_not_taken_for_it():
    """Ids are used again: a fresh parameter is nobody's child, whatever stood at its address."""
    got = recorded(lambda: [nn.MultiheadAttention(4, 2) for _ in range(5)])
    for op in got.ops:
        for parent in op.parents:
            assert got.ops[parent].shape in got.operands[op.index], (op, got.ops[parent])


def test_operands_inside_lists_are_seen():
    """cat, stack, einsum and indexing with tensors name all their operands."""

    def f(x, i):
        return torch.stack([x, x]), torch.einsum("a,a->", [x, x]), x[i], x[:, i[0]]

    x, i = randn(3, 3), torch.tensor([0, 1])
    with pytest.raises(RuntimeError):
        f(x, i)
    got = recorded(lambda x, i: (torch.stack([x, x]), x[i], torch.einsum("ab,bc", x, x)), x, i)
    assert [op.parents for op in got.ops] == [(-1, -1), (-1, -2), (-1, -1)]


# ---------------------------------------------------------------- modules


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        shared = nn.Linear(4, 4)
        self.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.shared = shared
        self.again = shared

    def forward(self, x):
        return self.again(self.shared(self.first(x))) + 1


def test_rows_name_the_submodule_that_ran():
    """Dotted paths as in named_modules; what forward itself computes has the empty path."""
    got = recorded(Block(), randn(2, 4))
    assert [(op.op, op.module) for op in got.ops] == [
        ("linear", "first.0"),
        ("relu", "first.1"),
        ("linear", "shared"),
        ("linear", "shared"),
        ("add", ""),
    ]


def test_a_module_that_is_no_child_counts_to_its_caller():
    """A layer made inside forward has no name of its own."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Module()
            self.inner.forward = self.act

        def act(self, x):
            return nn.ReLU()(x)

        def forward(self, x):
            return self.inner(x)

    (op,) = recorded(Net(), randn(2)).ops
    assert op.module == "inner"


def test_the_path_is_right_after_a_submodule_raised():
    """A caught exception in a submodule does not leave its name on what follows."""

    class Bad(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.bad = Bad()

        def forward(self, x):
            try:
                return self.bad(x)
            except ValueError:
                return x + 1

    (op,) = recorded(Net(), randn(2)).ops
    assert (op.op, op.module) == ("add", "")
