"""What torch.compile makes of 15 modules, beside what `torch._dynamo.explain` says."""

import pytest
from compiled_modules import MODULES, assert_agrees_with_explain


@pytest.mark.parametrize("name", MODULES)
def test_it_agrees_with_explain(name):
    """Graphs and lines of breaks are those of PyTorch's own report; of each line one is told."""
    assert_agrees_with_explain(name)
