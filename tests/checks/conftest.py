"""Small tensors on one thread: with more, waiting for threads is most of the time."""

import pytest
import torch
from torch.nn import functional


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def everybodys_state():
    """Candidates that are tried in this process may change what belongs to all tests."""
    dtype, grad, names = torch.get_default_dtype(), torch.is_grad_enabled(), dict(vars(functional))
    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    yield
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(grad)
    torch.set_float32_matmul_precision(precision)
    torch.set_num_threads(threads)
    vars(functional).update(names)
