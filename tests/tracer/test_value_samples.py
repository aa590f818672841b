"""Small tensors are lent, not copied: nobody may change what a row has seen."""

import torch
from modules import recorded
from shots import x

from attnlab.tracer import value_samples
from attnlab.tracer.value_samples import Sampler, settled


def largest(f):
    return [op.max for op in recorded(f, torch.ones(4)).ops]


def test_what_is_written_later_does_not_change_an_earlier_row():
    """Each row has the numbers of its own time, whoever writes, and through whichever view."""

    def f(t):
        y = t * 2
        y.view(2, 2)[0] = 7.0
        z = y + 1
        z += 1
        torch.add(z, 1, out=z)

    assert largest(f) == [2.0, 2.0, 7.0, 8.0, 9.0, 10.0]


def test_what_is_written_outside_of_torch_does_not_change_an_earlier_row():
    """NumPy shares the memory of a tensor."""

    def f(t):
        y = t * 2
        y.numpy()[:] = 9.0
        return y + 0

    assert largest(f) == [2.0, 9.0]


def test_what_was_written_unseen_has_no_numbers():
    """A write that no mode saw is found by the version: no number is better than a wrong one."""
    sampler, t = Sampler(), torch.ones(3)
    sample = sampler(t, t.dtype, 1, own=True)
    assert settled(sample) is t
    t += 1
    assert settled(sample) is None


def test_a_view_of_a_large_tensor_is_copied():
    """To keep a row of a table would keep the table."""
    table = torch.zeros(100, 100)
    kept = Sampler()(table[0], table.dtype, 1, own=False)
    assert kept.untyped_storage().nbytes() == 400


def test_no_more_is_kept_than_allowed(monkeypatch):
    """Many small tensors are a large one: beyond the limit only three numbers stay of each."""
    monkeypatch.setattr(value_samples, "KEEP", 8)
    got = recorded(lambda t: [t + i for i in range(9)], torch.ones(4))
    assert [op.max for op in got.ops] == [float(i + 1) for i in range(9)]
    sampler = Sampler()
    kept = [sampler(t, t.dtype, i, own=True) for i, t in enumerate(x(4, 4))]
    assert [type(k) for k in kept] == [list, list, tuple, tuple]


def test_what_needs_gradients_is_not_lent():
    """A tensor that is kept with its graph would keep everything before it."""
    t = torch.ones(3, requires_grad=True) * 2
    sample = Sampler()(t, t.dtype, 1, own=True)
    assert isinstance(sample, torch.Tensor)
    assert not sample.requires_grad


def test_works_in_inference_mode():
    """Tensors without a version are copied."""
    with torch.inference_mode():
        t = torch.ones(3)
        sample = Sampler()(t, t.dtype, 1, own=True)
        t += 1
    assert sample.tolist() == [1.0, 1.0, 1.0]
